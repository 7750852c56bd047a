"""From the JSON of a plan to its operations: each reference followed, each number in its range."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.mscclpp.language import plan_of_script
from asyncsim.frontends.mscclpp.msccl import parse_algorithm
from asyncsim.frontends.mscclpp.plan import (
    CHUNKS,
    COLLECTIVES,
    MEMORY,
    MOST,
    NAMES,
    PACKETS,
    PORT,
    SCRATCH,
    SWITCH,
    TABLE,
    TYPES,
    Gpu,
    Operation,
    Plan,
    Span,
    flat,
)
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABSENT: Any = object()
_LARGEST = 2**31
"""Counters of the executor have 32 bits."""


class _Placed(dict[str, Any]):
    """A JSON object that knows at which character of the text it begins."""

    at = 0


class _Decoder(json.JSONDecoder):
    """Decodes JSON into objects that know where they begin."""

    def __init__(self) -> None:
        super().__init__()
        parse: Any = json.decoder.JSONObject  # type: ignore[attr-defined]

        def placed(s_and_end: tuple[str, int], *rest: Any) -> tuple[_Placed, int]:  # noqa: ANN401 - as json has them
            made, end = parse(s_and_end, *rest)
            found = _Placed(made)
            found.at = s_and_end[1] - 1
            return found, end

        self.parse_object = placed
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class _Place:
    """A value of the JSON and where it stands."""

    value: Any
    path: str
    file: str

    def fail(self, text: str) -> MisuseError:
        return MisuseError(f"{self.file}: {self.path or 'the plan'}: {text}")

    def get(self, key: str, kind: type, default: Any = _ABSENT) -> Any:  # noqa: ANN401 - what the JSON has
        if not isinstance(self.value, dict):
            raise self.fail(f"is {self.value!r}; an object with {key!r} belongs here")
        value = self.value.get(key, default)
        if value is _ABSENT:
            raise self.fail(f"has no {key!r}")
        if value is not default and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.fail(f"{key!r} is {value!r}; it is {'an' if kind is int else 'a'} {kind.__name__}")
        return value

    def one_of(self, key: str, known: Sequence[str], default: Any = _ABSENT) -> str:  # noqa: ANN401 - or none
        value: str = self.get(key, str, default)
        if value not in known:
            raise self.fail(f"{key} is {value!r}; it is one of {', '.join(known)}")
        return value

    def number(self, key: str, default: Any = _ABSENT, *, least: int = 0, below: int = 0, what: str = "") -> int:  # noqa: ANN401 - or none
        value: int = self.get(key, int, default)
        if value < least:
            raise self.fail(f"{key!r} is {value}; it is at least {least}")
        if what and value >= below:
            raise self.fail(f"{key} is {value}; {what} {below}")
        return value

    def inner(self, key: str) -> _Place:
        return _Place(self.get(key, dict), f"{self.path}.{key}", self.file)

    def each(self, key: str, default: Any = ()) -> list[_Place]:  # noqa: ANN401 - or none
        dot = f"{self.path}." if self.path else ""
        return [_Place(each, f"{dot}{key}[{n}]", self.file) for n, each in enumerate(self.get(key, list, default))]

    def numbers(self, key: str) -> list[int]:
        for item in self.each(key):
            if not isinstance(item.value, int) or isinstance(item.value, bool) or item.value < 0:
                raise item.fail(f"is {item.value!r}; it is an integer >= 0")
        return [item.value for item in self.each(key)]

    def buffer(self, key: str) -> str:
        name: str = self.get(key, str)
        if name not in TYPES:
            raise self.fail(f"{key} is {name!r}; it is i, o or s")
        return TYPES[name]

    def limit(self, count: int, what: str, word: str = "") -> None:
        if count > MOST[what]:
            raise self.fail(f"has {count} {word or what}; the executor has room for {MOST[what]}")


def load_plan(file: str | Path, arguments: Sequence[str] = ()) -> Plan:
    """Return the plan that a file holds.

    Args:
        file: JSON, as the DSL of MSCCL++ prints it; a script in the DSL (.py); or an algorithm of MSCCL (.xml).
        arguments: of a script.

    Raises:
        MisuseError: it is no plan; the message has the place in the JSON.
        RefusedError: it has an operation that the executor does not have.

    """
    kind = Path(file).suffix
    try:
        text = plan_of_script(str(file), arguments) if kind == ".py" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return parse_algorithm(text, str(file)) if kind == ".xml" else parse_plan(text, str(file))


def parse_plan(text: str, file: str = "plan.json") -> Plan:
    """Return the plan that a text holds.

    Args:
        text: JSON.
        file: what reports call it.

    Raises:
        MisuseError: as of `load_plan`.

    """
    try:
        tree = _Decoder().decode(text)
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"{file} is no JSON: {error}") from error
    if not isinstance(tree, dict):
        raise MisuseError(f"{file}: an execution plan is a JSON object, this is a {type(tree).__name__}")
    top = _Place(tree, "", file)
    gpus = sorted(top.each("gpus", _ABSENT), key=lambda place: place.number("id"))
    if [place.number("id") for place in gpus] != list(range(len(gpus))) or not gpus:
        raise top.fail(f"gpus have the ids {[place.number('id') for place in gpus]}; they are 0, 1, 2, …, each once")
    collective = top.one_of("collective", COLLECTIVES)
    flags = [top.get(key, bool, default=False) for key in ("inplace", "reuse_resources", "use_double_scratch_buffer")]
    reader = _Reader(
        [{kind: place.number(key, 0) for kind, key in CHUNKS.items()} for place in gpus],
        [at for at, letter in enumerate(text) if letter == "\n"],
    )
    read = tuple(reader.gpu(place) for place in gpus)
    align = top.number("buffer_alignment", 16, least=1)
    return Plan(file, top.get("name", str), collective, flags[0], read, flags[1], flags[2], align, tree)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the gpus of a plan; `breaks`: where lines of the text end."""

    chunks: Sequence[dict[str, int]]
    breaks: Sequence[int]

    def gpu(self, place: _Place) -> Gpu:
        rank = place.number("id")
        peers: dict[str, list[int]] = {MEMORY: [], PORT: []}
        switches: list[tuple[tuple[int, ...], str]] = []
        for entry in place.each("channels"):
            kind = entry.one_of("channel_type", (MEMORY, PORT, SWITCH))
            if kind == SWITCH:
                over, groups = entry.buffer("buffer_type"), entry.each("rank_groups")
                switches += [(tuple(self.peer(entry, r) for r in group.numbers("ranks")), over) for group in groups]
            else:
                peers[kind] += [self.peer(entry, peer, own=rank) for peer in entry.numbers("connected_to")]
        if () in [ranks for ranks, _ in switches]:
            raise place.fail("a switch channel has no ranks")
        remote = [
            (self.peer(entry, entry.number("rank")), entry.buffer("type")) for entry in place.each("remote_buffers")
        ]
        semaphores = tuple(
            entry.number("init_value", below=_LARGEST, what="values are less than")
            for entry in place.each("semaphores")
        )
        place.limit(len(semaphores), "barriers", "semaphores")
        made = Gpu(rank, self.chunks[rank], {k: tuple(v) for k, v in peers.items()}, tuple(switches), semaphores)
        for entry in place.each("threadblocks"):
            number = entry.number("id", below=1 << 16, what="thread blocks have numbers less than")
            if number in made.blocks:
                raise entry.fail(f"thread block {number} stands here twice")
            made.blocks[number] = self._block(entry, made, remote, number)
        return made

    def _block(self, place: _Place, gpu: Gpu, remote: list[tuple[int, str]], number: int) -> tuple[Operation, ...]:
        channels: dict[str, list[int]] = {MEMORY: [], PORT: [], SWITCH: []}
        for entry in place.each("channels"):
            kind = entry.one_of("channel_type", tuple(channels))
            known = len(gpu.switches) if kind == SWITCH else len(gpu.peers[kind])
            for id_ in entry.numbers("channel_ids"):
                if id_ >= known:
                    raise entry.fail(f"channel_ids has {id_}; gpu {gpu.id} has {known} {kind} channels")
                channels[kind].append(id_)
        buffers: dict[str, list[tuple[int, str]]] = {MEMORY: [], PORT: [], SWITCH: []}
        for entry in place.each("remote_buffer_refs"):
            kind = entry.one_of("access_channel_type", (MEMORY, PORT))
            for id_ in entry.numbers("remote_buffer_ids"):
                if id_ >= len(remote):
                    raise entry.fail(f"remote_buffer_ids has {id_}; gpu {gpu.id} has {len(remote)} of them")
                buffers[kind].append(remote[id_])
        place.limit(sum(map(len, channels.values())), "channels")
        place.limit(sum(map(len, buffers.values())), "remote buffers")
        names = _Names(gpu, number, channels, buffers, self)
        made = tuple(names.operation(entry, n) for n, entry in enumerate(place.each("ops")))
        place.limit(len(list(flat(made, pipelines=True))), "operations")
        return made

    def peer(self, place: _Place, rank: int, own: int = -1) -> int:
        if rank >= len(self.chunks) or rank == own:
            raise place.fail(f"rank {rank} is no peer; the plan has gpus 0 to {len(self.chunks) - 1}")
        return rank


@dataclass(frozen=True, slots=True)
class _Names:
    """What the numbers in the operations of one thread block mean."""

    gpu: Gpu
    block: int
    channels: dict[str, list[int]]
    buffers: dict[str, list[tuple[int, str]]]
    reader: _Reader

    def operation(self, place: _Place, index: int, inside: int = -1) -> Operation:
        """Return the operation that stands at a place."""
        name = place.get("name", str)
        if name == "glre":
            text = f"{place.file}: {place.path}: the executor has no operation 'glre'; glres stores the sum"
            raise RefusedError(text)
        if name not in TABLE or (name == "pipeline" and inside >= 0):
            raise place.fail(f"operation {name!r} is not one of {', '.join(NAMES)}")
        group = SWITCH if name in ("glres", "gstore", "gstorepkt") else MEMORY
        channel = place.one_of("channel_type", tuple(self.channels), group)
        facts: dict[str, Any] = {}
        if name == "pipeline":
            context = place.inner("iter_context")
            facts = {"unit": context.number("unit_size", least=1), "chunks": context.number("num_chunks", least=1)}
            facts["body"] = tuple(self.operation(entry, index, n) for n, entry in enumerate(place.each("ops")))
        elif name == "barrier":
            number = place.number("barrier_id")
            if number >= MOST["barriers"]:
                raise place.fail(f"barrier_id is {number}; the executor has {MOST['barriers']} barriers")
            facts = {"number": number, "parties": place.number("num_threadblocks", least=1)}
        elif TABLE[name].does in ("a", "r"):
            facts["semaphores"] = self._known(place, "semaphore_ids", len(self.gpu.semaphores), "semaphores")
        elif name != "nop":
            facts = self._data(place, name, channel)
        reduce = place.one_of("reduce_op", ("sum", "min", "max"), "sum")
        line = bisect_right(self.reader.breaks, place.value.at) + 1
        return Operation(
            name, self.gpu.id, self.block, index, inside, place.path, line, channel=channel, reduce=reduce, **facts
        )

    @staticmethod
    def _known(place: _Place, key: str, count: int, what: str) -> tuple[int, ...]:
        ids = tuple(place.numbers(key))
        if not ids or max(ids) >= count:
            raise place.fail(f"{key} is {list(ids)}; there are {count} {what} here")
        place.limit(len(ids), "of an operation", f"{what} in one operation")
        return ids

    def _data(self, place: _Place, name: str, channel: str) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if not TABLE[name].reads or channel == PORT:
            known = self.channels[channel]
            ids = self._known(place, "channel_ids", len(known), f"{channel} channels of the thread block")
            facts["channels"] = tuple(known[id_] for id_ in ids)
        if not TABLE[name].reads:
            return facts
        both = [tuple(self._span(each, channel) for each in place.each(key)) for key in ("src_buff", "dst_buff")]
        place.limit(max(map(len, both)), "buffers", "buffers on one side")
        facts.update(sources=both[0], targets=both[1])
        self._check_shape(place, name, both[0], both[1], len(facts.get("channels", both[1])))
        if place.get("tbg_info", dict, {}):
            inner = place.inner("tbg_info")
            facts["slice_of"] = inner.number("tb_id"), inner.number("tbg_size", least=1)
            if facts["slice_of"][0] >= facts["slice_of"][1]:
                raise inner.fail("tb_id is not less than tbg_size")
        return facts

    def _span(self, place: _Place, channel: str) -> Span:
        index, size = place.number("index"), place.number("size", 1, least=1)
        if "switch_channel_id" in place.value:
            known = self.channels[SWITCH]
            id_ = place.number("switch_channel_id", below=len(known), what="switch channels of the thread block:")
            group, buffer = self.gpu.switches[known[id_]]
            span = Span(-1, buffer, index, size, group)
        elif "buffer_id" in place.value:
            refs = self.buffers[channel]
            span = Span(
                *refs[
                    place.number("buffer_id", below=len(refs), what=f"remote buffers by {channel} of the thread block:")
                ],
                index,
                size,
            )
        else:
            span = Span(self.gpu.id, place.buffer("type"), index, size)
        for rank in span.ranks:
            there = self.reader.chunks[rank][span.buffer]
            if index + size > there:
                raise place.fail(f"{span} is out of range: gpu {rank} has {there} {CHUNKS[span.buffer]}")
        return span

    def _check_shape(
        self, place: _Place, name: str, sources: Sequence[Span], targets: Sequence[Span], channels: int
    ) -> None:
        row, text = TABLE[name], f"{name} has {len(sources)} sources and {len(targets)} targets"
        if not sources or not targets:
            raise place.fail(f"{text}; it needs both")
        single = row.folds or len(sources) == 1
        if not single and len(sources) != len(targets):
            raise place.fail(f"{text}; they come in pairs")
        sizes = {span.size for span in (*sources, *targets)}
        if len(sizes) > 1 and (single or any(a.size != b.size for a, b in zip(sources, targets, strict=True))):
            raise place.fail(f"{name} has buffers of {sorted(sizes)} chunks; source and target are equally large")
        if channels != len(targets):
            raise place.fail(f"{name} has {channels} channels for {len(targets)} targets; each has its own")
        if not row.far and any(span.rank != self.gpu.id for span in targets if not span.group):
            raise place.fail(f"{name} writes to {targets[0]}; it writes to its own gpu")
        held = sources if not row.folds and row.reads == PACKETS else ()
        held = (*held, *targets) if not row.folds and row.writes == PACKETS else held
        if any(span.buffer != SCRATCH for span in held):
            raise place.fail(f"{name} has packets outside of scratch; packets are in scratch buffers")
