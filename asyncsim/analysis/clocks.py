"""The fast path: vector clocks over what *must* happen before, not over what was observed to.

Where a cell has one remote producer, the credits that a wait needs are its first so many, so the
notify that completes them must precede the wait in every schedule. If all awaited cells are like
that, must-happen-before is a partial order and one pass of vector clocks decides everything.
(Clocks that join whatever was observed are another thing: a wait that passed on an early extra
credit inherits an edge that other schedules do not have, and races are missed.)

Clock bookkeeping after Fidge and Mattern; that positions stand for clocks, after FastTrack
(Flanagan and Freund, PLDI 2009).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from asyncsim.trace.kinds import WAITING

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.streams import Epoch, Place, Streams


def required_notifies(streams: Streams, guards: Guards) -> dict[Place, Place | None] | None:
    """Return for each wait the one notify that it cannot pass without (None: it needs none).

    Returns None where some awaited cell has Sets or updates that do not add, several remote producers or foreign
    changes against its waits: frontiers decide there. A wait that cannot pass at all is left out.

    Args:
        streams: of the run.
        guards: the credits that each wait needs.

    """
    required: dict[Place, Place | None] = {}
    for history in streams.histories.values():
        if not history.waits:
            continue
        epoch = history.epochs[0]
        if len(history.epochs) > 1 or history.tests or not epoch.is_sum:
            return None
        for wait in history.waits:
            actor, index = wait.place
            sign = wait.sign
            producers = [who for who in epoch.tallies if who != actor]
            if len(producers) > 1 or any(
                sign * amount < 0 for who in producers for amount in epoch.tallies[who].amounts
            ):
                return None
            goal = guards.goals[wait.place].get(epoch.number)
            if goal is None:
                continue
            own = epoch.tallies.get(actor)
            needed = goal.credits - (own.credits_before(index, sign) if own is not None else 0)
            notify = _completing(producers, epoch, needed, sign) if needed > 0 else None
            if needed <= 0 or notify is not None:
                required[wait.place] = notify
    return required


def _completing(producers: list[int], epoch: Epoch, needed: int, sign: int) -> Place | None:
    """Return the notify with which the only producer has given so many credits; None if it never has."""
    for who in producers:
        tally = epoch.tallies[who]
        for at in tally.indexes:
            if tally.credits_before(at + 1, sign) >= needed:
                return who, at
    return None


class Clocks:
    """Must-happen-before as one vector a wait."""

    def __init__(self, streams: Streams, required: dict[Place, Place | None]) -> None:
        """Go once through the run, joining at each wait the clock of the notify that it needs."""
        self.edges: Edges = {}
        actors = len(streams.events)
        self._lengths = [len(stream) for stream in streams.events]
        self._starts: list[list[int]] = [[0] for _ in range(actors)]
        self._vectors: list[list[list[int]]] = [[[0] * actors] for _ in range(actors)]
        self._end = list(self._lengths)
        at = [0] * actors
        for event in streams.trace.events:
            actor = streams.number[event.op.actor.order]
            index = at[actor]
            at[actor] += 1
            if event.op.kind not in WAITING:
                continue
            source = required.get((actor, index))
            if source is None:
                continue
            who, when = source
            vector = list(map(max, self._vectors[actor][-1], self._before(who, when)))
            vector[who] = max(vector[who], when + 1)
            self._starts[actor].append(index)
            self._vectors[actor].append(vector)
        for actor, stream in enumerate(streams.events):
            last = len(stream) - 1
            if stream and streams.is_pending((actor, last)) and stream[last].op.kind in WAITING:
                # One remote producer and still pending: nobody can ever let it pass.
                self._end[actor] = last

    def reach(self, actor: int, index: int, other: int) -> int:
        """Return how far `other` can get, as a position in its stream, with `actor` held before `index`.

        Args:
            actor: the number of the actor that is held.
            index: of the operation that it is held before, in its stream.
            other: the number of another actor, or of the same.

        """
        if other == actor:
            return index
        vectors = self._vectors[other]
        low, high = 0, len(vectors)
        while low < high:  # what must precede only grows along a stream
            middle = (low + high) // 2
            if vectors[middle][actor] > index:
                high = middle
            else:
                low = middle + 1
        return self._starts[other][low] if low < len(vectors) else self._end[other]

    def _before(self, actor: int, index: int) -> list[int]:
        return self._vectors[actor][bisect_right(self._starts[actor], index) - 1]
