"""Causes: where a failing schedule first went another way than the fair one, to tell one bug from another.

Of a run with a wrong result it is the first read that got what it does not get in the fair run, and
the write that it should have got, or should not have: the two sites of the race behind it. Found 500
times, in whatever ranks, it is one bug; two races are two. Of a hang it is the sites of the waits.

What a read gets follows from the order of the operations: the last write to what it overlaps, and how
many adds came after. That is exact where reads and writes go to the same regions, and a fair guess
where they overlap in part. It is a name for what was found, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.conflict import present_accesses
from asyncsim.trace.event import DEADLOCK, OVERFLOW, STEP_LIMIT
from asyncsim.trace.finding import Side
from asyncsim.trace.region import READ, WRITE, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.trace.event import Event
    from asyncsim.trace.finding import Finding
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access, Spans

    OpId = tuple[str, int]
    """An operation: its actor by name, and which of its operations it is."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What distinguishes one bug from another.

    Args:
        key: equal for two failures that are the same bug, as far as is known.
        sides: the operations where it begins, at most two.

    """

    key: str
    sides: tuple[Side, ...] = ()


class _Source(NamedTuple):
    """What a read gets: the last write, if any, and how many adds came after it."""

    write: OpId | None
    adds: int


class Causes:
    """Names the causes of the failures of one case. The fair run is made when the first of them is asked for."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._fair: dict[OpId, Event] | None = None
        self._sources: dict[OpId, _Source] = {}

    def cause_of(self, finding: Finding, ops: Sequence[Op]) -> Cause:
        """Return the cause of a finding.

        Args:
            finding: what a run showed.
            ops: the operations of that run, step by step.

        """
        fair = self._fair_events()
        if finding.kind == STEP_LIMIT:
            return Cause(finding.kind)
        if finding.kind == DEADLOCK:
            return self._cause(finding, _next_operations(ops, fair))
        if finding.kind == OVERFLOW:
            return self._cause(finding, list(_op_ids(ops))[-1:])
        hazard, operations = self._first_other_read(ops)
        return self._cause(finding, operations, hazard)

    def _fair_events(self) -> dict[OpId, Event]:
        """Return the operations of the fair run, which is recorded: only then are the sites known."""
        if self._fair is None:
            trace = drive(self._case, Fifo(), record="fifo").trace
            if trace is None:
                raise RuntimeError("the run was not recorded")
            ops = [event.op for event in trace.events]
            self._fair = dict(zip(_op_ids(ops), trace.events, strict=True))
            if trace.footer is not None:
                for event in trace.footer.pending:
                    actor = event.op.actor.name
                    self._fair[actor, sum(op.actor.name == actor for op in ops)] = event
            self._sources = {reader: source for reader, source, _ in _reads(ops)}
        return self._fair

    def _cause(self, finding: Finding, operations: Sequence[OpId], hazard: str = "") -> Cause:
        """Make a cause of operations; one that the fair run does not have has no site."""
        fair = self._fair_events()
        sites = [" in ".join(fair[op_id].at) if op_id in fair else "elsewhere" for op_id in operations]
        if finding.kind == DEADLOCK:
            sites = sorted(set(sites))
        sides = [Side.of(fair[op_id], op_id[1]) for op_id in operations if op_id in fair]
        return Cause(" | ".join([finding.kind, finding.window or "", hazard, *sites]), tuple(sides[:2]))

    def _first_other_read(self, ops: Sequence[Op]) -> tuple[str, list[OpId]]:
        """Return the first read that gets something else than in the fair run, and the write that it raced with.

        And which of the two came too early: WAR if the write did, RAW if the read did.
        """
        for reader, source, earlier in _reads(ops):
            wanted = self._sources.get(reader)
            if wanted is None or wanted == source:
                continue
            if source.write == wanted.write:
                return "sum", [reader]
            overtaken = wanted.write is None or wanted.write in earlier
            partner = source.write if overtaken else wanted.write
            return "WAR" if overtaken else "RAW", [reader] if partner is None else [reader, partner]
        return "", []


def _op_ids(ops: Sequence[Op]) -> Iterator[OpId]:
    counts: dict[str, int] = {}
    for op in ops:
        name = op.actor.name
        number = counts[name] = counts.get(name, -1) + 1
        yield name, number


def _next_operations(ops: Sequence[Op], fair: dict[OpId, Event]) -> list[OpId]:
    """Return what each actor would have done next, if it does as in the fair run; by rank."""
    done = dict(_op_ids(ops))
    names = dict.fromkeys(name for name, _ in fair)
    return [following for name in names if (following := (name, done.get(name, -1) + 1)) in fair]


def _reads(ops: Sequence[Op]) -> Iterator[tuple[OpId, _Source, set[OpId]]]:
    """Yield each operation that reads, with what it gets and all that wrote before."""
    written: dict[int, dict[Spans, tuple[int, OpId | None, int]]] = {}
    wrote: set[OpId] = set()
    counts: dict[str, int] = {}
    for step, op in enumerate(ops):
        name = op.actor.name
        number = counts[name] = counts.get(name, -1) + 1
        if not op.accesses:
            continue
        op_id = name, number
        accesses = present_accesses(op, own=False)
        for access in accesses:
            if access.mode == READ:
                yield op_id, _source(written.get(access.region.slot, {}), access), wrote
        for access in accesses:
            if access.mode == READ:
                continue
            places = written.setdefault(access.region.slot, {})
            if access.mode == WRITE:
                places[access.region.spans] = (step, op_id, 0)
                wrote.add(op_id)
            else:
                at, write, adds = places.get(access.region.spans, (-1, None, 0))
                places[access.region.spans] = (at, write, adds + 1)


def _source(places: dict[Spans, tuple[int, OpId | None, int]], access: Access) -> _Source:
    whole = places.get(access.region.spans) if len(places) == 1 else None
    if whole is not None:
        return _Source(whole[1], whole[2])
    overlapping = [place for spans, place in places.items() if spans_overlap(spans, access.region.spans)]
    last = max(overlapping, key=lambda place: place[0], default=(-1, None, 0))
    return _Source(last[1], sum(adds for _, _, adds in overlapping))
