"""Round robin: the next ready actor after the last one. The friendly, fair schedule; the reference.

A turn is one operation; or, of `notify_all` and `wait_all`, all that is ready of it.

What was issued lands as soon as it may, before anybody moves on: so a fair run under a model in
which things land late is the run under sequential consistency.

Source: none needed; it is what an event loop with one queue does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.turns import first_landing, in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Fifo:
    """Every actor in turn, one operation each."""

    __slots__ = ("_last",)

    blocks = True

    def __init__(self) -> None:
        self._last = -1

    def __str__(self) -> str:
        return "fifo"

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run."""
        self._last = -1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the next one; landings first."""
        return ready[self.pick(ready)]

    def pick(self, ready: Sequence[Op], held: Sequence[Op] = ()) -> int:
        """Return the place of the next one.

        Args:
            ready: at least one operation, in the order of actors.
            held: some among them, not all, that are passed over as if they were not there.

        """
        if ready[-1].actor.wire and (at := first_landing(ready, held)) is not None:
            return at
        at = in_turn(ready, self._last, held)
        self._last = ready[at].actor.order
        return at
