"""Both orders of a pair of operations, each followed to all its ends: only that can show that a race is benign.

Two schedules that end with the same bits say little: in one of the orders something else may come next that goes
wrong. So from the state where both operations are next, every inequivalent execution is run in which the one goes
first, and every one in which the other does, as far as a budget goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.outcome import RIGHT
from asyncsim.checking.search.dependence import Refinement
from asyncsim.checking.search.dpor import Decision, Prefix
from asyncsim.checking.search.exhaust import ExhaustiveSearch
from asyncsim.trace.errors import DivergenceError
from asyncsim.trace.event import STOPPED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.exhaust import ExhaustiveResult
    from asyncsim.checking.search.shard import Failure
    from asyncsim.machine.case import Run

DIFFER = "the outputs of the two orders differ in their bits"
NOT_FOLLOWED = "the two orders were not followed to all their ends"


@dataclass(frozen=True, slots=True)
class EndState:
    """An execution, by its end.

    Args:
        choices: the names of the actors, step by step.
        run: the run; None: it raises.
        error: what it raises.

    """

    choices: tuple[str, ...]
    run: Run | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """What the ends of two orders showed.

    Args:
        harmful: True: the other order has an end that the order of the fair run has not; False: they have the same;
            None: not all ends were seen, or only what is left in windows differs.
        words: the same in words; empty: the end fails as none does in the order of the fair run.
        end: that end.

    """

    harmful: bool | None
    words: str
    end: EndState | None = None


@dataclass(frozen=True, slots=True)
class _Followed:
    """One order: how it was explored, and the first execution with each end."""

    explored: ExhaustiveResult
    ends: dict[str, EndState]

    def ends_missing_in(self, other: _Followed) -> list[EndState]:
        """Return the ends that the other order has not, if all were seen; one of several right ones does no harm."""
        return [
            end for key, end in self.ends.items() if other.explored.complete and key not in other.ends and key != RIGHT
        ]


class OrderComparison:
    """Follows orders.

    Args:
        judge: of the runs of the case.
        budget: how many executions may be made in all.

    Attributes:
        executions: how many were made.

    """

    def __init__(self, judge: Judge, budget: int) -> None:
        self.executions = 0
        self._judge = judge
        self._budget = budget

    async def compare(self, choices: Sequence[str], first: str, second: str) -> OrderEffect:
        """Compare the ends of two orders.

        Args:
            choices: the choices after which both operations are next.
            first: whose operation goes first in the fair run.
            second: whose goes first in the other order.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.

        """
        before = self.executions
        try:
            here = await self._explore_after((*choices, first, second))
            there = None if here is None else await self._explore_after((*choices, second, first))
        except DivergenceError:
            here = there = None  # the one keeps the other from going on
        if here is None or there is None:
            return OrderEffect(None, NOT_FOLLOWED)
        made = self.executions - before
        if here.ends.keys() != there.ends.keys() and (shown := self._differ(here, there)) is not None:
            return shown
        if not (here.explored.complete and there.explored.complete):
            return OrderEffect(None, f"{NOT_FOLLOWED}, but {made} executions of them, which show no difference")
        if here.ends.keys() != there.ends.keys():
            return OrderEffect(None, "the order of the fair run has ends that the other has not")
        right = here.ends.keys() == {RIGHT}
        if not right and here.explored.contents != there.explored.contents:
            words = "the outputs are the same in both orders, but the windows end with other contents"
            return OrderEffect(True if self._judge.silent else None, words)
        what = RIGHT if right else "the same bits"
        words = f"{what} in both orders, each followed to all its ends ({made} executions)"
        return OrderEffect(False, words)  # noqa: FBT003

    async def _explore_after(self, choices: Sequence[str]) -> _Followed | None:
        """Explore all that can follow these choices, from what is learnt of the case on the way; None: no budget."""
        refinement = Refinement()
        while self.executions < self._budget:
            ends: dict[str, EndState] = {}
            prefix = Prefix(refinement, tuple(map(Decision, choices)))
            exploring = ExhaustiveSearch(self._judge.case, self._judge, partial(self._note, ends), prefix=prefix)
            found = await exploring.run(self._budget - self.executions)
            self.executions += found.executions
            if found.interrupted:
                raise KeyboardInterrupt
            if not exploring.tree.outdated:
                raised = [failure for failure in found.failures if failure.ending == STOPPED]
                return _Followed(found, ends | {each.finding.why: _raised(each) for each in raised})
            refinement |= exploring.tree.dependence.refinement
        return None

    def _note(self, ends: dict[str, EndState], run: Run) -> None:
        ends.setdefault(self._judge.end_key(run), EndState(tuple(run.choices), run))

    def _differ(self, here: _Followed, there: _Followed) -> OrderEffect | None:
        """Show an end that the other order alone has; or the fair one alone, where the fair run itself fails."""
        for one, other in ((here, there), (there, here) if self._judge.usual else (there, there)):
            ends = other.ends_missing_in(one)
            usual = self._judge.usual.union(*(self._failures(end) for end in one.ends.values()))
            own = next((end for end in ends if self._failures(end) - usual), None)
            if ends:
                return OrderEffect(True, "" if own else DIFFER, own or ends[0])  # noqa: FBT003
        return None

    def _failures(self, end: EndState) -> frozenset[str]:
        return frozenset([end.error]) if end.run is None else self._judge.failures(end.run)


def _raised(failure: Failure) -> EndState:
    return EndState(failure.choices, error=failure.finding.why)
