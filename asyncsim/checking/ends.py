"""Both orders of a pair of operations, each followed to all its ends: only that can show that a race is benign.

Two schedules that end with the same bits say little: in one of the orders something else may come next that goes
wrong. So from the state where both operations are next, every inequivalent execution is run in which the one goes
first, and every one in which the other does, as far as a budget goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.checking.exhaust import Exhausting
from asyncsim.checking.hang import told
from asyncsim.checking.prefixes import Learnt, Prefix, Step
from asyncsim.trace.errors import DivergenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.exhaust import Exhausted
    from asyncsim.checking.outcome import Judge
    from asyncsim.checking.part import Failure

NOT_FOLLOWED = "the two orders were not followed to all their ends"


@dataclass(frozen=True, slots=True)
class Shown:
    """What the ends of two orders showed.

    Args:
        harmful: True: they differ in what is returned, or one fails where the other does not; False: they are the
            same; None: not all ends were seen, or only what is left in windows differs.
        words: the same in words.
        failure: an execution that fails in one order alone, if there is one.

    """

    harmful: bool | None
    words: str
    failure: Failure | None = None


class Ends:
    """Follows orders.

    Args:
        judge: of the runs of the case.
        budget: how many executions may be made in all.

    Attributes:
        executions: how many were made.

    """

    def __init__(self, judge: Judge, budget: int) -> None:
        """Run nothing yet."""
        self.executions = 0
        self._judge = judge
        self._budget = budget

    async def of(self, together: Sequence[str], first: str, second: str) -> Shown:
        """Compare the ends of two orders.

        Args:
            together: the choices after which both operations are next.
            first: whose operation goes first in the fair run.
            second: whose goes first in the other order.

        Raises:
            KeyboardInterrupt: Ctrl-C came.

        """
        before = self.executions
        try:
            here = await self._below((*together, first, second))
            there = None if here is None else await self._below((*together, second, first))
        except DivergenceError:
            here = there = None  # the one keeps the other from going on
        if here is None or there is None:
            return Shown(None, NOT_FOLLOWED)
        made = self.executions - before
        if not (here.complete and there.complete):
            return self._partly(here, there, made)
        if here.results != there.results:
            return self._differ(here, there)
        if here.contents != there.contents:
            words = "the outputs are the same in both orders, but the windows end with other contents"
            return Shown(True if self._judge.silent else None, words)
        words = f"the same bits in both orders, each followed to all its ends ({made} executions)"
        return Shown(False, words)  # noqa: FBT003

    async def _below(self, choices: Sequence[str]) -> Exhausted | None:
        """Explore all that can follow these choices, from what is learnt of the case on the way; None: no budget."""
        learnt = Learnt()
        while self.executions < self._budget:
            prefix = Prefix(learnt, tuple(map(Step, choices)))
            exploring = Exhausting(self._judge.case, self._judge, prefix=prefix)
            found = await exploring.run(self._budget - self.executions)
            self.executions += found.executions
            if found.interrupted:
                raise KeyboardInterrupt
            if not exploring.outgrown:
                return found
            learnt |= exploring.learnt
        return None

    def _partly(self, here: Exhausted, there: Exhausted, made: int) -> Shown:
        """Judge orders of which one has ends that were not seen: what the other has not at all may be seen already."""
        if (here.complete and there.results - here.results) or (there.complete and here.results - there.results):
            return self._differ(here, there)
        return Shown(None, f"{NOT_FOLLOWED}, but {made} executions of them, which show no difference")

    def _differ(self, here: Exhausted, there: Exhausted) -> Shown:
        for one, other in ((there, here), (here, there)):
            kinds = {failure.finding.kind for failure in other.failures}
            own = [failure for failure in one.failures if failure.finding.kind not in kinds]
            if own:
                failure = own[0]
                finding = told(self._judge.case, failure.finding, failure.choices)
                return Shown(True, finding.why, failure)  # noqa: FBT003
        return Shown(True, "the outputs of the two orders differ in their bits")  # noqa: FBT003
