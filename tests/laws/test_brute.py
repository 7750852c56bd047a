"""The oracle against facts that can be seen by eye, and the machine against the oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from brute import explore, replay
from programs import FAMILIES, program_number
from runs import run_once
from toy import Op, Program, parse

if TYPE_CHECKING:
    from brute import Truth

HANDSHAKE = "st x; c += 1 || wait c >= 1; ld x"


def races(text: str) -> set[frozenset[tuple[int, int]]]:
    """Return the racing pairs of a program."""
    return set(explore(parse(text)).races)


def loaded(truth: Truth) -> set[tuple[tuple[float | None, ...], ...]]:
    """Return what was loaded, over all ends."""
    return {end.loaded for end in truth.finals}


def test_a_handshake_orders_store_and_load() -> None:
    truth = explore(parse(HANDSHAKE))
    (end,) = truth.finals
    stored = parse(HANDSHAKE).writes(0, 0)
    assert end.positions == (2, 2)
    assert end.memory == (stored,)
    assert end.counters == (1,)
    assert end.loaded == ((), (stored,))
    assert (truth.deadlocks, truth.races, truth.leaves, truth.states) == (0, frozenset(), False, 5)


def test_without_the_wait_the_load_may_be_early() -> None:
    program = parse("st x; c += 1 || ld x")
    truth = explore(program)
    assert truth.races == {frozenset(((0, 0), (1, 0)))}
    assert loaded(truth) == {((), (0,)), ((), (program.writes(0, 0),))}


def test_a_wait_for_too_much_hangs() -> None:
    truth = explore(parse("st x; c += 1 || wait c >= 2; ld x"))
    (end,) = truth.finals
    assert truth.deadlocks == 1
    assert end.positions == (2, 0)
    assert end.loaded == ((), (None,))


@pytest.mark.parametrize(
    ("text", "racing"),
    [
        ("ld x || ld x", False),
        ("ld x || st x", True),
        ("st x || st x", True),
        ("ad x || ad x", False),
        ("ad x || ld x", True),
        ("ad x || st x", True),
        ("ld x || st y", False),
        ("y <- x || ld x", False),
        ("y <- x || st x", True),
        ("y <- x || ld y", True),
        ("y <- x || z <- y", True),
        ("x <- x || ld x", False),
        ("x <- x || st x", True),
        ("y <+ x || ad y", False),
        ("y <+ x || ad x", True),
    ],
)
def test_what_conflicts(text: str, racing: bool) -> None:  # noqa: FBT001 - pytest hands it over
    assert bool(races(text)) is racing


def test_a_race_is_between_what_can_both_be_next() -> None:
    # The second store races with the load, the first does not: it is long done.
    assert races("st x; c += 1; st x || wait c >= 1; ld x") == {frozenset(((0, 2), (1, 1)))}


def test_a_counting_cell_with_alternatives() -> None:
    # Either producer may have sent the credit that lets the wait pass.
    assert races("st x; c += 1 || st y; c += 1 || wait c >= 1; ld x; ld y") == {
        frozenset(((0, 0), (2, 1))),
        frozenset(((1, 0), (2, 2))),
    }


def test_atomic_adds_of_integers_commute_and_those_of_floats_do_not() -> None:
    text = "ad x || ad x || ad x"
    whole = explore(parse(text))
    assert len(whole.finals) == 1
    assert len(whole.sums) == 3
    assert {end.memory for end in explore(parse(text, floats=True)).finals} == {(0.0,), (3.0,)}


@pytest.mark.parametrize(
    ("how", "passing"),
    [("==", {1}), ("!=", {0, 2}), (">", {2}), (">=", {1, 2}), ("<", {0}), ("<=", {0, 1})],
)
def test_comparisons(how: str, passing: set[int]) -> None:
    for start in range(3):
        truth = explore(parse(f"wait c {how} 1", starts=(start,)))
        assert (truth.deadlocks == 0) == (start in passing)


def test_a_take_subtracts_as_it_passes() -> None:
    truth = explore(parse("take c >= 2 || c += 3"))
    assert {end.counters for end in truth.finals} == {(1,)}


def test_two_takers_of_one_credit() -> None:
    truth = explore(parse("take c >= 1; st x || take c >= 1; st x || c += 1", cells=(0,)))
    assert {end.positions for end in truth.finals} == {(2, 0, 1), (0, 2, 1)}
    assert truth.deadlocks == 2


def test_a_test_tells_what_was_there() -> None:
    assert loaded(explore(parse("test c >= 1 || c += 1"))) == {((False,), ()), ((True,), ())}


def test_a_set_may_erase() -> None:
    truth = explore(parse("c := 0; wait c >= 1 || c += 1", cells=(0,)))
    assert truth.deadlocks == 1
    assert len(truth.finals) == 2


def test_a_cell_that_wraps_goes_on_at_the_other_end() -> None:
    truth = explore(parse("c += 2", starts=(127,), bits=8, wrap=True))
    assert truth.leaves
    assert {end.counters for end in truth.finals} == {(-127,)}


def test_a_cell_that_does_not_wrap_ends_the_run() -> None:
    truth = explore(parse("c += 2; st x || st x", starts=(127,), bits=8))
    assert truth.leaves
    assert truth.deadlocks == 0
    assert all(end.overflow for end in truth.finals)
    assert {end.positions for end in truth.finals} == {(0, 0), (0, 1)}


def test_calls_follow_each_other() -> None:
    program = parse("st x; c += 1 || wait c >= 1; ld x", calls=2)
    # The second wait is satisfied from the start, and nothing tells the storing rank of the load.
    assert set(explore(program).races) == {frozenset(((0, 2), (1, 1))), frozenset(((0, 2), (1, 3)))}
    assert program.writes(0, 0) != program.writes(0, 2)


def test_interleavings_are_all_there() -> None:
    # Two actors of three loads and stores on one element: every merge of the two is another history.
    truth = explore(parse("ld x; ld x; ld x || st x; st x; st x"))
    assert len(truth.finals) == 20  # 6 choose 3: each load sees how many stores came before


def test_replay_refuses_an_impossible_order() -> None:
    program = parse(HANDSHAKE)
    assert replay(program, [0, 0, 1, 1]) in explore(program).finals
    with pytest.raises(AssertionError, match="for which it must wait"):
        replay(program, [1, 0, 0, 1])
    with pytest.raises(AssertionError, match="could go on"):
        replay(program, [0, 0, 1])


def test_a_program_is_its_text() -> None:
    for family in FAMILIES:
        for seed in range(20):
            program = program_number(family, seed)
            assert eval(str(program), {"parse": parse}) == program  # noqa: S307 - our own text


def test_the_machine_does_what_the_oracle_does() -> None:
    """Step by step: the same choices give the same loads, and the machine stops where nobody can go on."""

    async def compare() -> None:
        for family in FAMILIES:
            for seed in range(20):
                program = program_number(family, seed)
                truth = explore(program)
                for schedule in range(3):
                    assert (await run_once(program, schedule)).final in truth.finals

    trio.run(compare)


def test_an_empty_rank_takes_no_part() -> None:
    program = Program(((), (Op("st", 0),)), elements=(0,), cells=(), starts=())
    assert {end.positions for end in explore(program).finals} == {(0, 1)}
