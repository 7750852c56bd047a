"""The report of an exhaustive exploration that is asked for by itself, without a proof being tried first."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.interrupts import Deaf, ctrl_c_afterwards
from asyncsim.checking.record.outside import Outside
from asyncsim.checking.search.keep import Keeper
from asyncsim.checking.search.sampling import Sampling
from asyncsim.checking.verdict.induction import stream_plan
from asyncsim.checking.verdict.report import Report
from asyncsim.checking.verdict.scope import apart, exhaustion_scope, exploration_scope
from asyncsim.checking.verdict.settling import Settling
from asyncsim.checking.workers.exhaust_parallel import exhaust_parallel
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import DivergenceError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import EXHAUSTED, REFUTED, SURVIVED, Finding

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from pathlib import Path

    from asyncsim.checking.search.exhaust import Exhausted
    from asyncsim.checking.search.shard import Failure
    from asyncsim.checking.search.tally import Progress
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.simulate import Engine
    from asyncsim.trace.event import Trace

BUDGET = 100_000
"""How many executions it makes at most; a check, which tries it when a proof fails, is content with fewer."""


async def explore_exhaustively(  # noqa: PLR0913 - each is a choice of the user's
    case: Case,
    *,
    budget: int = BUDGET,
    jobs: int = 1,
    executor: Executor | None = None,
    engine: Engine | None = None,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Run every inequivalent execution of a case: EXHAUSTED, REFUTED, or SURVIVED if the budget ends it.

    Args:
        case: what is run.
        budget: how many executions at most.
        jobs: how many processes; 1: this one alone.
        executor: runs the parts instead.
        engine: of the fair run that comes first.
        save: a directory; the first witness of each kind of failure is written there before long.
        progress: called after every execution here, and after every part elsewhere.

    Raises:
        MisuseError: the budget allows no run; other processes cannot find the kernel.

    """
    started = time.perf_counter()
    keeper = Keeper(case, save)
    findings: list[Finding] = []

    async def keep(failure: Failure) -> None:
        findings.append(failure.finding)
        if failure.ending:
            ending = None if failure.ending == STOPPED else failure.ending
            with ctrl_c_afterwards():  # a witness that was begun is written
                findings[-1] = await keeper.keep(failure.finding, failure.choices, ending=ending)

    outside = Outside(case.kernel)
    # Recorded: only then are forgotten awaits noticed.
    fair = await simulate.aio(case, Fifo(), record="fifo", engine=engine)
    judge = Judge(case)
    judge.take_as_reference(fair)
    deaf = Deaf()
    more = 0
    try:
        explored = await exhaust_parallel.aio(
            case, judge, budget=budget, jobs=jobs, executor=executor, progress=progress, found=keep, deaf=deaf
        )
        plan = stream_plan(fair) if explored.complete and not findings else ()
        if plan:  # what streams do to each other through Python objects is in no relation
            sampling = Sampling(case, judge, keeper)
            await sampling.run(iter(plan), len(plan), None)
            findings += sampling.findings()
        settling = Settling(judge, _trace(fair), keeper, findings, explored.races, explored)
        try:
            more = 0 if explored.interrupted else await settling.settle()
        except KeyboardInterrupt:
            deaf.begin()
            explored = replace(explored, interrupted=True)
        failed = any(finding.harmful for finding in findings)
        scope = _scope(explored, case, failed=failed) + apart(0 if failed else len(plan))
    except DivergenceError as error:
        why = f"the same schedule does not give the same run again: {error}"
        findings.append(Finding("hidden-state", why, harmful=True))
        explored, scope = None, "a schedule was run twice"
    finally:
        deaf.end()
    outside.look()
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


def _trace(run: Run) -> Trace:
    if run.trace is None:
        raise RuntimeError("the run was not recorded")
    return run.trace


def _scope(explored: Exhausted, case: Case, *, failed: bool) -> str:
    describe = exploration_scope if failed or not explored.complete else exhaustion_scope
    return describe(explored, case)
