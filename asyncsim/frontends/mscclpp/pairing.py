"""Which channels belong together, and what is known of a plan before it runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from asyncsim.frontends.mscclpp.layout import mixed_scratch
from asyncsim.frontends.mscclpp.plan import INPUT, MEMORY, OUTPUT, PORT, Span, flat
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.frontends.mscclpp.layout import Layout
    from asyncsim.frontends.mscclpp.plan import Operation, Plan

MEANT, EXECUTED = "meant", "executed"
_RATIO = {"allreduce": (0, 0), "alltoall": (0, 0), "allgather": (1, 0), "reducescatter": (0, 1)}
"""Of each collective: whether its input chunks, and its output chunks, are P times fewer than the other ones."""


@dataclass(frozen=True, eq=False)
class Pairing:
    """The channels of a plan: of each ordered pair of gpus the n-th belongs to the n-th of the other direction."""

    plan: Plan
    layout: Layout | None = None

    def partner(self, rank: int, kind: str, channel: int) -> tuple[int, int] | None:
        """Return the peer of a channel and the number of its channel there; None: the peer has none for it.

        Args:
            rank: whose.
            kind: memory or port.
            channel: by number.

        """
        peers = self.plan.gpus[rank].peers[kind]
        peer = peers[channel]
        back = [number for number, other in enumerate(self.plan.gpus[peer].peers[kind]) if other == rank]
        nth = peers[:channel].count(peer)
        return (peer, back[nth]) if nth < len(back) else None

    def users(self, what: str, rank: int, number: int) -> int:
        """Return how many threads of a rank count the uses of a counter.

        Args:
            what: "push" to a port channel, "flush" one, wait on a "memory" or "port" channel, acquire a "semaphore".
            rank: whose.
            number: of the channel or semaphore.

        """
        return len(self._users.get((what, rank, number), ()))

    @property
    def is_shared(self) -> bool:
        """Whether there is a counter of which several threads count what they expect."""
        return any(len(users) > 1 for (what, *_), users in self._users.items() if what != "push")

    @cached_property
    def _users(self) -> dict[tuple[str, int, int], set[tuple[int, int]]]:
        found: dict[tuple[str, int, int], set[tuple[int, int]]] = {}
        for op in self.plan.operations() if self.plan.fifos is None else ():
            lanes = 1 if self.layout is None else self.layout.lanes[self.plan.file, op.gpu, op.block]
            does, at_port = op.row.does, op.channel == PORT
            uses = {
                "push": at_port and (op.row.reads or does in {"s", "f"}), "flush": at_port and "f" in does,
                op.channel: does == "w", "semaphore": does == "a",
            }  # fmt: skip
            for what in (what for what, used in uses.items() if used):
                for place, number in enumerate(op.semaphores or op.channels):
                    found.setdefault((what, op.gpu, number), set()).add((op.block, place % lanes))
        return found


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a plan that is known before it runs: its place in the JSON, and what it is."""

    path: str
    text: str

    def __str__(self) -> str:
        """Return it in a line."""
        return f"{self.path or 'the plan'}: {self.text}"


def as_executed(op: Operation, source: Span, target: Span) -> tuple[Span, Span]:
    """Return what the executor copies from and to, where that is not what the plan says.

    Args:
        op: get: offsets are exchanged; glres: the source's index is the target's; a put: the first source's type is
            taken for all.
        source: as the plan says.
        target: likewise.

    """
    if op.name == "get":
        return replace(source, index=target.index), replace(target, index=source.index)
    if op.name == "glres":
        return source, replace(target, index=source.index)
    if op.name in {"put", "ppkt"}:
        return replace(source, buffer=op.sources[0].buffer), target
    return source, target


def check_plan(plan: Plan, mode: str = MEANT) -> None:
    """Refuse a plan that the executor cannot run, or that cannot be judged as it is.

    Args:
        plan: that was loaded.
        mode: `MEANT` or `EXECUTED`.

    Raises:
        MisuseError: with the place in the JSON.

    """
    for remark in (
        *_misled(plan),
        *_barriers(plan, most=True),
        *_uneven(plan),
        *(_outside(plan) if mode == EXECUTED else ()),
    ):
        raise MisuseError(f"{plan.file}: {remark}")


def _misled(plan: Plan) -> Iterator[Remark]:
    """Yield entries of port channels that do not lead to their targets, and scratch that is used in two ways."""
    for op in plan.operations() if plan.fifos is None else ():
        for span, channel in zip(op.targets, op.channels, strict=False):
            peer = plan.gpus[op.gpu].peers[op.channel][channel]
            if span.rank != peer:
                yield Remark(op.path, f"{op.channel} channel {channel} leads to gpu {peer}, the target is {span}")
    mixed = mixed_scratch(plan) if plan.fifos is None else None
    if mixed is not None:
        one, other = mixed
        text = f"'{one}' uses scratch that '{other}' ({other.path}) has packets in, whose offsets are doubled"
        yield Remark(one.path, text)


def _outside(plan: Plan) -> Iterator[Remark]:
    """Yield what the executor copies from or to outside of buffers, where that is not what the plan says."""
    for op in plan.operations():
        for pair in zip(op.sources, op.targets, strict=False):
            for span in as_executed(op, *pair):
                if any(span.index + span.size > plan.gpus[r].chunks[span.buffer] for r in span.ranks):
                    yield Remark(op.path, f"as executed, {op.name} is at {span}, which is out of range")


def _barriers(plan: Plan, *, most: bool) -> Iterator[Remark]:
    """Yield barriers to which more thread blocks come than they are for; or fewer."""
    for gpu in plan.gpus:
        found: dict[int, tuple[list[int], set[int]]] = {}
        for op in (op for listed in gpu.blocks.values() for op in flat(listed) if op.name == "barrier"):
            parties, comers = found.setdefault(op.number, ([], set()))
            parties.append(op.parties)
            comers.add(op.block)
        for number, (parties, comers) in found.items():
            if len(comers) > parties[0] or len(set(parties)) > 1 if most else len(comers) < parties[0]:
                counts = " or ".join(map(str, sorted(set(parties))))
                text = f"barrier {number} is for {counts} thread blocks; {len(comers)} come to it"
                yield Remark(f"gpus[{gpu.id}]", text)


def _uneven(plan: Plan) -> Iterator[Remark]:
    """Yield numbers of chunks that are no message of the collective."""
    if plan.collective in _RATIO:
        chunks = [(gpu.chunks[INPUT], gpu.chunks[OUTPUT]) for gpu in plan.gpus]
        of_input, of_output = _RATIO[plan.collective]
        if len(set(chunks)) > 1 or chunks[0][0] * plan.ranks**of_input != chunks[0][1] * plan.ranks**of_output:
            text = f"{plan.collective} with {chunks[0][0]} input and {chunks[0][1]} output chunks, on {plan.ranks} gpus"
            yield Remark("gpus", f"{text}; on each {chunks}" if len(set(chunks)) > 1 else text)


def check_size(plan: Plan, size: int) -> int:
    """Return the bytes of a chunk of a message.

    Args:
        plan: that moves it.
        size: of the input in bytes.

    Raises:
        MisuseError: it does not divide evenly.

    """
    chunks, align = plan.gpus[0].chunks[INPUT], plan.align
    if not chunks or size % chunks or (size // chunks) % align:
        raise MisuseError(
            f"{plan.file}: {size} bytes are not {chunks} chunks of a multiple of {align} bytes; give a multiple of "
            f"{chunks * align}"
        )
    return size // chunks


def remarks(plan: Plan, rounds: dict[str, int]) -> list[Remark]:
    """Return what a plan shows before it runs: channels that do not pair up, counts that differ, executor's faults.

    Args:
        plan: that was loaded.
        rounds: of each pipeline, by its path.

    """
    if plan.fifos is not None:
        return []
    return list(dict.fromkeys((*_counted(plan, rounds), *_barriers(plan, most=False), *_relied_on(plan))))


def _counted(plan: Plan, rounds: dict[str, int]) -> Iterator[Remark]:
    """Yield what is wrong with the number of signals and waits of each channel."""
    pairing = Pairing(plan)
    sent: Counter[tuple[str, int, int]] = Counter()
    waited: Counter[tuple[str, int, int]] = Counter()
    waiters: dict[tuple[str, int, int], set[int]] = {}
    outer = (op for gpu in plan.gpus for listed in gpu.blocks.values() for op in listed)
    used = ((op, n, rounds.get(whole.path, 1)) for whole in outer for op in flat([whole]) for n in op.channels)
    for op, channel, times in used:
        if op.row.does == "w":
            waited[op.channel, op.gpu, channel] += times
            waiters.setdefault((op.channel, op.gpu, channel), set()).add(op.block)
        elif "s" in op.row.does:
            partner = pairing.partner(op.gpu, op.channel, channel)
            if partner is None:
                yield Remark(op.path, f"{op.channel} channel {channel} has no partner; its signals reach no counter")
            else:
                sent[op.channel, *partner] += times
    for key in sorted(sent.keys() | waited.keys()):
        kind, rank, channel = key
        if sent[key] != waited[key]:
            text = f"{kind} channel {channel} is signalled {sent[key]} times a call and waited for {waited[key]} times"
            yield Remark(f"gpus[{rank}]", text)
        if len(waiters.get(key, ())) > 1:
            blocks = ", ".join(map(str, sorted(waiters[key])))
            text = f"thread blocks {blocks} wait on {kind} channel {channel}; what they expect is counted in one place"
            yield Remark(f"gpus[{rank}]", text)


def _relied_on(plan: Plan) -> Iterator[Remark]:
    """Yield where a plan relies on something that the executor does otherwise than its documentation says."""
    seen = {"": ""}
    for op in plan.operations():
        seen.setdefault(_fault(op), op.path)
    yield from (Remark(path, text) for text, path in seen.items() if text)
    pairing = Pairing(plan)
    if any(pairing.users("semaphore", gpu.id, n) > 1 for gpu in plan.gpus for n in range(len(gpu.semaphores))):
        yield Remark("", "the executor can lose a wake-up where two thread blocks acquire one semaphore")


def _fault(op: Operation) -> str:
    if op.name == "flush":
        return "the executor's flush does nothing; pwsf waits"
    if op.name == "get" and any(a.index != b.index for a, b in zip(op.sources, op.targets, strict=False)):
        return "the executor exchanges the offsets of a get's source and target"
    if op.reduce != "sum":
        return f"the executor does not read reduce_op: {op.reduce} is a sum"
    if op.name == "glres" and op.sources[0].index != op.targets[0].index:
        return "the executor stores a glres at the source's index"
    if op.name in {"put", "ppkt"} and op.channel == MEMORY and len({span.buffer for span in op.sources}) > 1:
        return "the executor takes the type of the first source of a put for all"
    return ""
