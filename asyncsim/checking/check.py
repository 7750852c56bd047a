"""The check: one run, its analysis, the witness of each suspect, and a verdict that says what it rests on."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from asyncsim.analysis.analyse import ORDER_FINDINGS, analyse
from asyncsim.checking.exhaust import Exhausting
from asyncsim.checking.explore import Progress, Sampling
from asyncsim.checking.hidden import stream_difference
from asyncsim.checking.keep import Keeper
from asyncsim.checking.later import later_calls, plain_run, second_run
from asyncsim.checking.outcome import Judge
from asyncsim.checking.plan import PCT_DEPTH, mixed_plan
from asyncsim.checking.report import EXHAUSTED, PROVED, REFUTED, SURVIVED, Report
from asyncsim.checking.scope import exhaustion_scope, explanation, proof_scope
from asyncsim.checking.shrink import shrink
from asyncsim.checking.witness import witness
from asyncsim.machine.calluse import CallUse
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import DivergenceError, KernelError, MisuseError
from asyncsim.trace.event import COMPLETE, STOPPED
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.exhaust import Exhausted
    from asyncsim.checking.witness import Witness
    from asyncsim.machine.case import Run
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine
    from asyncsim.trace.event import Trace

SAMPLES = 200
BUDGET = 2000
"""How many executions an exhaustive exploration may take."""
EXHAUST_STEPS = 150_000
"""How many steps it may take in all."""
MANY_RANKS, FEW_RANKS = 32, (2, 3, 4)
"""Of findings at so many ranks the witness is looked for at a few first."""
HOPELESS = 20
"""It is given up when there seem to be so many times more executions than the budget allows."""
SHRINK_STEPS = 60_000
"""How many steps shrinking one witness may cost; 20 runs are made in any case (5 if less was asked for), unless ..."""
LONG = 1_000_000
"""... a run is so long: then the witness is left as it is."""


@Blocking
async def check(  # noqa: PLR0913 - each is a choice of the user's
    kernel: Kernel,
    *,
    ranks: int = 4,
    calls: int = 2,
    memory: str = "sc",
    seed: int = 0,
    edits: Sequence[str] = (),
    scheduler: str = "fifo",
    engine: Engine = "trio",
    budget: int = BUDGET,
    samples: int = SAMPLES,
    shrinking: int = SHRINK_STEPS,
    max_steps: int | None = None,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Judge a kernel from one run: PROVED, REFUTED; or EXHAUSTED or SURVIVED, from many.

    Where the theory decides nothing, every inequivalent execution is run, if they are few enough;
    where they are not, schedules are sampled.

    Args:
        kernel: what to judge.
        ranks: P.
        calls: back to back on the same memory; two show what one call does to the next.
        memory: the memory model.
        seed: of the inputs.
        edits: what is removed from the kernel or added to it, as texts: "skip kernels/x.py:99".
        scheduler: of the reference run, as text; the verdict does not depend on it.
        engine: of the reference run and the fair one: "trio" or "direct". Whatever more is run is run directly.
        budget: how many executions an exhaustive exploration may take; 0: none is tried.
        samples: how many schedules to sample where that is not enough either.
        shrinking: how many steps it may cost to shrink one witness.
        max_steps: how long a run may be; None: as long as a collective may be.
        save: a directory; each witness is written there as soon as it is found.
        progress: called after every schedule.

    Returns:
        The report. Ctrl-C ends the check early, with what was found until then.

    Raises:
        KernelError: the kernel raised in the reference run.
        MisuseError: an argument, or the kernel's declarations, cannot be right.

    """
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 0:
        raise MisuseError(f"budget={budget!r}; give the number of executions that may be explored, 0 for none")
    started = time.perf_counter()
    case = Case(kernel, ranks, calls, memory, seed, max_steps, edits)
    checking = _Check(case, Keeper(case, save), budget, samples, progress)
    checking.shrinking = shrinking
    checking.engine = engine
    report = await checking.run(scheduler)
    report.seconds = time.perf_counter() - started
    return report


class _Check:
    """One check under way."""

    def __init__(
        self, case: Case, keeper: Keeper, budget: int, samples: int, progress: Callable[[Progress], None] | None
    ) -> None:
        self.case = case
        self.keeper = keeper
        self.budget = budget
        self.samples = samples
        self.shrinking = SHRINK_STEPS
        self.engine: Engine = "trio"
        self.later = ""
        self.fewer: list[tuple[int, Finding]] | None = None
        self.exhausted = False
        self.explored = False
        self.progress = progress
        self.judge = Judge(case)
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.schedules = 0
        self.interrupted = False

    async def run(self, scheduler: str) -> Report:
        """Run the reference, analyse it, and judge what the analysis suspects."""
        fair = await self._simulate("fifo", self.engine)
        self.judge.take_as_reference(fair)
        self.notes += [
            f"the edit {edit!r} changed nothing: nothing that it is for came from there" for edit in fair.unapplied
        ]
        reference = fair if scheduler == "fifo" else await self._simulate(scheduler, self.engine)
        analysis = analyse(_trace(reference), fair=_trace(fair))
        # What a run shows by itself is told of the fair one: another may show what a race did to it.
        of_fair = analysis if reference is fair else analyse(_trace(fair))
        proved = False
        scope = ""
        try:
            await self._judge_run(fair, of_fair)
            for suspect in analysis.findings:
                if suspect.kind in ORDER_FINDINGS:
                    await self._judge_suspect(suspect, analysis, reference)
            if reference is not fair and not any(finding.harmful for finding in self.findings):
                await self._judge_run(reference, analysis)
            if not self.findings and analysis.clean and reference.ending == COMPLETE:
                await self._look_for_hidden_state(reference)
            proved = not self.findings and analysis.clean and reference.ending == COMPLETE
            scope = proof_scope(reference) if proved else await self._scope_without_proof(reference)
        except KeyboardInterrupt:
            self.interrupted = True
        scope = scope or f"{self.schedules} schedules were run before the check was interrupted"
        harmful = [finding for finding in self.findings if finding.harmful]
        verdict = REFUTED if harmful else PROVED if proved else EXHAUSTED if self.exhausted else SURVIVED
        rest = [finding for finding in self.findings if not finding.harmful]
        notes = (
            [f"outside the theory: {reason}" for reason in analysis.reasons] + self.judge.notes(reference) + self.notes
        )
        return Report(
            self.case, verdict, scope, harmful + rest, notes,
            schedules=self.schedules, steps=len(reference.choices), interrupted=self.interrupted,
            one_run=not self.explored and not self.interrupted, explanation=explanation(analysis),
            later=self.later if verdict == PROVED else "",
            proof=(_trace(reference), analysis) if verdict == PROVED else None,
        )  # fmt: skip

    async def _simulate(self, scheduler: str, engine: Engine) -> Run:
        self.schedules += 1
        return await simulate.aio(self.case, make(scheduler), record=scheduler, engine=engine)

    async def _judge_run(self, run: Run, analysis: Analysis) -> None:
        """Take what a run itself shows, in the analysis's words where it has them."""
        own = [finding for finding in analysis.findings if finding.kind not in ORDER_FINDINGS]
        told = {finding.kind for finding in own}
        own += [finding for finding in self.judge.findings(run) if finding.kind not in told]
        for finding in own:
            self.findings.append(finding.with_(harmful=True))
            self.findings[-1] = await self.keeper.keep(self.findings[-1], run.choices, ending=run.ending)

    async def _judge_suspect(self, suspect: Finding, analysis: Analysis, reference: Run) -> None:
        """Make the witness of a suspect, shrink it, keep it."""
        if any(finding.kind == suspect.kind == "overflow" for finding in self.findings):
            return  # the run itself has shown it
        seen = await witness(self.case, self.judge, suspect)
        self.schedules += seen.schedules
        if not seen.confirmed and not analysis.exact:
            return  # frontiers are approximate then: what no run shows is not reported
        finding = suspect.with_(harmful=seen.harmful if seen.confirmed else None, shown=seen.shown)
        if seen.harmful and (small := await self._at_fewer_ranks(finding)) is not None:
            self.findings.append(small)
            return
        self.findings.append(finding)  # before its witness is shrunk: Ctrl-C must not lose it
        if seen.choices:
            choices, ending = await self._shrunk(seen, len(reference.choices))
            self.findings[-1] = await self.keeper.keep(finding, choices, ending=ending)
        if self.progress is not None:
            self.progress(Progress(self.schedules, self.schedules, len(self.findings)))

    async def _at_fewer_ranks(self, suspect: Finding) -> Finding | None:
        """Return a harmful finding with the witness of the same one among a few ranks, where many are judged.

        A race of a thousand ranks is mostly one of two: that schedule is short, and can be looked at. That it
        does harm among the many was seen before; among a few it might do where among many it does not.
        """
        if self.case.ranks < MANY_RANKS:
            return None
        if self.fewer is None:
            self.fewer = await self._judge_fewer()
        for ranks, finding in self.fewer:
            if finding.harmful and _place(finding) == _place(suspect):
                text = f"{suspect.shown}; the replay shows it at P = {ranks}"
                return suspect.with_(shown=text, token=finding.token, trace=finding.trace)
        return None

    async def _judge_fewer(self) -> list[tuple[int, Finding]]:
        found = []
        for ranks in FEW_RANKS:
            case = replace(self.case, ranks=ranks)
            try:
                checking = _Check(case, Keeper(case, self.keeper.folder), 0, 1, None)
                report = await checking.run("fifo")
            except (KernelError, MisuseError):
                continue  # the kernel is not made for so few
            self.schedules += report.schedules
            found += [(ranks, finding) for finding in report.findings]
        return found

    async def _shrunk(self, seen: Witness, steps: int) -> tuple[Sequence[str], str | None]:
        """Return the witness in the fewest task switches that still fail in the same way."""
        if not seen.harmful or not seen.failure or steps > LONG:
            return seen.choices, seen.ending

        def fails(run: Run) -> bool:
            return any(finding.kind in seen.failure for finding in self.judge.findings(run))

        least = 20 if self.shrinking >= SHRINK_STEPS else 5
        budget = min(max(self.shrinking // max(steps, 1), least), 400)
        return await shrink.aio(self.case, seen.choices, fails, budget=budget), seen.ending

    async def _look_for_hidden_state(self, reference: Run) -> None:
        """Repeat the run under a second schedule: without findings, the streams must be the same."""
        why, second, use = self._second(reference, second_run)
        if why:
            # The calls had numbers that are no plain ones. If these are the reason, it is the same reason each time,
            # and plain numbers give none; whatever else comes and goes is hidden state.
            plain, second, use = self._second(reference, plain_run)
            if not plain and _without_addresses(self._second(reference, second_run)[0]) == _without_addresses(why):
                why = ""
            why = plain or why
        if why:
            outputs = second is None or self.judge.digests(reference) != self.judge.digests(second)
            self.findings.append(Finding("hidden-state", why, harmful=True if outputs else None))
        elif second is not None:
            self.later = later_calls(self.case, second, use)

    def _second(
        self, reference: Run, run_again: Callable[[Case], tuple[Run, CallUse]]
    ) -> tuple[str, Run | None, CallUse]:
        """Run once more; return how that differs from the reference, if it does, and what came."""
        self.schedules += 1
        try:
            second, use = run_again(self.case)
        except (KernelError, MisuseError) as error:
            return f"under a second schedule the kernel raises: {error}", None, CallUse()
        return self._differs(reference, second), second, use

    def _differs(self, reference: Run, second: Run) -> str:
        """Say how a second run differs from the reference, which it must not; empty if it does not."""
        difference = stream_difference(_trace(reference), _trace(second))
        if difference is None and self.judge.digests(reference) == self.judge.digests(second):
            return ""
        return (
            f"no operation of another rank explains that a second schedule {difference or 'gives other outputs'}: "
            "the kernel depends on something outside its inputs and its memory"
        )

    async def _scope_without_proof(self, reference: Run) -> str:
        """Explore, if nothing harmful was shown so far, and say what was done."""
        steps = max(len(reference.choices), 1)
        self.explored = not self._refuted
        hidden = any(finding.kind == "hidden-state" for finding in self.findings)  # then nothing is exhaustive
        if not self._refuted and not hidden and (budget := min(self.budget, EXHAUST_STEPS // steps)):
            explored = await self._exhaust(budget)
            if explored is not None and explored.complete and not self._refuted:
                self.exhausted = True
                return exhaustion_scope(explored, self.case)
        if self._refuted:
            return "a schedule that shows it was run"
        if self.interrupted:
            return ""
        return await self._sample(steps)

    @property
    def _refuted(self) -> bool:
        return any(finding.harmful for finding in self.findings)

    async def _exhaust(self, budget: int) -> Exhausted | None:
        """Explore exhaustively until something fails, or it turns out to be too much; None if runs do not repeat."""
        exploring = Exhausting(self.case, self.judge, progress=self.progress)
        part = min(budget, 50)
        try:
            explored = await exploring.run(part)
            while (
                part < budget and not (explored.over or explored.interrupted) and explored.estimate < HOPELESS * budget
            ):
                part = min(2 * part, budget)
                explored = await exploring.run(part)
        except DivergenceError as error:
            why = f"the same schedule does not give the same run again: {error}"
            self.findings.append(Finding("hidden-state", why, harmful=True))
            return None
        self.schedules += explored.executions
        self.interrupted |= explored.interrupted
        for failure in explored.failures:
            ending = None if failure.ending == STOPPED else failure.ending
            self.findings.append(await self.keeper.keep(failure.finding, failure.choices, ending=ending))
        return explored

    async def _sample(self, steps: int) -> str:
        sampling = Sampling(self.case, self.judge, self.keeper)
        plan = mixed_plan(self.case.ranks, self.case.seed, steps)
        await sampling.run(islice(plan, self.samples), self.samples, self.progress)
        self.schedules += sampling.done
        self.interrupted = sampling.interrupted
        self.findings += sampling.findings()
        self.notes += sampling.notes()
        bound = self.case.ranks * steps ** (PCT_DEPTH - 1)
        return (
            f"one run does not decide; {sampling.done} schedules were sampled: every rank starved, then PCT, POS "
            f"and random in turn (PCT of depth {PCT_DEPTH} meets a bug of that depth once in {bound} schedules "
            "or more often)"
        )


def _without_addresses(text: str) -> str:
    """Leave out where objects lie: what an exception says of them differs from run to run."""
    return re.sub("0x[0-9a-fA-F]+", "", text)


def _place(finding: Finding) -> tuple[object, ...]:
    """Return what two findings have in common that differ in their ranks only."""
    return finding.kind, finding.hazard, finding.scope, finding.window, tuple(side.at for side in finding.sides)


def _trace(run: Run) -> Trace:
    if run.trace is None:
        raise RuntimeError("the run was not recorded")
    return run.trace
