"""The check: one run, its analysis, the witness of each suspect, and a verdict with its scope."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from asyncsim.analysis.analyse import ORDER_FINDINGS, analyse
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.diagnose.symptoms import unawaited_signals
from asyncsim.checking.record.outside import OutsideState
from asyncsim.checking.record.versions import Versions
from asyncsim.checking.search.witness_writer import WitnessWriter
from asyncsim.checking.verdict.classify import withdraw_benign
from asyncsim.checking.verdict.fallback import SAMPLES, Fallback
from asyncsim.checking.verdict.models import AUTO, check_under_each_model
from asyncsim.checking.verdict.probe import DeterminismProbe
from asyncsim.checking.verdict.report import (
    HARMFUL,
    Report,
    count_benign_races,
    explanation,
    models_note,
    proof_scope,
    validate_races,
)
from asyncsim.checking.verdict.state import CheckState
from asyncsim.checking.verdict.suspects import SHRINK_STEPS, SuspectWitnesses
from asyncsim.checking.verdict.tickets import ByCases
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.finding import EXHAUSTED, PROVED, RACE, REFUTED, SURVIVED
from asyncsim.trace.late import model_of, models_said

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.search.tally import Progress
    from asyncsim.machine.case import Run
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine


@Blocking
async def check(  # noqa: PLR0913 - each is a choice of the user's
    kernel: Kernel,
    *,
    ranks: int = 4,
    calls: int = 2,
    memory: str = AUTO,
    seed: int = 0,
    edits: Sequence[str] = (),
    scheduler: str = "fifo",
    engine: Engine | None = None,
    budget: int | None = None,
    samples: int = SAMPLES,
    races: str = HARMFUL,
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
        memory: the memory model; "auto": ``sc``, and for a kernel that says when writes land (put, non-blocking,
            relaxed, fence, quiet) ``ldst`` and ``nic``, too.
        seed: of the inputs.
        edits: what is removed from the kernel or added to it, as texts: "skip kernels/x.py:99".
        scheduler: of the reference run, as text; the verdict does not depend on it.
        engine: of the reference run and the fair one: "trio" or "direct"; None: as the size of the run asks for, see
            `simulate`. Whatever more is run is run directly.
        budget: how many executions an exhaustive exploration may take, if one run does not decide; 0: none is tried;
            None: a few seconds' worth, at most 2000.
        samples: how many schedules to sample where that is not enough either.
        races: "harmful": a race refutes if it is shown to be harmful; "all": a benign one does, too.
        shrinking: how many steps it may cost to shrink one witness.
        max_steps: how long a run may be; None: as long as a collective may be.
        save: a directory; each witness is written there as soon as it is found.
        progress: called after every schedule, and whenever a stage begins that runs no schedules one after the other,
            such as the reference run or its analysis: then `Progress.stage` says how far it is, at any time.

    Returns:
        The report. Ctrl-C ends the check early, with what was found until then.

    Raises:
        KeyboardInterrupt: Ctrl-C came before the analysis was over; its text says where.
        KernelError: the kernel raised in the reference run.
        MisuseError: an argument, or the kernel's declarations, cannot be right.

    """
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 0):
        raise MisuseError(f"budget={budget!r}; give the number of executions that may be explored, 0 for none")
    validate_races(races)
    started = time.perf_counter()

    async def judge(model: str) -> Report:
        case = Case(kernel, ranks, calls, model, seed, max_steps, edits)
        checking = _Check(
            case, WitnessWriter(case, save),
            engine=engine, budget=budget, samples=samples, shrinking=shrinking, progress=progress,
        )  # fmt: skip
        return count_benign_races(await checking.run(scheduler), races)

    if memory == AUTO:
        report = await check_under_each_model(judge)
    else:
        report = await judge(memory)
        report.notes += models_note(report)
    report.seconds = time.perf_counter() - started
    return report


class _Check:
    """One check under way.

    Args:
        case: what is checked.
        writer: keeps the witnesses.
        engine: of the reference run and the fair one.
        shrinking, progress: as of `check`.
        exploring: budget and samples of the fallback.

    """

    def __init__(
        self,
        case: Case,
        writer: WitnessWriter,
        *,
        engine: Engine | None = None,
        shrinking: int = SHRINK_STEPS,
        progress: Callable[[Progress], None] | None = None,
        **exploring: Any,  # noqa: ANN401 - as `Fallback` takes them
    ) -> None:
        self.case = case
        self.writer = writer
        self.engine = engine
        self.later_calls = ""
        self.cases = 0
        self.judge = judge = Judge(case)
        self.outside = OutsideState(case.kernel)
        self.outside_reported = False
        self.state = state = CheckState(case, progress)
        self.suspects = SuspectWitnesses(judge, writer, state, partial(_at_fewer, writer.folder), shrinking=shrinking)
        self.fallback = Fallback(judge, writer, state, progress=progress, **exploring)

    async def run(self, scheduler: str) -> Report:
        """Make the reference run, analyse it, and confirm what the analysis suspects."""
        state = self.state
        try:
            fair, reference = await self._references(scheduler)
            analysis = self._analysed("analysis", reference, fair)
            # What a run shows by itself is taken from the fair one: another may show what a race did to it.
            of_fair = analysis if reference is fair else self._analysed("analysis of the fair run", fair, fair)
            self.cases = 0 if analysis.clean else await ByCases(self.judge, state).prove(reference)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(state.where) from None  # there is nothing to report yet
        clean = analysis.clean or self.cases > 0
        unconfirmed = [] if clean else [suspect for suspect in analysis.findings if suspect.kind in ORDER_FINDINGS]
        if unconfirmed or not (analysis.applies or clean):
            self.judge.set_fair_run(fair)
        try:
            scope = ""
            proved = False
            try:
                await self._add_failures_of(fair, of_fair)
                try:
                    while unconfirmed:
                        await self.suspects.confirm(unconfirmed[0], analysis, steps=len(reference.choices))
                        del unconfirmed[0]
                finally:
                    withdraw_benign(state.findings)
                if reference is not fair and not state.refuted:
                    await self._add_failures_of(reference, analysis)
                sound = clean and reference.ending == COMPLETE
                if sound and not (state.findings or self.cases):
                    self.later_calls = DeterminismProbe(self.judge, state, self.outside).probe(reference)
                if sound:
                    self._report_outside()
                proved = sound and not state.findings
                scope = proof_scope(reference, self.cases) if proved else await self.fallback.explore(reference, fair)
                self._report_outside()
            except KeyboardInterrupt:
                state.interrupt()
                self.suspects.add_unconfirmed(unconfirmed, exact=analysis.exact)
            return self._report(reference, analysis, scope, proved=proved)
        finally:
            state.close()

    def _report(self, reference: Run, analysis: Analysis, scope: str, *, proved: bool) -> Report:
        state = self.state
        runs = f"{state.schedules} schedules were run before the check was interrupted"
        harmful = [finding for finding in state.findings if finding.harmful]
        rest = [finding for finding in state.findings if not finding.harmful]
        exhausted = self.fallback.exhausted and not self.outside.changed and not self._may_be_late()
        unless_harmful = PROVED if proved else EXHAUSTED if exhausted else SURVIVED
        verdict = REFUTED if harmful else unless_harmful
        outside = [] if self.cases else [f"outside the theory: {reason}" for reason in analysis.reasons]
        return Report(
            self.case, verdict, scope or f"{runs} {state.where}".rstrip(), harmful + rest,
            outside + self.judge.notes(reference) + unawaited_signals(reference) + state.notes,
            schedules=state.schedules, steps=len(reference.choices), interrupted=state.interrupted,
            one_run=not self.fallback.explored and not state.interrupted, explanation=explanation(analysis),
            later_calls=self.later_calls if verdict == PROVED else "",
            proof=(reference.recorded, analysis) if verdict == PROVED and not self.cases else None,
            models_said=models_said(reference.recorded.events),
        )  # fmt: skip

    def _may_be_late(self) -> bool:
        """Return whether something races that could show only by being done later than it stands: no run does that."""
        races = any(finding.kind == RACE for finding in self.state.findings)
        return races and model_of(self.case.memory).scoped

    async def _references(self, scheduler: str) -> tuple[Run, Run]:
        """Make the fair run and the reference run, which are the same one unless another scheduler is asked for."""
        itself = scheduler == "fifo"
        fair = await self._run_recorded("fifo", "reference run" if itself else "fair run")
        self.judge.set_reference(fair)
        self.state.notes += [
            f"the edit {edit!r} changed nothing: nothing that it is for came from there" for edit in fair.unapplied
        ]
        return fair, fair if itself else await self._run_recorded(scheduler, "reference run", len(fair.choices))

    async def _run_recorded(self, scheduler: str, stage: str, total: int | None = None) -> Run:
        self.state.schedules += 1
        begun = self.state.begin_run(stage, total=total)
        run = await simulate.aio(self.case, make(scheduler), record=scheduler, engine=self.engine, begun=begun)
        self.outside.compare()
        return run

    def _analysed(self, stage: str, run: Run, fair: Run) -> Analysis:
        self.state.begin_stage(stage, total=len(run.choices))
        return analyse(run.recorded, fair=fair.recorded, contents=Versions(self.case))

    def _report_outside(self) -> None:
        """Report what the kernel changed outside its memory: then nothing is proved."""
        self.outside.compare()
        text = self.outside.text
        if not text or self.outside_reported:
            return
        self.outside_reported, self.later_calls = True, ""
        findings = self.state.findings
        hidden = [n for n, finding in enumerate(findings) if finding.kind == "hidden-state"]
        for number in hidden:
            findings[number] = replace(findings[number], why=f"{findings[number].why}; {text}")
        if not hidden and not self.state.refuted:
            findings.append(self.outside.finding())

    async def _add_failures_of(self, run: Run, analysis: Analysis) -> None:
        """Add what a run shows by itself, in the words of the analysis where it has some."""
        self.state.begin_stage("judgement of the results")
        findings = self.state.findings
        own = [finding for finding in analysis.findings if finding.kind not in ORDER_FINDINGS]
        kinds = {finding.kind for finding in own}
        own += [finding for finding in self.judge.findings(run) if finding.kind not in kinds]
        for finding in own:
            findings.append(finding.with_(harmful=True))
            findings[-1] = await self.writer.write_witness(findings[-1], run.choices, ending=run.ending)


async def _at_fewer(folder: Path | None, case: Case) -> Report:
    """Judge a case at other ranks, from one run alone."""
    return await _Check(case, WitnessWriter(case, folder), budget=0, samples=1).run("fifo")
