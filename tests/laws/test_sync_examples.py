"""The shortest programs with waits anywhere, steps of a wait and an update, kinds of updates and results.

Each is one that an analysis without the rule gets wrong, or one that a simpler rule would flag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sync_brute import explore
from sync_law import check, proved_by_cases
from sync_runs import played
from sync_toy import parse

from asyncsim.analysis.analyse import FLAGS, analyse

if TYPE_CHECKING:
    from sync_law import Said

SEEDS = (0, 1, 2, 3)


def judged(text: str, *, ends: int = 1, hangs: bool = False, **options: Any) -> Said:
    """Check a program against brute force under several schedules, and return what the analysis says of it."""
    program = parse(text, **options)
    truth = explore(program)
    assert len(truth.finals) == ends
    assert truth.hangs is hangs
    _, said, mistakes = check(program, SEEDS)
    assert not mistakes
    return said


def flags(text: str) -> set[str]:
    """Return the flags that the analysis raises."""
    trace, _ = played(parse(text), 0)
    return {finding.kind for finding in analyse(trace).findings} & set(FLAGS)


# A wait and a Set in one step.


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_signal_pad_is_proved(rounds: int) -> None:
    sends = "wait c == 0; st x; c := 1; " * rounds
    gets = "wait c == 1; ld x; c := 0; " * rounds
    assert judged(f"{sends} || {gets}").proved


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_signal_pad_by_compare_exchange_on_both_sides_is_proved(rounds: int) -> None:
    sends = "wait c == 0 c := 1; " * rounds
    gets = "wait c == 1 c := 0; " * rounds
    assert judged(f"st x; {sends} || {gets}; ld x").proved


def test_sums_may_step_a_pad_too() -> None:
    up, down = "wait c == 0 c += 1; " * 2, "wait c == 1 c += -1; " * 2
    assert judged(f"st x; {up} || {down}; ld x").proved


def test_sequence_numbers_are_proved() -> None:
    sends = "; ".join(f"wait c == {2 * n} c := {2 * n + 1}" for n in range(3))
    gets = "; ".join(f"wait c == {2 * n + 1} c := {2 * n + 2}" for n in range(3))
    assert judged(f"{sends} || {gets}").proved


def test_a_window_of_two_is_proved() -> None:
    assert judged("; ".join(["wait c <= 1; c += 1"] * 3) + " || " + "; ".join(["wait c >= 1 c += -1"] * 3)).proved


def test_two_putters_of_one_pad_are_semaphores() -> None:
    # It has one end state, and is flagged: in general only exploration tells.
    said = judged("wait c == 0 c := 1 || wait c == 0 c := 1 || wait c == 1 c := 0; wait c == 1 c := 0")
    assert said.flagged


def test_two_putters_that_something_orders_are_not() -> None:
    text = "wait c == 0 c := 1; d := 1 || wait d == 1; wait c == 0 c := 1 || wait c == 1 c := 0; wait c == 1 c := 0"
    assert judged(text).proved


def test_a_lock_that_two_take_is_flagged() -> None:
    text = "wait c == 0 c := 1; st x; c := 0 || wait c == 0 c := 1; st x; c := 0"
    assert judged(text, ends=2).flagged


# Waits on whatever cell, by whomever.


def test_any_rank_may_wait_on_any_cell() -> None:
    assert judged("st x; c += 1 || wait c >= 1; ld x || wait c >= 1; ld x", cells=(0,)).proved


def test_eq_is_read_in_the_direction_in_which_the_cell_comes() -> None:
    assert judged("c += 2; d += 1; wait c == 0; ld x || wait d >= 1; st x; c += -1; c += -1").proved


def test_a_wait_for_what_is_gone_hangs_in_every_schedule() -> None:
    # C27: under sequential consistency the old 0 is not seen any more.
    assert judged("c += 1; d += 1 || wait d >= 1; wait c == 0", hangs=True).proved


# Kinds of updates.


@pytest.mark.parametrize(("one", "other"), [
    ("c |= 2", "c min 0"), ("c += 1", "c |= 1"), ("c max 2", "c += 1"), ("c &= 2", "c ^= 3"), ("c := 1", "c max 2"),
])  # fmt: skip
def test_updates_of_two_kinds_do_not_commute(one: str, other: str) -> None:
    # C28.
    assert judged(f"{one} || {other}", ends=2).flagged
    assert judged(f"{one}; d += 1 || wait d >= 1; {other}").proved


@pytest.mark.parametrize("update", ["c |= 2", "c &= 2", "c ^= 2", "c max 2", "c min 2", "c += 2"])
def test_updates_of_one_kind_do(update: str) -> None:
    assert judged(f"{update} || {update.replace('2', '4')}", starts=(3,)).proved


def test_a_bit_pattern_can_be_overshot() -> None:
    # C29.
    said = judged("c |= 1 || c |= 2 || wait c == 1", ends=2, hangs=True)
    assert said.flagged
    assert flags("c |= 1 || c |= 2 || wait c == 1") == {"unstable-wait"}


def test_a_bit_pattern_that_is_the_last_is_awaited() -> None:
    assert judged("st x; c |= 1 || st y; c |= 2 || wait c == 3; ld x; ld y").proved


def test_a_greater_pattern_need_not_have_the_bits() -> None:
    # 4 is more than 3, and has none of its bits.
    assert judged("c |= 4 || wait c == 3", hangs=True).proved


def test_the_largest_round_number_counts() -> None:
    assert judged("st x; c max 1; c max 2 || st y; c max 2 || wait c >= 1; d += 1", ends=1).proved
    assert judged("st x; c max 1 || wait c >= 1; ld x").proved


def test_bits_that_are_turned_over_are_as_good_as_set() -> None:
    assert judged("st x; c ^= 1 || wait c == 1; ld x").proved
    assert judged("wait d == 0; c ^= 1; wait d == 1; c ^= 1 || wait c == 1; d ^= 1; wait c == 0").proved
    assert judged("c ^= 1; c ^= 1 || wait c == 1", ends=2, hangs=True).flagged
    # Nobody waits: two that turn bits over commute. Somebody does: they are flagged, though this one waits in vain.
    assert judged("c ^= 1 || c ^= 1").proved
    assert judged("c ^= 1 || c ^= 1 || wait c == 4", hangs=True).flagged


def test_the_sign_bit_goes_against_the_direction() -> None:
    # -1 has all bits: set in 0 they take it down.
    said = judged("c |= -1 || wait c >= 0; st x", ends=2, hangs=True)
    assert said.flagged


# Results.


def test_a_value_that_depends_on_the_schedule_is_open() -> None:
    assert not judged("get c += 1 || get c += 1", ends=2).told
    assert not judged("c += 1 || read c", ends=2).told


def test_a_value_that_does_not_is_not() -> None:
    assert judged("get c += 1; d += 1 || wait d >= 1; get c += 1").proved
    assert judged("c max 3; d += 1 || c max 2; d += 1 || wait d >= 2; read c").proved


def test_idempotent_updates_need_not_be_ordered_with_a_read() -> None:
    assert judged("c max 2 || read c", starts=(5,)).proved


def test_what_a_wait_gives_is_open_if_more_may_have_come() -> None:
    assert not judged("get wait c >= 1 || c += 1; c += 1", ends=2).told
    assert judged("get wait c == 2 || c += 1; c += 1").proved
    assert judged("wait c >= 1 || c += 1; c += 1").proved


def test_a_compare_exchange_that_succeeds_is_a_set_and_one_that_fails_a_read() -> None:
    assert judged("cas c 0 1; d += 1 || wait d >= 1; cas c 0 2; cas c 1 3").proved
    assert not judged("cas c 0 1 || cas c 0 2", ends=2).exact


def test_an_arrival_tells_no_more_than_who_is_last() -> None:
    assert judged("arrive c 2; d += 1 || wait d >= 1; arrive c 2").proved
    # With the value 0 or 1 it is not the last of three in either order.
    assert judged("arrive c 3 || arrive c 3").proved
    assert not judged("get c += 1 || get c += 1", ends=2).told
    assert not judged("arrive c 2 || arrive c 2", ends=2).told


# Who arrives last: a run for each.


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_last_block_reduces(ranks: int) -> None:
    text = " || ".join([f"st {'xyz'[rank]}; last c {ranks}; ? ld x; ? ld y; ? st w" for rank in range(ranks)])
    assert proved_by_cases(parse(text))


def test_a_barrier_without_the_flag_of_the_last_is_proved_by_cases() -> None:
    # What the last one does comes before its own arrival at the barrier: in one run that took it for an actor of its
    # own, with edges from all arrivals, it would race with what follows the barrier.
    text = "last c 2; ? st x; d += 1; wait d >= 2; ld x"
    assert proved_by_cases(parse(f"{text} || {text}"))


def test_a_result_that_tells_who_was_last_is_not_proved() -> None:
    assert not proved_by_cases(parse("arrive c 2 || arrive c 2"))


def test_who_is_told_to_be_the_last_has_to_be_the_last() -> None:
    # If rank 0 is last in the first round, it leaves 1: in the second who comes first is told so.
    mine = "last c 2; ? c := {}; ? d += 1; wait d >= 1; last c 2; ? ld x; ? c := 0; ? d += 1; wait d >= 2"
    assert proved_by_cases(parse(f"{mine.format(0)} || {mine.format(0)}"))
    assert not proved_by_cases(parse(f"{mine.format(1)} || {mine.format(0)}"))


def test_what_the_last_one_does_can_race_with_the_rest_of_another() -> None:
    assert not proved_by_cases(parse("last c 2; ? ld x; st x || last c 2; ? ld x"))


# What is said of a hang.


@pytest.mark.parametrize(("text", "words"), [
    ("wait c == 0 c := 1; d += 1 || wait d >= 1; wait c == 0 c := 1", "and := 1' at toy.py:1 took it from 0 to 1"),
    ("cas c 0 1; cas c 1 0; d += 1 || wait d >= 1; wait c == 1", "erased: rank 0's 'compare_exchange"),
    ("c max 5; d += 1 || wait d >= 1; wait c == 4", "overshot: rank 0's 'notify cell0[0]@0 max= 5'"),
    ("get c += 1; d += 1 || wait d >= 1; wait c == 2", "left it at 1"),
])  # fmt: skip
def test_a_hang_names_the_operation_that_took_the_value_away(text: str, words: str) -> None:
    trace, _ = played(parse(text), 1)
    (why,) = [finding.why for finding in analyse(trace).findings if finding.kind == "deadlock"]
    assert words in why, why
