"""Exploration without a proof: many schedules of one case sampled, or every inequivalent execution run.

Sampling never proves anything. What it finds is real; what it does not find may still be there.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.interrupts import InterruptMask, interrupts_deferred
from asyncsim.checking.record.outside import OutsideState
from asyncsim.checking.search.sampler import Sampling
from asyncsim.checking.search.shard import Failure
from asyncsim.checking.search.tally import Progress
from asyncsim.checking.search.witness_writer import WitnessWriter
from asyncsim.checking.verdict.classify import RaceClassifier
from asyncsim.checking.verdict.induction import stream_plan
from asyncsim.checking.verdict.report import (
    HARMFUL,
    Report,
    count_benign_races,
    exhaustion_scope,
    exploration_scope,
    stream_condition,
    validate_races,
)
from asyncsim.checking.workers.batch import check_not_nested, importable_name
from asyncsim.checking.workers.exhaust_parallel import exhaust_parallel
from asyncsim.checking.workers.exploration import Exploration
from asyncsim.checking.workers.journal import new_journal_path
from asyncsim.checking.workers.pool import WorkerPool, cores
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.table import throws_dice
from asyncsim.trace.errors import DivergenceError, MisuseError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import EXHAUSTED, REFUTED, SURVIVED, Finding

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from asyncsim.checking.search.tally import Tally
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine


__all__ = ["MOST_JOBS", "MOST_RUNS", "RUNS", "Failure", "Progress", "explore"]

RUNS = 200
BUDGET = 100_000
"""How many executions it makes at most; a check, which tries it when a proof fails, is content with fewer."""
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
        behaviours: count the different orders of conflicting operations.
        save: a directory; the first witness of each kind of failure is written there at once. With several
            jobs a journal too, into which a worker writes what it finds before anything else.
        progress: called after every schedule; with several jobs after every batch.
        exhaustive: run every inequivalent execution instead. `runs` and `behaviours` are not used then; the report
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
    validate_races(races)
    started = time.perf_counter()
    case = Case(kernel, ranks, calls, memory, seed)
    if exhaustive:
        if scheduler is not None or resume is not None:
            raise MisuseError("an exhaustive exploration chooses the schedules itself, and keeps no journal to resume")
        report = await _explore_exhaustively(
            case, budget=budget, jobs=jobs or cores(), executor=executor, engine=engine, save=save, progress=progress
        )
        return count_benign_races(report, races)
    pool = None
    if executor is not None or jobs != 1:
        check_not_nested()
        importable_name(kernel)
        pool = WorkerPool(jobs or cores(), executor)
        if save is not None and resume is None:
            resume = new_journal_path(Path(save), case)
    if scheduler is not None and not throws_dice(scheduler):
        runs = min(runs, 1)  # it makes the same schedule every time
    # Recorded: only then are forgotten awaits noticed.
    fair = await simulate.aio(case, Fifo(), record="fifo", engine=engine)
    exploring = Exploration(case, fair, scheduler, save=save, resume=resume, behaviours=behaviours)
    exploring.on_progress = progress
    try:
        await exploring.run(runs, pool)
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
    """Return how many schedules were judged, whatever was planned."""
    dead = tally.done - tally.judged
    died = f"; {dead} more ended the process that ran them, and were not judged" if dead else ""
    if not tally.done:
        return f"no schedule was run, of {runs} to be sampled ({what}); nothing is said of any but the fair one"
    if not tally.judged:
        return f"no schedule was judged, of {runs} to be sampled ({what}){died.replace(' more', '')}"
    often = f"{runs}" if tally.judged == runs else f"{tally.judged} of {runs}"
    noun = "schedule" if often == "1" else "schedules"
    return f"{often} {noun} sampled ({what}){died}; nothing is said of the others"


async def _explore_exhaustively(  # noqa: PLR0913 - each is a choice of the user's
    case: Case,
    *,
    budget: int = BUDGET,
    jobs: int = 1,
    executor: Executor | None = None,
    engine: Engine | None = None,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Run every inequivalent execution of a case: EXHAUSTED, REFUTED, or SURVIVED if the budget ends it."""
    started = time.perf_counter()
    writer = WitnessWriter(case, save)
    findings: list[Finding] = []

    async def keep(failure: Failure) -> None:
        findings.append(failure.finding)
        if failure.ending:
            ending = None if failure.ending == STOPPED else failure.ending
            with interrupts_deferred():  # a witness that was begun is written
                findings[-1] = await writer.write_witness(failure.finding, failure.choices, ending=ending)

    outside = OutsideState(case.kernel)
    # Recorded: only then are forgotten awaits noticed.
    fair = await simulate.aio(case, Fifo(), record="fifo", engine=engine)
    judge = Judge(case)
    judge.set_reference(fair)
    mask = InterruptMask()
    more = 0
    try:
        explored = await exhaust_parallel.aio(
            case, judge, budget=budget, jobs=jobs, executor=executor, progress=progress, found=keep, mask=mask
        )
        plan = stream_plan(fair) if explored.complete and not findings else ()
        if plan:  # what streams do to each other through Python objects is in no relation
            sampling = Sampling(case, judge, writer)
            await sampling.run(iter(plan), len(plan), None)
            findings += sampling.tally.findings()
        classify = RaceClassifier(judge, fair.recorded, writer, findings, explored.races, explored)
        try:
            more = 0 if explored.interrupted else await classify.classify()
        except KeyboardInterrupt:
            mask.begin()
            explored = replace(explored, interrupted=True)
        failed = any(finding.harmful for finding in findings)
        describe = exploration_scope if failed or not explored.complete else exhaustion_scope
        scope = describe(explored, case) + stream_condition(0 if failed else len(plan))
    except DivergenceError as error:
        why = f"the same schedule does not give the same run again: {error}"
        findings.append(Finding("hidden-state", why, harmful=True))
        explored, scope = None, "a schedule was run twice"
    finally:
        mask.end()
    outside.compare()
    if outside.changed and not any(finding.kind == "hidden-state" for finding in findings):
        findings.append(outside.finding())
    whole = explored is not None and explored.complete and not outside.changed
    return Report(
        case,
        REFUTED if any(finding.harmful for finding in findings) else EXHAUSTED if whole else SURVIVED,
        scope,
        findings,
        judge.notes(fair),
        schedules=1 + more + (explored.executions if explored is not None else 0),
        steps=len(fair.choices),
        seconds=time.perf_counter() - started,
        interrupted=explored is not None and explored.interrupted,
    )
