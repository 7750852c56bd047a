"""The shortest programs in which late memory or streams break a belief, and what the analysis must say of each.

The beliefs that need neither are in `test_theory_examples`.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
from late_brute import explore
from late_law import FLAGS, Judged, check
from late_runs import HALF_MODELS, MEMORIES, Dice, run_once
from late_toy import parse

from asyncsim.analysis.analyse import analyse
from asyncsim.trace.late import MODELS

LATE = ("ldst", "nic")


@pytest.fixture(autouse=True)
def _half_models(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, model in HALF_MODELS.items():
        monkeypatch.setitem(MODELS, name, model)


def judged(text: str, memory: str, *, ends: int | None = None, hangs: bool = False, **options: Any) -> Judged:
    """Check a program against brute force, and return what the analysis says of it.

    Args:
        text: the program, for `parse`.
        memory: the memory model.
        ends: how many final states it must have, if that matters.
        hangs: whether one of them is a deadlock.
        options: of `parse`.

    """
    program = parse(text, **options)
    truth = explore(program, MEMORIES[memory])
    if ends is not None:
        assert len(truth.finals) == ends
    assert (truth.deadlocks > 0) is hangs
    checked = trio.run(check, program, memory)
    assert not checked.mistakes
    return checked.said


def proved(text: str, *memories: str, **options: Any) -> None:
    """Assert that brute force finds one end and the analysis proves it."""
    for memory in memories:
        assert judged(text, memory, ends=1, **options).proved, memory


def racy(text: str, *memories: str, **options: Any) -> None:
    """Assert that there is a race, more than one end, and no flag."""
    for memory in memories:
        said = judged(text, memory, **options)
        assert said.races, memory
        assert said.exact, memory
        assert len(explore(parse(text, **options), MEMORIES[memory]).finals) > 1, memory


def flags(said: Judged) -> set[str]:
    """Return the flags that were raised."""
    return set(said.kinds & FLAGS)


# C3: one remote producer does not mean that its n-th notify comes n-th.

TO_PEER: dict[str, Any] = {"elements": (1, 1)}


def test_the_second_signal_may_land_first() -> None:
    text = "st x, c += 1; st y, c += 1 || wait c >= 1; ld x"
    proved(text, "sc", **TO_PEER)
    racy(text, *LATE, **TO_PEER)


def test_a_relaxed_notify_may_overtake_a_release() -> None:
    racy("st x; c += 1; relaxed c += 1 || wait c >= 1; ld x", *LATE, **TO_PEER)


def test_a_fence_between_the_two_keeps_them_in_order() -> None:
    proved("st x, c += 1; fence; st y, c += 1 || wait c >= 1; ld x", *LATE, **TO_PEER)


def test_so_does_a_release() -> None:
    proved("st x; c += 1; st y; c += 1 || wait c >= 1; ld x", *LATE, **TO_PEER)


def test_so_do_sets_where_places_keep_order() -> None:
    text = "st x, c := 1; st y, c := 2 || wait c >= 1; ld x"
    proved(text, "ldst", **TO_PEER)
    assert flags(judged(text, "nic", **TO_PEER)) == {"signal-race"}


def test_two_puts_and_the_signal_of_the_second() -> None:
    racy("st x; st y, c += 1 || wait c >= 1; ld x", *LATE, **TO_PEER)
    proved("st x; st y, c += 1 || wait c >= 1; ld y", *LATE, **TO_PEER)


# C4: that writes to one place land in order is no fact but a switch.


def test_two_sets_may_land_in_either_order() -> None:
    text = "relaxed c := 1; relaxed c := 2 || wait c >= 2"
    proved(text, "sc", "ldst")
    assert flags(judged(text, "nic", ends=3, hangs=True)) == {"signal-race"}


def test_two_puts_to_one_place() -> None:
    text = "st x; st x; c += 1 || wait c >= 1; ld x"
    proved(text, "sc", "ldst", **TO_PEER)
    racy(text, "nic", **TO_PEER)
    proved("st x; fence; st x; c += 1 || wait c >= 1; ld x", "nic", **TO_PEER)


def test_a_put_and_then_an_own_load_of_it() -> None:
    proved("st x; ld x || ", "sc", "ldst", **TO_PEER)
    racy("st x; ld x || ", "nic", "ordered", **TO_PEER)
    proved("st x; quiet; ld x || ", "nic", **TO_PEER)


# C5: joining a stream does not complete its puts.


def test_joining_completes_no_put() -> None:
    text = "start 1; join 1; c += 1 | st x || wait c >= 1; ld x"
    proved(text, "sc", **TO_PEER)
    racy(text, *LATE, **TO_PEER)


def test_a_quiet_of_the_child_does() -> None:
    proved("start 1; join 1; c += 1 | st x; quiet || wait c >= 1; ld x", *LATE, **TO_PEER)


def test_a_quiet_of_the_parent_does_not() -> None:
    racy("start 1; join 1; quiet; c += 1 | st x || wait c >= 1; ld x", *LATE, **TO_PEER)


def test_meeting_completes_no_put_either() -> None:
    racy("start 1; sync; c += 1; join 1 | st x; sync || wait c >= 1; ld x", *LATE, **TO_PEER)
    proved("start 1; sync; c += 1; join 1 | st x; quiet; sync || wait c >= 1; ld x", *LATE, **TO_PEER)


# C6: what starting publishes depends on who sees a write at once.


def test_a_child_sees_the_local_store_of_its_parent() -> None:
    proved("st x; start 1; join 1 | ld x", "sc", *LATE)


def test_a_child_may_miss_what_its_parent_adds() -> None:
    # An atomic add lands late for everybody, its own rank included.
    proved("ad x; start 1; join 1 | ld x", "sc")
    racy("ad x; start 1; join 1 | ld x", *LATE)


def test_a_child_may_miss_what_its_parent_puts_to_a_peer() -> None:
    # Forwarding is the actor's own: the child is another one.
    racy("st x; start 1; join 1 | ld x || ", *LATE, **TO_PEER)
    proved("st x; quiet; start 1; join 1 | ld x || ", *LATE, **TO_PEER)


# C7: a fence orders what goes to one rank.


def test_a_fence_says_nothing_of_a_third_rank() -> None:
    text = "st x; {}relaxed c += 1 || wait c >= 1; ld x || "
    racy(text.format("fence; "), *LATE, elements=(2,))
    proved(text.format("quiet; "), *LATE, elements=(2,))
    proved("st x; c += 1 || wait c >= 1; ld x || ", *LATE, elements=(2,))
    proved("st x; fence; relaxed c += 1 || wait c >= 1; ld x", *LATE, **TO_PEER)


# C11: an own subtraction is sure only once it is seen.

GIVE_BACK = "wait c >= 1; c -= 1; {}wait c >= 1; ld x || c += 1; st x; c += 1"


def test_an_own_subtraction_under_way_does_not_count() -> None:
    proved(GIVE_BACK.format(""), "sc", "ldst")
    assert judged(GIVE_BACK.format(""), "nic", ends=2).kinds & {"race", "signal-race"}


def test_an_own_subtraction_that_is_complete_does() -> None:
    proved(GIVE_BACK.format("quiet; "), "nic")


def test_a_consuming_wait_subtracts_at_once() -> None:
    proved("take c >= 1; take c >= 1; ld x || c += 1; st x; c += 1", "sc", *LATE)


def test_forwarding_and_no_forwarding_are_incomparable() -> None:
    # Without forwarding the wait for the own credit completes the put; with it the wait passes at once.
    text = "st x; c += 1; wait c >= 1; relaxed d += 1 || wait d >= 1; ld x"
    proved(text, "nic", "ordered", **TO_PEER)
    racy(text, "ldst", "forwarded", **TO_PEER)


# C12: who owns a cell is the actor that waits, not the rank.


def test_two_streams_that_consume_one_cell_are_semaphores() -> None:
    text = "start 1; take c >= 1; ld x; join 1 | take c >= 1 || c += 1"
    for memory in ("sc", *LATE):
        assert flags(judged(text, memory, ends=2, hangs=True)) == {"signal-race"}


def test_a_subtraction_under_the_eyes_of_another_stream() -> None:
    text = "start 1; wait c >= 1; join 1 | wait c >= 1; c -= 1 || c += 1"
    for memory in ("sc", *LATE):
        assert flags(judged(text, memory, ends=2, hangs=True)) == {"signal-race"}


def test_two_streams_may_wait_for_one_cell() -> None:
    proved("start 1; wait c >= 1; ld x; join 1 | wait c >= 1; ld x || st x; c += 1", "sc", *LATE)


def test_a_subtraction_after_the_other_stream_was_joined() -> None:
    proved("start 1; wait c >= 1; join 1; c -= 1 | wait c >= 1 || c += 1", "sc", *LATE)


# C13: nothing is first in, first out.


def test_a_relaxed_notify_overtakes_the_put() -> None:
    text = "st x; relaxed c += 1 || wait c >= 1; ld x"
    proved(text, "sc", **TO_PEER)
    racy(text, *LATE, **TO_PEER)
    proved("st x; c += 1 || wait c >= 1; ld x", *LATE, **TO_PEER)
    proved("st x, c += 1 || wait c >= 1; ld x", *LATE, **TO_PEER)


# Non-blocking copies.

TO_SECOND: dict[str, Any] = {"elements": (0, 1)}


def test_a_source_must_not_be_reused_before_the_copy_is_made() -> None:
    text = "y <~ x; {}st x; c += 1 || wait c >= 1; ld y"
    proved(text.format(""), "sc", **TO_SECOND)
    racy(text.format(""), *LATE, **TO_SECOND)
    proved(text.format("quiet; "), *LATE, **TO_SECOND)
    proved("y <- x; st x; c += 1 || wait c >= 1; ld y", *LATE, **TO_SECOND)


def test_a_get_that_does_not_block_is_not_there_yet() -> None:
    # Forwarding is for written values: of a copy under way there is none.
    text = "st y; quiet; x <~ y; {}ld x || "
    proved(text.format(""), "sc", **TO_SECOND)
    racy(text.format(""), *LATE, **TO_SECOND)
    proved(text.format("quiet; "), *LATE, **TO_SECOND)
    assert judged("x <~ y; ld x || ", "ldst", **TO_SECOND).races == {frozenset(((0, 0, "land"), (0, 1, "step")))}
    proved("st y; quiet; x <- y; ld x || ", *LATE, **TO_SECOND)


# Local stores: their own rank meets them when they are issued, everybody else when they land.


def test_a_local_store_and_what_lands_late_in_its_own_rank() -> None:
    # What was issued after the store lands on top of it.
    proved("st x; ad x", "sc", *LATE)
    proved("st x; x <~ y; quiet; ld x || ", "sc", *LATE, **TO_SECOND)
    proved("st x; put x; quiet; ld x", "sc", *LATE)
    # What was issued before it lands under it, if places keep order; a non-blocking get is done only after a quiet.
    proved("ad x; st x", "sc", "ldst")
    racy("ad x; st x", "nic")
    racy("x <~ y; st x || ", *LATE, **TO_SECOND)
    racy("x <~ y; fence; st x || ", *LATE, **TO_SECOND)
    proved("x <~ y; quiet; st x || ", "sc", *LATE, **TO_SECOND)
    proved("ad x; fence; st x; ld x", "sc", "ldst")


def test_what_another_stream_lands_on_top_of_a_local_store() -> None:
    proved("st x; start 1; join 1; ld x | ad x; quiet", "sc", *LATE)
    proved("st x; start 1; join 1; ld x | x <~ y; quiet || ", "sc", *LATE, **TO_SECOND)
    racy("start 1; st x; join 1 | ad x", "sc", *LATE)
    racy("start 1; st x; join 1 | x <~ y; quiet || ", "sc", *LATE, **TO_SECOND)


def test_a_non_blocking_get_is_completed_by_a_quiet_alone() -> None:
    racy("st x; x <~ y; fence; ld x || ", *LATE, **TO_SECOND)
    proved("x <~ y; quiet; ld x || ", "sc", *LATE, **TO_SECOND)
    racy("x <~ y; fence; relaxed c += 1 || wait c >= 1; st y", *LATE, **TO_SECOND)
    racy("x <~ y; c += 1 || wait c >= 1; st y", "nic", **TO_SECOND)
    # A release of loads and stores comes after the loads that the get is made of.
    proved("x <~ y; c += 1 || wait c >= 1; st y", "sc", "ldst", **TO_SECOND)
    # Nor does what reads the destination wait for it; and an older put to the source is fetched where it is seen.
    racy("st x; x <~ y; z <~ x || ", *LATE, elements=(0, 1, 1))
    racy("st z; quiet; x <~ y; x <~ z || ", *LATE, elements=(0, 1, 1))
    proved("st y; x <~ y; quiet; ld x || ", "sc", "ldst", **TO_SECOND)
    racy("st y; x <~ y; quiet; ld x || ", "nic", **TO_SECOND)


def test_a_put_to_oneself_through_an_adapter_lands_late() -> None:
    proved("put x; ld x", "sc", "ldst")
    racy("put x; ld x", "nic")
    proved("put x; quiet; ld x", "sc", *LATE)
    proved("put x <- y; quiet; ld x", "sc", *LATE, elements=(0, 0))
    racy("put x; put x", "nic")
    proved("put x; fence; put x", "sc", *LATE)
    racy("put x; st x", "nic")


def test_a_signal_to_oneself_comes_after_its_data() -> None:
    home = {"elements": (0, 0)}
    proved("put x <~ y, c += 1; wait c >= 1; ld x", "sc", *LATE, **home)
    proved("put x <~ y; c += 1; wait c >= 1; ld x; st y", "sc", *LATE, **home)
    proved("put x <~ y; fence; relaxed c += 1; wait c >= 1; ld x", "sc", *LATE, **home)
    racy("st y; put x <~ y; relaxed c += 1; wait c >= 1; ld x", *LATE, **home)
    # Also where the copy goes to a peer: its source has been read.
    proved("x <~ y; c += 1; wait c >= 1; st y || ", "sc", *LATE, elements=(1, 0))
    proved("put x <~ y, c := 1; wait c == 1; ld x", "sc", *LATE, **home)
    proved("put x <~ y, c := 1; relaxed c += 1; wait c == 2; ld x", "sc", "ldst", **home)
    # A quiet has completed the copy, and what comes later is seen at once again.
    racy(
        "put x <~ y; quiet; put z; c += 1; wait c >= 1; relaxed d += 1 || wait d >= 1; ld z",
        "ldst",
        elements=(0, 0, 1),
        cells=(0, 1),
    )


def test_a_quiet_of_the_rank_awaits_what_all_its_streams_put() -> None:
    program = "start 1; join 1; {}; relaxed c += 1 | st x || wait c >= 1; ld x"
    proved(program.format("quiet rank"), "sc", *LATE, elements=(1,))
    racy(program.format("quiet"), *LATE, elements=(1,))
    # What another stream may issue later it does not await.
    racy("start 1; quiet rank; join 1; relaxed c += 1 | st x || wait c >= 1; ld x", *LATE, elements=(1,))
    proved(
        "start 1; sync; quiet rank; relaxed c += 1; join 1 | st x; sync || wait c >= 1; ld x",
        "sc",
        *LATE,
        elements=(1,),
    )
    proved("x <~ y; start 1; join 1; ld x | quiet rank || ", "sc", *LATE, **TO_SECOND)


def test_a_quiet_awaits_all_that_comes_before_the_copies_that_it_leaves() -> None:
    program = "st z; put x <~ z; st w; put y; quiet 1; relaxed c += 1 || wait c >= 1; ld {}"
    proved(program.format("x"), "sc", *LATE, elements=(1, 1, 0, 1))
    proved(program.format("w"), "sc", *LATE, elements=(1, 1, 0, 1))
    racy(program.format("y"), *LATE, elements=(1, 1, 0, 1))
    racy(program.format("x").replace("quiet 1", "quiet 2"), *LATE, elements=(1, 1, 0, 1))
    # What comes after the first of the copies that are left is not awaited, and nothing is fenced.
    racy("put y; st x; quiet 1; relaxed c += 1 || wait c >= 1; ld x", *LATE, elements=(1, 1))
    proved("st x; put y; quiet 7; relaxed c += 1 || wait c >= 1; ld x", "sc", *LATE, elements=(1, 1))


def test_blocking_gets_and_stores_are_not_left_pending() -> None:
    racy("put x; y <- w; quiet 1; relaxed c += 1 || wait c >= 1; ld x", *LATE, elements=(1, 0, 0, 1))
    proved("put x; y <~ w; quiet 1; relaxed c += 1 || wait c >= 1; ld x", "sc", *LATE, elements=(1, 0, 0, 1))


def test_a_source_is_free_when_the_copy_out_of_it_is_awaited() -> None:
    program = "put x <~ z; put y <~ w; quiet {0}; st z || "
    proved(program.format(1), "sc", *LATE, elements=(1, 1, 0, 0))
    racy(program.format(2), *LATE, elements=(1, 1, 0, 0))


def test_a_signal_to_oneself_is_sure_where_a_quiet_awaits_it() -> None:
    program = "relaxed c += 1; put x; quiet 1; take c >= 1; relaxed c += 1; wait c >= 1 || "
    proved(program, "sc", *LATE, elements=(1,), cells=(0,))
    said = judged("put x; relaxed c := 1; quiet 1; test c >= 1", "nic", elements=(0,), cells=(0,), ends=2)
    assert not said.applies


def test_a_notify_after_stores_completes_no_put() -> None:
    program = "put x; st y; stores c += 1 || wait c >= 1; ld {}"
    proved(program.format("y"), "sc", *LATE, elements=(1, 0))
    racy(program.format("x"), *LATE, elements=(1, 0))
    proved("st x; stores c += 1 || wait c >= 1; ld x", "sc", *LATE, elements=(1,))
    proved("x <- y; stores c += 1 || wait c >= 1; ld x", "sc", *LATE, elements=(0, 1))


def test_local_stores_of_two_streams_are_shown_in_the_order_of_issue() -> None:
    # The child's quiet awaits the child's landing alone; that the parent's is done follows from the order of both.
    proved("st x; start 1; join 1 | st x; quiet; relaxed c += 1 || wait c >= 1; ld x", *LATE)
    racy("st x; start 1; join 1 | st y; quiet; relaxed c += 1 || wait c >= 1; ld x", *LATE, elements=(0, 0))
    proved("put x <~ y; st x; start 1; join 1 | st x", "ldst", elements=(0, 0))


def test_local_stores_ordered_by_a_signal_within_the_rank() -> None:
    proved(
        "start 1; st x; relaxed c += 1; join 1 | wait c >= 1; st x; quiet; relaxed d += 1 || wait d >= 1; ld x",
        *LATE, cells=(0, 1),
    )  # fmt: skip


# Deadlocks of streams.


def test_a_stream_blocked_at_its_first_operation() -> None:
    proved("start 1; join 1 | wait c >= 1", "sc", *LATE, hangs=True)


def test_a_meeting_to_which_somebody_does_not_come() -> None:
    proved("start 1; wait c >= 1; sync; join 1 | sync; ld x || ld x", "sc", *LATE, hangs=True)


# A wait that passes by what its own actor has pending: a Set may land before that, and another Set after it.


@pytest.mark.parametrize("first", ["wait", "take"])
def test_what_a_wait_saw_pending_may_be_overtaken_by_a_set(first: str) -> None:
    text = f"relaxed c += 1; {first} c >= 1; relaxed d += 1 || wait d >= 1; relaxed c := 3"
    proved(text, "sc", "nic", cells=(0, 1))
    said = {trio.run(findings_of, text, "ldst", (0, 1), seed) for seed in range(40)}
    assert said == {("signal-race",)}


def test_so_may_it_by_a_set_of_its_own_where_places_keep_no_order() -> None:
    text = "st x, c += 1; take c >= 1; relaxed c := 1"
    proved(text, "sc", "ldst", "nic", elements=(0, 0), cells=(0,))
    said = {trio.run(findings_of, text, "forwarded", (0,), seed) for seed in range(40)}
    assert said == {("signal-race",)}


async def findings_of(text: str, memory: str, cells: tuple[int, ...], seed: int) -> tuple[str, ...]:
    """Return the kinds of findings of one run of a program."""
    run = await run_once(parse(text, elements=(0, 0), cells=cells), memory, Dice(seed))
    return tuple(finding.kind for finding in analyse(run.trace).findings)
