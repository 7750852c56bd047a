"""Polls in an exhaustive exploration: what a store forces is not tried in vain, and what is open is."""

from __future__ import annotations

import numpy as np
import pytest
from exhaust import exhaust
from naive import case_of, end_of, every_end

from asyncsim import Case, Window, check, kernel
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.execution import MOST_STORES

packets = Window("packets", (3, "P"), np.int64, initialised=True)


@kernel(memory=[packets])
async def gathers(rank, packets):
    """Send three packets to everybody, each to a slot of its own, and poll for all."""
    for k in range(3):
        for peer in rank.peers:
            await rank.store(packets.at(peer)[k, rank.id], k + 1)
        for peer in rank.peers:
            await rank.poll(packets[k, peer], lambda word: word != 0)


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_polls_that_one_store_forces_are_one_execution(ranks, memory):
    case = Case(gathers, ranks, 1, memory=memory)
    explored = exhaust(case, budget=1000, judge=Judge(case))
    assert (explored.complete, explored.inequivalent, explored.executions) == (True, 1, 1)


def test_a_check_says_that_it_was_one():
    report = check(gathers, ranks=3, calls=1)
    assert report.verdict in ("EXHAUSTED", "PROVED")
    if report.verdict == "EXHAUSTED":
        assert "one execution, to which all schedules are equivalent" in report.scope


DRAWN = {
    "a store that takes back what the poll waits for": (
        "sc", [[("poll", 0, 2, 1)], [("store", 0, 1, 1), ("store", 0, 5, 1)]], 2,
    ),
    "a poll that the start satisfies": ("sc", [[("poll", 0, 0, 1)], [("store", 0, 5, 1)]], 2),
    "a copy, whose tile nobody knows beforehand": (
        "sc", [[("poll", 0, 10, 1), ("load", 0, 0, 1)], [("store", 1, 5, 1), ("put", 0, 0, 1), ("store", 0, 7, 1)]], 3,
    ),
    "an own store under way": (
        "ldst", [[("store", 0, 5, 1), ("poll", 0, 10, 1)], [("put", 0, 1, 1), ("store", 0, 3, 1)]], 3,
    ),
}  # fmt: skip
"""Memory model, program (see `naive`), and how many ends it has."""


@pytest.mark.parametrize("name", DRAWN)
async def test_a_poll_that_is_open_is_tried_both_ways(name):
    memory, programs, many = DRAWN[name]
    case = case_of(programs, memory)
    truth, _ = await every_end(case, 1000)
    ends = set()
    explored = await exhaust.aio(case, budget=1000, judge=Judge(case), on_run=lambda run: ends.add(end_of(run)))
    assert explored.complete
    assert ends == truth
    assert len(ends) == many


@pytest.mark.parametrize("memory", ["sc", "nic"])
@pytest.mark.parametrize("adders", [MOST_STORES - 1, MOST_STORES, MOST_STORES + 1])
async def test_a_poll_that_any_of_many_adds_may_satisfy(adders, memory):
    word = Window("word", (1,), np.int64, initialised=True)

    @kernel(memory=[word])
    async def counts(rank, word):
        if rank.id:
            await rank.put(word.at(0)[0], np.int64(1), atomic="add")
            return 0
        return int(await rank.poll(word[0], lambda got: got >= adders - 1))

    case = Case(counts, adders + 1, 1, memory=memory)
    ends = set()
    explored = await exhaust.aio(case, budget=2000, judge=Judge(case), on_run=lambda run: ends.add(end_of(run)))
    assert explored.complete
    # It returns what is enough, or one more; whichever add is the late one.
    assert len(explored.results) == 2
    assert explored.inequivalent == adders + 1


@pytest.mark.parametrize(("enough", "many"), [(2, 1), (1, 3)])
async def test_a_poll_of_two_words(enough, many):
    """It needs both stores, in one way, or any of them, in three."""
    words = Window("words", (2,), np.int64, initialised=True)

    @kernel(memory=[words])
    async def looks(rank, words):
        if rank.id:
            await rank.store(words.at(0)[rank.id - 1], rank.id)
            return 0
        return int((await rank.poll(words[:], lambda got: np.count_nonzero(got) >= enough)).sum())

    case = Case(looks, 3, 1)
    truth, _ = await every_end(case, 100)
    ends = set()
    explored = await exhaust.aio(case, budget=100, judge=Judge(case), on_run=lambda run: ends.add(end_of(run)))
    assert explored.complete
    assert ends == truth
    assert explored.inequivalent == many


async def test_a_tile_that_lands_in_pieces_is_known_piece_by_piece():
    words = Window("words", (2,), np.int64, initialised=True)

    @kernel(memory=[words])
    async def torn(rank, words):
        if rank.id:
            await rank.put(words.at(0)[:], np.array([1, 1]))
            return 0
        return int((await rank.poll(words[:], lambda got: got[0] != 0))[1])

    case = Case(torn, 2, 1, memory="nic:atom=1")
    explored = await exhaust.aio(case, budget=100, judge=Judge(case))
    assert explored.complete
    assert (len(explored.results), explored.inequivalent) == (2, 2)
