"""Exploration by sampling: many schedules of one case, and what fails in them.

It never proves anything. What it finds is real; what it does not find may still be there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from asyncsim.checking.keep import Keeper
from asyncsim.checking.outcome import Judge
from asyncsim.checking.plan import mixed_plan, seeded_plan
from asyncsim.checking.report import REFUTED, SURVIVED, Report
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.choices import Choices
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from asyncsim.machine.gate import Scheduler
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine

RUNS = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exploration is: schedules done, of how many, and findings so far."""

    done: int
    total: int
    found: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The first schedule that showed a kind of failure, and how many did.

    Args:
        finding: what it showed.
        choices: the schedule.
        scheduler: its scheduler, as text.
        ending: how the run ended.

    """

    finding: Finding
    choices: tuple[str, ...]
    scheduler: str
    ending: str


@Blocking
async def explore(  # noqa: PLR0913 - each is a choice of the user's
    kernel: Kernel,
    *,
    ranks: int = 4,
    calls: int = 2,
    memory: str = "sc",
    seed: int = 0,
    scheduler: str | None = None,
    engine: Engine = "trio",
    runs: int = RUNS,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Run many schedules and report what failed in any of them.

    Args:
        kernel: what to run.
        ranks: P.
        calls: back to back on the same memory.
        memory: the memory model.
        seed: of the inputs, and of the first schedule; the n-th schedule has seed + n.
        scheduler: as text, "pct:depth=3"; None: every rank starved, then PCT, POS and random in turn.
        engine: of the fair run that comes first: "trio" or "direct". The schedules are run directly.
        runs: how many schedules.
        save: a directory; the first witness of each kind of failure is written there at once.
        progress: called after every schedule.

    Returns:
        A report: REFUTED, or SURVIVED so many schedules. Ctrl-C ends it early with what was learnt.

    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise MisuseError(f"runs={runs!r}; explore at least one schedule")
    started = time.perf_counter()
    case = Case(kernel, ranks, calls, memory, seed)
    judge = Judge(case)
    keeper = Keeper(case, save)
    # Recorded: only then are forgotten awaits noticed.
    fair = await simulate.aio(case, Fifo(), record="fifo", engine=engine)
    judge.take_as_reference(fair)
    steps = len(fair.choices)
    plan = mixed_plan(ranks, seed, steps) if scheduler is None else seeded_plan(scheduler, seed, steps)
    sampling = Sampling(case, judge, keeper)
    await sampling.run(islice(plan, runs), runs, progress)
    what = "every rank starved, then PCT (depth 3), POS and random" if scheduler is None else scheduler
    scope = f"{sampling.done} of {runs} schedules" if sampling.interrupted else f"{runs} schedules"
    findings = sampling.findings()
    return Report(
        case,
        REFUTED if findings else SURVIVED,
        f"{scope} sampled ({what}); nothing is said of the others",
        findings,
        judge.notes(fair) + sampling.notes(),
        schedules=sampling.done + 1,
        steps=steps,
        seconds=time.perf_counter() - started,
        interrupted=sampling.interrupted,
    )


class Sampling:
    """Many schedules of one case under way, and the first failure of each kind."""

    def __init__(self, case: Case, judge: Judge, keeper: Keeper) -> None:
        """Start with nothing found."""
        self.done = 0
        self.interrupted = False
        self._case = case
        self._judge = judge
        self._keeper = keeper
        self._first: dict[str, Failure] = {}
        self._times: dict[str, int] = {}
        self._other_bits = 0

    async def run(self, plan: Iterator[str], total: int, progress: Callable[[Progress], None] | None = None) -> None:
        """Run the schedules of `plan`; stop cleanly at Ctrl-C."""
        try:
            for text in plan:
                await self._one(text, make(text))
                self.done += 1
                if progress is not None:
                    progress(Progress(self.done, total, len(self._first)))
        except KeyboardInterrupt:
            self.interrupted = True

    def findings(self) -> list[Finding]:
        """Return one finding a kind, with how often it was seen and where first."""
        found = []
        for kind, failure in self._first.items():
            often = f"in {self._times[kind]} of {self.done} schedules, first under {failure.scheduler}"
            shown = f"{failure.finding.shown}; {often}" if failure.finding.shown else often
            found.append(failure.finding.with_(shown=shown))
        return found

    def notes(self) -> list[str]:
        """Return a remark if some results, none of them wrong, are not the fair schedule's bit for bit."""
        if not self._other_bits:
            return []
        often = f"in {self._other_bits} of {self.done} schedules"
        return [f"{often} the results differ in their bits from those of the fair one, each within the tolerance"]

    async def _one(self, text: str, scheduler: Scheduler) -> None:
        recorder = Choices(scheduler)
        try:
            run = await simulate.aio(self._case, recorder, engine="direct")
        except KernelError as error:
            finding = Finding("wrong-result", f"the kernel raises under this schedule: {error}", harmful=True)
            await self._note("raises", finding, recorder.choices, text, None)
            return
        findings = self._judge.findings(run)
        self._other_bits += not findings and self._judge.has_other_bits(run)
        for finding in findings:
            await self._note(finding.kind, finding, run.choices, text, run.ending)

    async def _note(self, kind: str, finding: Finding, choices: list[str], text: str, ending: str | None) -> None:
        self._times[kind] = self._times.get(kind, 0) + 1
        if kind not in self._first:
            # It counts from here on: Ctrl-C while its witness is written must not lose it.
            self._first[kind] = Failure(finding, tuple(choices), text, ending or "stopped")
            kept = await self._keeper.keep(finding, choices, ending=ending)
            self._first[kind] = Failure(kept, tuple(choices), text, ending or "stopped")
