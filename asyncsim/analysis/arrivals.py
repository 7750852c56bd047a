"""Arrivals: who is the last of so many, and what follows for the others if in every schedule it is the same one.

Who comes last depends on the schedule, and what the last one does then is in its stream alone. But each schedule is
one of those in which somebody certain comes last, and of these a run in which it does speaks: with an edge from each
of the others' arrivals to its own, all answers are known. So as many runs as there are to be last decide together, if
each is clean and all end alike. In a schedule in which not all arrive, one that never does can be taken for the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.kinds import ARRIVE

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Place, Streams


@dataclass(frozen=True, slots=True)
class Meeting:
    """Those that arrive at one cell to be the last of so many.

    Args:
        slot: of the cell.
        amount: what the last one finds there.
        others: the arrivals before the last.
        last: the one that was told that it is the last.

    """

    slot: int
    amount: int
    others: tuple[Place, ...]
    last: Place

    @property
    def places(self) -> tuple[Place, ...]:
        """All arrivals, the last one last."""
        return (*self.others, self.last)


def meetings_of(streams: Streams) -> list[Meeting]:
    """Return the meetings of a run that ended with somebody told to be the last, in the order of their ends.

    Args:
        streams: of the run.

    """
    found: list[tuple[float, Meeting]] = []
    for slot, history in streams.histories.items():
        numbered: dict[tuple[int, int], list[Place]] = {}
        for test in history.tests:
            if test.event.op.kind == ARRIVE and test.epoch is not None and test.event.step is not None:
                numbered.setdefault((test.epoch.number, test.event.op.amount), []).append(test.place)
        for (_, amount), places in numbered.items():
            *others, last = sorted(places, key=streams.step)
            told = [place for place in places if streams.event(place).have == amount]
            if told == [last]:  # else who comes later is not told so: of such a cell nothing is said
                found.append((streams.step(last), Meeting(slot, amount, tuple(others), last)))
    return [meeting for _, meeting in sorted(found, key=lambda each: each[0])]
