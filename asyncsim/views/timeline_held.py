"""What has to wait if one step of a run waits: the steps between two that depend on the first.

All others can be done without it, and do the same as in the run: they read nothing that a held step wrote, and
their waits pass without what it notified. That is told from the trace alone, and carefully: where it is not
sure that a step can be done without the held ones, it is held too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.op import JOIN, QUIET, SET, SYNC, TEST, WAIT, WHOLE_RANK
from asyncsim.trace.region import ADD, spans_overlap
from asyncsim.views.timeline import COMPARE
from asyncsim.views.timeline_contents import read_by, written_by

if TYPE_CHECKING:
    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Spans
    from asyncsim.views.timeline import Timeline


class CellValues:
    """What cells hold when some of the steps of a run are done.

    Args:
        timeline: of the run.

    """

    def __init__(self, timeline: Timeline) -> None:
        """Start with no step done."""
        self._after = timeline.after
        self._starts = {signal.name: signal.start for signal in timeline.trace.header.world.signals}
        self._values: dict[int, int] = {}

    def of(self, op: Op) -> int:
        """Return the value of an operation's cell now."""
        assert op.cell is not None  # noqa: S101 - for the type checker: the caller knows
        return self._values.get(op.cell.slot, self._starts[op.cell.signal])

    def do(self, step: int, event: Event) -> None:
        """Do what a step does to its cell, if it does anything.

        Args:
            step: the number of the event in its trace.
            event: what was done in that step.

        """
        op = event.op
        if op.cell is not None and self._after[step] is not None:
            change = -op.amount if op.consume else op.amount
            self._values[op.cell.slot] = op.amount if op.how == SET else op.cell.wrapped(self.of(op) + change)


class _Held:
    """The steps that are held back, and what they keep from others."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self._known: set[int] = set()
        self._actors: set[str] = set()
        self._tasks: set[str] = set()
        self._wires: set[str] = set()
        self._ranks: set[int] = set()
        self._ranks_of_wires: set[int] = set()
        self._writes: dict[int, list[Spans]] = {}

    def add(self, step: int, event: Event) -> None:
        """Hold a step back."""
        self.steps.append(step)
        self._known.add(step)
        actor = event.op.actor
        self._actors.add(actor.name)
        (self._wires if actor.wire else self._tasks).add(_task(event))
        if actor.wire:
            self._ranks_of_wires.add(actor.rank)
        if event.op.deferred:
            self._ranks.add(actor.rank)
        written = written_by(event)
        if written is not None:
            self._writes.setdefault(written.region.slot, []).append(written.region.spans)

    def before(self, event: Event, arrived: int) -> bool:
        """Say whether a step comes after a held one in any case: by its program, its landing, or a meeting."""
        op = event.op
        if arrived in self._known or op.actor.name in self._actors:
            return True
        if op.kind in (JOIN, SYNC):  # of several actors; which of them it needs is not looked at
            return bool((self._tasks | self._wires) - {_task(event)})
        # A rank sees its own stores before they land; which of them it reads is not looked at.
        if op.actor.rank in self._ranks:
            return True
        # A quiet, and a landing that has to come after others of its task, wait for that task's landings; a quiet of
        # the rank, and what lands at home, for those of the other streams, too.
        at_home = op.actor.wire and any(access.region.owner == op.actor.rank for access in op.accesses)
        if (at_home or op.link == WHOLE_RANK) and op.actor.rank in self._ranks_of_wires:
            return True
        return (op.kind == QUIET or op.actor.wire) and _task(event) in self._wires

    def feeds(self, event: Event) -> bool:
        """Say whether a step reads, or adds to, what a held one wrote."""
        written = written_by(event)
        read = written if written is not None and written.mode == ADD else read_by(event)
        if read is None:
            return False
        return any(spans_overlap(spans, read.region.spans) for spans in self._writes.get(read.region.slot, ()))


def held_back(timeline: Timeline, first: int, second: int) -> list[int] | None:
    """Return the steps that are held back with `first` until `second` is done, ascending.

    None if `second` depends on one of them, other than by reading what it wrote.

    Args:
        timeline: of the trace.
        first: a step.
        second: a later one.

    """
    held = _Held()
    values = CellValues(timeline)
    for step, event in enumerate(timeline.events[:second]):
        late = step > first and (
            held.before(event, timeline.arrived[step]) or _stuck(event, values) or held.feeds(event)
        )
        if late or step == first:
            held.add(step, event)
        else:
            values.do(step, event)
    event = timeline.events[second]
    return None if held.before(event, timeline.arrived[second]) or _stuck(event, values) else held.steps


def _stuck(event: Event, values: CellValues) -> bool:
    """Say whether a wait would not pass, or a test say something else, without the held steps."""
    op = event.op
    if op.kind not in (WAIT, TEST) or event.have is None:
        return False
    holds = COMPARE[op.how]
    return holds(values.of(op), op.amount) != holds(event.have, op.amount)


def _task(event: Event) -> str:
    return event.op.actor.name.partition(">")[0]
