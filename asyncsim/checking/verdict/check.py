"""The check: one run, its analysis, the witness of each suspect, and a verdict that says what it rests on."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from asyncsim.analysis.analyse import ORDER_FINDINGS, analyse
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.diagnose.symptoms import unawaited
from asyncsim.checking.record.outside import Outside
from asyncsim.checking.record.versions import Versions
from asyncsim.checking.search.keep import WitnessWriter
from asyncsim.checking.verdict.account import Account
from asyncsim.checking.verdict.fallback import SAMPLES, Undecided
from asyncsim.checking.verdict.models import AUTO, judged_under_each
from asyncsim.checking.verdict.probe import Second
from asyncsim.checking.verdict.report import HARMFUL, Report, check_races, counting, explanation, proof_scope, unheard
from asyncsim.checking.verdict.settling import doubt
from asyncsim.checking.verdict.suspects import SHRINK_STEPS, Suspects
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.finding import EXHAUSTED, PROVED, REFUTED, SURVIVED
from asyncsim.trace.late import says_late_words

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
        memory: the memory model; "auto": ``sc``, and for a kernel that says when something is there (put, non-blocking,
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
    check_races(races)
    started = time.perf_counter()

    async def judge(model: str) -> Report:
        case = Case(kernel, ranks, calls, model, seed, max_steps, edits)
        checking = _Check(
            case, WitnessWriter(case, save),
            engine=engine, budget=budget, samples=samples, shrinking=shrinking, progress=progress,
        )  # fmt: skip
        return counting(await checking.run(scheduler), races)

    if memory == AUTO:
        report = await judged_under_each(judge)
    else:
        report = await judge(memory)
        report.notes += unheard(report)
    report.seconds = time.perf_counter() - started
    return report


class _Check:
    """One check under way.

    Args:
        case: what is judged.
        writer: keeps the witnesses.
        engine: of the reference run and the fair one.
        budget, samples, shrinking, progress: as of `check`.

    """

    def __init__(  # noqa: PLR0913 - each is a choice of the user's
        self,
        case: Case,
        writer: WitnessWriter,
        *,
        engine: Engine | None = None,
        budget: int | None = None,
        samples: int = SAMPLES,
        shrinking: int = SHRINK_STEPS,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.case = case
        self.writer = writer
        self.engine = engine
        self.later = ""
        self.judge = Judge(case)
        self.outside = Outside(case.kernel)
        self.told = False
        self.account = Account(case, progress)
        self.suspects = Suspects(
            self.judge, writer, self.account, partial(_at_fewer, writer.folder), shrinking=shrinking
        )
        self.undecided = Undecided(self.judge, writer, self.account, budget=budget, samples=samples, progress=progress)

    async def run(self, scheduler: str) -> Report:
        """Run the reference, analyse it, and judge what the analysis suspects."""
        account = self.account
        try:
            fair, reference = await self._references(scheduler)
            analysis = self._analyse("analysis", reference, fair)
            # What a run shows by itself is told of the fair one: another may show what a race did to it.
            of_fair = analysis if reference is fair else self._analyse("analysis of the fair run", fair, fair)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(account.where) from None  # there is nothing to report yet
        left = [suspect for suspect in analysis.findings if suspect.kind in ORDER_FINDINGS]
        if left or not analysis.applies:
            self.judge.compare_with(fair)
        try:
            scope = ""
            proved = False
            try:
                await self._judge_run(fair, of_fair)
                try:
                    while left:
                        await self.suspects.look(left[0], analysis, steps=len(reference.choices))
                        del left[0]
                finally:
                    doubt(account.findings)
                if reference is not fair and not account.refuted:
                    await self._judge_run(reference, analysis)
                sound = analysis.clean and reference.ending == COMPLETE
                if sound and not account.findings:
                    self.later = Second(self.case, self.judge, account, self.outside).look(reference)
                if sound:
                    self._tell_outside()
                proved = sound and not account.findings
                scope = proof_scope(reference) if proved else await self.undecided.look(reference, fair)
                self._tell_outside()
            except KeyboardInterrupt:
                account.interrupt()
                self.suspects.leave(left, exact=analysis.exact)
            return self._report(reference, analysis, scope, proved=proved)
        finally:
            account.close()

    def _report(self, reference: Run, analysis: Analysis, scope: str, *, proved: bool) -> Report:
        account = self.account
        runs = f"{account.schedules} schedules were run before the check was interrupted"
        harmful = [finding for finding in account.findings if finding.harmful]
        rest = [finding for finding in account.findings if not finding.harmful]
        verdict = (
            REFUTED
            if harmful
            else PROVED
            if proved
            else EXHAUSTED
            if self.undecided.exhausted and not self.outside.changed
            else SURVIVED
        )
        outside = [f"outside the theory: {reason}" for reason in analysis.reasons]
        return Report(
            self.case, verdict, scope or f"{runs} {account.where}".rstrip(), harmful + rest,
            outside + self.judge.notes(reference) + unawaited(reference) + account.notes,
            schedules=account.schedules, steps=len(reference.choices), interrupted=account.interrupted,
            one_run=not self.undecided.explored and not account.interrupted, explanation=explanation(analysis),
            later=self.later if verdict == PROVED else "",
            proof=(reference.recorded, analysis) if verdict == PROVED else None,
            late_words=says_late_words(reference.recorded.events),
        )  # fmt: skip

    async def _references(self, scheduler: str) -> tuple[Run, Run]:
        """Make the fair run, and the reference run, which mostly is the same."""
        itself = scheduler == "fifo"
        fair = await self._simulate("fifo", "reference run" if itself else "fair run")
        self.judge.take_as_reference(fair)
        self.account.notes += [
            f"the edit {edit!r} changed nothing: nothing that it is for came from there" for edit in fair.unapplied
        ]
        return fair, fair if itself else await self._simulate(scheduler, "reference run", len(fair.choices))

    async def _simulate(self, scheduler: str, stage: str, total: int | None = None) -> Run:
        self.account.schedules += 1
        begun = self.account.run(stage, total=total)
        run = await simulate.aio(self.case, make(scheduler), record=scheduler, engine=self.engine, begun=begun)
        self.outside.look()
        return run

    def _analyse(self, stage: str, run: Run, fair: Run) -> Analysis:
        self.account.begin(stage, total=len(run.choices))
        return analyse(run.recorded, fair=fair.recorded, contents=Versions(self.case))

    def _tell_outside(self) -> None:
        """Name what the kernel changed outside its memory: with it nothing is proved."""
        self.outside.look()
        text = self.outside.text
        if not text or self.told:
            return
        self.told, self.later = True, ""
        findings = self.account.findings
        told = [n for n, finding in enumerate(findings) if finding.kind == "hidden-state"]
        for number in told:
            findings[number] = replace(findings[number], why=f"{findings[number].why}; {text}")
        if not told and not self.account.refuted:
            findings.append(self.outside.finding())

    async def _judge_run(self, run: Run, analysis: Analysis) -> None:
        """Take what a run itself shows, in the analysis's words where it has them."""
        self.account.begin("judgement of the results")
        findings = self.account.findings
        own = [finding for finding in analysis.findings if finding.kind not in ORDER_FINDINGS]
        told = {finding.kind for finding in own}
        own += [finding for finding in self.judge.findings(run) if finding.kind not in told]
        for finding in own:
            findings.append(finding.with_(harmful=True))
            findings[-1] = await self.writer.write_witness(findings[-1], run.choices, ending=run.ending)


async def _at_fewer(folder: Path | None, case: Case) -> Report:
    """Judge a case at other ranks, from one run alone."""
    return await _Check(case, WitnessWriter(case, folder), budget=0, samples=1).run("fifo")
