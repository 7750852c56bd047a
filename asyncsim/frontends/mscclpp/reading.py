"""From the JSON of a plan to its operations: each reference followed, each number in its range."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.mscclpp.msccl import parse_algorithm
from asyncsim.frontends.mscclpp.plan import (
    COLLECTIVES,
    INPUT,
    MEMORY,
    MOST,
    MOVES,
    NAMES,
    OUTPUT,
    PACKETS,
    PORT,
    REDUCTIONS,
    SCRATCH,
    SEMAPHORES,
    SWITCH,
    SYNCS,
    TYPES,
    Gpu,
    Operation,
    Plan,
    Span,
    flat,
    read_json,
)
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABSENT: Any = object()
_CHUNKS = {INPUT: "input_chunks", OUTPUT: "output_chunks", SCRATCH: "scratch_chunks"}
_REMOTE = ("put", "pws", "pwsf", "ppkt", "rppkt", "respkt", "res", "rres", "rre", "recspkt", "get")


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

    def number(self, key: str, default: Any = _ABSENT, *, least: int = 0) -> int:  # noqa: ANN401 - or none
        value: int = self.get(key, int, default)
        if value < least:
            raise self.fail(f"{key!r} is {value}; it is at least {least}")
        return value

    def each(self, key: str, default: Any = ()) -> list[_Place]:  # noqa: ANN401 - or none
        dot = f"{self.path}." if self.path else ""
        listed = self.get(key, list, default)
        return [_Place(item, f"{dot}{key}[{n}]", self.file) for n, item in enumerate(listed)]

    def numbers(self, key: str) -> list[int]:
        for item in self.each(key):
            if not isinstance(item.value, int) or isinstance(item.value, bool) or item.value < 0:
                raise item.fail(f"is {item.value!r}; it is an integer >= 0")
        return [item.value for item in self.each(key)]


def load_plan(file: str | Path) -> Plan:
    """Return the plan that a file holds.

    Args:
        file: JSON, as the DSL of MSCCL++ prints it; or XML, an algorithm of MSCCL.

    Raises:
        MisuseError: it is no plan; the message has the place in the JSON.
        RefusedError: it has an operation that the executor does not have.

    """
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return parse_algorithm(text, str(file)) if Path(file).suffix == ".xml" else parse_plan(text, str(file))


def parse_plan(text: str, file: str = "plan.json") -> Plan:
    """Return the plan that a text holds.

    Args:
        text: JSON.
        file: what reports call it.

    Raises:
        MisuseError: as of `load_plan`.

    """
    tree = read_json(text, file)
    top = _Place(tree, "", file)
    breaks = [at for at, letter in enumerate(text) if letter == "\n"]
    gpus = sorted(top.each("gpus", _ABSENT), key=lambda place: place.number("id"))
    if [place.number("id") for place in gpus] != list(range(len(gpus))) or not gpus:
        raise top.fail(f"gpus have the ids {[place.number('id') for place in gpus]}; they are 0, 1, 2, …, each once")
    collective = top.get("collective", str)
    if collective not in COLLECTIVES:
        raise top.fail(f"collective is {collective!r}; it is one of {', '.join(COLLECTIVES)}")
    chunks = [{kind: place.number(key, 0) for kind, key in _CHUNKS.items()} for place in gpus]
    reader = _Reader(gpus, chunks, breaks)
    return Plan(
        file, top.get("name", str), collective, top.get("inplace", bool, default=False),
        top.get("reuse_resources", bool, default=False), top.get("use_double_scratch_buffer", bool, default=False),
        tuple(reader.gpu(place) for place in gpus), tree,
    )  # fmt: skip


class _Reader:
    """Reads the gpus of a plan."""

    def __init__(self, places: Sequence[_Place], chunks: Sequence[dict[str, int]], breaks: Sequence[int]) -> None:
        self._ranks = len(places)
        self._chunks = chunks
        self._breaks = breaks

    def gpu(self, place: _Place) -> Gpu:
        rank = place.number("id")
        peers: dict[str, list[int]] = {MEMORY: [], PORT: []}
        switches: list[tuple[tuple[int, ...], str]] = []
        for entry in place.each("channels"):
            kind = entry.get("channel_type", str)
            if kind == SWITCH:
                over = self._type(entry, "buffer_type")
                groups = [group.numbers("ranks") for group in entry.each("rank_groups")]
                switches += [(tuple(self._rank(entry, rank) for rank in group), over) for group in groups]
            elif kind in peers:
                peers[kind] += [self._rank(entry, peer, own=rank) for peer in entry.numbers("connected_to")]
            else:
                raise entry.fail(f"channel_type is {kind!r}; it is memory, port or switch")
        remote = [
            (self._rank(entry, entry.number("rank")), self._type(entry, "type"))
            for entry in place.each("remote_buffers")
        ]
        semaphores = tuple(entry.number("init_value") for entry in place.each("semaphores"))
        self._limit(place, len(semaphores), "barriers", "semaphores")
        made = Gpu(rank, self._chunks[rank], {k: tuple(v) for k, v in peers.items()}, tuple(switches), semaphores, {})
        for entry in place.each("threadblocks"):
            number = entry.number("id")
            if number in made.blocks:
                raise entry.fail(f"thread block {number} stands here twice")
            made.blocks[number] = self._block(entry, made, remote, number)
        return made

    def _block(self, place: _Place, gpu: Gpu, remote: list[tuple[int, str]], number: int) -> tuple[Operation, ...]:
        channels: dict[str, list[int]] = {MEMORY: [], PORT: [], SWITCH: []}
        for entry in place.each("channels"):
            kind = entry.get("channel_type", str)
            known = len(gpu.switches) if kind == SWITCH else len(gpu.peers.get(kind, ()))
            for id_ in entry.numbers("channel_ids"):
                if id_ >= known:
                    raise entry.fail(f"channel_ids has {id_}; gpu {gpu.id} has {known} {kind} channels")
                channels[kind].append(id_)
        buffers: dict[str, list[tuple[int, str]]] = {MEMORY: [], PORT: []}
        for entry in place.each("remote_buffer_refs"):
            kind = entry.get("access_channel_type", str)
            for id_ in entry.numbers("remote_buffer_ids"):
                if id_ >= len(remote) or kind not in buffers:
                    raise entry.fail(f"remote_buffer_ids has {id_} by {kind}; gpu {gpu.id} has {len(remote)} of them")
                buffers[kind].append(remote[id_])
        self._limit(place, sum(map(len, channels.values())), "channels")
        self._limit(place, sum(map(len, buffers.values())), "remote buffers")
        names = _Names(gpu, number, channels, buffers, self)
        made = tuple(names.operation(entry, n) for n, entry in enumerate(place.each("ops")))
        self._limit(place, len(list(flat(made, pipelines=True))), "operations")
        return made

    def line(self, place: _Place) -> int:
        return bisect_right(self._breaks, place.value.at) + 1 if hasattr(place.value, "at") else 1

    def check(self, place: _Place, span: Span) -> Span:
        """Return a span if its chunks are there."""
        for rank in span.group or (span.rank,):
            there = self._chunks[rank][span.buffer]
            if span.index + span.size > there:
                raise place.fail(f"{span} is out of range: gpu {rank} has {there} {_CHUNKS[span.buffer]}")
        return span

    def _rank(self, place: _Place, rank: int, own: int = -1) -> int:
        if rank >= self._ranks or rank == own:
            raise place.fail(f"rank {rank} is no peer; the plan has gpus 0 to {self._ranks - 1}")
        return rank

    @staticmethod
    def _type(place: _Place, key: str) -> str:
        name: str = place.get(key, str)
        if name not in TYPES:
            raise place.fail(f"{key} is {name!r}; it is i, o or s")
        return TYPES[name]

    @staticmethod
    def _limit(place: _Place, count: int, what: str, word: str = "") -> None:
        if count > MOST[what]:
            raise place.fail(f"has {count} {word or what}; the executor has room for {MOST[what]}")

    limit, type_of = _limit, _type


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
            raise RefusedError(
                f"{place.file}: {place.path}: the executor has no operation 'glre'; glres stores the sum"
            )
        if name not in NAMES or (name == "pipeline" and inside >= 0):
            raise place.fail(f"operation {name!r} is not one of {', '.join(NAMES)}")
        channel = place.get("channel_type", str, default=SWITCH if name.startswith("g") and name != "get" else MEMORY)
        if channel not in self.channels:
            raise place.fail(f"channel_type is {channel!r}; it is memory, port or switch")
        facts: dict[str, Any] = {}
        if name == "pipeline":
            context = _Place(place.get("iter_context", dict), f"{place.path}.iter_context", place.file)
            facts = {"unit": context.number("unit_size", least=1), "chunks": context.number("num_chunks", least=1)}
            facts["body"] = tuple(self.operation(entry, index, n) for n, entry in enumerate(place.each("ops")))
        elif name == "barrier":
            facts = {"number": place.number("barrier_id"), "parties": place.number("num_threadblocks", least=1)}
            if facts["number"] >= MOST["barriers"]:
                raise place.fail(f"barrier_id is {facts['number']}; the executor has {MOST['barriers']} barriers")
        elif name in SEMAPHORES:
            facts["semaphores"] = self._known(place, "semaphore_ids", len(self.gpu.semaphores), "semaphores")
        elif name != "nop":
            facts = self._data(place, name, channel)
        line = self.reader.line(place)
        return Operation(
            name, self.gpu.id, self.block, index, inside, place.path, line, channel=channel,
            reduce=place.get("reduce_op", str, "sum"), **facts,
        )  # fmt: skip

    def _known(self, place: _Place, key: str, count: int, what: str) -> tuple[int, ...]:
        ids = tuple(place.numbers(key))
        if not ids or max(ids) >= count:
            raise place.fail(f"{key} is {list(ids)}; there are {count} {what} here")
        self.reader.limit(place, len(ids), "of an operation", f"{what} in one operation")
        return ids

    def _data(self, place: _Place, name: str, channel: str) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if name in SYNCS or channel == PORT:
            known = self.channels[channel]
            ids = self._known(place, "channel_ids", len(known), f"{channel} channels of the thread block")
            facts["channels"] = tuple(known[id_] for id_ in ids)
        if name in SYNCS:
            return facts
        sources, targets = (
            tuple(self._span(entry, channel) for entry in place.each(key)) for key in ("src_buff", "dst_buff")
        )
        self.reader.limit(place, max(len(sources), len(targets)), "buffers", "buffers on one side")
        self._check_shape(place, name, sources, targets, facts.get("channels"))
        group = place.get("tbg_info", dict, default={})
        if group:
            inner = _Place(group, f"{place.path}.tbg_info", place.file)
            facts["slice_of"] = inner.number("tb_id"), inner.number("tbg_size", least=1)
            if facts["slice_of"][0] >= facts["slice_of"][1]:
                raise inner.fail("tb_id is not less than tbg_size")
        return {**facts, "sources": sources, "targets": targets}

    def _span(self, place: _Place, channel: str) -> Span:
        index, size = place.number("index"), place.number("size", 1, least=1)
        if "switch_channel_id" in place.value:
            id_ = place.number("switch_channel_id")
            if id_ >= len(self.channels[SWITCH]):
                raise place.fail(
                    f"switch_channel_id is {id_}; the thread block has {len(self.channels[SWITCH])} of them"
                )
            group, buffer = self.gpu.switches[self.channels[SWITCH][id_]]
            return self.reader.check(place, Span(-1, buffer, index, size, group))
        if "buffer_id" in place.value:
            id_, refs = place.number("buffer_id"), self.buffers.get(channel, [])
            if id_ >= len(refs):
                raise place.fail(f"buffer_id is {id_}; the thread block has {len(refs)} remote buffers by {channel}")
            return self.reader.check(place, Span(*refs[id_], index, size))
        return self.reader.check(place, Span(self.gpu.id, self.reader.type_of(place, "type"), index, size))

    def _check_shape(
        self, place: _Place, name: str, sources: Sequence[Span], targets: Sequence[Span], channels: Sequence[int] | None
    ) -> None:
        if not sources or not targets:
            raise place.fail(f"{name} has {len(sources)} sources and {len(targets)} targets; it needs both")
        single = name in REDUCTIONS or len(sources) == 1
        if not single and len(sources) != len(targets):
            raise place.fail(f"{name} has {len(sources)} sources and {len(targets)} targets; they come in pairs")
        sizes = {span.size for span in (*sources, *targets)}
        if len(sizes) > 1 and (single or any(a.size != b.size for a, b in zip(sources, targets, strict=True))):
            raise place.fail(f"{name} has buffers of {sorted(sizes)} chunks; source and target are equally large")
        if channels is not None and len(channels) != len(targets):
            raise place.fail(f"{name} has {len(channels)} channels for {len(targets)} targets; each has its own")
        remote = {span.rank != self.gpu.id for span in targets if not span.group}
        if name not in _REMOTE and True in remote:
            raise place.fail(f"{name} writes to {targets[0]}; it writes to its own gpu")
        if name in MOVES and PACKETS in MOVES[name]:
            held = (*(sources if MOVES[name][0] == PACKETS else ()), *(targets if MOVES[name][1] == PACKETS else ()))
            if any(span.buffer != SCRATCH for span in held):
                raise place.fail(f"{name} has packets outside of scratch; packets are in scratch buffers")
