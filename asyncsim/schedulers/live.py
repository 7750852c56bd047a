"""A scheduler that chooses as another one does, and has a trace written while the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Live:
    """Makes the choices of `inner`.

    Args:
        inner: who really chooses.
        told: gets every event, as soon as its step was taken, if the run is recorded.

    """

    def __init__(self, inner: Scheduler, told: Callable[[Event], None]) -> None:
        self._inner = inner
        self.told = told
        self.now = getattr(inner, "now", None)

    def __str__(self) -> str:
        """Write it as `make` takes the other one."""
        return str(self._inner)

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run."""
        self._inner.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return what the other one chooses."""
        return self._inner.choose(ready)
