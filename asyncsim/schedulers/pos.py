"""POS, partial order sampling: random priorities of operations, drawn again after every conflict.

Source: Yuan, Yang and Gu, "Partial order aware concurrency sampling", CAV 2018. A random walk
prefers some partial orders by orders of magnitude; when the operations that conflict with the one
just executed draw anew, each of them has the same chance to be the next in its own conflict.

How this differs: a wait that cannot pass yet has no priority until it can. Conflicts are those of
`asyncsim.trace.conflict`, which every search here uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked, generator
from asyncsim.trace.conflict import conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Pos:
    """The ready operation of the highest priority.

    Args:
        seed: of the dice; runs of one scheduler differ.

    """

    __slots__ = ("_dice", "_drawn", "_runs", "_seed")

    def __init__(self, seed: int = 0) -> None:
        self._seed = checked("pos", "seed", seed)
        self._runs = 0
        self._dice: Callable[[], float] = generator(seed, 0).random
        self._drawn: dict[int, tuple[Op, float]] = {}  # by the order of actors

    def __str__(self) -> str:
        return f"pos:seed={self._seed}"

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run."""
        self._dice = generator(self._seed, self._runs).random
        self._runs += 1
        self._drawn = {}

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the operation of the highest priority; those it conflicts with draw anew."""
        drawn = self._drawn
        best = ready[0]
        highest = -1.0
        for op in ready:
            order = op.actor.order
            known = drawn.get(order)
            if known is None or known[0] is not op:
                known = drawn[order] = (op, self._dice())
            if known[1] > highest:
                best, highest = op, known[1]
        for op in ready:
            if op is not best and conflict(op, best):
                del drawn[op.actor.order]
        return best
