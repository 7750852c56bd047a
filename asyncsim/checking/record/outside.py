"""Outside state: what a kernel reaches besides its inputs and its memory must be after a run what it was before.

A proof takes for granted that the kernel depends on nothing else. What can be seen of that is looked at: before
and after each run, and in the second one also between its steps, as often as it costs a small part of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.checking.record.snapshot import add_contents
from asyncsim.checking.record.variables import reachable_variables
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

PARTS_A_STEP = 2
"""A variable of so many parts is compared at every step, a larger one at fewer: that costs a tenth of a step."""


class OutsideState:
    """The variables that a kernel reaches, and what they held when they were last compared.

    Args:
        kernel: whose functions are looked through.

    Attributes:
        changed: the names of the variables that changed since, and which rank ran last when it was first seen.

    """

    def __init__(self, kernel: Kernel) -> None:
        self._variables = reachable_variables(kernel)
        self.changed: dict[str, str] = {}
        self._last = self._snapshot()
        self.parts = sum(map(len, self._last))

    def compare(self, actor: str = "") -> None:
        """Compare with the last time, and note what changed; `actor` ran last."""
        if not self._variables:
            return
        now = self._snapshot()
        for variable, before, after in zip(self._variables, self._last, now, strict=True):
            if before != after:
                self.changed.setdefault(str(variable), actor)
        self._last = now

    def finding(self) -> Finding:
        """Return what changed as a finding that is not known to be harmful."""
        return Finding("hidden-state", self.text)

    @property
    def text(self) -> str:
        """What changed, and what follows; empty if nothing did."""
        if not self.changed:
            return ""
        named = [f"{name}, seen after a step of {actor}" if actor else name for name, actor in self.changed.items()]
        return (
            f"the kernel changes what outlives a call: {'; '.join(named)}. A proof would take for granted that "
            "it depends on nothing but its inputs and its memory; keep such a thing within the call, or in a window"
        )

    def _snapshot(self) -> list[list[Any]]:
        contents = []
        for variable in self._variables:
            parts: list[Any] = []
            add_contents(variable.get(), parts)
            contents.append(parts)
        return contents


class OutsideWatch:
    """Chooses as another scheduler does, and compares outside state in between.

    Args:
        scheduler: chooses.
        outside: is compared.

    """

    def __init__(self, scheduler: Scheduler, outside: OutsideState) -> None:
        self._scheduler = scheduler
        self._outside = outside
        self._every = max(outside.parts // PARTS_A_STEP, 1)
        self._steps = 0
        self._actor = ""

    def __str__(self) -> str:
        return str(self._scheduler)

    def begin(self, actors: Sequence[Actor]) -> None:
        """Begin a run."""
        self._scheduler.begin(actors)
        self._steps = 0

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose as the other does."""
        self._steps += 1
        if self._steps % self._every == 0:
            self._outside.compare(self._actor)
        chosen = self._scheduler.choose(ready)
        self._actor = f"rank {chosen.actor.rank}"
        return chosen
