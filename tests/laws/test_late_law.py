"""The laws of late memory and streams: machine and analysis against brute force, on small random programs.

(a) The machine ends only where brute force can end, and can go wherever brute force goes. (b) Where the
analysis flags nothing, the races it reports are exactly the pairs that can meet; a proved program has
one final state; the findings do not depend on the run. (c) What is proved where writes land late is
proved where they do not; what is proved where places keep no order, also where they do. (d) A rule that
is taken out of the machine or of the analysis is noticed. (e) What is certified has one final state and no race.

2,000 programs in an ordinary run, 20,000 of each family with ``--thorough``.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from every_run import every_path
from late_brute import TooManyStatesError, explore
from late_families import FAMILIES
from late_law import Checked, check, judge, smallest
from late_programs import program_number
from late_runs import HALF_MODELS, MEMORIES, Dice, run_once
from late_toy import LATE_COPY, WRITING, parse

from asyncsim.analysis import edges, order, races, streams
from asyncsim.machine import wires
from asyncsim.trace import landing
from asyncsim.trace.late import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from late_toy import Program

ORDINARY, THOROUGH = 2_000, 20_000 * len(FAMILIES)
SHOWN = 5
TINY = 7
"""Steps and landings of a program all runs of which are made."""
STRONGER = {"ldst": ("sc",), "nic": ("sc", "ordered"), "forwarded": ("sc", "ldst"), "ordered": ("sc",), "sc": ()}
"""Where a program that is proved must be proved, too."""
FLOORS = {"racy": 0.3, "proved": 0.3, "flagged": 0.05, "hangs": 0.2, "midstream": 0.15, "streams": 0.1, "exact": 0.7}
"""Shares of the programs: with fewer of a kind, the laws would say little."""


@pytest.fixture(autouse=True)
def _half_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know the memory models that have only one of the two switches, too."""
    for name, model in HALF_MODELS.items():
        monkeypatch.setitem(MODELS, name, model)


def test_the_laws(
    numbers_of: Callable[[int, int], range], pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, wrong = trio.run(campaign, numbers_of(ORDINARY, THOROUGH))
    with capsys.disabled():
        if pytestconfig.getoption("capture") == "no":
            print(table(counts))  # noqa: T201 - asked for with -s
    assert not wrong, "\n".join(wrong)
    every: Counter[str] = sum(counts.values(), Counter())
    most = every["programs"]
    assert every["too large"] <= 0.02 * most
    for what, floor in FLOORS.items():
        assert every[what] >= floor * most, f"only {every[what]} of {most} programs: {what}"
    # Streams that only signals order are beyond the checker of certificates.
    assert every["certified"] >= 0.97 * every["certifiable"]
    # An analysis that flags everything would pass (b): of what an author might write it must flag little needlessly.
    protocols = sum((counts[name] for name, family in FAMILIES.items() if family.ways), Counter())
    assert protocols["needless"] <= 0.02 * protocols["programs"]


def test_every_run_of_tiny_programs() -> None:
    """What the machine can do, without help from brute force: all choices, in all runs."""

    async def compare() -> int:
        made = 0
        for number in range(10):
            for family in FAMILIES:
                program = program_number(family, number, total=4)
                memory = list(MEMORIES)[number % len(MEMORIES)]
                if size(program) <= TINY:
                    ends = {(await run_once(program, memory, path)).final for path in every_path()}
                    assert ends == set(explore(program, MEMORIES[memory]).finals), f"{program} under {memory}"
                    made += len(ends) > 1
        return made

    assert trio.run(compare) >= 10


def no(*_: Any, **__: Any) -> bool:
    """Stand in for a rule that says no."""
    return False


def yes(*_: Any, **__: Any) -> bool:
    """Stand in for a rule that says yes."""
    return True


def nothing(*_: Any) -> Any:
    """Stand in for a rule that finds nothing."""
    return []


def whole_rank(run: Any, wait: Any, change: Any) -> str:
    """Stand in for what is sure with "of the same rank" where it must say "of the same actor"."""
    said = relation(run, wait, change)
    same = run.actors[wait[0]].rank == run.actors[change[0]].rank
    return "sure" if said == "free" and same else said


relation = streams.Streams.relation


@pytest.mark.parametrize(
    ("place", "rule", "instead", "family"),
    [
        (landing, "same_place", no, "soup, local"),
        (wires, "same_place", no, "soup, own places"),
        (wires, "fetched_first", no, "soup, gets"),
        (landing.Unquiet, "queues", no, "soup, own signals"),
        (wires, "WHOLE_RANK", "", "soup, quiet of the rank"),
        (wires, "awaits_to", lambda index, *_: index, "soup, quiet of some"),
        (wires, "is_counted", no, "quiet of some"),
        (wires.Wires, "_may_go", yes, "message passing"),
        (wires.Wires, "_is_seen", no, "soup, local"),
        (wires, "completes_first", no, "soup, own sets"),
        (wires, "FENCING", (), "message passing, any way"),
        (edges, "changes_commute", yes, "soup, set flags"),
        (edges, "changes_commute", no, "soup, pipelined"),
        (edges._Issuer, "_touching", nothing, "soup, copies"),
        (wires, "fetched_first", no, "copies with signals"),
        (wires, "fetched_first", no, "soup, copies with signals"),
        (edges._Issuer, "_touching", nothing, "copies with signals"),
        (edges, "FENCING", (), "message passing, any way"),
        (edges, "QUIETING", (), "message passing"),
        (edges._Issuer, "_landings_of", nothing, "quiet of some"),
        (streams, "awaits_to", lambda index, *_: index, "soup, own signals, quiet of some"),
        (streams, "is_counted", no, "quiet of some"),
        (edges, "NOTIFYING", (), "message passing"),
        (edges, "CARRYING", (), "message passing"),
        (edges, "STARTING", (), "streams"),
        (edges, "JOINING", (), "streams"),
        (edges, "MEETING", (), "streams"),
        (order, "within_ranks", nothing, "soup, own places"),
        (edges, "_gets", no, "soup, gets"),
        (edges, "STORES", "no word", "stores and puts"),
        (edges, "WHOLE_RANK", "no word", "soup, quiet of the rank"),
        (races, "_forwarded", no, "soup, local"),
        (races, "FETCHING", (), "soup, local"),
        (races, "is_met", yes, "soup, local"),
        (streams.Streams, "relation", whole_rank, "soup, streams sharing a cell"),
    ],
)
def test_a_missing_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, place: Any, rule: str, instead: Any, family: str
) -> None:
    """With any rule taken out, a few hundred programs suffice to find it wrong."""
    monkeypatch.setattr(place, rule, instead)

    async def is_noticed() -> bool:
        for number in range(600):
            with suppress(TooManyStatesError):
                if (await checked(family, number)).mistakes:
                    return True
        return False

    assert trio.run(is_noticed)


@pytest.mark.parametrize("memory", ["ldst", "forwarded"])
def test_that_a_copy_is_fetched_behind_an_older_store_shows_in_what_others_see(
    monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    """An actor sees its own store at once, and copies the right value in any case: the signal tells of the order."""
    program = parse("st y; x <~ y, c += 1 || wait c >= 1; ld y", elements=(1, 0), cells=(1,))

    async def ends() -> set[Any]:
        return {(await run_once(program, memory, path)).final for path in every_path()}

    truth = set(explore(program, MEMORIES[memory]).finals)
    assert trio.run(ends) == truth
    monkeypatch.setattr(wires, "fetched_first", no)
    assert trio.run(ends) > truth


def test_a_program_is_its_text() -> None:
    for family in FAMILIES:
        for number in range(20):
            program = program_number(family, number)
            assert eval(str(program), {"parse": parse}) == program  # noqa: S307 - our own text


def size(program: Program) -> int:
    """Return how many steps and landings a run of the program has."""
    ops = [op for stream in program.streams for op in stream]
    return sum(1 + (op.kind in WRITING) + (op.kind == LATE_COPY) + (op.change is not None) for op in ops)


async def checked(family: str, number: int) -> Checked:
    """Check the program of this number under the memory model that is its turn."""
    return await check(program_number(family, number), list(MEMORIES)[number % len(MEMORIES)])


async def campaign(numbers: range) -> tuple[dict[str, Counter[str]], list[str]]:
    """Check the programs of these numbers; return the counts by family, and the first few mistakes."""
    counts: dict[str, Counter[str]] = {family: Counter() for family in FAMILIES}
    wrong: list[str] = []
    for number in numbers:
        family = list(FAMILIES)[number % len(FAMILIES)]
        try:
            one = await checked(family, number)
        except TooManyStatesError:
            counts[family].update(["programs", "too large"])
            continue
        counts[family].update(classes(one))
        mistakes = [*one.mistakes, *await against_stronger(one)]
        if mistakes and len(wrong) < SHOWN:
            wrong.append(await explained(one) if one.mistakes else f"{one.program}, {one.memory}: {mistakes}")
    return counts, wrong


async def against_stronger(one: Checked) -> list[str]:
    """Say where a proved program is not proved though less can happen there."""
    if not one.said.proved:
        return []
    runs = {memory: await run_once(one.program, memory, Dice(3)) for memory in STRONGER[one.memory]}
    return [
        f"proved under {one.memory}, but not under {memory}"
        for memory, ran in runs.items()
        if not judge(one.program, ran.trace, ran.case).proved
    ]


def classes(one: Checked) -> list[str]:
    """Name what a checked program is."""
    said, truth = one.said, one.truth
    return ["programs"] + [
        name
        for name, holds in {
            "racy": truth.races,
            "hangs": truth.deadlocks,
            "proved": said.proved,
            "midstream": said.proved and one.waited_in_midstream,
            "exact": said.exact,
            "flagged": said.flagged,
            "needless": said.flagged and len(truth.finals) == 1 and said.races == truth.races,
            "untold": not said.applies,
            "streams": len(one.program.actors) > len(one.program.ranks),
            "certifiable": said.proved and one.certified is not None,
            "certified": one.certified,
            "mistaken": one.mistakes,
        }.items()
        if holds
    ]


async def explained(one: Checked) -> str:
    """Shrink a program on which the law fails, and say how it does."""

    async def is_wrong(smaller: Program) -> bool:
        return bool((await check(smaller, one.memory)).mistakes)

    small = await smallest(one.program, is_wrong)
    return f"{small} under {one.memory}: {'; '.join((await check(small, one.memory)).mistakes)}"


def table(counts: dict[str, Counter[str]]) -> str:
    """Write the counts, a family a line."""
    columns = ("programs", *FLOORS, "certified", "needless", "untold", "too large", "mistaken")
    every: Counter[str] = sum(counts.values(), Counter())
    lines = ["", f"{'family':34}" + "".join(f"{column:>11}" for column in columns)]
    lines += [
        f"{family:34}" + "".join(f"{count[column]:>11}" for column in columns)
        for family, count in (*counts.items(), ("all", every))
    ]
    return "\n".join(lines)
