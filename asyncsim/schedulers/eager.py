"""Run to block: keep the current actor going until it cannot, then the next one.

The schedule with the fewest task switches, so the first to try, and the tail of every shrunk one.
Source: the base case of context bounding, Musuvathi and Qadeer, PLDI 2007 (no preemption at all).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.turns import next_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Eager:
    """One actor as far as it goes, then the next."""

    __slots__ = ("_current",)

    blocks = True

    def __init__(self) -> None:
        self._current = -1

    def __str__(self) -> str:
        return "eager"

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run."""
        self._current = -1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the operation of the current actor; if it is not ready, of the next one."""
        # The first actor at or after the current one: orders are integers.
        op = next_after(ready, self._current - 1)
        self._current = op.actor.order
        return op
