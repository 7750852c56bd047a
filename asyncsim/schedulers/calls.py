"""Call by call: nobody begins a call before all have ended the last one, if the kernel lets them.

Within a call any ready operation with the same chance. What was issued lands at once, so that a call
leaves nothing behind. It shows what a single call does to memory: the run from which it is told whether
a verdict holds for calls that were not made.

Source: none needed; it is what a program does that has a barrier between its calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked, generator
from asyncsim.schedulers.turns import first_landing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


_DRAWS = 16
"""So often a draw is made before all are looked at: with a thousand ranks to look is what costs."""


class Calls:
    """Any of the ready operations of the earliest call.

    Args:
        seed: of the dice. The first run of a scheduler with this seed is always the same; the
            runs of one scheduler differ.

    """

    __slots__ = ("_call", "_dice", "_runs", "_seed")

    def __init__(self, seed: int = 0) -> None:
        self._seed = checked("calls", "seed", seed)
        self._runs = 0
        self._call = 0
        self._dice = generator(seed, 0).random

    def __str__(self) -> str:
        return f"calls:seed={self._seed}"

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run with dice of its own."""
        self._dice = generator(self._seed, self._runs).random
        self._runs += 1
        self._call = 0

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return a landing if there is one; else any operation of the call that is furthest behind."""
        return ready[self.pick(ready)]

    def pick(self, ready: Sequence[Op]) -> int:
        """Return its place."""
        if ready[-1].actor.wire and (landing := first_landing(ready)) is not None:
            return landing
        dice, call = self._dice, self._call
        for _ in range(_DRAWS):
            at = int(dice() * len(ready))
            if ready[at].call <= call:
                return at
        self._call = min(op.call for op in ready)
        behind = [at for at, op in enumerate(ready) if op.call == self._call]
        return behind[int(dice() * len(behind))]
