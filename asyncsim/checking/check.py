"""The check: one run, its analysis, the witness of each suspect, and a verdict that says what it rests on."""

from __future__ import annotations

import time
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from asyncsim.analysis.analyse import ORDER_FINDINGS, analyse
from asyncsim.checking.explore import Progress, Sampling
from asyncsim.checking.keep import Keeper
from asyncsim.checking.outcome import Judge
from asyncsim.checking.plan import PCT_DEPTH, mixed_plan
from asyncsim.checking.report import PROVED, REFUTED, SURVIVED, Report
from asyncsim.checking.shrink import shrink
from asyncsim.checking.witness import witness
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.witness import Witness
    from asyncsim.machine.case import Run
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Digest, Event, Trace

SAMPLES = 200
SHRINK_STEPS = 60_000
"""How many steps shrinking one witness may cost."""


@Blocking
async def check(  # noqa: PLR0913 - each is a choice of the user's
    kernel: Kernel,
    *,
    ranks: int = 4,
    calls: int = 2,
    memory: str = "sc",
    seed: int = 0,
    scheduler: str = "fifo",
    samples: int = SAMPLES,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Judge a kernel from one run: PROVED, REFUTED, or what was explored.

    Args:
        kernel: what to judge.
        ranks: P.
        calls: back to back on the same memory; two show what one call does to the next.
        memory: the memory model.
        seed: of the inputs.
        scheduler: of the reference run, as text; the verdict does not depend on it.
        samples: how many schedules to sample where one run decides nothing.
        save: a directory; each witness is written there as soon as it is found.
        progress: called after every schedule.

    Returns:
        The report. Ctrl-C ends the check early, with what was found until then.

    Raises:
        KernelError: the kernel raised in the reference run.
        MisuseError: an argument, or the kernel's declarations, cannot be right.

    """
    started = time.perf_counter()
    case = Case(kernel, ranks, calls, memory, seed)
    report = await _Check(case, Keeper(case, save), samples, progress).run(scheduler)
    report.seconds = time.perf_counter() - started
    return report


class _Check:
    """One check under way."""

    def __init__(
        self, case: Case, keeper: Keeper, samples: int, progress: Callable[[Progress], None] | None
    ) -> None:
        self.case = case
        self.keeper = keeper
        self.samples = samples
        self.progress = progress
        self.judge = Judge(case)
        self.findings: list[Finding] = []
        self.schedules = 0
        self.interrupted = False

    async def run(self, scheduler: str) -> Report:
        """Run the reference, analyse it, and judge what the analysis suspects."""
        fair = await self._simulate("fifo")
        self.judge.take_as_reference(fair)
        reference = fair if scheduler == "fifo" else await self._simulate(scheduler)
        analysis = analyse(_trace(reference), fair=_trace(fair))
        # What a run shows by itself is told of the fair one: another may show what a race did to it.
        of_fair = analysis if reference is fair else analyse(_trace(fair))
        proved = False
        scope = "the check was interrupted"
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
            scope = _proof_scope(reference) if proved else await self._scope_without_proof(reference)
        except KeyboardInterrupt:
            self.interrupted = True
        harmful = [finding for finding in self.findings if finding.harmful]
        verdict = REFUTED if harmful else PROVED if proved else SURVIVED
        rest = [finding for finding in self.findings if not finding.harmful]
        notes = [f"outside the theory: {reason}" for reason in analysis.reasons] + self.judge.notes(reference)
        return Report(
            self.case, verdict, scope, harmful + rest, notes,
            schedules=self.schedules, steps=len(reference.choices), interrupted=self.interrupted,
        )  # fmt: skip

    async def _simulate(self, scheduler: str) -> Run:
        self.schedules += 1
        return await simulate.aio(self.case, make(scheduler), record=scheduler)

    async def _judge_run(self, run: Run, analysis: Analysis) -> None:
        """Take what a run itself shows, in the analysis's words where it has them."""
        own = [finding for finding in analysis.findings if finding.kind not in ORDER_FINDINGS]
        told = {finding.kind for finding in own}
        own += [finding for finding in self.judge.findings(run) if finding.kind not in told]
        for finding in own:
            kept = await self.keeper.keep(finding.with_(harmful=True), run.choices, ending=run.ending)
            self.findings.append(kept)

    async def _judge_suspect(self, suspect: Finding, analysis: Analysis, reference: Run) -> None:
        """Make the witness of a suspect, shrink it, keep it."""
        if any(finding.kind == suspect.kind == "overflow" for finding in self.findings):
            return  # the run itself has shown it
        seen = await witness(self.case, self.judge, suspect)
        self.schedules += seen.schedules
        if not seen.confirmed and not analysis.exact:
            return  # frontiers are approximate then: what no run shows is not reported
        finding = suspect.with_(harmful=seen.harmful if seen.confirmed else None, shown=seen.shown)
        if seen.choices:
            choices, ending = await self._shrunk(seen, len(reference.choices))
            finding = await self.keeper.keep(finding, choices, ending=ending)
        self.findings.append(finding)
        if self.progress is not None:
            self.progress(Progress(self.schedules, self.schedules, len(self.findings)))

    async def _shrunk(self, seen: Witness, steps: int) -> tuple[Sequence[str], str | None]:
        """Return the witness in the fewest task switches that still fail in the same way."""
        if not seen.harmful or not seen.failure:
            return seen.choices, seen.ending

        def fails(run: Run) -> bool:
            return any(finding.kind in seen.failure for finding in self.judge.findings(run))

        budget = min(max(SHRINK_STEPS // max(steps, 1), 20), 400)
        return await shrink.aio(self.case, seen.choices, fails, budget=budget), seen.ending

    async def _look_for_hidden_state(self, reference: Run) -> None:
        """Repeat the run under a second schedule: without findings, the streams must be the same."""
        try:
            second = await self._simulate("random:seed=1")
        except KernelError as error:
            finding = Finding("hidden-state", f"under a second schedule the kernel raises: {error}", harmful=True)
            self.findings.append(finding)
            return
        difference = stream_difference(_trace(reference), _trace(second))
        outputs = self.judge.digests(reference) != self.judge.digests(second)
        if difference is not None or outputs:
            why = (
                f"no operation of another rank explains that a second schedule {difference or 'gives other outputs'}: "
                "the kernel depends on something outside its inputs and its memory"
            )
            self.findings.append(Finding("hidden-state", why, harmful=True if outputs else None))

    async def _scope_without_proof(self, reference: Run) -> str:
        """Sample, if nothing harmful was shown so far, and say what was done."""
        if any(finding.harmful for finding in self.findings):
            return "a schedule that shows it was run"
        sampling = Sampling(self.case, self.judge, self.keeper)
        steps = len(reference.choices)
        plan = mixed_plan(self.case.ranks, self.case.seed, steps)
        await sampling.run(islice(plan, self.samples), self.samples, self.progress)
        self.schedules += sampling.done
        self.interrupted = sampling.interrupted
        self.findings += sampling.findings()
        bound = self.case.ranks * max(steps, 1) ** (PCT_DEPTH - 1)
        return (
            f"one run does not decide; {sampling.done} schedules were sampled: every rank starved, then PCT, POS and "
            f"random in turn (PCT of depth {PCT_DEPTH} meets a bug of that depth once in {bound} schedules or more often)"
        )


def stream_difference(a: Trace, b: Trace) -> str | None:
    """Return how an actor's operations differ between two runs, in words; None if they do not."""
    for actor in a.header.world.actors:
        own, other = (
            [_content(event) for event in trace.events if event.op.actor is actor] for trace in (a, b)
        )
        for index, (x, y) in enumerate(zip_longest(own, other)):
            if x != y:
                step = x or y
                return f"differs in rank {actor.rank}'s operation {index} ({step[0] if step else ''})"
    return None


def _content(event: Event) -> tuple[str, bytes | Digest | None]:
    return str(event.op), event.data


def _trace(run: Run) -> Trace:
    if run.trace is None:
        raise RuntimeError("the run was not recorded")
    return run.trace


def _proof_scope(reference: Run) -> str:
    case = reference.case
    return (
        f"one run of {len(reference.choices)} steps decides for every schedule of these {case.ranks} ranks, "
        f"{case.calls} call{'s' if case.calls > 1 else ''} and these inputs"
    )
