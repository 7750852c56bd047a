"""Races of sampled schedules: each is taken apart like an execution of an exhaustive exploration.

That costs 25 to 140 microseconds a step, several times the step itself, so only so many steps are looked at, and no
schedules that are long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.checking.search.coenabled import CoenabledPairs
from asyncsim.checking.search.dependence import Dependence
from asyncsim.checking.search.dpor import initial_cells
from asyncsim.checking.search.execution import Execution
from asyncsim.trace.late import model_of
from asyncsim.trace.op import SYNC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Case
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

STEPS, LONGEST = 30_000, 4000
"""So many steps are looked at, which takes a second or a few; of schedules that are no longer than this."""


class SampledRaces:
    """Looks at schedules of one case.

    Args:
        case: the case.
        usual: about how many steps a schedule has. Of one that has far more, the first are looked at: it polls.
        steps: of all schedules together.

    Attributes:
        coenabled: the races that were met.
        schedules: how many were looked at.

    """

    def __init__(self, case: Case, usual: int, steps: int = STEPS) -> None:
        self.schedules = 0
        self._starts = initial_cells(case)
        self._dependence = Dependence(model_of(case.memory))
        self.coenabled = CoenabledPairs(forwards=self._dependence.forwards)
        self._longest = 2 * usual
        self._left = steps if usual <= LONGEST else 0
        self._watched: Watched | None = None

    def around(self, scheduler: Scheduler) -> Scheduler:
        """Return a scheduler that chooses as this one does, and lets its run be looked at."""
        self._watched = Watched(scheduler, min(self._longest, self._left)) if self._left > 0 else None
        return self._watched or scheduler

    def look(self) -> None:
        """Look at the run that was made with that scheduler."""
        watched = self._watched
        if watched is None:
            return
        self._dependence.refine(self._starts, watched.ops)
        execution = Execution(self._dependence, self._starts)
        for step, op in enumerate(watched.ops):
            execution.extend(op, watched.met.get(step, ()))
        self.coenabled.add_execution(execution, 0)
        self.schedules += 1
        self._left -= len(watched.ops)


class Watched:
    """Keeps the operations that another scheduler chooses.

    Args:
        scheduler: the other.
        most: how many are kept.

    Attributes:
        ops: these.
        met: for each step of a rank-local barrier, who was ready with it.

    """

    def __init__(self, scheduler: Scheduler, most: int) -> None:
        self.ops: list[Op] = []
        self.met: dict[int, tuple[Op, ...]] = {}
        self._scheduler = scheduler
        self._most = most

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self.ops.clear()
        self.met.clear()
        self._scheduler.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return what the other chooses."""
        op = self._scheduler.choose(ready)
        if len(self.ops) < self._most:
            if op.kind == SYNC:
                self.met[len(self.ops)] = tuple(ready)
            self.ops.append(op)
        return op
