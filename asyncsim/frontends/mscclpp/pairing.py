"""Which channels belong together, and what can be told of a plan before it runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from asyncsim.frontends.mscclpp.layout import mixed_scratch
from asyncsim.frontends.mscclpp.plan import INPUT, MEMORY, MOVES, OUTPUT, PORT, Span, flat
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.frontends.mscclpp.layout import Layout
    from asyncsim.frontends.mscclpp.plan import Operation, Plan

MEANT, EXECUTED = "meant", "executed"
_SIGNALS = ("signal", "rlxsignal", "pws", "pwsf")
_PUSHES = dict.fromkeys(("put", "pws", "ppkt", "rppkt", "signal"), ("push",))
_USES = {
    **_PUSHES, "pwsf": ("push", "flush"), "flush": ("push", "flush"), "wait": ("wait",), "rlxwait": ("wait",),
    "sem_acquire": ("semaphore",),
}  # fmt: skip
"""What each operation does to counters of which somebody counts the uses."""


@dataclass(frozen=True, eq=False)
class Pairing:
    """The channels of a plan: of each ordered pair of gpus the n-th belongs to the n-th of the other direction.

    Args:
        plan: whose.
        layout: says how many threads a block has.

    """

    plan: Plan
    layout: Layout | None = None

    def partner(self, rank: int, kind: str, channel: int) -> tuple[int, int] | None:
        """Return the peer of a channel and the number of its channel there; None: the peer has none for it.

        Args:
            rank: whose channel.
            kind: memory or port.
            channel: by number.

        """
        peers = self.plan.gpus[rank].peers[kind]
        peer = peers[channel]
        nth = peers[:channel].count(peer)
        back = [number for number, other in enumerate(self.plan.gpus[peer].peers[kind]) if other == rank]
        return (peer, back[nth]) if nth < len(back) else None

    def users(self, what: str, rank: int, number: int) -> int:
        """Return how many threads of a rank use a counter.

        Args:
            what: "push" to a port channel, "flush" one, "wait" on a memory or port channel ("memory", "port"), or
                acquire a semaphore ("semaphore").
            rank: whose.
            number: of the channel or semaphore.

        """
        return len(self._users.get((what, rank, number), ()))

    @property
    def is_shared(self) -> bool:
        """Whether there is a counter of which several threads count what they expect."""
        counted = (users for (what, *_), users in self._users.items() if what != "push")
        return any(len(users) > 1 for users in counted)

    @cached_property
    def _users(self) -> dict[tuple[str, int, int], set[tuple[int, int]]]:
        found: dict[tuple[str, int, int], set[tuple[int, int]]] = {}
        for op in self.plan.operations(pipelines=False):
            lanes = 1 if self.layout is None else self.layout.lanes[self.plan.file, op.gpu, op.block]
            at_port = op.channel == PORT
            for what in _USES.get(op.name, ()):
                if what in ("push", "flush") and not at_port:
                    continue
                for place, number in enumerate(op.semaphores or op.channels):
                    key = op.channel if what == "wait" else what, op.gpu, number
                    found.setdefault(key, set()).add((op.block, place % lanes))
        return found

    def entries(self, rank: int, channel: int, rounds: dict[str, int]) -> int:
        """Return how many entries a launch pushes for a port channel.

        Args:
            rank: whose.
            channel: by number.
            rounds: of each pipeline, by its path.

        """
        return sum(
            (op.name in ("put", "pws", "pwsf", "ppkt", "rppkt")) + (op.name in ("signal", "pws", "pwsf"))
            + (op.name in ("pwsf", "flush"))
            for op in repeated(self.plan, rank, rounds) for used in op.channels
            if op.channel == PORT and used == channel
        )  # fmt: skip


def repeated(plan: Plan, rank: int, rounds: dict[str, int]) -> Iterator[Operation]:
    """Yield the operations of a rank as often as they run.

    Args:
        plan: whose.
        rank: by number.
        rounds: of each pipeline, by its path; of others one.

    """
    for listed in plan.gpus[rank].blocks.values():
        for op in listed:
            for _ in range(rounds.get(op.path, 1)):
                yield from flat([op])


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a plan that is known before it runs.

    Args:
        path: its place in the JSON.
        text: what it is.

    """

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
    if op.name in ("put", "ppkt"):
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
    for remark in (*_misled(plan), *_crowded(plan), *_uneven(plan), *(_outside(plan) if mode == EXECUTED else ())):
        raise MisuseError(f"{plan.file}: {remark}")


def _misled(plan: Plan) -> Iterator[Remark]:
    """Yield entries of port channels that do not lead to their targets, and scratch that is used in two ways."""
    for op in plan.operations():
        for span, channel in zip(op.targets, op.channels, strict=False):
            peer = plan.gpus[op.gpu].peers[op.channel][channel]
            if span.rank != peer:
                yield Remark(op.path, f"port channel {channel} leads to gpu {peer}, the target is {span}")
    mixed = mixed_scratch(plan) if plan.fifos is None else None
    if mixed is not None:
        one, other = mixed
        text = f"'{one}' uses scratch that '{other}' ({other.path}) has packets in, whose offsets are doubled"
        yield Remark(one.path, text)


def _outside(plan: Plan) -> Iterator[Remark]:
    """Yield what the executor copies from or to outside of buffers, where that is not what the plan says."""
    for op in plan.operations(pipelines=False):
        for pair in zip(op.sources, op.targets, strict=False) if op.name in MOVES else ():
            for span in as_executed(op, *pair):
                if any(span.index + span.size > plan.gpus[r].chunks[span.buffer] for r in span.group or (span.rank,)):
                    yield Remark(op.path, f"as executed, {op.name} is at {span}, which is out of range")


def _crowded(plan: Plan) -> Iterator[Remark]:
    """Yield barriers to which more thread blocks come than they are for."""
    for gpu in plan.gpus:
        for number, parties, comers in _barriers(plan, gpu.id):
            if len(comers) > parties[0] or len(set(parties)) > 1:
                counts = " or ".join(map(str, sorted(set(parties))))
                text = f"barrier {number} is for {counts} thread blocks; {len(comers)} come to it"
                yield Remark(f"gpus[{gpu.id}]", text)


def _uneven(plan: Plan) -> Iterator[Remark]:
    """Yield numbers of chunks that are no message of the collective."""
    if plan.collective not in _RATIO:
        return
    chunks = [(gpu.chunks[INPUT], gpu.chunks[OUTPUT]) for gpu in plan.gpus]
    of_input, of_output = _RATIO[plan.collective]
    if len(set(chunks)) > 1 or chunks[0][0] * plan.ranks**of_input != chunks[0][1] * plan.ranks**of_output:
        text = f"{plan.collective} with {chunks[0][0]} input and {chunks[0][1]} output chunks, on {plan.ranks} gpus"
        yield Remark("gpus", f"{text}; on each {chunks}" if len(set(chunks)) > 1 else text)


_RATIO = {"allreduce": (0, 0), "alltoall": (0, 0), "allgather": (1, 0), "reducescatter": (0, 1)}
"""Of each collective: whether its input chunks, and its output chunks, are P times fewer than the other ones."""


def check_size(plan: Plan, size: int) -> int:
    """Return the bytes of a chunk of a message.

    Args:
        plan: that moves it.
        size: of the input in bytes.

    Raises:
        MisuseError: it does not divide evenly.

    """
    chunks = plan.gpus[0].chunks[INPUT]
    align = int(plan.tree.get("buffer_alignment", 16))
    if not chunks or size % chunks or (size // chunks) % align:
        raise MisuseError(
            f"{plan.file}: {size} bytes are not {chunks} chunks of a multiple of {align} bytes; give a multiple of "
            f"{chunks * align}"
        )
    return size // chunks


def _barriers(plan: Plan, rank: int) -> Iterator[tuple[int, list[int], set[int]]]:
    """Yield each barrier of a rank: its number, the thread blocks that it is said to be for, and those that come."""
    found: dict[int, tuple[list[int], set[int]]] = {}
    for number, listed in plan.gpus[rank].blocks.items():
        for op in flat(listed):
            if op.name == "barrier":
                parties, comers = found.setdefault(op.number, ([], set()))
                parties.append(op.parties)
                comers.add(number)
    for barrier, (parties, comers) in found.items():
        yield barrier, parties, comers


def remarks(plan: Plan, rounds: dict[str, int]) -> list[Remark]:
    """Return what a plan shows before it runs: channels that do not pair up, counts that differ.

    Args:
        plan: that was loaded.
        rounds: of each pipeline, by its path.

    """
    found = [*_counted(plan, rounds)]
    for gpu in plan.gpus:
        for number, parties, comers in _barriers(plan, gpu.id):
            if len(comers) < parties[0]:
                text = f"barrier {number} is for {parties[0]} thread blocks; {len(comers)} come to it"
                found.append(Remark(f"gpus[{gpu.id}]", text))
    return list(dict.fromkeys(found))


def _counted(plan: Plan, rounds: dict[str, int]) -> Iterator[Remark]:
    """Yield what is wrong with the number of signals and waits of each channel."""
    pairing = Pairing(plan)
    sent: Counter[_Counter] = Counter()
    waited: Counter[_Counter] = Counter()
    waiters: dict[_Counter, set[int]] = {}
    used = ((op, channel) for gpu in plan.gpus for op in repeated(plan, gpu.id, rounds) for channel in op.channels)
    for op, channel in used:
        if op.name in ("wait", "rlxwait"):
            waited[op.channel, op.gpu, channel] += 1
            waiters.setdefault((op.channel, op.gpu, channel), set()).add(op.block)
        elif op.name in _SIGNALS:
            partner = pairing.partner(op.gpu, op.channel, channel)
            if partner is None:
                yield Remark(op.path, f"{op.channel} channel {channel} has no partner; its signals reach no counter")
            else:
                sent[op.channel, *partner] += 1
    for key in sorted(sent.keys() | waited.keys()):
        kind, rank, channel = key
        if sent[key] != waited[key]:
            text = f"{kind} channel {channel} is signalled {sent[key]} times a call and waited for {waited[key]} times"
            yield Remark(f"gpus[{rank}]", text)
        if len(waiters.get(key, ())) > 1:
            blocks = ", ".join(map(str, sorted(waiters[key])))
            text = f"thread blocks {blocks} wait on {kind} channel {channel}; what they expect is counted in one place"
            yield Remark(f"gpus[{rank}]", text)


_Counter = tuple[str, int, int]
"""A counter: the type of its channel, its rank, and the channel's number."""


def relied_on(plan: Plan) -> list[Remark]:
    """Return where a plan relies on something that the executor does otherwise than its documentation says."""
    found: list[Remark] = []
    for op in plan.operations(pipelines=False):
        text = _fault(op)
        if text and not any(remark.text == text for remark in found):
            found.append(Remark(op.path, text))
    pairing = Pairing(plan)
    if any(pairing.users("semaphore", gpu.id, n) > 1 for gpu in plan.gpus for n in range(len(gpu.semaphores))):
        found.append(Remark("", "the executor can lose a wake-up where two thread blocks acquire one semaphore"))
    return found


def _fault(op: Operation) -> str:
    if op.name == "flush":
        return "the executor's flush does nothing; pwsf waits"
    if op.name == "get" and any(a.index != b.index for a, b in zip(op.sources, op.targets, strict=False)):
        return "the executor exchanges the offsets of a get's source and target"
    if op.reduce != "sum":
        return f"the executor does not read reduce_op: {op.reduce} is a sum"
    if op.name == "glres" and op.sources[0].index != op.targets[0].index:
        return "the executor stores a glres at the source's index"
    if op.name in ("put", "ppkt") and op.channel == MEMORY and len({span.buffer for span in op.sources}) > 1:
        return "the executor takes the type of the first source of a put for all"
    return ""
