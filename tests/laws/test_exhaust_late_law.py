"""The law of exhaustive exploration where writes land late, with streams: every final state and race, in few runs.

1,200 programs in an ordinary run, beside the 800 of `test_exhaust_law`; 20,000 with ``--thorough``. What the
oracle does not know (polls) is compared there with every run of the machine itself.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio
from exhaust import exhaust
from late_brute import TooManyStatesError, explore, follow, interleavings
from late_families import FAMILIES
from late_law import smallest
from late_programs import program_number
from late_runs import MEMORIES, Names, kernel_of
from late_toy import parse

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.coenabled import CoenabledPairs
from asyncsim.checking.search.dependence import Dependence
from asyncsim.checking.search.pending import PendingWrites
from asyncsim.machine.case import Case
from asyncsim.trace.finding import RACE

if TYPE_CHECKING:
    from late_brute import Final
    from late_toy import Program

    from asyncsim.checking.search.exhaust import ExhaustiveResult
    from asyncsim.machine.case import Run

ORDINARY, THOROUGH = 1_220, 20_000
TOTAL = {False: 8, True: 10}
"""Operations of a program, at most, in an ordinary and in a thorough run."""
LIMIT = {False: 1_500, True: 10_000}
"""Programs with more states are left out."""
BUDGET = 200_000
OFFERED = ("sc", "ldst", "nic")
SHOWN = 5


async def ends_of(program: Program, memory: str) -> tuple[ExhaustiveResult, set[Final]]:
    """Return what exhaustive exploration says of a program, and the final states it reaches, by the oracle's steps."""
    case = Case(kernel_of(program, {}), ranks=len(program.ranks), calls=1, memory=memory)
    names = Names(program)
    ends = set()

    def note(run: Run) -> None:
        done: Counter[str] = Counter()
        way = []
        for name in run.choices:
            way.append(names.step(name, done[name]))
            done[name] += 1
        ends.add(follow(program, MEMORIES[memory], way))

    return await exhaust.aio(case, budget=BUDGET, judge=Judge(case), on_run=note), ends


async def mistakes_of(program: Program, memory: str, counts: Counter[str], limit: int = LIMIT[True]) -> list[str]:
    """Compare exhaustive exploration with brute force; count what there was."""
    counts["programs"] += 1
    try:
        truth = explore(program, MEMORIES[memory], limit=limit)
    except TooManyStatesError:
        counts["left out"] += 1
        return []
    explored, ends = await ends_of(program, memory)
    runs = interleavings(program, MEMORIES[memory])
    counts.update(
        executions=explored.executions, redundant=explored.redundant, finals=len(truth.finals), interleavings=runs,
        many=explored.executions - explored.redundant > 3 * len(truth.finals),
        streams=len(program.actors) > len(program.ranks), deadlocks=truth.deadlocks > 0, races=len(truth.races),
    )  # fmt: skip
    mistakes = [] if explored.complete else ["it did not come to an end"]
    names = Names(program)
    told = [pair for kind, *pair in explored.races if kind == RACE]
    races = {frozenset(names.step(name, index) for name, index, *_ in pair) for pair in told}
    for what, pairs in (("missed", truth.races - races), ("false", races - truth.races)):
        if pairs:
            mistakes.append(f"{what} races: {sorted(map(sorted, pairs))}")
    if ends != set(truth.finals):
        mistakes.append(f"it reaches {len(ends)} final states of {len(truth.finals)}")
    # Executions that were made before it was learnt who adds to own memory count as redundant.
    if explored.executions - explored.redundant > runs:
        mistakes.append(f"{explored.executions} executions, {runs} interleavings")
    return mistakes


async def campaign(numbers: range, *, thorough: bool) -> tuple[dict[str, Counter[str]], list[str]]:
    """Compare the programs of these numbers; return the counts by family, and what is wrong, with shrunk programs."""
    counts: dict[str, Counter[str]] = {family: Counter() for family in FAMILIES}
    wrong: list[str] = []
    for number in numbers:
        family = list(FAMILIES)[number % len(FAMILIES)]
        memory = OFFERED[number // len(FAMILIES) % len(OFFERED)]
        program = program_number(family, number, total=TOTAL[thorough])
        if await mistakes_of(program, memory, counts[family], LIMIT[thorough]) and len(wrong) < SHOWN:
            wrong.append(await explained(program, memory))
    return counts, wrong


async def explained(program: Program, memory: str) -> str:
    """Shrink a program on which the law fails, and say how it does."""

    async def is_wrong(smaller: Program) -> bool:
        return bool(await mistakes_of(smaller, memory, Counter()))

    small = await smallest(program, is_wrong)
    return f"{small} under {memory}: {'; '.join(await mistakes_of(small, memory, Counter()))}"


def test_the_law(numbers_of, pytestconfig, capsys):
    thorough = pytestconfig.getoption("--thorough")
    numbers = numbers_of(ORDINARY, THOROUGH)
    counts, wrong = trio.run(lambda: campaign(numbers, thorough=thorough))
    every = sum(counts.values(), Counter())
    if pytestconfig.getoption("capture") == "no":
        with capsys.disabled():
            print(table(counts))  # noqa: T201 - asked for with -s
    assert not wrong, "\n".join(wrong)
    # One program whose own stores and atomics may land in any order makes more executions than all others.
    assert every["many"] <= 0.05 * every["programs"]
    assert every["executions"] * 1000 < every["interleavings"]
    assert every["left out"] < 0.03 * every["programs"]
    assert every["redundant"] < 0.1 * every["executions"]
    assert every["streams"] > 0.1 * every["programs"]
    assert every["races"] > 0.5 * every["programs"]
    assert every["deadlocks"] > 0.1 * every["programs"]


# Small programs that were lost once.

OWN_WRITES = {
    "an add lands after the own store": ("nic", "st x; ad x", (0,), 1),
    "a store lands before the own add": ("nic", "ad x; st x", (0,), 2),
    "an add after the store of another stream": ("ldst", "st x; start 1; join 1 | ad x", (0,), 1),
    "an add and the store of another stream": ("nic", "start 1; st x; join 1 | ad x", (0,), 2),
    "a get and the store of another stream": ("nic", "start 1; st x; join 1 | x <~ y ||", (0, 1), 2),
    "a put to oneself lands when it likes": ("nic", "put x; ld x; put x", (0,), 3),
    "a quiet of the rank and what another stream puts": ("nic", "start 1; quiet rank; join 1; ld x | put x", (0,), 2),
    "a store while a get is under way": ("nic", "x <~ y; st x ||", (0, 1), 2),
    "a store while a get is under way, forwarded": ("ldst", "x <~ y; fence; st x ||", (0, 1), 2),
    "a fetch sees what was added after its put": ("ldst", "y <~ x; ad x", (0, 0), 2),
    "an add is seen under or on top of a store": ("ldst", "start 1; st x; join 1 | ad x; ld x", (0,), 5),
    "a store lands from on top of an add": ("ldst", "start 1; sync; st x; join 1 | ad x; sync; ld x", (0,), 5),
    "an add is seen again when the store on top of it has landed": (
        "ldst",
        "start 1; ad x; join 1; ld x | st x",
        (0,),
        3,
    ),
    "an own add on top of what another rank sets": ("ldst", "relaxed c += 1; wait c == 1 || c := 1", (), 3),
    "a fetch sees an add on top of a store": ("ldst", "start 1; sync; st x; join 1 | y <~ x; ad x; sync", (0, 0), 7),
}
"""Memory model, program, whose the elements are, and how many final states there are."""


@pytest.mark.parametrize("name", OWN_WRITES)
async def test_own_late_writes_are_met(name):
    memory, text, elements, ends = OWN_WRITES[name]
    program = parse(text, elements=elements)
    assert not await mistakes_of(program, memory, Counter())
    explored, reached = await ends_of(program, memory)
    assert explored.complete
    assert len(reached) == ends


async def test_two_puts_with_signals_race_by_their_data_and_by_their_cells():
    program = parse("st x, c := 0 || st x, c += 1", elements=(0,), cells=(0,))
    assert not await mistakes_of(program, "sc", Counter())
    explored, _ = await ends_of(program, "sc")
    assert {kind for kind, *_ in explored.races} == {"race", "signal-race"}


def nothing(*_: Any) -> Any:
    """Stand in for a rule that adds nothing."""
    return []


def no(*_: Any) -> bool:
    """Stand in for a rule that says no."""
    return False


@pytest.mark.parametrize(
    ("owner", "rule", "instead"),
    [
        (CoenabledPairs, "_is_forwarded", no),
        (Dependence, "order_is_visible", no),
        (Dependence, "refine", no),
        (PendingWrites, "wires_before", nothing),
    ],
)
async def test_the_law_notices_a_missing_rule(monkeypatch, owner, rule, instead):
    monkeypatch.setattr(owner, rule, instead)
    lost = [
        name
        for name, (memory, text, elements, _) in OWN_WRITES.items()
        if await mistakes_of(parse(text, elements=elements), memory, Counter())
    ]
    if not lost:
        _, lost = await campaign(400, thorough=False)
    assert lost


def table(counts: dict[str, Counter[str]]) -> str:
    """Write the counts, a family a line."""
    columns = ("programs", "left out", "executions", "redundant", "finals", "interleavings")
    lines = ["", f"{'family':38}" + "".join(f"{column:>16}" for column in columns)]
    lines += [
        f"{family:38}" + "".join(f"{count[column]:>16}" for column in columns)
        for family, count in (*counts.items(), ("all", sum(counts.values(), Counter())))
    ]
    return "\n".join(lines)
