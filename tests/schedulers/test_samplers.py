"""The bounded samplers and the selective walk: what they promise, counted."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest

from asyncsim import Case, MisuseError, Signal, Window, kernel, simulate
from asyncsim.checking.verdict.explore import explore
from asyncsim.schedulers.surw import Surw
from asyncsim.schedulers.table import make
from kernels.reduce_scatter import builtin, no_post_barrier

data = Window("data", ("P", 4), np.int32, initialised=True)
flag = Signal("flag", ("P",))


@kernel(memory=[data])
async def free(rank, data):
    """Four operations a rank, none of which waits or conflicts."""
    for c in range(4):
        await rank.store(data[rank.id, c], c)


@kernel(memory=[data, flag])
async def contended(rank, data, flag):
    """Two stores of each rank to one place, and much that nobody else looks at in one of them."""
    for _ in range(2):
        await rank.store(data.at(0)[0], np.zeros(4, np.int32))
        if rank.id:
            for c in range(6):
                await rank.store(data.at(1)[1, 0], c)
    await rank.notify(flag[rank.id])


@kernel(memory=[data, flag])
async def waits_between(rank, data, flag):
    """Ranks that meet between their stores to one place."""
    for n in range(2):
        await rank.store(data.at(0)[0, 0], n)
        await rank.notify(flag.at(1 - rank.id)[0])
        await rank.wait(flag[0] >= n + 1)


def choices(program, scheduler, ranks=3):
    run = simulate(Case(program, ranks, 1), scheduler)
    assert run.ending == "complete"
    return "".join(run.choices)


def switches(run):
    return len(list(groupby(run))) - 1


@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_a_run_has_at_most_k_preemptions(k):
    scheduler = make(f"preempt:k={k},steps=12")
    runs = [switches(choices(free, scheduler)) - 2 for _ in range(80)]  # two switches are free: three actors end
    assert min(runs) >= 0
    assert max(runs) == k


def test_preemptions_and_what_is_free_are_drawn():
    scheduler = make("preempt:k=1,steps=12")
    assert len({choices(free, scheduler) for _ in range(80)}) > 30


def test_a_preemption_waits_until_there_is_somebody_to_take_over():
    scheduler = make("preempt:k=12,steps=1")
    assert choices(free, scheduler, ranks=1) == "0000"
    alone_first = [choices(contended, make(f"preempt:k=9,steps=30,seed={seed}"), ranks=2) for seed in range(20)]
    assert max(map(switches, alone_first)) <= 1 + 9


@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_run_has_at_most_k_delays(k):
    scheduler = make(f"delay:k={k},steps=12")
    runs = {choices(free, scheduler) for _ in range(80)}
    assert max(map(switches, runs)) <= 2 + 2 * k
    if k == 0:
        assert runs == {choices(free, make("eager"))}
    if k == 1:
        assert len(runs) <= 12 + 1  # at most one schedule a step, and that without a delay


def test_bounded_schedulers_learn_how_long_a_run_is():
    for name in ("delay", "preempt"):
        scheduler = make(f"{name}:k=1,seed=3")
        late = [choices(free, scheduler) for _ in range(60)]
        assert len(set(late)) > 8


def test_surw_takes_every_order_of_the_conflicting_operations_about_equally_often():
    scheduler = make("surw:seed=1")
    orders = Counter()
    for _ in range(480):
        run = choices(contended, scheduler, ranks=2)
        seen = Counter()
        order = ""
        for actor in run:
            seen[actor] += 1
            if (actor == "0" and seen[actor] <= 2) or (actor == "1" and seen[actor] in (1, 8)):
                order += actor
        orders[order] += 1
    assert len(orders) == 6
    assert min(orders.values()) > 0.5 * 480 / 6


def test_a_plain_random_walk_does_not():
    scheduler = make("random:seed=1")
    orders = Counter(choices(contended, scheduler, ranks=2).rstrip("1")[-1:] for _ in range(120))
    assert orders["0"] == 120
    late = sum(choices(contended, scheduler, ranks=2).count("0", 0, 8) < 2 for _ in range(120))
    assert late < 24  # a third of 120 would be fair


def test_surw_gives_the_turn_away_where_the_one_drawn_cannot_go_on():
    scheduler = make("surw:seed=4")
    for _ in range(60):
        assert sorted(choices(waits_between, scheduler, ranks=2)) == list("000000111111")


def test_surw_draws_somebody_also_where_the_last_run_misleads():
    scheduler = Surw(seed=0)
    assert {scheduler._drawn({3: 0, 7: 0}) for _ in range(40)} == {3, 7}
    scheduler._dice = lambda: 1.0  # what rounding may come to
    assert scheduler._drawn({3: 1, 7: 1}) == 7


@pytest.mark.parametrize("scheduler", ["surw", "delay:k=3", "preempt:k=3"])
async def test_samplers_find_a_missing_barrier_and_never_refute_a_correct_kernel(scheduler):
    found = await explore.aio(no_post_barrier, ranks=3, scheduler=scheduler, runs=60)
    assert found.verdict == "REFUTED"
    clean = await explore.aio(builtin, ranks=3, scheduler=scheduler, runs=30)
    assert clean.verdict == "SURVIVED"
    assert "nothing is said of the others" in clean.scope


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delay:k=-1", "delay: k=-1; give an integer >= 0"),
        ("preempt:k=x", "preempt: k='x'; give an integer >= 0"),
        ("preempt:steps=0", "preempt: steps=0; give an integer >= 1"),
        ("delay:seed=-2", "delay: seed=-2; give an integer >= 0"),
        ("surw:seed=x", "surw: seed='x'; give an integer >= 0"),
    ],
)
def test_arguments_that_cannot_be_right_are_refused(text, message):
    with pytest.raises(MisuseError) as caught:
        make(text)
    assert message in str(caught.value)
