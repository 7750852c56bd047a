"""What a search learns late, in another execution than its first, makes it start all over: nothing is lost by it."""

from __future__ import annotations

import numpy as np
import pytest
from exhaust import exhaust
from naive import end_of, every_end
from parted import divided, facts

from asyncsim import Case, Signal, Window, kernel
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.dpor import Tree

data = Window("data", (1,), np.int64, initialised=True)
asked = Signal("asked", (1,))
small = Signal("small", (1,), np.int8, wrap=True)


@kernel(memory=[data, asked])
async def adds_if_asked(rank, data, asked):
    """Add late to the own memory, but only where the question is answered by yes; the fair run answers no."""
    if rank.id:
        await rank.notify(asked.at(0)[0])
        return int(await rank.load(data.at(0)[0]))
    if await rank.test(asked[0] >= 1):
        await rank.put(data.at(0)[0], np.int64(7), atomic="add")
    return 0


@kernel(memory=[small, asked])
async def wraps_if_asked(rank, small, asked):
    """Add so much that a cell of eight bits goes round, but only where the question is answered by yes."""
    if rank.id == 0:
        if await rank.test(asked[0] >= 1):
            await rank.notify(small.at(2)[0], 100)
        await rank.notify(asked.at(2)[0])
    elif rank.id == 1:
        await rank.notify(small.at(2)[0], 100)
        await rank.notify(asked.at(0)[0])
    else:
        await rank.wait(small[0] >= -50)
    return 0


@kernel(memory=[data, small, asked])
async def asks_and_waits(rank, data, small, asked):
    """Both at once: what goes round is waited for, behind a question."""
    if rank.id == 0:
        if await rank.test(asked[0] >= 1):
            await rank.notify(small[0], 100)
        await rank.notify(asked.at(1)[0])
        await rank.wait(small[0] >= 1)
        return 0
    seen = 0
    if await rank.test(asked[0] >= 1):
        seen = int(await rank.load(data.at(0)[0]))
    await rank.notify(asked.at(0)[0])
    await rank.notify(small.at(0)[0], 100)
    return seen


CASES = {
    "ldst": Case(adds_if_asked, 2, 1, memory="ldst"),
    "wraps": Case(wraps_if_asked, 3, 1),
    "asks and waits": Case(asks_and_waits, 2, 1),
}


async def lost(case):
    """Say whether exhaustive exploration misses an end of a case, or does not come to its own."""
    truth, _ = await every_end(case, 20_000)
    ends = set()
    explored = await exhaust.aio(case, budget=1000, judge=Judge(case), on_run=lambda run: ends.add(end_of(run)))
    return not explored.complete or ends != truth


@pytest.mark.parametrize("name", CASES)
async def test_nothing_is_lost_by_starting_over(name):
    assert not await lost(CASES[name])


@pytest.mark.parametrize("name", CASES)
async def test_what_was_made_before_does_not_count(name):
    case = CASES[name]
    alone = await exhaust.aio(case, budget=1000, judge=Judge(case))
    assert alone.executions > alone.inequivalent
    assert facts(await divided(case, 3)) == facts(alone)


def goes_on(tree, *, fresh):
    """Keep what was concluded from earlier executions."""
    return START_OVER(tree, fresh=fresh) if fresh else True


def ends_early(tree, *, fresh):
    """Start over, and take the empty execution apart as if it were the last."""
    START_OVER(tree, fresh=fresh)
    return True


def keeps_its_execution(tree, *, fresh):
    """Start over with the steps of the execution that was the last."""
    if fresh:
        return START_OVER(tree, fresh=fresh)
    tree.path.clear()
    tree._is_first, tree._shared_steps = True, 0
    return False


START_OVER = Tree._restart


@pytest.mark.parametrize("instead", [goes_on, ends_early, keeps_its_execution])
async def test_a_search_that_does_not_start_over_is_noticed(monkeypatch, instead):
    monkeypatch.setattr(Tree, "_restart", instead)
    assert any([await lost(case) for case in CASES.values()])
