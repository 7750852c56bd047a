"""Waits that are read downwards, those that need no direction, and consumers that a join orders; with brute force."""

from __future__ import annotations

import numpy as np
import pytest
import trio
from forging import accepts, written
from late_law import check as check_late
from late_toy import parse as parse_late
from programs import kernel_of
from test_theory_examples import flags, judged
from toy import parse

from asyncsim import Case, Fifo, Rank, Signal, SignalView, WindowView, check, kernel, simulate
from asyncsim import Window as Memory
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.certificate import certificate
from asyncsim.analysis.classes import COUNTED_DOWN, EITHER_WAY, ONLY_TAKEN
from asyncsim.certify import certify

# What is taken away is the credit of a wait for less.


@pytest.mark.parametrize(("how", "expected"), [("<=", -1), ("<", 0), ("==", -1), ("!=", 0)])
def test_a_subtraction_is_the_credit_of_a_wait_for_less(how: str, expected: int) -> None:
    said = judged(f"st x; c -= 1 || wait c {how} {expected}; ld x")
    assert said.proved
    assert said.fast


def test_two_producers_count_down() -> None:
    said = judged("st x; c -= 1 || st y; c -= 1 || wait c <= -2; ld x; ld y")
    assert said.proved
    either = judged("st x; c -= 1 || st y; c -= 1 || wait c <= -1; ld x; ld y", ends=3)
    assert either.races == {frozenset(((0, 0), (2, 1))), frozenset(((1, 0), (2, 2)))}


def test_an_addition_by_another_threatens_it() -> None:
    # The mirror image of C8: what came is taken back while the wait is pending.
    assert flags(judged("c -= 2; c += 2 || wait c <= -1; st y", ends=2, hangs=True)) == {"signal-race"}
    assert judged("c -= 2; wait d >= 1; c += 2 || wait c <= -1; d += 1").proved


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("c -= 1; c += 1 || wait c <= -1", "can make up for what rank 1's 'wait cell0[0]@1 <= -1'"),
        ("c += 1; c -= 1 || wait c >= 1", "can take away the credit that rank 1's 'wait cell0[0]@1 >= 1'"),
    ],
)
def test_the_words_of_a_threat_say_which_way_it_goes(text: str, words: str) -> None:
    program = parse(text)
    (finding,) = analyse(simulate(Case(kernel_of(program), 2, 1), Fifo(), record="any").trace).findings
    assert (finding.kind, words in finding.why) == ("signal-race", True), finding.why


def test_equal_is_met_from_above() -> None:
    # An own addition, and the peers take it back: a balanced barrier with ==.
    assert judged("c += 2; wait c == 0; ld x || st x; c -= 2").proved
    assert flags(judged("c += 2; wait c == 0 || c -= 2; c -= 1", ends=2, hangs=True)) == {"unstable-wait"}


def test_equal_is_turned_round_where_the_changes_come_from_above() -> None:
    # The other rank lifts the cell before the wait is reached, and lowers it again.
    said = judged("wait d >= 1; wait c == 0; ld x || c += 2; d += 1; st x; c -= 2")
    assert said.proved


def test_a_set_from_which_a_cell_is_counted_down() -> None:
    assert judged("c := 2; d += 1; wait c <= 0; ld x || wait d >= 1; st x; c -= 2", cells=(0, 1)).proved


def test_a_wait_may_pass_in_a_later_epoch_from_above() -> None:
    said = judged("wait c <= -1; st x || c := -1; ld x; c := -2", ends=2)
    assert not flags(said)
    assert "race" in said.kinds


def test_a_consuming_wait_that_adds_is_its_own() -> None:
    assert judged("take c <= -1; ld x; d += 1 || st x; c -= 1; wait d >= 1").proved


# A wait that is true of whatever it can see is no wait, and one that is false of it never passes.


def test_a_window_that_never_blocks() -> None:
    assert judged("wait c <= 3; st x || c += 1; c += 1; c -= 1", starts=(0,)).proved


def test_a_window_that_sometimes_blocks_is_flagged() -> None:
    assert flags(judged("wait c <= 1; st x || c += 1; c += 1; c -= 1", starts=(0,))) == {"signal-race"}


def test_a_wait_that_can_never_be_true_hangs_whatever_comes() -> None:
    said = judged("wait c <= -2 || c += 1; c -= 1", hangs=True)
    assert said.proved
    assert "deadlock" in said.kinds


# The range of a cell, both ends.


def test_a_cell_that_goes_down_to_its_limit_and_no_further() -> None:
    assert judged("wait c <= -128; c += 100 || c -= 1", starts=(-127,), bits=8).proved
    said = judged("wait c <= -127 || c -= 1 || c -= 2", ends=2, hangs=True, starts=(-126,), bits=8, wrap=True)
    assert "overflow" in said.kinds


# Reports, certificates, many ranks.

data = Memory("data", ("P",), np.int64, initialised=True)
down = Signal("down", ("P",))


@kernel(memory=[data, down])
async def exchange(rank: Rank, data: WindowView, down: SignalView, *, how: str = "<=") -> None:
    """Lift the own cell for each peer; each peer takes its part back when it has stored."""
    for peer in rank.peers:
        await rank.notify(down[peer], 1)
        await rank.store(data.at(peer)[rank.id], rank.call)
        await rank.notify(down.at(peer)[rank.id], -1)
    for peer in rank.peers:
        await rank.wait(down[peer] <= 0 if how == "<=" else down[peer] == 0)
        await rank.load(data[peer])


@pytest.mark.parametrize("how", ["<=", "=="])
def test_a_balanced_exchange_has_a_certificate(how: str) -> None:
    report = check(exchange.variant(how=how), ranks=3, calls=1)
    assert report.verdict == "PROVED"
    assert report.proof is not None
    lines = certificate(*report.proof)
    assert certify(lines).ranks == 3
    assert any('"way":"down"' in line for line in lines) == (how == "==")


def test_many_ranks_count_down_in_columns() -> None:
    report = check(exchange, ranks=33, calls=1)
    assert report.verdict == "PROVED"
    assert report.proof is not None
    assert report.proof[1].cells[0].name == COUNTED_DOWN


def test_a_certificate_says_which_waits_are_always_true() -> None:
    program = parse_late("wait c <= 3; st x || c += 1; c += 1; c -= 1")
    run = [{"run": [[1, 3], [0, 2]]}]
    way = [{"wait": [0, 0], "way": "always"}]
    assert not accepts([*written(program, "sc"), *run])
    assert accepts([*written(program, "sc"), *run, *way])
    tight = parse_late("wait c <= 1; st x || c += 1; c += 1; c -= 1")
    assert not accepts([*written(tight, "sc"), *run, *way])


@pytest.mark.parametrize("line", [
    {"wait": [0, 0], "way": "down"}, {"wait": [0, 0], "way": "never"}, {"wait": [0, 1], "way": "always"},
])  # fmt: skip
def test_a_way_that_a_wait_cannot_be_read_in_is_refused(line: dict[str, object]) -> None:
    program = parse_late("wait c >= 1; st x || c += 1")
    run = {"run": [[1, 1], [0, 2]]}
    assert accepts([*written(program, "sc"), run])
    assert not accepts([*written(program, "sc"), run, line])


def test_a_wait_that_is_read_twice_is_refused() -> None:
    program = parse_late("c += 1; wait c == 0 || c -= 1")
    run, way = {"run": [[0, 1], [1, 1], [0, 1]]}, {"wait": [0, 1], "way": "down"}
    assert accepts([*written(program, "sc"), run, way])
    assert not accepts([*written(program, "sc"), run])
    assert not accepts([*written(program, "sc"), run, way, way])


# Streams: what was joined before the next is started has surely happened when the next is reached.

JOINED = "c += 1; start 1; join 1; c += 1; start 2; join 2 | take c >= 1; ld x | take c >= 1; ld x"
BESIDE = "c += 1; start 1; c += 1; start 2; join 1; join 2 | take c >= 1; ld x | take c >= 2; ld x"


def flagged(text: str, memory: str = "sc", *, starts: tuple[int, ...] | None = None) -> bool:
    checked = trio.run(check_late, parse_late(text, starts=starts), memory)
    assert not checked.mistakes
    return checked.said.flagged


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_a_join_orders_the_consumers_of_successive_streams(memory: str) -> None:
    assert not flagged(JOINED, memory)


def test_consumers_of_streams_that_overlap_are_semaphores() -> None:
    assert flagged(BESIDE)


def test_two_consumers_of_enough_never_wait() -> None:
    assert not flagged("start 1; take c >= 1; st x; join 1 | take c >= 1; st y", starts=(2,))
    # If one were no wait, neither would be the other; but there is one credit too few.
    assert flagged("start 1; take c >= 1; st x; join 1 | take c >= 1; st y || c += 1", starts=(1,))


ready = Signal("ready", (1,), self_cleaning=True)


async def consumer(rank: Rank, ready: SignalView) -> None:
    await rank.wait(ready[0] >= 1, consume=True)


@kernel(memory=[ready])
async def hand_over(rank: Rank, ready: SignalView, *, streamed: bool = True) -> None:
    """Give the right neighbour a credit and take one's own; in a stream that ends before the call does."""
    await rank.notify(ready.at((rank.id + 1) % rank.size)[0], 1)
    if streamed:
        await rank.join(await rank.start(consumer, ready))
    else:
        await consumer(rank, ready)


@pytest.mark.parametrize("calls", [2, 3])
def test_a_stream_a_call_is_proved_for_any_number_of_calls(calls: int) -> None:
    plain, streamed = (check(hand_over.variant(streamed=how), ranks=2, calls=calls) for how in (False, True))
    assert plain.verdict == streamed.verdict == "PROVED"
    assert plain.later_calls.startswith("and for any number of calls")
    assert streamed.later_calls == plain.later_calls


@kernel(memory=[data, down])
async def both_ways(rank: Rank, data: WindowView, down: SignalView) -> None:
    """Wait for more, then for less, of one cell."""
    if rank.id == 0:
        await rank.notify(down.at(1)[0], 2)
        await rank.wait(down[0] <= -1)
    elif rank.id == 1:
        await rank.wait(down[0] >= 2)
        await rank.notify(down[0], -1)
        await rank.wait(down[0] <= 1)
        await rank.notify(down.at(0)[0], -1)


def test_cells_are_classed_by_the_waits_on_them() -> None:
    report = check(both_ways, ranks=2, calls=1)
    assert report.proof is not None
    names = {cell.name for cell in report.proof[1].cells}
    assert names == {ONLY_TAKEN, EITHER_WAY}
