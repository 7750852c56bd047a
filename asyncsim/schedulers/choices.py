"""Keeps what another scheduler chose: a run that raises leaves its schedule all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Choices:
    """Wraps a scheduler and keeps what it chose, so that a run that raises is not lost."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.choices: list[str] = []

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self.choices = []
        self._scheduler.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose as the wrapped scheduler does."""
        op = self._scheduler.choose(ready)
        self.choices.append(op.actor.name)
        return op
