"""A schedule that is followed where that is possible: what the shrinker tries its ideas with.

A segment says: this actor, so many operations. A segment whose actor is not ready, or whose count
is used up, is left behind; after the last one the current actor goes on as long as it can, then
the next (`eager`). So every list of segments is a schedule, and dropping one always leaves one.
Source: Hypothesis' choice sequences, of which every list is a test case too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.turns import next_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

UNTIL_BLOCKED = 1 << 62
"""A count that no actor uses up."""

Segment = tuple[str, int]
"""An actor's name, and how many operations it takes in a row."""


class Lenient:
    """Segments as far as they fit, then run to block.

    Args:
        segments: the schedule.

    """

    __slots__ = ("_at", "_current", "_left", "_segments")

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = tuple(segments)
        self._at = 0
        self._left = 0
        self._current = -1

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run."""
        self._at = 0
        self._left = self._segments[0][1] if self._segments else 0
        self._current = -1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return what the first segment that fits says."""
        while self._at < len(self._segments):
            if self._left > 0:
                name = self._segments[self._at][0]
                for op in ready:
                    if op.actor.name == name:
                        self._left -= 1
                        self._current = op.actor.order
                        return op
            self._at += 1
            if self._at < len(self._segments):
                self._left = self._segments[self._at][1]
        op = next_after(ready, self._current - 1)
        self._current = op.actor.order
        return op
