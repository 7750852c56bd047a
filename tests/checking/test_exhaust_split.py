"""Where the tree of an exhaustive exploration is cut, and what its parts may look like."""

from __future__ import annotations

import numpy as np
import pytest
from exhaust import exhaust
from parted import BUDGET, SIZES, case_of_text, divided, facts, storing_case

from asyncsim import DivergenceError, Signal, Window, kernel
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.dependence import Refinement
from asyncsim.checking.search.dpor import Decision, Prefix, Tree
from asyncsim.checking.search.exhaust import ExhaustiveSearch
from asyncsim.checking.workers import subtree as splitting
from asyncsim.checking.workers.exhaust_parallel import ParallelSearch
from asyncsim.checking.workers.subtree import split
from asyncsim.machine.case import Case

data = Window("data", (1,), np.int64, initialised=True)
small = Signal("small", (1,), "int8", start=126)


async def test_a_part_may_be_a_whole_execution():
    case = storing_case(2)
    parts = await split(case, [Prefix(Refinement())], 100)
    assert len(parts) == 6  # 4! / (2! 2!)
    assert {len(part.fixed) for part in parts} == {4}
    assert await split(case, parts, 100) == parts
    explored = await divided(case, 100)
    assert (explored.executions - explored.redundant, explored.complete, explored.estimate) == (6, True, 6)


@pytest.mark.parametrize(
    ("text", "finals"), [("wait c >= 1; st x || st x", 1), ("wait c >= 1; st x || st x || wait d >= 1; c += 1", 1)]
)
async def test_a_deadlock_above_the_cut(text, finals):
    case = case_of_text(text, elements=(0,))
    explored = await divided(case, 20)
    assert explored.complete
    assert len(explored.ends) == finals
    assert {failure.finding.kind for failure in explored.failures} == {"deadlock"}


async def test_a_deadlock_below_one_way_and_not_the_other():
    case = case_of_text("wait c == 1; st x || c += 1; c += 1; ld x")
    for size in SIZES:
        explored = await divided(case, size)
        assert {failure.finding.kind for failure in explored.failures} == {"deadlock"}
        assert facts(explored) == facts(await exhaust.aio(case, budget=9, judge=Judge(case)))


async def test_one_actor_has_one_execution():
    case = case_of_text("st x; ld x; st x")
    explored = await divided(case, 20)
    assert (explored.executions, explored.redundant, explored.complete) == (1, 0, True)
    (part,) = await split(case, [Prefix(Refinement())], 20)
    assert [step.chosen for step in part.fixed] == ["0", "0", "0"]


async def test_a_part_where_everything_sleeps_is_left_out():
    """Both orders of what does not conflict are one class."""
    case = case_of_text("st x || st y")
    (part,) = await split(case, [Prefix(Refinement())], 20)
    assert [step.chosen for step in part.fixed] == ["0", "1"]


async def test_a_narrow_tree_is_not_looked_at_for_ever(monkeypatch):
    monkeypatch.setattr(splitting, "_PROBES_PER_PART", 1)
    assert len(await split(storing_case(), [Prefix(Refinement())], 9)) >= 9
    monkeypatch.setattr(splitting, "_PROBES_PER_PART", 0)
    assert len(await split(storing_case(), [Prefix(Refinement())], 9)) == 1


async def test_what_is_left_is_the_whole_prefix_while_its_first_execution_goes_on():
    case = storing_case(2)
    search = ExhaustiveSearch(case, Judge(case), prefix=Prefix(Refinement()))
    await search.run(2)
    left = search.tree.rest
    assert left is not None
    assert len(left.path) > 1
    again = Tree(case, left)
    assert again.rest == left
    again.node_at(0, list(search.tree.path[0].ready.values()))  # one step of it, and no more
    assert again.rest == left


async def test_a_prefix_that_the_kernel_does_not_follow():
    case = storing_case(2)
    prefix = Prefix(Refinement(), (Decision("7"),))
    with pytest.raises(DivergenceError, match="at step 0: the same choices led elsewhere: 7 is not ready; now 0, 1"):
        await ExhaustiveSearch(case, Judge(case), prefix=prefix).run(1)


# ---- what is learnt


@kernel(memory=[data, small])
async def grows(rank, data, small):
    """Add to a small cell only where the other rank was late: whether it can overflow is learnt on the way."""
    if not rank.id:
        await rank.store(data[0], 1)
        return
    if not await rank.load(data.at(0)[0]):
        await rank.notify(small.at(0)[0], 1)
        await rank.notify(small.at(0)[0], 1)


async def test_what_a_worker_learns_is_known_from_the_start_the_next_time(monkeypatch):
    known = []
    old = ParallelSearch._explore

    async def noted(self, refinement, budget):
        known.append(refinement)
        return await old(self, refinement, budget)

    monkeypatch.setattr(ParallelSearch, "_explore", noted)
    case = Case(grows, 3, 1)
    alone = await exhaust.aio(case, budget=BUDGET, judge=Judge(case))
    for size in SIZES:
        known.clear()
        explored = await divided(case, size)
        assert facts(explored) == facts(alone)
        assert [bool(refinement.tight) for refinement in known] == [False, True]
