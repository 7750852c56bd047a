"""A uniform random walk: every ready operation with the same chance, in every step.

The plain baseline. It takes few long detours: one rank far behind all others is unlikely, and
becomes exponentially so with every step; see `pct` for that.
Source: Claessen et al. call it the obvious one, "Finding race conditions in Erlang with QuickCheck
and PULSE", ICFP 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked, generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Random:
    """Any of the ready operations.

    Args:
        seed: of the dice. The first run of a scheduler with this seed is always the same; the
            runs of one scheduler differ.

    """

    __slots__ = ("_dice", "_runs", "_seed")

    def __init__(self, seed: int = 0) -> None:
        self._seed = checked("random", "seed", seed)
        self._runs = 0
        self._dice = generator(seed, 0).random

    def __str__(self) -> str:
        return f"random:seed={self._seed}"

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run with dice of its own."""
        self._dice = generator(self._seed, self._runs).random
        self._runs += 1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return any of them."""
        return ready[self.pick(ready)]

    def pick(self, ready: Sequence[Op]) -> int:
        """Return the place of any of them."""
        dice = self._dice
        return int(dice() * len(ready))
