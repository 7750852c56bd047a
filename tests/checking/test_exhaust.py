"""Exhaustive exploration of kernels: one execution where nothing races, and what it tells where something does."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from exhaust import exhaust

from asyncsim import Case, DivergenceError, Fifo, MisuseError, Set, Signal, Window, kernel, simulate
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.exhaust import ExhaustiveSearch
from asyncsim.checking.verdict.check import check
from asyncsim.checking.workers.exhaust_parallel import exhaust_parallel
from asyncsim.schedulers.replay import Replay
from kernels import all_reduce, reduce_scatter
from kernels.field import not_bugs

cell = Signal("cell", (1,))
small = Signal("small", (1,), "int8", start=126)
data = Window("data", (1,), np.int64, initialised=True)
floats = Window("floats", (1,), np.float32, initialised=True)


def explored(program, ranks=2, calls=1, *, budget=500, memory="sc", **more):
    """Explore a case, its fair run being the golden of a kernel without one."""
    case = Case(program, ranks, calls, memory)
    judge = Judge(case)
    judge.set_reference(simulate(case, Fifo()))
    return exhaust(case, budget=budget, judge=judge, **more)


ONCE = [
    (reduce_scatter.builtin, 1),
    (reduce_scatter.builtin, 2),
    (reduce_scatter.double_buffer, 1),
    (reduce_scatter.double_buffer, 2),
    (reduce_scatter.hand, 1),
    (all_reduce.mesh, 1),
    (all_reduce.mesh, 2),
]


@pytest.mark.parametrize("memory", ["sc", "ldst"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("program", "calls"), ONCE)
def test_a_kernel_without_races_has_one_execution(program, calls, ranks, memory):
    result = explored(program, ranks, calls, memory=memory)
    assert (result.executions, result.redundant, result.complete, result.estimate) == (1, 0, True, 1)
    assert len(result.ends) == len(result.results) == 1
    assert not result.failures


@kernel(memory=[data, cell])
async def counted(rank, data, cell):
    """Everybody adds to one cell of rank 0, which waits for all of them."""
    await rank.store(data[0], rank.id)
    if rank.id:
        await rank.notify(cell.at(0)[0])
        return None
    await rank.wait(cell[0] >= rank.size - 1)
    return [int(await rank.load(data.at(peer)[0])) for peer in rank.peers]


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_adds_of_several_ranks_to_one_counting_cell_are_one_execution(ranks):
    assert explored(counted, ranks).executions == 1


def test_a_missing_barrier_fails_in_an_execution_that_can_be_replayed():
    runs = []
    result = explored(reduce_scatter.no_post_barrier, 2, 2, on_run=runs.append)
    assert (result.executions, result.complete) == (3, True)
    (failure,) = result.failures
    assert (failure.finding.kind, failure.ending, failure.scheduler) == ("wrong-result", "complete", "exhaust")
    assert len(runs) == 3
    again = simulate(runs[0].case, Replay(failure.choices))
    assert Judge(runs[0].case).findings(again)


def test_the_budget_ends_it_and_the_estimate_says_how_much_there_may_be():
    seen = []
    result = explored(reduce_scatter.no_post_barrier, 3, 2, budget=5, progress=seen.append)
    assert (result.executions, result.complete) == (5, False)
    assert result.estimate > 5
    assert [progress.done for progress in seen] == [1, 2, 3, 4, 5]
    assert all(progress.total >= progress.done for progress in seen)
    whole = explored(reduce_scatter.no_post_barrier, 3, 2)
    assert (whole.executions, whole.estimate, whole.complete) == (24, 24, True)


async def test_it_can_be_continued():
    case = Case(reduce_scatter.no_post_barrier, 3, 2)
    exploring = ExhaustiveSearch(case, Judge(case))
    assert (await exploring.run(5)).executions == 5
    whole = await exploring.run(100)
    assert (whole.executions, whole.complete) == (24, True)
    assert await exploring.run(200) == whole


def test_ctrl_c_ends_it_with_what_was_learnt():
    numbers = count(1)

    def interrupt(_):
        if next(numbers) == 7:
            raise KeyboardInterrupt

    result = explored(reduce_scatter.no_post_barrier, 3, 2, progress=interrupt)
    assert (result.executions, result.complete, result.interrupted, result.over) == (7, False, True, True)
    assert result.failures


@pytest.mark.parametrize("budget", [0, -1, True, "many"])
def test_a_budget_allows_at_least_one_run(budget):
    case = Case(counted, 2, 1)
    with pytest.raises(MisuseError, match="at least one"):
        exhaust_parallel(case, Judge(case), budget=budget)


@kernel(memory=[data, cell])
async def raises_when_late(rank, data, cell):
    """Raise if the other rank was first; after that it would have stored twice."""
    if rank.id:
        await rank.store(data.at(0)[0], 1)
        await rank.store(data.at(0)[0], 2)
    elif await rank.load(data[0]) == 1:
        raise ValueError("late")


def test_an_exception_is_a_failure_and_hides_nothing():
    result = explored(raises_when_late)
    assert result.complete
    (failure,) = result.failures
    assert "ValueError: late" in failure.finding.why
    assert failure.choices == ("1", "0")
    assert failure.ending == "stopped"
    assert result.executions == 3  # it loads 0, 1 or 2
    assert len(result.ends) == 2  # of which nothing tells but the exception


@kernel(memory=[data, small])
async def near_the_limit(rank, data, small):
    """Add one, take one away: in one of the orders the cell overflows on the way."""
    await rank.notify(small.at(0)[0], -1 if rank.id == 2 else 1)
    await rank.store(data.at(0)[0], rank.id)


def test_adds_to_a_cell_that_can_overflow_do_not_commute():
    result = explored(near_the_limit, 3)
    assert result.complete
    assert {failure.finding.kind for failure in result.failures} >= {"overflow"}
    assert any(failure.choices[:2] in (("0", "1"), ("1", "0")) for failure in result.failures)


@kernel(memory=[floats])
async def sums(rank, floats):
    """Add in any order."""
    await rank.store(floats.at(0)[0], np.float32((1e8, 3.0, -1e8)[rank.id]), atomic="add")


def test_atomic_adds_of_floats_are_tried_in_every_order_and_those_of_integers_are_not():
    assert len(explored(sums, 3).ends) == 2
    integers = kernel(memory=[data])(sums_of_integers)
    assert explored(integers, 3).executions == 1


async def sums_of_integers(rank, data):
    """Add in any order."""
    await rank.store(data.at(0)[0], rank.id, atomic="add")


@kernel(memory=[data, cell])
async def missed(rank, data, cell):
    """Wait for a credit that may be gone again: a deadlock in some orders."""
    if rank.id:
        await rank.notify(cell.at(0)[0], 1)
        await rank.notify(cell.at(0)[0], 1, op=Set)
        await rank.notify(cell.at(0)[0], 1)
    else:
        await rank.wait(cell[0] == 1)


def test_a_wait_that_may_be_missed_is_found_blocked_and_not_blocked():
    result = explored(missed)
    assert result.complete
    assert [failure.finding.kind for failure in result.failures] == ["deadlock"]
    assert len(result.ends) == 2


@kernel(memory=[cell])
async def spins(rank, cell):
    """Ask again and again: there are as many executions as anybody likes."""
    if rank.id:
        await rank.notify(cell.at(0)[0])
    else:
        while not await rank.test(cell[0] >= 1):
            pass


def test_a_spin_loop_is_never_complete():
    result = explored(spins, budget=30)
    assert (result.executions, result.complete) == (30, False)
    case = Case(spins, 2, 1, max_steps=40)
    limited = exhaust(case, budget=100, judge=Judge(case))
    assert not limited.complete
    assert [failure.finding.kind for failure in limited.failures] == ["step-limit"]


def test_a_kernel_that_does_not_repeat_itself_is_noticed():
    runs = count()

    @kernel(memory=[data])
    async def forgetful(rank, data):
        if next(runs) < 2 or rank.id == 0:
            await rank.store(data.at(0)[0], rank.id)
        await rank.load(data.at(1)[0])

    case = Case(forgetful, 2, 1)
    with pytest.raises(DivergenceError, match="the same choices led to other operations: ready were 0 "):
        exhaust(case, budget=9, judge=Judge(case))


# The ladder: what `check` makes of it.


async def test_a_benign_race_is_exhausted_and_still_listed():
    report = await check.aio(not_bugs.identical_bytes, ranks=2)
    assert report.verdict == "EXHAUSTED"
    assert "all 4 inequivalent executions of these 2 ranks, 2 calls and these inputs were run" in report.scope
    assert [(finding.title, finding.harmful) for finding in report.findings] == [("WAW race, same call", False)]


async def test_without_a_budget_schedules_are_sampled():
    report = await check.aio(not_bugs.identical_bytes, ranks=2, budget=0, samples=12)
    assert report.verdict == "SURVIVED"
    assert "12 schedules were sampled" in report.scope


async def test_with_too_small_a_budget_schedules_are_sampled():
    report = await check.aio(not_bugs.identical_bytes, ranks=4, budget=60, samples=10)
    assert report.verdict == "SURVIVED"
    assert "10 schedules were sampled" in report.scope


@pytest.mark.parametrize("budget", [-1, True, 1.5])
async def test_a_budget_of_a_check_is_a_number(budget):
    with pytest.raises(MisuseError, match="0 for none"):
        await check.aio(counted, ranks=2, budget=budget)


@kernel(memory=[data, cell])
async def asks(rank, data, cell):
    """Ask once; the answer depends on the schedule, and in the rarer case the result is another one."""
    if rank.id:
        await rank.notify(cell.at(0)[0])
        return 0
    return int(await rank.test(cell[0] >= 1))


async def test_an_undetermined_test_is_explored_and_refuted_with_a_witness():
    report = await check.aio(asks, ranks=2, calls=1)
    assert report.verdict == "REFUTED"
    (finding,) = report.findings
    assert finding.kind == "wrong-result"
    assert finding.token


@kernel(memory=[cell], golden=lambda xs: [1.0 for _ in xs], inputs=lambda P, call, rng: [0] * P)
async def within_the_tolerance(rank, x, cell):
    """The same, but either answer will do."""
    if rank.id:
        await rank.notify(cell.at(0)[0])
        return 1.0
    return 1.0 + 1e-9 * await rank.test(cell[0] >= 1)


async def test_different_results_within_the_tolerance_are_told():
    report = await check.aio(within_the_tolerance, ranks=2, calls=1)
    assert report.verdict == "EXHAUSTED"
    assert "(2 different results, none of them wrong)" in report.scope


@kernel(memory=[cell])
async def raises_when_first(rank, cell):
    """Raise if the answer is no."""
    if rank.id:
        await rank.notify(cell.at(0)[0])
    elif await rank.test(cell[0] >= 1):
        raise ValueError("yes")


async def test_a_kernel_that_raises_in_some_execution_is_refuted():
    report = await check.aio(raises_when_first, ranks=2, calls=1)
    assert report.verdict == "REFUTED"
    assert "ValueError: yes" in report.findings[0].why


async def test_a_check_that_is_interrupted_while_exploring_says_so():
    numbers = count(1)

    def interrupt(_):
        if next(numbers) == 5:
            raise KeyboardInterrupt

    report = await check.aio(not_bugs.identical_bytes, ranks=4, progress=interrupt)
    assert (report.verdict, report.interrupted) == ("SURVIVED", True)
    assert "interrupted" in report.scope


async def test_a_kernel_with_hidden_state_is_refuted_not_explored():
    runs = count()

    @kernel(memory=[cell])
    async def moody(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 1 + next(runs) % 2)
            await rank.notify(cell.at(0)[0])
        else:
            await rank.test(cell[0] >= 1)
            await rank.test(cell[0] >= 2)

    report = await check.aio(moody, ranks=2, calls=1)
    assert report.verdict == "REFUTED"
    assert report.findings[0].kind == "hidden-state"
    assert "the same schedule does not give the same run again" in report.findings[0].why


def test_a_poll_by_loads_is_cut_short_and_no_finding():
    flag = Window("flag", (1,), initialised=True)

    @kernel(memory=[flag])
    async def spin(rank, flag):
        await rank.store(flag.at((rank.id + 1) % rank.size)[0], 5.0)
        while await rank.load(flag[0]) != 5.0:
            pass

    report = check(spin, ranks=3, calls=1, samples=40)
    assert report.verdict == "SURVIVED"
    assert {finding.kind for finding in report.findings} == {"race"}  # benign: the same bits both ways


def test_a_poll_that_nobody_answers_is_a_finding_all_the_same():
    flag = Window("flag", (1,), initialised=True)

    @kernel(memory=[flag])
    async def mask(rank, flag):
        while await rank.load(flag[0]) != 5.0:
            pass

    assert "step-limit" in {finding.kind for finding in check(mask, ranks=2, calls=1, max_steps=300).findings}
