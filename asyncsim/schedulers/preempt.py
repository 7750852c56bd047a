"""Context bounding: an actor runs until it blocks, but for `k` moments at which another one takes over.

Source: Musuvathi and Qadeer, "Iterative context bounding for systematic testing of multithreaded
programs", PLDI 2007. Switches where the actor cannot go on are free; only preemptions count, and
most bugs need one or two.

How this differs: the paper enumerates all schedules with k preemptions before those with k + 1,
this draws them. A search that finds nothing says nothing beyond its bound, and little within.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.moments import checked_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Preempt:
    """Any actor as far as it goes, then any other; at most `k` times before it has to stop.

    Args:
        k: how many preemptions a run has at most.
        seed: of the dice; runs of one scheduler differ.
        steps: how long a run is; None to learn it from run to run.

    """

    __slots__ = ("_current", "_k", "_moments", "_seed")

    def __init__(self, k: int = 2, seed: int = 0, steps: int | None = None) -> None:
        self._moments = checked_bound("preempt", k, seed, steps)
        self._k = k
        self._seed = seed
        self._current = -1

    def __str__(self) -> str:
        steps = "" if self._moments.given is None else f",steps={self._moments.given}"
        return f"preempt:k={self._k},seed={self._seed}{steps}"

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run with preemptions of its own."""
        self._moments.begin(actors)
        self._current = -1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the operation of the present actor if it is ready and not preempted; else of any other."""
        own = next((op for op in ready if op.actor.order == self._current), None)
        others = [op for op in ready if op is not own]
        moment = self._moments.tick()
        if own is not None and not (moment and others):
            if moment:  # nobody to take over: the next step may have somebody
                self._moments.wait()
            return own
        if moment and own is None:  # the switch was free
            self._moments.wait()
        op = others[int(self._moments.dice() * len(others))]
        self._current = op.actor.order
        return op
