"""Exploration by sampling: many schedules of one case, and what fails in them.

It never proves anything. What it finds is real; what it does not find may still be there.
"""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.checking.batch import Batch, Work, check_not_nested, travelling
from asyncsim.checking.deaf import Deaf
from asyncsim.checking.exhaustive import BUDGET, explore_exhaustively
from asyncsim.checking.keep import Keeper
from asyncsim.checking.outcome import Judge
from asyncsim.checking.parallel import Crew, Spread, cores
from asyncsim.checking.part import Failure, Part
from asyncsim.checking.plan import mixed_plan, seeded_plan
from asyncsim.checking.report import REFUTED, SURVIVED, Report
from asyncsim.checking.resume import Journal, fresh_journal, note_new
from asyncsim.checking.sampler import Sampler
from asyncsim.checking.tally import Progress, Tally
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from asyncsim.machine.case import Run
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine
    from asyncsim.trace.finding import Finding

__all__ = ["RUNS", "Exploration", "Failure", "Progress", "Sampling", "explore"]

RUNS = 200
_BATCH_STEPS = 30_000
"""A batch has about so many steps: a fraction of a second, which is what a lost worker costs."""
_BATCH = 250


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
    jobs: int = 1,
    executor: Executor | None = None,
    resume: Path | str | None = None,
    behaviours: bool = True,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    exhaustive: bool = False,
    budget: int = BUDGET,
) -> Report:
    """Run many schedules and report what failed in any of them.

    The report is the same, but for its seconds, whatever `jobs`, `executor` and `resume` are.

    Args:
        kernel: what to run. For other processes it needs a name: they load it for themselves.
        ranks: P.
        calls: back to back on the same memory.
        memory: the memory model.
        seed: of the inputs, and of the first schedule; the n-th schedule has seed + n.
        scheduler: as text, "pct:depth=3"; None: every rank starved, then PCT, POS and random in turn.
        engine: of the fair run that comes first: "trio" or "direct". The schedules are run directly.
        runs: how many schedules.
        jobs: how many processes run them; 1: this one alone; 0: as many as there are cores.
        executor: runs them instead, so many batches for each of the jobs at a time: any of
            `concurrent.futures`, a thread pool or Dask's ``Client.get_executor()``. It is not shut down.
        resume: a journal of what was done, which is made or continued; see `asyncsim.checking.resume`.
        behaviours: tell how many different orders of conflicting operations were seen.
        save: a directory; the first witness of each kind of failure is written there at once. With several
            jobs a journal too, into which a worker writes what it finds before anything else.
        progress: called after every schedule; with several jobs after every batch.
        exhaustive: run every inequivalent execution instead. `runs` and `behaviours` say nothing then; the report
            differs with `jobs` in how many executions were made, and in which of them show a failure.
        budget: how many executions that may take.

    Returns:
        A report: REFUTED, or SURVIVED so many schedules; where all were to be run, EXHAUSTED if they were.
        Ctrl-C ends it early with what was learnt.

    Raises:
        MisuseError: an argument cannot be right; other processes cannot find the kernel, or find
            another source of it; the journal is of another exploration.
        TraceError: the journal is damaged before its last line.

    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise MisuseError(f"runs={runs!r}; explore at least one schedule")
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 0:
        raise MisuseError(f"jobs={jobs!r}; give how many processes may run schedules, or 0 for one a core")
    started = time.perf_counter()
    case = Case(kernel, ranks, calls, memory, seed)
    if exhaustive:
        if scheduler is not None or resume is not None:
            raise MisuseError("an exhaustive exploration chooses the schedules itself, and keeps no journal to resume")
        return await explore_exhaustively(
            case, budget=budget, jobs=jobs or cores(), executor=executor, engine=engine, save=save, progress=progress
        )
    crew = None
    if executor is not None or jobs != 1:
        check_not_nested()
        travelling(kernel)
        crew = Crew(jobs or cores(), executor)
        if save is not None and resume is None:
            resume = fresh_journal(Path(save), case)
    # Recorded: only then are forgotten awaits noticed.
    fair = await simulate.aio(case, Fifo(), record="fifo", engine=engine)
    exploring = Exploration(case, fair, scheduler, save=save, resume=resume, behaviours=behaviours)
    exploring.told = progress
    try:
        await exploring.run(runs, crew)
    finally:
        exploring.close()
    tally, interrupted = exploring.tally, exploring.interrupted
    what = "every rank starved, then PCT (depth 3), POS and random" if scheduler is None else scheduler
    findings = tally.findings()
    return Report(
        case,
        REFUTED if any(finding.harmful for finding in findings) else SURVIVED,
        _scope(tally, runs, what),
        findings,
        exploring.judge.notes(fair) + tally.notes(),
        schedules=tally.judged + 1,
        steps=len(fair.choices),
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
    )


def _scope(tally: Tally, runs: int, what: str) -> str:
    """Say how many schedules were judged, whatever was planned."""
    dead = tally.done - tally.judged
    died = f"; {dead} more ended the process that ran them, and were not judged" if dead else ""
    if not tally.done:
        return f"no schedule was run, of {runs} to be sampled ({what}); nothing is said of any but the fair one"
    if not tally.judged:
        return f"no schedule was judged, of {runs} to be sampled ({what}){died.replace(' more', '')}"
    often = f"{runs}" if tally.judged == runs else f"{tally.judged} of {runs}"
    return f"{often} schedules sampled ({what}){died}; nothing is said of the others"


class Exploration:
    """The exploration of one case under way.

    Args:
        case: what is explored.
        fair: its fair run.
        scheduler, save, resume, behaviours: as of `explore`.

    Attributes:
        interrupted: Ctrl-C came.
        told: is called with the progress.

    """

    def __init__(  # noqa: PLR0913 - as above
        self,
        case: Case,
        fair: Run,
        scheduler: str | None,
        *,
        save: Path | None = None,
        resume: Path | str | None = None,
        behaviours: bool = False,
    ) -> None:
        """Open the journal; run nothing yet."""
        self.judge = Judge(case)
        self.judge.take_as_reference(fair)
        self.tally = Tally(Keeper(case, save))
        self.interrupted = False
        self.told: Callable[[Progress], None] | None = None
        self._deaf = Deaf()
        self._case = case
        self._behaviours = behaviours
        self._runs = 0
        steps = max(len(fair.choices), 1)  # a scheduler that asks for it takes no 0
        seed = case.seed
        self._plan = mixed_plan(case.ranks, seed, steps) if scheduler is None else seeded_plan(scheduler, seed, steps)
        self._most = max(1, min(_BATCH, _BATCH_STEPS // steps))
        self._journal: Journal | None = None
        if resume is not None:
            self._journal = Journal(resume, {
                "kernel": case.kernel.ref, "source": case.kernel.source, "ranks": case.ranks, "calls": case.calls,
                "memory": case.memory, "seed": seed, "plan": scheduler or "mixed", "steps": steps,
                "behaviours": behaviours,
            })  # fmt: skip

    async def run(self, runs: int, crew: Crew | None) -> None:
        """Run the first schedules of the plan that were not run before, here or by a crew; stop cleanly at Ctrl-C."""
        done = [] if self._journal is None else [part for part in self._journal.parts if part.stop <= runs]
        spread = None if crew is None else Spread(crew, self._take)
        if crew is not None:
            self._most = min(self._most, max(1, -(-runs // (4 * crew.jobs))))
        self._runs = runs
        try:
            for part in done:
                await self.tally.arrive(part)
            batches = self._batches([(part.start, part.stop) for part in done])
            if spread is None:
                await self._run_here(batches)
            else:
                await spread.run(batches)
        except KeyboardInterrupt:
            self._deaf.begin()
            self.interrupted = True
            self.told = None  # who watched may be what interrupted it
            if spread is not None:
                await spread.wind_down()
            await self.tally.count_early()
            for part in [] if self._journal is None else self._journal.found_elsewhere():
                if part.start < runs:
                    await self.tally.count(part)
        finally:
            if crew is not None:
                crew.close()

    def close(self) -> None:
        """Close the journal; Ctrl-C is heard again."""
        if self._journal is not None:
            self._journal.close()
        self._deaf.end()

    def _batches(self, done: list[tuple[int, int]]) -> Iterator[Batch]:
        """Yield what is left to run."""
        case = self._case
        journal = None if self._journal is None else str(self._journal.path.resolve())
        work = Work(
            case.kernel.ref, case.kernel.source, case.ranks, case.calls, case.memory, case.seed, self._behaviours,
            journal,
        )  # fmt: skip
        at = 0
        for start, stop in [*done, (self._runs, self._runs)]:
            while at < start:
                size = min(self._most, start - at)
                yield Batch(work, at, tuple(islice(self._plan, size)))
                at += size
            for _ in islice(self._plan, stop - at):
                pass
            at = stop

    async def _take(self, part: Part) -> None:
        """Take a part that another process has made."""
        if self._journal is not None:
            self._journal.add(part)
        await self.tally.arrive(part)
        if self.told is not None:
            self.told(self.tally.progress(self._runs))

    async def _run_here(self, batches: Iterator[Batch]) -> None:
        sampler = Sampler(self._case, self.judge, behaviours=self._behaviours)
        for batch in batches:
            whole = Part(batch.start)
            try:
                for number, text in enumerate(batch.texts, batch.start):
                    part = await sampler.here(number, text)
                    if batch.work.journal is not None:
                        note_new(batch.work.journal, part, whole)
                    await self.tally.arrive(part)
                    whole.join(part)
                    if self.told is not None:
                        self.told(self.tally.progress(self._runs))
            finally:
                if self._journal is not None:
                    self._journal.add(whole)


class Sampling:
    """Many schedules of one case, here, one after the other.

    Args:
        case: what is run.
        judge: says what is wrong with a run.
        keeper: makes the first witness of each failure, at once.

    """

    def __init__(self, case: Case, judge: Judge, keeper: Keeper) -> None:
        """Start with nothing found."""
        self.interrupted = False
        self._sampler = Sampler(case, judge, behaviours=False)
        self._tally = Tally(keeper)

    @property
    def done(self) -> int:
        """How many schedules were run."""
        return self._tally.done

    async def run(self, plan: Iterator[str], total: int, progress: Callable[[Progress], None] | None = None) -> None:
        """Run the schedules of `plan`; stop cleanly at Ctrl-C."""
        try:
            for number, text in enumerate(plan):
                await self._tally.count(await self._sampler.here(number, text))
                if progress is not None:
                    progress(self._tally.progress(total))
        except KeyboardInterrupt:
            self.interrupted = True

    def findings(self) -> list[Finding]:
        """Return one finding for each thing that is wrong, with how often it was seen and where first."""
        return self._tally.findings()

    def notes(self) -> list[str]:
        """Return a remark if some results, none of them wrong, are not the fair schedule's bit for bit."""
        return self._tally.notes()
