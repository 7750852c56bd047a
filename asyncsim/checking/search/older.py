"""Exhaustive exploration under ``gpu``: every execution, with every choice of the versions that its reads return.

A search in which no read returns an older version shows, of each read, how many it could have returned. For each of
these choices there is a search of its own, and so on, until no execution offers one that was not searched. Which
versions a read has depends on what comes before it alone, so each execution is found: by its choices, the earliest
first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.checking.search.exhaust import ExhaustiveResult, ExhaustiveSearch
from asyncsim.checking.search.tally import Progress
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.late import is_with_old_reads, model_of, with_old_reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.versions import Read


def search_of(
    case: Case, judge: Judge, progress: Callable[[Progress], None] | None = None
) -> ExhaustiveSearch | OlderVersionsSearch:
    """Return the exhaustive exploration that the memory model of a case asks for.

    Args:
        case: what is run.
        judge: says what is wrong with a run.
        progress: called after every execution.

    """
    if model_of(case.memory).scoped and not is_with_old_reads(case.memory):
        return OlderVersionsSearch(case, judge, progress=progress)
    return ExhaustiveSearch(case, judge, progress=progress)


class OlderVersionsSearch:
    """An exhaustive exploration under ``gpu`` under way; it can be continued with another budget.

    Args:
        case, judge, on_run, progress: as of `asyncsim.checking.search.exhaust.exhaust`.

    """

    def __init__(
        self,
        case: Case,
        judge: Judge,
        on_run: Callable[[Run], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._case = case
        self._judge = judge
        self._on_run = on_run
        self._progress = progress
        self._planned: list[dict[Read, int]] = [{}]
        self._known = {frozenset(self._planned[0].items())}
        self._past = ExhaustiveResult(complete=True)
        self._reads: dict[Read, int] = {}
        self._present: ExhaustiveSearch | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is left to run."""
        return self._present is None and not self._planned

    async def run(self, budget: int) -> ExhaustiveResult:
        """Go on until there is nothing left, `budget` executions were made in all, or Ctrl-C comes."""
        result = self._past
        while not self.over and result.executions < budget and not result.interrupted:
            if self._present is None:
                self._reads = self._planned.pop(0)
                case = replace(self._case, memory=with_old_reads(self._reads))
                self._present = ExhaustiveSearch(case, self._judge, self._note)
            found = await self._present.run(budget - self._past.executions)
            result = self._joined(found)
            if self._present.over:
                self._past, self._present = result, None
        complete = self.over and result.complete
        return replace(result, complete=complete, estimate=result.inequivalent if complete else result.executions)

    def _joined(self, found: ExhaustiveResult) -> ExhaustiveResult:
        # Executions of several searches differ in what their reads return: their numbers must not meet.
        salt = int(digest_bytes(with_old_reads(self._reads).encode()), 16) if self._reads else 0
        found = replace(found, behaviours=frozenset(number ^ salt for number in found.behaviours))
        joined = self._past.joined(found)
        return replace(joined, complete=self._past.complete and found.complete, interrupted=found.interrupted)

    def _note(self, run: Run) -> None:
        """Plan the choices that an execution offers, and pass it on."""
        for read, most in run.offers.items():
            for back in range(1, most + 1) if read not in self._reads else ():
                plan = {**self._reads, read: back}
                key = frozenset(plan.items())
                if key not in self._known:
                    self._known.add(key)
                    self._planned.append(plan)
        if self._on_run is not None:
            self._on_run(run)
        if self._progress is not None:
            self._progress(Progress(self._past.executions + 1, self._past.executions + 1 + len(self._planned), 0))
