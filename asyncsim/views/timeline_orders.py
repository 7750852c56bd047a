"""Both orders of a pair, from the file alone: the one that was run, and what the other would read.

Hold back the step that went first, and with it every step that depends on it, until the second is done. If the
second is not among those, this is a schedule too: all that was not held back meets what it met in the file, so
what the second side reads in that order, and then the first, is told by the steps that wrote there. What comes
of it later the file cannot say; with ``show --kernel`` the other order is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.cells import COMPARE
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.event import Digest
from asyncsim.trace.kinds import CHANGING, COMPARING, EFFECTS, JOINING, MEETING, QUIETING, WHOLE_RANK
from asyncsim.trace.region import ADD, spans_overlap
from asyncsim.trace.values import INLINE
from asyncsim.views.timeline_contents import START, read_by, sum_of, written_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access, Spans
    from asyncsim.views.timeline import Timeline
    from asyncsim.views.timeline_contents import Data, RegionContents
    from asyncsim.views.timeline_findings import FooterFinding


_SHOWN = 4


@dataclass(frozen=True, slots=True)
class OrderedOperation:
    """One of the two operations in one of the orders.

    Args:
        step: its step in the run that the file holds.
        what: the task and its operation.
        outcome: what it reads, writes or makes of a cell.

    """

    step: int
    what: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Orders:
    """The two orders of a finding's pair.

    Args:
        run: as in the file.
        other: the other way round.
        note: how the other order is known, or why it is not.

    """

    run: tuple[OrderedOperation, OrderedOperation]
    other: tuple[OrderedOperation, ...]
    note: str


def pair_of(finding: FooterFinding) -> tuple[int, int] | None:
    """Return the steps of a finding that is about the order of two, ascending; None if it is about something else."""
    steps = sorted(set(finding.steps))
    return (steps[0], steps[1]) if finding.ordered and len(steps) == 2 else None  # noqa: PLR2004 - a pair


def orders_of(timeline: Timeline, finding: FooterFinding) -> Orders | None:
    """Return both orders of a pair; None where the finding is no pair of steps of this trace.

    Args:
        timeline: of the trace.
        finding: one of its footer's.

    """
    pair = pair_of(finding)
    if pair is None:
        return None
    first, second = pair
    run = (_as_run(timeline, first), _as_run(timeline, second))
    delayed = delayed_with(timeline, first, second)
    if delayed is None:
        note = f"what step {second} does depends on what was done from step {first} on: the file does not tell more"
        return Orders(run, (), note)
    if not all(_explained(timeline, step) for step in (first, second)):
        return Orders(run, (), "a rank reads stores of its own that have not landed: the file does not tell more")
    rest = f", and with it {_count(len(delayed) - 1)} that came after it" if len(delayed) > 1 else ""
    note = f"told from the file: step {first} can wait until step {second} is done{rest}"
    return Orders(run, _swapped(timeline, delayed, first, second), note)


def _explained(timeline: Timeline, step: int) -> bool:
    """Return whether what a step read is what had landed."""
    event = timeline.events[step]
    read = read_by(event)
    seen = None if read is None else timeline.contents.before(read.region, step).data
    return seen is None or event.data is None or _same(seen, event.data)


def _same(a: Data, b: Data) -> bool:
    return type(a) is not type(b) or a == b


def _count(steps: int) -> str:
    return "1 step" if steps == 1 else f"{steps} steps"


def other_schedule(timeline: Timeline, first: int, second: int) -> list[str]:
    """Return the schedule of the trace with the first of two steps held back until the second is done.

    Args:
        timeline: of the trace.
        first: a step.
        second: a later one.

    """
    delayed = delayed_with(timeline, first, second)
    if delayed is None:  # as near as can be told: the one that can show it is found while it runs
        actor = timeline.events[first].op.actor
        delayed = [step for step in range(first, second) if timeline.events[step].op.actor is actor]
    choices = timeline.trace.choices
    late = set(delayed)
    order = [step for step in range(second + 1) if step not in late] + delayed + list(range(second + 1, len(choices)))
    return [choices[step] for step in order]


def value_text(data: Data, dtype: np.dtype[Any]) -> str:
    """Write a value in few characters: its first elements, or its digest.

    Args:
        data: the elements in C order, their digest, or None if it is not known.
        dtype: of the elements.

    """
    if data is None:
        return "a value that the trace does not hold"
    if isinstance(data, Digest):
        return f"{data.elements} elements, digest {data.hex[:8]}"
    if len(data) > INLINE * dtype.itemsize:
        return f"{len(data) // dtype.itemsize} elements, digest {digest_bytes(data)[:8]}"
    texts = elements_text(data, dtype)
    rest = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f", … {rest} more" if rest > 0 else "") if texts else "nothing"


def elements_text(data: bytes, dtype: np.dtype[Any]) -> list[str]:
    """Write each element with as many digits as its dtype needs.

    Args:
        data: the elements in C order.
        dtype: of the elements.

    """
    return [str(element) for element in np.frombuffer(data, dtype)]


def _writers_text(timeline: Timeline, seen: RegionContents) -> str:
    """Return which steps wrote what a region holds: three by name, and how many more."""
    names = ["nobody" if step == START else f"step {step} ({timeline.task_title(step)})" for step in seen.writers[:3]]
    rest = len(seen.writers) - len(names)
    return f"written by {', '.join(names)}" + (f" and {rest} more" if rest > 0 else "") if names else ""


def _what(timeline: Timeline, step: int) -> str:
    event = timeline.events[step]
    return f"{timeline.task_title(step)}, call {event.call}: {event.op}"


def _as_run(timeline: Timeline, step: int) -> OrderedOperation:
    event = timeline.events[step]
    parts = []
    read, written = read_by(event), written_by(event)
    if read is not None:
        seen = timeline.contents.before(read.region, step)
        parts.append(f"reads {value_text(event.data, read.region.dtype)}, {_writers_text(timeline, seen)}")
    if written is not None:
        parts.append(_writing(event.data, written))
    if event.op.cell is not None:
        value = event.have if timeline.after[step] is None else timeline.after[step]
        parts.append(f"{event.op.cell} is {value}")
    return OrderedOperation(step, _what(timeline, step), "; ".join(parts))


def _writing(data: Data, access: Access) -> str:
    return f"{'adds' if access.mode == ADD else 'writes'} {value_text(data, access.region.dtype)}"


def _swapped(
    timeline: Timeline, delayed: Sequence[int], first: int, second: int
) -> tuple[OrderedOperation, OrderedOperation]:
    """Return the turns of the other order: the second, and then the first, which was held back until then."""
    without = frozenset(delayed)
    return (
        OrderedOperation(second, _what(timeline, second), "; ".join(_outcome(timeline, second, second, without, None))),
        OrderedOperation(first, _what(timeline, first), "; ".join(_outcome(timeline, first, second, without, second))),
    )


def _outcome(timeline: Timeline, step: int, at: int, without: frozenset[int], after: int | None) -> Iterator[str]:
    """Return what a step would meet just before step `at`, without some steps, and after another if one is given."""
    event = timeline.events[step]
    read, written = read_by(event), written_by(event)
    if read is not None:
        overlay = _overlay(timeline, after, at, without)
        seen = timeline.contents.before(read.region, at, without=without, after=overlay)
        yield f"reads {value_text(seen.data, read.region.dtype)}, {_writers_text(timeline, seen)}"
    if written is not None:
        yield _writing(event.data, written)
    if event.op.cell is not None and event.op.kind in CHANGING:
        steps = [*([] if after is None else [after]), step]
        yield f"{event.op.cell} is {_cell_value(timeline, at, without, steps)}"


def _overlay(timeline: Timeline, after: int | None, at: int, without: frozenset[int]) -> list[tuple[int, Access, Data]]:
    access = None if after is None else written_by(timeline.events[after])
    if after is None or access is None:
        return []
    data: Data = timeline.events[after].data
    if access.mode == ADD:
        data = sum_of(access.region, timeline.contents.before(access.region, at, without=without).data, data)
    return [(after, access, data)]


def _cell_value(timeline: Timeline, at: int, without: frozenset[int], more: Sequence[int]) -> int:
    """Return what the cell of the last of `more` holds if these were done, in this order, just before step `at`."""
    values = _CellReplay(timeline)
    for step in [*(step for step in range(at) if step not in without), *more]:
        values.do(step, timeline.events[step])
    return values.of(timeline.events[more[-1]].op)


class _CellReplay:
    """What cells hold when some of the steps of a run are done."""

    def __init__(self, timeline: Timeline) -> None:
        self._after = timeline.after
        self._world = timeline.trace.header.world
        self._values: dict[int, int] = {}

    def of(self, op: Op) -> int:
        """Return the value of an operation's cell now."""
        assert op.cell is not None  # noqa: S101 - for the type checker: the caller knows
        known = self._values.get(op.cell.slot)
        return self._world.start_of(op.cell) if known is None else known

    def do(self, step: int, event: Event) -> None:
        """Do what a step does to its cell, if it does anything.

        Args:
            step: the number of the event in its trace.
            event: what was done in that step.

        """
        op = event.op
        if op.cell is not None and self._after[step] is not None:
            self._values[op.cell.slot] = op.cell.wrapped(EFFECTS[op.kind](self.of(op), op)[0])


class _Delayed:
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
        """Return whether a step comes after a held one in any case: by its program, its landing, or a meeting."""
        op = event.op
        if arrived in self._known or op.actor.name in self._actors:
            return True
        if op.kind in JOINING or op.kind in MEETING:  # of several actors; which of them it needs is not looked at
            return bool((self._tasks | self._wires) - {_task(event)})
        # A rank sees its own stores before they land; which of them it reads is not looked at.
        if op.actor.rank in self._ranks:
            return True
        # A quiet, and a landing that has to come after others of its task, wait for that task's landings; a quiet of
        # the rank, and what lands at home, for those of the other streams, too.
        at_home = op.actor.wire and any(access.region.owner == op.actor.rank for access in op.accesses)
        if (at_home or op.link == WHOLE_RANK) and op.actor.rank in self._ranks_of_wires:
            return True
        return (op.kind in QUIETING or op.actor.wire) and _task(event) in self._wires

    def reads_from(self, event: Event) -> bool:
        """Return whether a step reads, or adds to, what a held one wrote."""
        written = written_by(event)
        read = written if written is not None and written.mode == ADD else read_by(event)
        if read is None:
            return False
        return any(spans_overlap(spans, read.region.spans) for spans in self._writes.get(read.region.slot, ()))


def delayed_with(timeline: Timeline, first: int, second: int) -> list[int] | None:
    """Return the steps that are held back with `first` until `second` is done, ascending.

    None if `second` depends on one of them, other than by reading what it wrote.

    Args:
        timeline: of the trace.
        first: a step.
        second: a later one.

    """
    delayed = _Delayed()
    values = _CellReplay(timeline)
    for step, event in enumerate(timeline.events[:second]):
        late = step > first and (
            delayed.before(event, timeline.arrived[step]) or _answer_changes(event, values) or delayed.reads_from(event)
        )
        if late or step == first:
            delayed.add(step, event)
        else:
            values.do(step, event)
    event = timeline.events[second]
    return None if delayed.before(event, timeline.arrived[second]) or _answer_changes(event, values) else delayed.steps


def _answer_changes(event: Event, values: _CellReplay) -> bool:
    """Return whether a wait would not pass, or a test say something else, without the held steps."""
    op = event.op
    if op.kind not in COMPARING or event.have is None:
        return False
    holds = COMPARE[op.how]
    return holds(values.of(op), op.amount) != holds(event.have, op.amount)


def _task(event: Event) -> str:
    return event.op.actor.name.partition(">")[0]
