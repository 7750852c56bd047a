"""The law of the analysis for waits anywhere, steps of a wait and an update, and atomics with results.

(a) Where nothing is flagged and no result is open, the reported races are exactly the pairs that can meet, all runs
end alike, and leave the same in all cells. (b) A proved program has one final state, with everything that any
operation gave. (c) What is said does not depend on the run. (d) With any rule taken out, that is noticed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from plain_frontiers import furthest
from sync_law import campaign, check, check_cases, said_of, same, table
from sync_programs import FAMILIES, PROTOCOLS, SOUPS, TICKETS, program_number
from sync_runs import made, played

import asyncsim.analysis.analyse
import asyncsim.analysis.order
import asyncsim.analysis.precede
import asyncsim.analysis.signals
import asyncsim.analysis.steady
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.order import order_of
from asyncsim.analysis.precede import precedes
from asyncsim.analysis.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from sync_toy import Program

ORDINARY, THOROUGH = 100, 20_000
SEEDS = (0, 1, 2)
FLOORS = {"racy": 0.3, "proved": 0.35, "hangs": 0.25, "midstream": 0.12, "open": 0.2}
"""Shares of the programs: with fewer of a kind, the law would say little."""


@pytest.mark.law
def test_the_law(
    numbers_of: Callable[[int, int], range], pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """The programs come from a seeded generator, as many of each family."""
    numbers = numbers_of(ORDINARY, THOROUGH)
    counts, wrong = campaign(numbers, FAMILIES, program_number, SEEDS)
    with capsys.disabled():
        if pytestconfig.getoption("capture") == "no":
            print(table(counts))  # noqa: T201 - asked for with -s
    assert not wrong, "\n".join(wrong)
    every: Counter[str] = sum(counts.values(), Counter())
    for what, floor in FLOORS.items():
        assert every[what] >= floor * every["programs"], f"only {every[what]} of {every['programs']}: {what}"
    # An analysis that flags everything would pass (a) and (b).
    assert every["needless"] <= 0.1 * every["programs"]
    assert sum(counts[family]["needless"] for family in PROTOCOLS) <= 0.03 * len(PROTOCOLS) * len(numbers)


@pytest.mark.law
def test_the_law_of_cases(programs_of: Callable[[int, int], int]) -> None:
    """What a run for each of who can arrive last proves is so; and nearly all that is so is proved."""
    total = programs_of(3 * ORDINARY, THOROUGH)
    counts: Counter[tuple[bool, bool, bool]] = Counter()
    for number in range(total):
        program = program_number(TICKETS, number)
        answer = proved, unique, _ = check_cases(program)
        assert unique or not proved, program
        counts[answer] += 1
    assert counts[True, True, True] >= 0.2 * total, counts
    assert counts[False, True, True] <= 0.01 * total, counts


def test_the_law_of_cases_notices_a_missing_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the edges between arrivals no answer is known; with a false one, wrong programs are proved."""
    monkeypatch.setattr(asyncsim.analysis.analyse, "undetermined_tests", nothing)
    monkeypatch.setattr(asyncsim.analysis.analyse, "races", nothing)
    assert any(proved and not unique for proved, unique, _ in map(check_cases, _tickets(300)))


def _tickets(total: int) -> Iterator[Program]:
    return (program_number(TICKETS, number) for number in range(total))


@pytest.mark.parametrize("words", [False, True])
def test_the_machine_makes_the_same_runs(*, words: bool) -> None:
    """What ranks do by their methods is what the oracle plays; on signals and on words the analysis says the same."""
    for family in FAMILIES:
        for number in range(8):
            program = program_number(family, number)
            _, said, _ = check(program, SEEDS[:1])
            if words and any(program.starts):
                continue
            trace, _ = made(program, number, words=words)
            assert same(said_of(analyse(trace)), said), program


def nothing(*_: Any) -> Iterator[Any]:
    """Stand in for a rule that finds nothing."""
    return iter(())


def never(*_: Any) -> bool:
    """Stand in for a rule that says no."""
    return False


def executes(order: Any, threat: Any, wait: Any) -> bool:
    """Stand in for S2 with "the wait executes" where it must say "the wait is reached"."""
    return precedes(order, threat, wait) or precedes(order, wait, threat)


def observed(streams: Any, order: Any, wait: Any, epoch: Any) -> tuple[int, int]:
    """Stand in for what an operation can see, with what it saw in this run."""
    value = wait.event.have
    return value, value


@pytest.mark.parametrize(
    ("place", "rule", "instead", "family"),
    [
        (asyncsim.analysis.analyse, "signal_races", nothing, "R0 wait and set"),
        (asyncsim.analysis.signals, "_of_two_kinds", nothing, "R3 kinds of updates"),
        (asyncsim.analysis.signals, "threats", nothing, "R1 both directions"),
        (asyncsim.analysis.steady, "strictly_ordered", executes, "P8 window"),
        (asyncsim.analysis.analyse, "unstable_waits", nothing, "P5 bits"),
        (asyncsim.analysis.steady, "may_turn_false", never, "P5 bits"),
        (asyncsim.analysis.steady, "can_hold", never, "R4 all of it"),
        (asyncsim.analysis.order, "_grow", never, "R0 wait and set"),
        (asyncsim.analysis.analyse, "undetermined_tests", nothing, "P7 exchange"),
        (asyncsim.analysis.steady, "extent", observed, "P6 fetch_add"),
    ],
)
def test_the_law_notices_a_missing_rule(
    monkeypatch: pytest.MonkeyPatch, place: ModuleType, rule: str, instead: Any, family: str
) -> None:
    """With any rule of the analysis taken out, a few hundred programs suffice to find it wrong."""
    monkeypatch.setattr(place, rule, instead)
    assert any(check(program_number(family, number), SEEDS[:2])[2] for number in range(1500))


def test_frontiers_are_what_they_are_defined_to_be() -> None:
    """A pass finds all frontiers of an actor at once: each is as far as the others get while it is held."""
    for family in FAMILIES:
        for number in range(12):
            trace, _ = played(program_number(family, number), number)
            streams = Streams(trace)
            order, guards = order_of(streams, "frontiers")
            for actor, stream in enumerate(streams.events):
                for index in range(len(stream)):
                    reached = [order.reach(actor, index, other) for other in range(len(streams.events))]
                    assert furthest(streams, guards, order.edges, (actor, index)) == reached


def test_all_families_are_drawn() -> None:
    assert len(FAMILIES) == len(SOUPS) + len(PROTOCOLS) + 1
