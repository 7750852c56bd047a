"""Shrinking: what comes out fails too, is never worse, and can be followed by a person."""

from __future__ import annotations

import numpy as np
import pytest

from asyncsim import Case, KernelError, MisuseError, Signal, Window, kernel, simulate
from asyncsim.checking.witness.shrink import PASSES, segments_of, shrink
from asyncsim.schedulers.eager import Eager
from asyncsim.schedulers.random import Random
from asyncsim.schedulers.replay import Replay
from kernels.reduce_scatter import mpi_in_place, no_post_barrier


def is_wrong(run):
    """Say whether some output is not its golden."""
    pairs = zip(sum(run.outputs, []), sum(run.case.goldens, []), strict=True)  # noqa: RUF017 - two short lists
    return run.ending != "complete" or not all(np.allclose(y, golden) for y, golden in pairs)


def failing(case, fails=is_wrong):
    """Return the first schedule of a random walk that fails."""
    scheduler = Random(seed=1)
    return next(run.choices for run in (simulate(case, scheduler) for _ in range(1000)) if fails(run))


def target(choices):
    return len(segments_of(choices)), len(choices)


async def test_a_missing_barrier_shows_in_three_switches():
    case = Case(no_post_barrier, 2, 2)
    scheduler = Random(seed=1)
    while not is_wrong(run := await simulate.aio(case, scheduler)):
        pass
    short = await shrink.aio(case, run.choices, is_wrong)
    assert segments_of(short) == [("0", 3), ("1", 12), ("0", 15), ("1", 6)]
    assert is_wrong(await simulate.aio(case, Replay(short)))
    assert await shrink.aio(case, short, is_wrong) == short


@pytest.mark.parametrize("ranks", [3, 4])
def test_more_ranks_shrink_to_few_switches_too(ranks):
    case = Case(mpi_in_place, ranks, 2)
    long = failing(case)
    short = shrink(case, long, is_wrong)
    assert target(short)[0] <= 3 * ranks - 2
    assert target(short) < target(long)
    assert short == shrink(case, long, is_wrong)
    assert is_wrong(simulate(case, Replay(short)))


def test_a_schedule_never_gets_worse_whatever_the_budget():
    case = Case(no_post_barrier, 2, 2)
    long = failing(case)
    assert shrink(case, long, is_wrong, budget=1) == long
    targets = [target(shrink(case, long, is_wrong, budget=budget)) for budget in (1, 2, 4, 8, 16, 32)]
    assert targets == sorted(targets, reverse=True)


def test_the_budget_counts_runs():
    runs = []
    case = Case(no_post_barrier, 2, 2)

    def fails(run):
        runs.append(run)
        return is_wrong(run)

    shrink(case, failing(case), fails, budget=9)
    assert len(runs) <= 9


def test_the_beginning_of_a_schedule_will_do():
    case = Case(no_post_barrier, 2, 2)
    assert is_wrong(simulate(case, Eager()))
    assert target(shrink(case, ["0"], is_wrong))[0] == 4


def test_a_schedule_that_does_not_fail_is_a_mistake():
    with pytest.raises(MisuseError, match="the schedule of 1 choices does not fail"):
        shrink(Case(no_post_barrier, 2, 1), ["0"], is_wrong)


@kernel(memory=[Window("data", (1,), np.int32, initialised=True), Signal("flag", ("P",))])
async def picky(rank, data, flag):
    """Hang if rank 1 stores before rank 0 looks; raise if it has stored twice."""
    if rank.id == 1:
        await rank.store(data.at(0)[0], 1)
        await rank.load(data[0])
        await rank.store(data.at(0)[0], 2)
        return
    seen = int(await rank.load(data[0]))
    if seen == 2:
        raise ValueError
    if seen == 1:
        await rank.wait(flag[0] >= 1)


def test_a_hang_shrinks_and_a_kernel_that_raises_does_not_count():
    case = Case(picky, 2, 1)
    with pytest.raises(KernelError):
        simulate(case, Replay(["1", "1", "1", "0"]))
    short = shrink(case, ["1", "1", "0", "1"], lambda run: run.ending == "deadlock")
    assert target(short) == (3, 4)


def test_every_pass_has_a_name_and_proposes_only_segments():
    schedule = [("0", 3), ("1", 2), ("0", 1)]
    for propose in PASSES:
        proposals = list(propose(schedule))
        assert propose.__doc__
        assert proposals
        assert all(count > 0 for segments in proposals for _, count in segments)
