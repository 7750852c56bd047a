"""The fallback of a check: what one run does not decide is explored exhaustively if that is cheap, else sampled."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from asyncsim.checking.record.interrupts import interrupts_deferred
from asyncsim.checking.search.coenabled import SampledRaces
from asyncsim.checking.search.older import search_of
from asyncsim.checking.search.sampler import PCT_DEPTH, Sampling, mixed_plan
from asyncsim.checking.verdict import classify
from asyncsim.checking.verdict.induction import stream_plan
from asyncsim.checking.verdict.report import exhaustion_scope, exploration_scope, stream_condition
from asyncsim.trace.errors import DivergenceError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import Finding
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.coenabled import Coenabled, PairKey
    from asyncsim.checking.search.exhaust import ExhaustiveResult
    from asyncsim.checking.search.tally import Progress
    from asyncsim.checking.search.witness_writer import WitnessWriter
    from asyncsim.checking.verdict.state import CheckState
    from asyncsim.machine.case import Run

SAMPLES = 200
BUDGET, EXHAUST_STEPS = 2000, 200_000
"""Unless a budget is given, an exhaustive exploration may take so many executions, and so many steps: seconds."""

FIRST = 50
"""So many executions are run before the first look for a failure."""


@dataclass(slots=True)
class Fallback:
    """Explores a case that one run does not decide.

    Args:
        judge: of its runs.
        writer: keeps the witnesses.
        state: of the check; gets the findings.
        budget: how many executions an exhaustive exploration may take; 0: none is tried; None: a few seconds' worth.
        samples: how many schedules to sample where that is not enough.
        progress: called after every schedule.

    Attributes:
        exhausted: every execution was run, and none failed.
        explored: schedules were run beyond the witnesses.

    """

    judge: Judge
    writer: WitnessWriter
    state: CheckState
    _: KW_ONLY
    budget: int | None = None
    samples: int = SAMPLES
    progress: Callable[[Progress], None] | None = None
    exhausted: bool = field(default=False, init=False)
    explored: bool = field(default=False, init=False)

    async def explore(self, reference: Run, fair: Run) -> str:
        """Explore, if nothing harmful was shown so far, and return the scope; empty if Ctrl-C ended it at once.

        Args:
            reference: the run that was analysed.
            fair: the fair run, by which races are named.

        """
        state = self.state
        state.end_stage()
        steps = max(len(reference.choices), 1)
        self.explored = not state.refuted
        if state.refuted:
            await self._classify(fair, {})
            return "a schedule that shows it was run"
        hidden = any(finding.kind == "hidden-state" for finding in state.findings)  # then nothing is exhaustive
        explored = None
        budget = min(BUDGET, EXHAUST_STEPS // steps) if self.budget is None else self.budget
        if not hidden and budget:
            explored = await self._exhaust(budget)
            await self._classify(fair, {} if explored is None else explored.races, explored)
            if explored is not None and explored.complete and not state.refuted:
                await self._sample_streams(plan := stream_plan(reference))
                if not state.refuted:
                    self.exhausted = not state.interrupted
                    streams = stream_condition(len(plan))
                    return f"one run does not decide; {exhaustion_scope(explored, self.judge.case)}{streams}"
        if state.refuted:
            return "a schedule that shows it was run"
        if state.interrupted:
            return ""
        scope = await self._sample(
            fair, steps, "" if explored is None else f"{exploration_scope(explored, self.judge.case)}; "
        )
        return "a schedule that shows it was run" if state.refuted else scope

    async def _classify(
        self, fair: Run, races: Mapping[PairKey, Coenabled], explored: ExhaustiveResult | None = None
    ) -> None:
        """Add the races that were met, and classify each finding about an order as benign or harmful."""
        state = self.state
        if state.interrupted or fair.trace is None:
            return
        budget = classify.BUDGET if self.budget is None else min(self.budget, classify.BUDGET)
        classifier = classify.RaceClassifier(
            self.judge, fair.trace, self.writer, state.findings, races, explored, budget
        )
        state.schedules += await classifier.classify(partial(state.begin_stage, "following of both orders"))
        if model_of(self.judge.case.memory).scoped:
            classify.withdraw_benign(state.findings)  # what is done later than it stands was not followed
        state.end_stage()

    async def _exhaust(self, budget: int) -> ExhaustiveResult | None:
        """Explore exhaustively until something fails, or it turns out to be too much; None if runs do not repeat."""
        state = self.state
        exploring = search_of(self.judge.case, self.judge, self.progress)
        part = 0
        try:
            while True:  # in parts: it ends soon after something fails
                part = min(max(2 * part, FIRST), budget)
                explored = await exploring.run(part)
                if part == budget or exploring.over or explored.over:
                    break
        except DivergenceError as error:
            why = f"the same schedule does not give the same run again: {error}"
            state.findings.append(Finding("hidden-state", why, harmful=True))
            return None
        state.schedules += explored.executions
        if explored.interrupted:
            state.interrupt()
        for failure in explored.failures:
            ending = None if failure.ending == STOPPED else failure.ending
            with interrupts_deferred():  # a witness that was begun is written
                state.findings.append(
                    await self.writer.write_witness(
                        failure.finding, failure.choices, ending=ending, memory=failure.memory
                    )
                )
        return explored

    async def _sample_streams(self, plan: Sequence[str]) -> None:
        """Sample some schedules: what streams do to each other through Python objects is in no dependence relation."""
        if plan:
            sampling = Sampling(self.judge.case, self.judge, self.writer)
            await sampling.run(iter(plan), len(plan), self.progress)
            self._add_results(sampling)

    def _add_results(self, sampling: Sampling) -> None:
        state = self.state
        state.schedules += sampling.tally.done
        if sampling.interrupted:
            state.interrupt()
        state.findings += sampling.tally.findings()
        state.notes += sampling.tally.notes()

    async def _sample(self, fair: Run, steps: int, explored: str) -> str:
        sampled_races = SampledRaces(self.judge.case, steps)
        sampling = Sampling(self.judge.case, self.judge, self.writer, sampled_races)
        plan = mixed_plan(self.judge.case.ranks, self.judge.case.seed, steps)
        await sampling.run(islice(plan, self.samples), self.samples, self.progress)
        self._add_results(sampling)
        await self._classify(fair, sampled_races.coenabled.pairs)
        examined = (
            ""
            if sampled_races.schedules == sampling.tally.done
            else f", {sampled_races.schedules} of them looked at for races"
        )
        bound = self.judge.case.ranks * steps ** (PCT_DEPTH - 1)
        return (
            f"one run does not decide; {explored}{sampling.tally.done} schedules were sampled{examined}: "
            f"every rank starved, then PCT, POS and random in turn (PCT of depth {PCT_DEPTH} meets a bug of that depth "
            f"once in {bound} schedules or more often)"
        )
