"""Exploration by sampling: many schedules of one case, and what fails in them.

It never proves anything. What it finds is real; what it does not find may still be there.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.checking.search.shard import Failure
from asyncsim.checking.search.tally import Progress, Tally
from asyncsim.checking.verdict.exhaustive import BUDGET, explore_exhaustively
from asyncsim.checking.verdict.report import HARMFUL, Report, check_races, counting
from asyncsim.checking.workers.batch import check_not_nested, travelling
from asyncsim.checking.workers.exploration import Exploration
from asyncsim.checking.workers.journal import fresh_journal
from asyncsim.checking.workers.pool import Crew, cores
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.finding import REFUTED, SURVIVED

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine

__all__ = ["MOST_JOBS", "MOST_RUNS", "RUNS", "Failure", "Progress", "explore"]

RUNS = 200
MOST_RUNS = 10**9
"""Of a millisecond each, so many schedules take eleven days."""
MOST_JOBS = 1024


@Blocking
async def explore(  # noqa: PLR0913 - each is a choice of the user's
    kernel: Kernel,
    *,
    ranks: int = 4,
    calls: int = 2,
    memory: str = "sc",
    seed: int = 0,
    scheduler: str | None = None,
    engine: Engine | None = None,
    runs: int = RUNS,
    jobs: int = 1,
    executor: Executor | None = None,
    resume: Path | str | None = None,
    behaviours: bool = True,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    exhaustive: bool = False,
    budget: int = BUDGET,
    races: str = HARMFUL,
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
        engine: of the fair run that comes first: "trio" or "direct"; None: as its size asks for, see `simulate`.
            The schedules are run directly.
        runs: how many schedules.
        jobs: how many processes run them; 1: this one alone; 0: as many as there are cores.
        executor: runs them instead, so many batches for each of the jobs at a time: any of
            `concurrent.futures`, a thread pool or Dask's ``Client.get_executor()``. It is not shut down.
        resume: a journal of what was done, which is made or continued; see `asyncsim.checking.workers.journal`.
        behaviours: tell how many different orders of conflicting operations were seen.
        save: a directory; the first witness of each kind of failure is written there at once. With several
            jobs a journal too, into which a worker writes what it finds before anything else.
        progress: called after every schedule; with several jobs after every batch.
        exhaustive: run every inequivalent execution instead. `runs` and `behaviours` say nothing then; the report
            differs with `jobs` in how many executions were made, and in which of them show a failure.
        budget: how many executions that may take.
        races: "harmful": a race refutes if it is shown to be harmful; "all": a benign one does, too.

    Returns:
        A report: REFUTED, or SURVIVED so many schedules; where all were to be run, EXHAUSTED if they were.
        Ctrl-C ends it early with what was learnt.

    Raises:
        MisuseError: an argument cannot be right; other processes cannot find the kernel, or find
            another source of it; the journal is of another exploration.
        TraceError: the journal is damaged before its last line.

    """
    if isinstance(runs, bool) or not isinstance(runs, int) or not 0 < runs <= MOST_RUNS:
        raise MisuseError(f"runs={runs!r}; explore at least one schedule, and at most {MOST_RUNS}")
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 0 <= jobs <= MOST_JOBS:
        raise MisuseError(
            f"jobs={jobs!r}; give how many processes may run schedules, at most {MOST_JOBS}, or 0 for one a core"
        )
    check_races(races)
    started = time.perf_counter()
    case = Case(kernel, ranks, calls, memory, seed)
    if exhaustive:
        if scheduler is not None or resume is not None:
            raise MisuseError("an exhaustive exploration chooses the schedules itself, and keeps no journal to resume")
        report = await explore_exhaustively(
            case, budget=budget, jobs=jobs or cores(), executor=executor, engine=engine, save=save, progress=progress
        )
        return counting(report, races)
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
