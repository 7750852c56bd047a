"""Polls that one store forces are waits in disguise: for each part of the condition the shortest program against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trio
from click.testing import CliRunner
from late_law import check as check_late
from late_runs import Dice
from late_runs import run_once as run_late
from late_toy import parse as parse_late
from law import check as check_law
from programs import program_number
from test_theory_examples import judged

from asyncsim import Case, Fifo, Rank, Signal, SignalView, Window, WindowView, check, kernel, simulate
from asyncsim.analysis import polls
from asyncsim.analysis.analyse import analyse
from asyncsim.checking.record.versions import Versions
from asyncsim.cli.main import main

# On toy programs, against brute force: `poll x >= 3` asks whether the third operation stored, or a later one.


def test_a_flag_in_data_is_a_wait() -> None:
    said = judged("st x; st y || poll y >= 2; ld x")
    assert said.proved
    assert not said.fast


def test_a_poll_orders_nothing_but_what_comes_before_its_store() -> None:
    said = judged("st y; st x || poll y >= 1; ld x", ends=2)
    assert said.races == {frozenset(((0, 1), (1, 1)))}


def test_a_poll_that_is_true_from_the_start_orders_nothing() -> None:
    assert judged("poll x == 0; ld y || st y", ends=2).races


def test_the_store_that_forces_need_not_be_the_last_before_it() -> None:
    assert judged("st x; st y; st x; c += 1 || wait c >= 1; poll x >= 3; ld y").proved
    assert judged("st x; st x; st y || poll y >= 3; poll x >= 2").proved


def test_p1_two_writers_without_order() -> None:
    # Both let it pass, and it returns what either stored: a race, and then nothing is said of polls.
    assert judged("st x || st x || poll x >= 1", ends=4).polled
    assert judged("st x; c += 1 || wait c >= 1; st x; d += 1 || wait d >= 1; poll x >= 1", cells=(1, 2)).proved


def test_p2_refused_again() -> None:
    # C8 of polls: what it waits for comes and goes while it is pending.
    assert judged("st x; st x || poll x == 1", ends=2, hangs=True).polled
    assert judged("st x; st x || poll x != 1", ends=2).polled
    assert judged("st x; wait c >= 1; st x || poll x == 1; c += 1", cells=(0,)).proved


def test_p2_accepted_with_other_bytes() -> None:
    assert judged("st x; st x || poll x >= 1", ends=2).polled
    assert judged("st x; st x || poll x >= 2").proved


def test_what_forces_one_poll_may_rest_on_another() -> None:
    assert judged("st x; poll y >= 4; ld z || poll x >= 1; st z; st y").proved
    assert judged("poll x >= 3; ld y || st y; st x", hangs=False).proved
    # With the first one given up, the second is none either: rank 1's second store can overtake it.
    assert judged("st x; st x || poll x == 1; poll x == 2", ends=2, hangs=True).polled


def test_a_poll_that_nothing_satisfies_hangs_in_every_run() -> None:
    said = judged("st x || poll x >= 3; ld x; ld x", hangs=True)
    assert said.proved
    assert "deadlock" in said.kinds


def test_where_there_is_a_race_nothing_is_said_of_polls() -> None:
    said = judged("st x; st y; st z || poll y >= 2; st z; ld x", ends=2)
    assert said.races
    assert said.polled


def nothing(*_: Any) -> list[Any]:
    """Stand in for a rule that looks at nothing."""
    return []


def no(*_: Any) -> bool:
    """Stand in for a rule that finds nothing."""
    return False


def executes(order: Any, x: Any, y: Any, structure: Any = None) -> bool:
    """Stand in for "has come when the poll is reached" with "has come when it passes"."""
    del structure
    return bool(polls.precedes(order, x, y))


@pytest.mark.parametrize(
    ("rule", "instead"),
    [("_differ", no), ("precedes_reaching", executes)],
)
def test_the_law_notices_a_missing_part(monkeypatch: pytest.MonkeyPatch, rule: str, instead: Any) -> None:
    monkeypatch.setattr(polls, rule, instead)

    async def is_noticed() -> bool:
        for number in range(400):
            for family in ("polls", "protocol, flags in data, broken"):
                if (await check_law(program_number(family, number), (0, 1))).mistakes:
                    return True
        return False

    assert trio.run(is_noticed)


# Late memory.


def late(text: str, memory: str, **options: Any) -> Any:
    checked = trio.run(check_late, parse_late(text, **options), memory)
    assert not checked.mistakes
    return checked.said


@pytest.mark.parametrize(("memory", "proved"), [("sc", True), ("ldst", True), ("nic", True)])
def test_a_flag_behind_a_fence_forces(memory: str, *, proved: bool) -> None:
    assert late("st x; fence; st y || poll y >= 3; ld x", memory, elements=(1, 1)).proved is proved


@pytest.mark.parametrize(("memory", "proved"), [("sc", True), ("ldst", False), ("nic", False)])
def test_a_flag_that_overtakes_its_data_orders_nothing(memory: str, *, proved: bool) -> None:
    said = late("st x; st y || poll y >= 2; ld x", memory, elements=(1, 1))
    assert said.proved is proved
    assert ("race" in said.kinds) is not proved


@pytest.mark.parametrize(("memory", "proved"), [("sc", True), ("ldst", True), ("nic", False)])
def test_an_own_put_is_polled_as_it_is_loaded(memory: str, *, proved: bool) -> None:
    # Where own writes are forwarded it is seen at once, else when it lands: before or after the poll.
    assert late("st x; poll x >= 0 || ", memory, elements=(1,)).proved is proved
    assert late("st x; poll x >= 1 || ", memory, elements=(1,)).proved


def test_where_a_run_shows_something_else_than_its_order_nothing_is_said() -> None:
    # A poll sees the own store on top of what landed after it was issued: a race, which the second poll would undo.
    program = parse_late("st x || st x; poll x == 2; poll x != 1", elements=(0,))
    for number in range(20):
        ran = trio.run(run_late, program, "ldst", Dice(number))
        assert analyse(ran.trace, contents=Versions(ran.case)).reasons
    assert not late("st x || st x; poll x == 2; poll x != 1", "ldst", elements=(0,)).applies


# Kernels.

lines = Window("lines", (3, "P"), np.int64, initialised=True)


def accepts(word: Any) -> bool:
    return bool(word != 0)


@kernel(memory=[lines])
async def gather(rank: Rank, lines: WindowView, *, rounds: int = 3) -> list[int]:
    """Send words that are data and flag at once, each to a slot of its own."""
    got = []
    for k in range(rounds):
        for peer in rank.peers:
            await rank.store(lines.at(peer)[k, rank.id], 10 * k + rank.id + 1)
        got += [int(await rank.poll(lines[k, peer], accepts)) for peer in rank.peers]
    return got


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_flags_in_data_are_proved_from_one_run(memory: str) -> None:
    report = check(gather, ranks=3, calls=1, memory=memory)
    assert (report.verdict, report.schedules) == ("PROVED", 2)


def test_no_more_calls_are_spoken_for_than_were_run() -> None:
    # In the second call the words of the first still lie there.
    again = check(gather, ranks=2, calls=2)
    assert again.verdict != "REFUTED"
    assert "any number" not in check(gather, ranks=2, calls=1).later_calls


def test_slots_that_are_used_again_are_not_forced() -> None:
    @kernel(memory=[lines])
    async def reused(rank: Rank, lines: WindowView) -> list[int]:
        got = []
        for k in range(2):
            for peer in rank.peers:
                await rank.store(lines.at(peer)[0, rank.id], 10 * k + 1)
            got += [int(await rank.poll(lines[0, peer], lambda word, k=k: bool(word > 10 * k))) for peer in rank.peers]
        return got

    report = check(reused, ranks=2, calls=1)
    assert any("polls data" in note for note in report.notes)


tile = Window("tile", (2,), np.int64, initialised=True)


@kernel(memory=[tile])
async def torn(rank: Rank, tile: WindowView, *, halves: bool) -> list[int]:
    """Poll two elements at once, which one store or two bring."""
    if rank.id:
        if halves:
            await rank.store(tile.at(0)[0], 1)
            await rank.store(tile.at(0)[1], 2)
        else:
            await rank.store(tile.at(0)[0:2], np.array([1, 2]))
        return []
    return [int(word) for word in await rank.poll(tile[0:2], lambda words: bool((words != 0).all()))]


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("memory", ["sc", "ldst", "nic", "ldst:atom=1", "nic:atom=1"])
def test_a_tile_in_pieces_is_forced_where_the_last_piece_is_known(memory: str, halves: bool) -> None:  # noqa: FBT001
    report = check(torn.variant(halves=halves), ranks=2, calls=1, memory=memory)
    apart = memory.endswith("atom=1") if not halves else memory != "sc"
    assert report.verdict == ("EXHAUSTED" if apart else "PROVED")


@kernel(memory=[tile])
async def first_half(rank: Rank, tile: WindowView) -> None:
    """Pass between two stores by two ranks, if the first half comes first."""
    if rank.id:
        await rank.store(tile.at(0)[rank.id - 1], 1)
    else:
        await rank.poll(tile[0:2], lambda words: bool(words[0] == 1 and words[1] == 0))


def test_p1_two_writers_of_one_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    # In this run the second half comes first, and whatever comes then is refused. In another one the poll passes.
    case = Case(first_half, 3, 1)
    trace = simulate(case, Last(), record="last").trace
    assert trace is not None
    assert trace.footer is not None
    assert trace.footer.ending == "deadlock"
    assert simulate(case, First()).ending == "complete"
    assert not analyse(trace, contents=Versions(case)).clean
    monkeypatch.setattr(polls, "pairwise", nothing)
    assert analyse(trace, contents=Versions(case)).clean


def test_a_predicate_that_raises_on_a_version_is_left_to_exploration() -> None:
    @kernel(memory=[tile])
    async def picky(rank: Rank, tile: WindowView) -> None:
        if rank.id:
            await rank.store(tile.at(0)[0], 2)
        else:
            await rank.poll(tile[0], lambda word: bool(4 // int(word) == 2))

    trace = simulate(Case(picky, 2, 1), Last(), record="last").trace
    assert trace is not None
    assert analyse(trace, contents=Versions(Case(picky, 2, 1))).reasons


class First(Fifo):
    """Lets the first rank go first that can."""

    def choose(self, ready: Any) -> Any:
        return ready[0]


class Last(Fifo):
    """Lets the last rank go first."""

    def choose(self, ready: Any) -> Any:
        return ready[-1]


def test_in_columns_predicates_are_not_at_hand() -> None:
    report = check(gather.variant(rounds=1), ranks=33, calls=1, budget=1)
    assert any("polls data" in note for note in report.notes)


done = Signal("done", ("P",))


@kernel(memory=[lines, done])
async def both(rank: Rank, lines: WindowView, done: SignalView) -> None:
    """A word that is polled, and a notify back, after which the slot is used again."""
    for k in (1, 2):
        for peer in rank.peers:
            await rank.store(lines.at(peer)[0, rank.id], k)
        for peer in rank.peers:
            await rank.poll(lines[0, peer], lambda word, k=k: bool(word == k))
            await rank.notify(done.at(peer)[rank.id], 1)
        for peer in rank.peers:
            await rank.wait(done[peer] >= k)


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_a_slot_that_is_given_back_is_forced_again(memory: str) -> None:
    assert check(both, ranks=2, calls=1, memory=memory).verdict == "PROVED"


def test_what_polls_has_no_certificate(tmp_path: Any) -> None:
    (tmp_path / "k.py").write_text(
        "import numpy as np\nfrom asyncsim import Window, kernel\n\n"
        "w = Window('w', (1,), np.int64, initialised=True)\n\n"
        "@kernel(memory=[w])\nasync def flag(rank, w):\n    if rank.id:\n        await rank.store(w.at(0)[0], 1)\n"
        "    else:\n        await rank.poll(w[0], lambda v: bool(v == 1))\n",
        "utf-8",
    )
    file = tmp_path / "c.jsonl"
    said = CliRunner().invoke(
        main, ["check", f"{tmp_path}/k.py:flag", "-P", "2", "--memory", "sc", "--certificate", str(file)]
    )
    assert said.exit_code == 0
    assert "PROVED" in said.output
    assert "no certificate: it polls data" in said.output
    assert not file.exists()
