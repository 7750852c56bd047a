"""Delay bounding: run to block in a fixed order, but for `k` moments at which the next in turn is passed over.

Source: Emmi, Qadeer and Rakamaric, "Delay-bounded scheduling", POPL 2011. With k delays there are at
most about n^k schedules of n steps, whatever the number of actors, and most bugs need very few.

How this differs: the paper enumerates all placements of the delays, this draws them; the fixed
order is that of `eager`. A search that finds nothing says nothing beyond its bound, and little within.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.moments import checked_bound
from asyncsim.schedulers.turns import next_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Delay:
    """One actor as far as it goes, then the next; at most `k` times the next one is taken at once.

    Args:
        k: how many delays a run has at most.
        seed: of the dice; runs of one scheduler differ.
        steps: how long a run is; None to learn it from run to run.

    """

    __slots__ = ("_current", "_k", "_moments", "_seed")

    def __init__(self, k: int = 2, seed: int = 0, steps: int | None = None) -> None:
        self._moments = checked_bound("delay", k, seed, steps)
        self._k = k
        self._seed = seed
        self._current = -1

    def __str__(self) -> str:
        steps = "" if self._moments.given is None else f",steps={self._moments.given}"
        return f"delay:k={self._k},seed={self._seed}{steps}"

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run with delays of its own."""
        self._moments.begin(actors)
        self._current = -1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the operation of the actor in turn; at a delay, of the one after it."""
        op = next_after(ready, self._current - 1)
        if self._moments.tick():
            op = next_after(ready, op.actor.order)
        self._current = op.actor.order
        return op
