"""What is said of an exploration that its budget ended: what was made, and what would finish it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from asyncsim import Case, Signal, check, kernel
from asyncsim.checking.search.exhaust import ExhaustiveResult
from asyncsim.checking.verdict.report import exploration_scope, rounded

asked = Signal("asked", (1,))


@kernel(memory=[asked])
async def asks(rank, asked):
    """Ask once."""
    await rank.test(asked[0] >= 1)


def said(**facts):
    empty = frozenset()
    explored = ExhaustiveResult(100, frozenset(range(100)), False, 2000, empty, empty, empty, (), {})  # noqa: FBT003
    return exploration_scope(replace(explored, **facts), Case(asks, 2, 1))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "100 executions of these 2 ranks, 1 call and these inputs were run (all inequivalent); by the branches"),
        ({}, "there are about 2000, and often more than such an estimate says: try `--budget 4000`"),
        ({"behaviours": frozenset([1])}, "were run (1 of them inequivalent)"),
        (
            {"executions": 1, "behaviours": frozenset([1])},
            "1 execution of these 2 ranks, 1 call and these inputs was run",
        ),
        ({"estimate": 10**9}, "how many there are is not known; by the branches seen so far more than 500000000;"),
        ({"endless": 3}, "3 of them ask again and again"),
        ({"endless": 3}, "no budget finishes such an exploration"),
        ({"interrupted": True}, "were run before it was interrupted"),
        ({"complete": True}, "all 100 inequivalent executions of these 2 ranks, 1 call and these inputs were run"),
    ],
)
def test_what_is_left_is_said(facts, words):
    assert words in said(**facts)


def test_an_estimate_has_two_digits_that_mean_something():
    assert [rounded(number) for number in (7, 99, 100, 101, 12_345)] == [7, 99, 100, 110, 13_000]


def test_a_loop_that_asks_is_told_as_endless():
    @kernel(memory=[asked])
    async def spins(rank, asked):
        await rank.notify(asked.at((rank.id + 1) % rank.size)[0])
        while not await rank.test(asked[0] >= 1):
            pass

    report = check(spins, ranks=2, calls=1, samples=5)
    assert report.verdict == "SURVIVED"
    assert "ask again and again for what another would write, and were cut short" in report.scope
