"""What one run does not decide: every inequivalent execution is run, if they are few enough; else some are sampled."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from asyncsim.checking.record.interrupts import ctrl_c_afterwards
from asyncsim.checking.search.exhaust import ExhaustiveSearch
from asyncsim.checking.search.looking import SampledRaces
from asyncsim.checking.search.plan import PCT_DEPTH, mixed_plan
from asyncsim.checking.search.sampling import Sampling
from asyncsim.checking.verdict import settling
from asyncsim.checking.verdict.induction import stream_plan
from asyncsim.checking.verdict.report import apart, exhaustion_scope, exploration_scope
from asyncsim.trace.errors import DivergenceError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.coenabled import Coenabled, PairKey
    from asyncsim.checking.search.exhaust import ExhaustiveResult
    from asyncsim.checking.search.keep import WitnessWriter
    from asyncsim.checking.search.tally import Progress
    from asyncsim.checking.verdict.account import Account
    from asyncsim.machine.case import Run

SAMPLES = 200
BUDGET, EXHAUST_STEPS = 2000, 200_000
"""Unless a budget is given, an exhaustive exploration may take so many executions, and so many steps: seconds."""


FIRST = 50
"""After so many executions it is looked for the first time whether one has failed."""


class Undecided:
    """Explores a case.

    Args:
        judge: of its runs.
        writer: keeps the witnesses.
        account: takes the findings.
        budget: how many executions an exhaustive exploration may take; 0: none is tried; None: a few seconds' worth.
        samples: how many schedules to sample where that is not enough.
        progress: called after every schedule.

    Attributes:
        exhausted: every execution was run, and none failed.
        explored: schedules were run beyond the witnesses.

    """

    def __init__(  # noqa: PLR0913 - what it works with, and how far it goes
        self,
        judge: Judge,
        writer: WitnessWriter,
        account: Account,
        *,
        budget: int | None = None,
        samples: int = SAMPLES,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.exhausted = False
        self.explored = False
        self._case = judge.case
        self._judge = judge
        self._writer = writer
        self._account = account
        self._budget = budget
        self._samples = samples
        self._progress = progress

    async def look(self, reference: Run, fair: Run) -> str:
        """Explore, if nothing harmful was shown so far, and say what was done; empty if Ctrl-C ended it at once.

        Args:
            reference: the run that was analysed.
            fair: by which races are named.

        """
        account = self._account
        account.leave()
        steps = max(len(reference.choices), 1)
        self.explored = not account.refuted
        if account.refuted:
            await self._settle(fair, {})
            return "a schedule that shows it was run"
        hidden = any(finding.kind == "hidden-state" for finding in account.findings)  # then nothing is exhaustive
        explored = None
        budget = min(BUDGET, EXHAUST_STEPS // steps) if self._budget is None else self._budget
        if not hidden and budget:
            explored = await self._exhaust(budget)
            await self._settle(fair, {} if explored is None else explored.races, explored)
            if explored is not None and explored.complete and not account.refuted:
                await self._try(plan := stream_plan(reference))
                if not account.refuted:
                    self.exhausted = not account.interrupted
                    return f"one run does not decide; {exhaustion_scope(explored, self._case)}{apart(len(plan))}"
        if account.refuted:
            return "a schedule that shows it was run"
        if account.interrupted:
            return ""
        scope = await self._sample(
            fair, steps, "" if explored is None else f"{exploration_scope(explored, self._case)}; "
        )
        return "a schedule that shows it was run" if account.refuted else scope

    async def _settle(
        self, fair: Run, races: Mapping[PairKey, Coenabled], explored: ExhaustiveResult | None = None
    ) -> None:
        """Tell the races that were met, and what each finding about an order does."""
        account = self._account
        if account.interrupted or fair.trace is None:
            return
        budget = settling.BUDGET if self._budget is None else min(self._budget, settling.BUDGET)
        doing = settling.Settling(self._judge, fair.trace, self._writer, account.findings, races, explored, budget)
        account.schedules += await doing.settle(partial(account.begin, "following of both orders"))
        account.leave()

    async def _exhaust(self, budget: int) -> ExhaustiveResult | None:
        """Explore exhaustively until something fails, or it turns out to be too much; None if runs do not repeat."""
        account = self._account
        exploring = ExhaustiveSearch(self._case, self._judge, progress=self._progress)
        part = 0
        try:
            while True:  # in parts: it ends soon after something fails
                part = min(max(2 * part, FIRST), budget)
                explored = await exploring.run(part)
                if part == budget or exploring.over or explored.over:
                    break
        except DivergenceError as error:
            why = f"the same schedule does not give the same run again: {error}"
            account.findings.append(Finding("hidden-state", why, harmful=True))
            return None
        account.schedules += explored.executions
        if explored.interrupted:
            account.interrupt()
        for failure in explored.failures:
            ending = None if failure.ending == STOPPED else failure.ending
            with ctrl_c_afterwards():  # a witness that was begun is written
                account.findings.append(
                    await self._writer.write_witness(failure.finding, failure.choices, ending=ending)
                )
        return explored

    async def _try(self, plan: Sequence[str]) -> None:
        """Try some schedules: what streams do to each other through Python objects is in no relation."""
        if plan:
            sampling = Sampling(self._case, self._judge, self._writer)
            await sampling.run(iter(plan), len(plan), self._progress)
            self._take(sampling)

    def _take(self, sampling: Sampling) -> None:
        account = self._account
        account.schedules += sampling.done
        if sampling.interrupted:
            account.interrupt()
        account.findings += sampling.findings()
        account.notes += sampling.notes()

    async def _sample(self, fair: Run, steps: int, explored: str) -> str:
        looking = SampledRaces(self._case, steps)
        sampling = Sampling(self._case, self._judge, self._writer, looking)
        plan = mixed_plan(self._case.ranks, self._case.seed, steps)
        await sampling.run(islice(plan, self._samples), self._samples, self._progress)
        self._take(sampling)
        await self._settle(fair, looking.coenabled.pairs)
        looked = "" if looking.schedules == sampling.done else f", {looking.schedules} of them looked at for races"
        bound = self._case.ranks * steps ** (PCT_DEPTH - 1)
        return (
            f"one run does not decide; {explored}{sampling.done} schedules were sampled{looked}: every rank starved, "
            f"then PCT, POS and random in turn (PCT of depth {PCT_DEPTH} meets a bug of that depth once in {bound} "
            "schedules or more often)"
        )
