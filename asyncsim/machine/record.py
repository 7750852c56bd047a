"""The recorder: an observer that turns every step of a run into one event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.machine.site import Sites
from asyncsim.trace.event import Event

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

    """

    def __init__(self, memory: Memory, places: Mapping[int, Place], sites: Sites) -> None:
        """Start with no event."""
        self.events: list[Event] = []
        self._memory = memory
        self._places = places
        self._sites = sites

    def __call__(self, op: Op, outcome: Any) -> None:  # noqa: ANN401 - whatever an effect returns
        """Note a step that was just taken."""
        place = self._places[op.actor.order]
        rank = place.rank
        at = self._sites.of(place.coroutine)
        step = len(self.events)
        memory = self._memory
        if op.cell is None:
            data = (op.payload if outcome is None else outcome).tobytes()
            event = Event(step, op, rank.call, rank.phase_name, at, data)
            if memory.unwritten:
                event.unwritten = any(access.region in memory.unwritten for access in op.accesses if access.mode == "read")
        else:
            have = memory.cells[op.cell.slot]
            if op.consume:
                have = op.cell.wrapped(have + op.amount)
            event = Event(step, op, rank.call, rank.phase_name, at, None, have)
        self.events.append(event)

    def pending(self, op: Op) -> Event:
        """Describe an operation that still stands at the gate."""
        place = self._places[op.actor.order]
        have = self._memory.cells[op.cell.slot] if op.cell is not None else None
        return Event(None, op, place.rank.call, place.rank.phase_name, self._sites.of(place.coroutine), None, have)
