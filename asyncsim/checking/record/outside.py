"""Outside state: what a kernel reaches besides its inputs and its memory must be after a run what it was before.

A proof takes for granted that the kernel depends on nothing else. What can be seen of that is looked at: before
and after each run, and in the second one also between its steps, as often as it costs a small part of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.checking.record.snapshot import add_contents
from asyncsim.checking.record.variables import reached_by
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

PARTS_A_STEP = 2
"""A variable of so many parts is compared at every step, a larger one at fewer: that costs a tenth of a step."""


class Outside:
    """What a kernel reaches, as it was at first.

    Args:
        kernel: whose functions are looked through.

    Attributes:
        changed: the names of the variables that changed since, and who ran last when it was first seen.

    """

    def __init__(self, kernel: Kernel) -> None:
        self._variables = reached_by(kernel)
        self.changed: dict[str, str] = {}
        self._last = self._look()
        self.parts = sum(map(len, self._last))

    def look(self, who: str = "") -> None:
        """Look again, and note what is not as it was when it was last looked at."""
        if not self._variables:
            return
        now = self._look()
        for variable, before, after in zip(self._variables, self._last, now, strict=True):
            if before != after:
                self.changed.setdefault(str(variable), who)
        self._last = now

    def finding(self) -> Finding:
        """Return what changed as a finding; whether it does harm, nobody knows."""
        return Finding("hidden-state", self.text)

    @property
    def text(self) -> str:
        """Say what changed, and what follows; empty if nothing did."""
        if not self.changed:
            return ""
        named = [f"{name}, seen after a step of {who}" if who else name for name, who in self.changed.items()]
        return (
            f"the kernel changes what outlives a call: {'; '.join(named)}. A proof would take for granted that "
            "it depends on nothing but its inputs and its memory; keep such a thing within the call, or in a window"
        )

    def _look(self) -> list[list[Any]]:
        looked = []
        for variable in self._variables:
            parts: list[Any] = []
            add_contents(variable.get(), parts)
            looked.append(parts)
        return looked


class Between:
    """Chooses as another scheduler does, and looks at outside state in between.

    Args:
        scheduler: chooses.
        outside: is looked at.

    """

    def __init__(self, scheduler: Scheduler, outside: Outside) -> None:
        self._scheduler = scheduler
        self._outside = outside
        self._every = max(outside.parts // PARTS_A_STEP, 1)
        self._steps = 0
        self._who = ""

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
            self._outside.look(self._who)
        chosen = self._scheduler.choose(ready)
        self._who = f"rank {chosen.actor.rank}"
        return chosen
