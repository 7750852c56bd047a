"""Fair at last: any scheduler, until a run has become far longer than it should be; then everybody in turn.

A loop that polls memory never ends while its writer is held back, and that is the scheduler's doing, not
the kernel's. With everybody in turn it ends, or it never does.

Source: fair stateless model checking, Musuvathi and Qadeer, PLDI 2008, where fairness is likewise asked for
only of what would go on for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.fifo import Fifo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class FairAtLast:
    """Chooses as another scheduler does, and after so many steps by turns.

    Args:
        scheduler: the other one.
        steps: how many it may choose.

    """

    __slots__ = ("_choose", "_fair", "_left", "_scheduler", "_steps")

    def __init__(self, scheduler: Scheduler, steps: int) -> None:
        self._scheduler = scheduler
        self._choose = scheduler.choose
        self._steps = self._left = steps
        self._fair = Fifo()

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._left = self._steps
        self._fair.begin(actors)
        self._scheduler.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return what the other scheduler chooses, while it may."""
        self._left -= 1
        return self._choose(ready) if self._left >= 0 else self._fair.choose(ready)
