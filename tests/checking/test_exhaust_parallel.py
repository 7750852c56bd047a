"""Exhaustive exploration by several workers: who runs the parts does not matter, and what is reported."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import numpy as np
import pytest
from click.testing import CliRunner
from executors import Here
from parted import BUDGET, case_of_text, divided, storing, storing_case

from asyncsim import DivergenceError, MisuseError, Window, explore, kernel, replay
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.workers import exhaust_parallel as module
from asyncsim.checking.workers.exhaust_parallel import ParallelSearch, exhaust_parallel
from asyncsim.checking.workers.pool import WorkerPool
from asyncsim.checking.workers.subtree import Subtree, search_subtree
from asyncsim.cli.main import main
from asyncsim.machine.case import Case
from asyncsim.trace.token import decode
from kernels import reduce_scatter
from kernels.field import not_bugs

data = Window("data", (1,), np.int64, initialised=True)


def told(explored):
    return explored, [failure.choices for failure in explored.failures]


@pytest.mark.parametrize("budget", [20, BUDGET])
async def test_who_was_faster_does_not_matter(monkeypatch, budget):
    monkeypatch.setattr(module, "FIRST", 5)
    case = Case(reduce_scatter.no_post_barrier, 3, 2)
    seen = []
    with ThreadPoolExecutor(2) as threads:
        for executor in (Here(), threads):
            explored = await exhaust_parallel.aio(case, Judge(case), budget=budget, jobs=2, executor=executor)
            seen.append(told(explored))
    assert seen[0] == seen[1]
    assert explored.complete is (budget == BUDGET)
    assert explored.executions <= budget


async def test_the_budget_is_kept_and_the_estimate_says_how_much_there_may_be():
    case = storing_case()  # 6! / (2! 2! 2!) = 90
    seen = []
    explored = await divided(case, 9, budget=40, progress=seen.append)
    assert (explored.executions, explored.complete, explored.over) == (40, False, False)
    assert explored.estimate > 40
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert all(progress.total >= progress.done for progress in seen)
    few = await divided(case, 20, budget=5)
    assert (few.executions, few.complete) == (5, False)
    whole = await divided(case, 9)
    assert (whole.executions - whole.redundant, whole.estimate, whole.complete) == (90, 90, True)


async def test_failures_are_told_once_in_the_order_of_the_schedules():
    kinds = []

    async def note(failure):
        kinds.append(failure.finding.kind)

    case = case_of_text("wait c == 1; st x || c += 1; c += 1; ld x")
    explored = await divided(case, 5, found=note)
    assert kinds == [failure.finding.kind for failure in explored.failures] == ["deadlock"]


async def test_a_kernel_that_does_not_repeat_itself_is_noticed_by_a_worker():
    runs = count()

    @kernel(memory=[data])
    async def forgetful(rank, data):
        if next(runs) < 6 or rank.id == 0:
            await rank.store(data.at(0)[0], rank.id)
        else:
            await rank.load(data.at(0)[0])
        await rank.store(data.at(0)[0], rank.id)

    with pytest.raises(DivergenceError, match="the same choices led to other operations"):
        await divided(Case(forgetful, 2, 1), 1)


async def test_an_execution_that_ends_its_process_is_told_with_its_prefix_and_refutes_nothing(monkeypatch):
    case = storing_case()
    pool = WorkerPool(
        2,
        Here(lambda batch: batch.start == 1 and len(batch.prefix.fixed) > 1),
        run=partial(search_subtree, Judge(case)),
    )
    monkeypatch.setattr(pool, "renew", lambda: None)
    explored = await ParallelSearch(case, Judge(case), pool, parts=9, first=1).run(BUDGET)
    (failure,) = explored.failures
    assert "dies, in every attempt" in failure.finding.why
    assert failure.finding.shown == f"below the prefix {','.join(failure.choices)}"
    assert failure.finding.harmful is None
    assert not explored.complete
    assert explored.executions > 70


async def test_parts_that_are_lost_are_searched_again(monkeypatch):
    lost = iter([False, True, False, True])
    case = storing_case()
    pool = WorkerPool(2, Here(lambda _: next(lost, False)), run=partial(search_subtree, Judge(case)))
    monkeypatch.setattr(pool, "renew", lambda: None)
    explored = await ParallelSearch(case, Judge(case), pool, parts=9, first=1).run(BUDGET)
    assert (explored.executions - explored.redundant, explored.complete) == (90, True)


def test_only_parts_of_an_exhaustive_exploration_can_be_searched():
    with pytest.raises(TypeError, match="str is not a part"):
        search_subtree(Judge(storing_case()), "batch")


# ---- the report


@kernel(memory=[data])
async def storing_one(rank, data):
    """Store the same to one place twice, and return something."""
    await rank.store(data.at(0)[0], 1)
    await rank.store(data.at(0)[0], 1)
    return 0


def test_all_were_run(monkeypatch):
    monkeypatch.setattr(module, "FIRST", 2)
    executor = Here()
    report = explore(not_bugs.identical_bytes, ranks=2, exhaustive=True, executor=executor)
    assert {type(batch) for batch in executor.given} == {Subtree}
    assert report.schedules > 5
    alone = explore(not_bugs.identical_bytes, ranks=2, exhaustive=True)
    assert report.verdict == alone.verdict == "EXHAUSTED"
    assert "all 4 inequivalent executions of these 2 ranks, 2 calls and these inputs were run, and" in alone.scope
    assert report.scope == alone.scope
    assert alone.schedules == 5


def test_the_budget_ended_it():
    report = explore(storing_one, ranks=3, calls=1, exhaustive=True, budget=60)
    assert report.verdict == "SURVIVED"
    assert report.schedules > 61  # the orders of the race were followed, too
    assert report.scope.startswith(
        "60 executions of these 3 ranks, 1 call and these inputs were run (all inequivalent); "
    )
    assert "there are about 90, and often more than such an estimate says: try `--budget 180`" in report.scope
    assert report.scope.endswith("; nothing is said of the others")


def test_two_processes_find_what_one_finds(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "FIRST", 3)
    report = explore(reduce_scatter.no_post_barrier, ranks=3, exhaustive=True, jobs=2, save=tmp_path)
    assert report.verdict == "REFUTED"
    assert report.scope == "all 24 inequivalent executions of these 3 ranks, 2 calls and these inputs were run"
    assert [finding.title for finding in report.findings] == ["wrong-result", "WAR race, next call"]
    assert sorted(map(str, tmp_path.iterdir())) == sorted({finding.trace for finding in report.findings})
    for finding in report.findings:
        assert finding.harmful
        again = replay(decode(finding.token), reduce_scatter.no_post_barrier).run
        assert [found.kind for found in Judge(again.case).findings(again)] == ["wrong-result"]
    assert report.findings[1].pairs == 6


def test_a_kernel_that_is_not_the_same_every_time():
    runs = count()

    @kernel(memory=[data])
    async def forgetful(rank, data):
        if next(runs) < 6 or rank.id == 0:
            await rank.store(data.at(0)[0], rank.id)
        else:
            await rank.load(data.at(0)[0])
        await rank.store(data.at(0)[0], rank.id)

    report = explore(forgetful, ranks=2, calls=1, exhaustive=True)
    assert [finding.kind for finding in report.findings] == ["hidden-state"]
    assert report.verdict == "REFUTED"


@pytest.mark.parametrize("more", [{"scheduler": "random"}, {"resume": "x"}])
def test_what_does_not_go_together(more):
    with pytest.raises(MisuseError, match="chooses the schedules itself"):
        explore(storing, exhaustive=True, **more)
    with pytest.raises(MisuseError, match="at least one execution"):
        explore(storing, exhaustive=True, budget=0)


def test_the_command():
    shown = CliRunner().invoke(main, ["explore", "reduce_scatter:no_post_barrier", "-P", "2", "--exhaustive"])
    assert shown.exit_code == 1
    assert "all 3 inequivalent executions of these 2 ranks, 2 calls and these inputs were run" in " ".join(
        shown.stdout.split()
    )
    short = ["explore", "reduce_scatter:builtin", "-P", "2", "--exhaustive", "--budget", "5"]
    assert "EXHAUSTED" in CliRunner().invoke(main, short).stdout
