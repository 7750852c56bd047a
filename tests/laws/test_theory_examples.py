"""The shortest program for each condition of the proof, and what both the analysis and brute force say of it.

Every example is one that an analysis without the condition gets wrong. Examples that need late
landings or several tasks a rank are elsewhere.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from brute import explore
from law import FLAGS, Judged, check
from toy import parse

SEEDS = (0, 1, 2, 3)


def judged(text: str, *, ends: int = 1, hangs: bool = False, **options: Any) -> Judged:
    """Check a program against brute force under several schedules, and return what the analysis says of it.

    Args:
        text: the program, for `parse`.
        ends: how many final states it must have.
        hangs: whether one of them is a deadlock.
        options: of `parse`.

    """
    program = parse(text, **options)
    truth = explore(program)
    assert len(truth.finals) == ends
    assert (truth.deadlocks > 0) is hangs
    checked = trio.run(check, program, SEEDS)
    assert not checked.mistakes
    return checked.said


def flags(said: Judged) -> set[str]:
    """Return the flags that were raised."""
    return set(said.kinds & FLAGS)


# S1: Sets.


@pytest.mark.parametrize("other", ["c += 1", "c := 2"])
def test_a_set_unordered_with_another_change_of_the_cell_is_flagged(other: str) -> None:
    assert flags(judged(f"c := 1 || {other}", ends=2)) == {"signal-race"}


def test_two_sets_by_one_rank_are_in_order() -> None:
    assert judged("c := 1; c := 2 || wait c >= 2; ld x").proved


def test_a_set_may_be_a_flag() -> None:
    # "A Set and a wait that can both be reached" would be a finding here, and a wrong one.
    assert judged("c := 1 || wait c >= 1").proved
    assert judged("st x; c := 1 || wait c >= 1; ld x").proved


def test_a_set_that_comes_after_the_wait_may_reset() -> None:
    assert judged("st x; c := 1; wait d >= 1; c := 0 || wait c >= 1; ld x; d += 1").proved


def test_resetting_by_set_erases_the_next_credit() -> None:
    said = judged("wait c >= 1; c := 0; wait c >= 1 || c += 1; c += 1", ends=2, hangs=True)
    assert flags(said) == {"signal-race"}


def test_resetting_by_subtraction_does_not() -> None:
    assert judged("wait c >= 1; c -= 1; wait c >= 1; ld x || c += 1; st x; c += 1").proved


# S2: subtractions by others.


def test_a_subtraction_reached_while_the_wait_is_pending_is_flagged() -> None:
    # Whenever the wait *executes* the subtraction has not: that is not enough, the wait can miss its moment.
    assert flags(judged("c += 2; c -= 2 || wait c >= 1; st x", ends=2, hangs=True)) == {"signal-race"}


def test_a_subtraction_after_the_wait_is_fine() -> None:
    assert judged("c += 2; wait d >= 1; c -= 2 || wait c >= 1; st x; d += 1").proved


def test_a_subtraction_before_the_wait_is_reached_is_fine() -> None:
    assert judged("c -= 1; d += 1; st x; c += 2 || wait d >= 1; wait c >= 1; ld x").proved


def test_a_subtraction_unordered_with_a_wait_is_flagged() -> None:
    assert flags(judged("c += 1 || c -= 1 || wait c >= 1; ld x", ends=2, hangs=True)) == {"signal-race"}


# S3: waits that can be missed.


def test_equal_is_overshot_by_a_credit_of_another_kind() -> None:
    said = judged("wait c == 2; st x || c += 2; c += 1", ends=2, hangs=True)
    assert flags(said) == {"unstable-wait"}


def test_equal_that_is_never_overshot_is_stable() -> None:
    assert judged("wait c == 2; ld x || st x; c += 1; c += 1").proved


def test_equal_that_is_stepped_over_hangs_always() -> None:
    # 1, then 3. The flag is one of the harmless ones: only the greatest value is looked at, not those on the way.
    said = judged("wait c == 2; ld x || c += 1; st x; c += 2", hangs=True)
    assert said.kinds == {"unstable-wait", "deadlock"}


def test_a_later_set_of_the_producer_can_undo_the_credit() -> None:
    # In the run that hangs nothing passes; it must not be taken for a hang of all schedules.
    assert flags(judged("wait c >= 1 || c += 1; c := 0", ends=2, hangs=True)) == {"unstable-wait"}


@pytest.mark.parametrize("how", ["==", ">="])
def test_a_set_can_undo_the_start_value(how: str) -> None:
    assert flags(judged(f"wait c {how} 1 || c := 0", ends=2, hangs=True, starts=(1,))) == {"unstable-wait"}


def test_a_set_can_undo_a_set() -> None:
    assert flags(judged("wait c == 1 || c := 1; c := 0", ends=2, hangs=True)) == {"unstable-wait"}


def test_a_later_set_that_satisfies_the_wait_too_is_fine() -> None:
    assert judged("wait c >= 1; ld x || st x; c := 1; c := 2").proved


def test_a_wait_may_pass_in_a_later_epoch() -> None:
    # Seen to pass at 1, the wait can as well pass at 2, and then more has happened before it.
    said = judged("wait c >= 1; st x || c := 1; ld x; c := 2", ends=2)
    assert not flags(said)
    assert "race" in said.kinds


@pytest.mark.parametrize(("how", "expected", "kind"), [
    ("<", 1, "signal-race"), ("<=", 0, "signal-race"), ("!=", 1, "unstable-wait"),
])  # fmt: skip
def test_a_condition_that_holds_at_first_can_be_lost(how: str, expected: int, kind: str) -> None:
    assert flags(judged(f"wait c {how} {expected} || c += 1", ends=2, hangs=True)) == {kind}


def test_two_rounds_on_one_cell_with_equal() -> None:
    # F04: the second round's value comes over the first's while a slow rank has not yet looked.
    said = judged(
        "d := 1; wait c == 1; d := 2; wait c == 2 || c := 1; wait d == 1; c := 2; wait d == 2", ends=3, hangs=True
    )
    assert flags(said) == {"unstable-wait"}
    fixed = "d := 1; wait c >= 1; d := 2; wait c >= 2 || c := 1; wait d >= 1; c := 2; wait d >= 2"
    assert judged(fixed).proved


# S4: tests.


def test_a_test_whose_answer_depends_puts_the_run_outside() -> None:
    assert not judged("test c >= 1 || c += 1", ends=2).applies


def test_a_test_whose_answer_is_known_does_not() -> None:
    assert judged("wait c >= 1; test c >= 1 || c += 1").proved
    assert judged("test c >= 2 || c += 1").proved


# S5: the range of a cell.


def test_an_overflow_matters_to_other_waits() -> None:
    # C15, on eight bits: 127 wraps to -128, and the wait that held holds no more.
    said = judged("wait c >= 126 || c += 1 || c += 2", ends=2, hangs=True, starts=(125,), bits=8, wrap=True)
    assert "overflow" in said.kinds


def test_an_overflow_is_seen_in_a_run_that_avoids_it() -> None:
    said = judged("take c >= 127; ld x || c += 1 || c += 1", ends=3, starts=(126,), bits=8)
    assert "overflow" in said.kinds


def test_a_cell_overflows_after_its_owner_last_took_from_it() -> None:
    # What the others add comes only after the owner's last subtraction, and on its word.
    text = "c -= 1; d += 1; wait c >= 126 || wait d >= 1; c += 2; c += 2"
    said = judged(text, ends=2, hangs=True, starts=(125, 0), bits=8, wrap=True)
    assert flags(said) == {"overflow"}


def test_a_cell_that_goes_to_its_limit_and_no_further() -> None:
    assert judged("take c >= 127; c += 100 || c += 1", starts=(126,), bits=8).proved


def test_a_consuming_wait_may_add() -> None:
    # It subtracts what it compares with, which may be negative: an own credit for the next wait.
    said = judged("take c >= -1; take c >= 1; ld x || st x", ends=2)
    assert "race" in said.kinds
    later = "take c >= -1; take c >= 1; ld x; d += 1; e += 1 || st x; wait d >= 1; c += 1 || wait e >= 1; c += 1"
    shared = judged(later, ends=2)
    assert shared.races == {frozenset(((0, 2), (1, 0)))}
    assert not shared.fast


# Deadlocks.


def test_what_hangs_in_one_run_hangs_in_all_if_nothing_is_flagged() -> None:
    said = judged("wait c >= 2; ld x || c += 1; wait d >= 1; st x", hangs=True)
    assert said.proved
    assert "deadlock" in said.kinds


# Sums.


def test_atomic_adds_of_floats_depend_on_their_order() -> None:
    text = "ad x || ad x || ad x"
    assert judged(text).proved
    assert judged(text, floats=True, ends=2).kinds == {"order-dependent-sum"}


def test_ordered_atomic_adds_of_floats_do_not() -> None:
    assert judged("ad x; d += 1 || wait d >= 1; ad x", floats=True).proved


# Alternatives: more may be sent than a wait needs, and which of it came does not matter to the wait.


def test_a_counting_cell_shared_by_two_neighbours() -> None:
    # Vector clocks that join what was observed see one of these races in a run, or none.
    said = judged("st x; c += 1 || st y; c += 1 || wait c >= 1; ld x; ld y", ends=3)
    assert said.races == {frozenset(((0, 0), (2, 1))), frozenset(((1, 0), (2, 2)))}
    assert not said.fast


def test_a_counting_cell_to_which_all_must_add() -> None:
    assert judged("st x; c += 1 || st y; c += 1 || wait c >= 2; ld x; ld y").proved


def test_one_cumulative_counter_for_several_producers() -> None:
    # F12, two rounds: one producer's second credit can stand in for the other's first.
    text = "{} || {} || wait c >= 2; ld x; ld y; wait c >= 4; ld x; ld y"
    said = judged(text.format("st x; c += 1; st x; c += 1", "st y; c += 1; st y; c += 1"), ends=6)
    assert "race" in said.kinds
    early = {frozenset(((0, 0), (2, 1))), frozenset(((1, 0), (2, 2)))}
    assert early <= said.races
    assert not said.fast


def test_a_cell_for_each_producer() -> None:
    # F12 as it was mended; what is left of it are the stores of the second round over the first.
    text = "{} || {} || wait c >= 1; wait d >= 1; ld x; ld y"
    assert judged(text.format("st x; c += 1", "st y; d += 1")).proved


def test_an_early_extra_credit_orders_nothing() -> None:
    said = judged("c += 1 || st x; c += 1 || wait c >= 1; ld x", ends=2)
    assert said.races == {frozenset(((1, 0), (2, 1)))}


def test_credits_of_two_are_not_two_credits() -> None:
    # The first of `c += 2` alone lets the wait pass; no notify of the other producer is needed.
    said = judged("st x; c += 2 || st y; c += 1 || wait c >= 2; ld x; ld y", ends=2)
    assert said.races == {frozenset(((1, 0), (2, 2)))}
    both = judged("st x; c += 2 || st y; c += 1 || wait c >= 3; ld x; ld y")
    assert both.proved


def test_any_number_of_calls_is_not_two() -> None:
    # Every call is the same, nothing overtakes in two calls; in the third the free-running rank is far enough ahead.
    wheel = "wait c >= {n}; ld x; e += 2 || e += 1 || wait e >= {m}; st x; c += 1"

    def calls(count: int) -> str:
        parts = [wheel.format(n=n, m=3 * (n + 1)).split(" || ") for n in range(count)]
        return " || ".join("; ".join(each) for each in zip(*parts, strict=True))

    cells = (0, 1, 2)
    assert judged(calls(1), cells=cells).proved
    assert judged(calls(2), cells=cells).proved
    assert "race" in judged(calls(3), cells=cells, ends=2).kinds
