"""The law of the analysis: on small programs it says what brute force over all interleavings says.

(a) Where nothing is flagged, the reported races are exactly the pairs that can meet. (b) A proved
program has one final state. (c) The findings do not depend on the run that was analysed. (d) Clocks
and frontiers agree. (e) The programs are such that a wrong analysis would be noticed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given, settings
from law import Checked, check, judge, same, smallest
from programs import FAMILIES, PROTOCOLS, mirrored, program_number, programs
from runs import run_once

import asyncsim.analysis.analyse
import asyncsim.analysis.order
import asyncsim.analysis.steady
from asyncsim.analysis.precede import precedes
from asyncsim.analysis.races import races

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from toy import Program

ORDINARY, THOROUGH = 2_000, 20_000 * len(FAMILIES)
SEEDS = (0, 1, 2)
SHOWN = 5
FLOORS = {
    "racy": 0.25, "proved": 0.3, "flagged": 0.1, "hangs": 0.15, "midstream": 0.2, "fast": 0.3, "alternatives": 0.02,
}  # fmt: skip
"""Shares of the programs: with fewer of a kind, the law would say little."""


@settings(max_examples=200)
@given(programs())
def test_the_law_with_shrinking(program: Program) -> None:
    """A part of the programs is drawn by Hypothesis, so that a failure shrinks."""
    mistakes = trio.run(check, program, SEEDS).mistakes
    assert not mistakes, f"{program}: {mistakes}"


def test_the_law(
    numbers_of: Callable[[int, int], range], pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bulk comes from the seeded generator, spread evenly over the families."""
    counts, wrong = trio.run(campaign, numbers_of(ORDINARY, THOROUGH))
    with capsys.disabled():
        if pytestconfig.getoption("capture") == "no":
            print(table(counts))  # noqa: T201 - asked for with -s
    assert not wrong, "\n".join(wrong)
    every: Counter[str] = sum(counts.values(), Counter())
    most = every["programs"]
    for what, floor in FLOORS.items():
        assert every[what] >= floor * most, f"only {every[what]} of {most} programs: {what}"
    # An analysis that flags everything would pass (a) and (b).
    right = sum((counts[family] for family in PROTOCOLS if "set" not in family and "equal" not in family), Counter())
    assert right["needless"] <= 0.05 * right["programs"]


def test_what_holds_upwards_holds_downwards(programs_of: Callable[[int, int], int]) -> None:
    """With every cell upside down, the same is said: of each comparison, each direction, every run."""

    async def compare() -> None:
        for family in FAMILIES:
            for number in range(programs_of(40, 40)):
                program = program_number(family, number)
                if program.bits == 32:
                    ran = [await run_once(each, number) for each in (program, mirrored(program))]
                    one, other = (judge(run.trace) for run in ran)
                    assert same(one, other), program

    trio.run(compare)


def nothing(*_: Any) -> Iterator[Any]:
    """Stand in for a rule that finds nothing."""
    return iter(())


def never(*_: Any) -> bool:
    """Stand in for a rule that says no."""
    return False


def executes(order: Any, subtraction: Any, wait: Any) -> bool:
    """Stand in for S2 with "the wait executes" where it must say "the wait is reached"."""
    return precedes(order, subtraction, wait) or precedes(order, wait, subtraction)


def all_but_one(streams: Any, order: Any) -> list[Any]:
    """Lose a race."""
    return list(races(streams, order))[1:]


@pytest.mark.parametrize(
    ("place", "rule", "instead", "family"),
    [
        (asyncsim.analysis.analyse, "races", all_but_one, "adds"),
        (asyncsim.analysis.analyse, "signal_races", nothing, "sets"),
        (asyncsim.analysis.steady, "strictly_ordered", executes, "anybody subtracts"),
        (asyncsim.analysis.analyse, "unstable_waits", nothing, "equal"),
        (asyncsim.analysis.steady, "may_turn_false", never, "equal"),
        (asyncsim.analysis.steady, "can_hold", never, "every comparison"),
        (asyncsim.analysis.order, "_grow", never, "set flags"),
        (asyncsim.analysis.analyse, "undetermined_tests", nothing, "tests"),
        (asyncsim.analysis.analyse, "overflows", nothing, "wrapping"),
    ],
)
def test_the_law_notices_a_missing_rule(
    monkeypatch: pytest.MonkeyPatch, place: ModuleType, rule: str, instead: Any, family: str
) -> None:
    """With any rule of the analysis taken out, a few hundred programs suffice to find it wrong."""
    monkeypatch.setattr(place, rule, instead)

    async def is_noticed() -> bool:
        for number in range(500):
            if (await check(program_number(family, number), SEEDS[:2])).mistakes:
                return True
        return False

    assert trio.run(is_noticed)


async def campaign(numbers: range) -> tuple[dict[str, Counter[str]], list[str]]:
    """Check the programs of these numbers; return the counts by family, and the first few mistakes."""
    counts: dict[str, Counter[str]] = {family: Counter() for family in FAMILIES}
    wrong: list[str] = []
    for number in numbers:
        family = FAMILIES[number % len(FAMILIES)]
        program = program_number(family, number)
        checked = await check(program, SEEDS)
        counts[family].update(classes(checked))
        if checked.mistakes and len(wrong) < SHOWN:
            wrong.append(await explained(program))
    return counts, wrong


def classes(checked: Checked) -> list[str]:
    """Name what a checked program is."""
    said, truth = checked.said, checked.truth
    alike = len(truth.finals) == 1
    return ["programs"] + [
        name
        for name, holds in {
            "racy": truth.races,
            "hangs": truth.deadlocks,
            "proved": said.proved,
            "midstream": said.proved and checked.waited_in_midstream,
            "flagged": said.flagged,
            "needless": said.flagged and alike and said.races == truth.races,
            "untold": not said.applies,
            "fast": said.fast,
            "alternatives": said.exact and not said.fast and said.races,
            "mistaken": checked.mistakes,
        }.items()
        if holds
    ]


async def explained(program: Program) -> str:
    """Shrink a program on which the law fails, and say how it does."""

    async def is_wrong(smaller: Program) -> bool:
        return bool((await check(smaller, SEEDS)).mistakes)

    small = await smallest(program, is_wrong)
    return f"{small}: {'; '.join((await check(small, SEEDS)).mistakes)}"


def table(counts: dict[str, Counter[str]]) -> str:
    """Write the counts, a family a line."""
    columns = ("programs", *FLOORS, "needless", "untold", "mistaken")
    every: Counter[str] = sum(counts.values(), Counter())
    lines = ["", f"{'family':38}" + "".join(f"{column:>13}" for column in columns)]
    lines += [
        f"{family:38}" + "".join(f"{count[column]:>13}" for column in columns)
        for family, count in (*counts.items(), ("all", every))
    ]
    return "\n".join(lines)
