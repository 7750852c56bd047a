"""The recorder: an observer that turns every step of a run into one event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.machine.site import Sites
from asyncsim.trace.event import Event
from asyncsim.trace.late import index_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.machine.memory import Memory
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.op import Op


class Place:
    """Where one actor is: its rank, and the coroutine it is suspended in."""

    __slots__ = ("coroutine", "rank")

    def __init__(self, rank: Rank) -> None:
        """Start before the first call."""
        self.rank = rank
        self.coroutine: Any = None


class Recorder:
    """Keeps the events of a run.

    Args:
        memory: looked at, never touched.
        places: where each actor is, by its order.
        sites: shared by the runs of a case, so that each line is looked up once.
        late: there are wires; a landing is noted with the place of its issue.

    """

    def __init__(self, memory: Memory, places: Mapping[int, Place], sites: Sites, *, late: bool) -> None:
        """Start with no event."""
        self.events: list[Event] = []
        self._issues: dict[tuple[str, int], Event] = {}
        self._counts: dict[int, int] = {}
        self._late = late
        self._unwritten = 0
        self._memory = memory
        self._places = places
        self._sites = sites

    def __call__(self, op: Op, outcome: Any) -> None:  # noqa: ANN401 - whatever an effect returns
        """Note a step that was just taken."""
        if op.actor.wire:
            issue = self._issues[op.actor.name.partition(">")[0], index_of(op.actor.name)]
            call, phase, at = issue.call, issue.phase, issue.at
        else:
            place = self._places[op.actor.order]
            rank = place.rank
            call, phase, at = rank.call, rank.phase_name, self._sites.of(place.coroutine)
        memory = self._memory
        event = Event(len(self.events), op, call, phase, at)
        tile = op.payload if outcome is None else outcome
        if op.accesses and hasattr(tile, "tobytes"):
            event.data = tile.tobytes()
        if op.cell is not None:
            # A consuming wait has changed the cell by now, and says what it saw.
            event.have = outcome if op.consume and outcome is not None else memory.cells[op.cell.slot]
        event.unwritten = len(memory.unwritten) > self._unwritten
        self._unwritten = len(memory.unwritten)
        self.events.append(event)
        if op.deferred:
            self._issues[op.actor.name, self._counts.get(op.actor.order, 0)] = event
        if self._late and not op.actor.wire:
            self._counts[op.actor.order] = self._counts.get(op.actor.order, 0) + 1

    def pending(self, op: Op) -> Event:
        """Describe an operation that still stands at the gate."""
        place = self._places[op.actor.order]
        have = self._memory.cells[op.cell.slot] if op.cell is not None else None
        return Event(None, op, place.rank.call, place.rank.phase_name, self._sites.of(place.coroutine), None, have)
