"""The law of exhaustive exploration: it reaches every final state, never with more runs than there are schedules.

And it meets every race: the pairs that it tells are those that are next at once in some state.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import brute
import pytest
import trio
from brute import explore, replay
from exhaust import exhaust
from naive import ANYTHING, LATE, EverySchedule, case_of, draw, end_of, every_end
from programs import FAMILIES, kernel_of, program_number
from toy import parse

from asyncsim import check
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.coenabled import SIGNAL_RACE, CoenabledPairs
from asyncsim.checking.search.dependence import Dependence
from asyncsim.checking.search.dpor import Node, Tree
from asyncsim.checking.search.equivalence import EquivalenceClasses, RecordedChoices, order_matters
from asyncsim.checking.search.exhaust import ExhaustiveSearch, TreeScheduler
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import DivergenceError
from asyncsim.trace.finding import PROVED, RACE, SUM
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from toy import Program

ORDINARY, THOROUGH = 800, 20_000
BUDGET = 20_000
LARGEST = 300
"""Programs with more final states are left out: a handful would take half of the time."""


async def finals_of(program: Program):
    """Return what exhaustive exploration says of a program, and the final states that it reaches."""
    case = Case(kernel_of(program), ranks=len(program.actors), calls=program.calls)
    finals = set()
    explored = await exhaust.aio(
        case, budget=BUDGET, judge=Judge(case), on_run=lambda run: finals.add(replay(program, map(int, run.choices)))
    )
    return explored, finals


def interleavings(program: Program) -> int:
    """Count the complete interleavings of a program."""
    toy = brute._Toy(program)
    known = {}

    def count(state):
        if state not in known:
            total = 0
            for actor, steps in enumerate(toy.code):
                at = state[actor]
                after = list(state)
                passed = steps[at](after) if at < len(steps) else False
                if passed is None:
                    total += 1
                elif passed:
                    after[actor] = at + 1
                    total += count(tuple(after))
            known[state] = total or 1
        return known[state]

    return count(toy.start)


def settled(finals):
    """Leave out where an overflow ended a run: that there is one is all that a search has to tell."""
    return {final for final in finals if not final.overflow}, any(final.overflow for final in finals)


def pairs_of(races, kind):
    """Return the pairs of a kind that an exploration has met, as brute force names them."""
    met = [(one, other) for what, one, other in races if what == kind]
    return {frozenset((int(name), index) for name, index, *_ in pair) for pair in met}


def wrong_pairs(program: Program, truth, explored):
    """Yield which races an exploration has missed, which it tells that are none; likewise of sums."""
    races, sums, erasures = (pairs_of(explored.races, kind) for kind in (RACE, SUM, SIGNAL_RACE))
    true_sums = truth.sums if program.floats else frozenset()
    for what, pairs in {
        "missed races": truth.races - races, "false races": races - truth.races,
        "missed erasures": truth.erasures - erasures, "false erasures": erasures - truth.erasures,
        "missed sums": true_sums - sums - races, "false sums": sums - true_sums,
    }.items():  # fmt: skip
        if pairs:
            yield f"{what}: {sorted(map(sorted, pairs))}"


async def mistakes_of(program: Program, sums: Counter[str]) -> list[str]:
    """Compare exhaustive exploration with brute force."""
    everything = explore(program)
    truth = everything.finals
    if len(truth) > LARGEST:
        sums["left out"] += 1
        return []
    explored, finals = await finals_of(program)
    schedules = interleavings(program)
    sums.update(
        programs=1, executions=explored.executions, redundant=explored.redundant, interleavings=schedules,
        finals=len(truth), races=len(explored.races),
    )  # fmt: skip
    mistakes = [] if explored.complete else ["it did not come to an end"]
    mistakes += wrong_pairs(program, everything, explored)
    if settled(finals) != settled(truth):
        mistakes.append(f"it reaches {len(finals)} final states of {len(truth)}")
    # Executions that were made before it was learnt that a cell can overflow count as redundant.
    if explored.executions - explored.redundant > schedules:
        mistakes.append(f"{explored.executions} executions, {schedules} interleavings")
    return mistakes


async def campaign(numbers: range):
    """Compare the programs of these numbers; return the counts by family, and what is wrong."""
    counts = {family: Counter() for family in FAMILIES}
    wrong = []
    for number in numbers:
        family = FAMILIES[number % len(FAMILIES)]
        program = program_number(family, number)
        wrong += [f"{program}: {mistake}" for mistake in await mistakes_of(program, counts[family])]
    return counts, wrong


def test_the_law(numbers_of, pytestconfig, capsys):
    counts, wrong = trio.run(campaign, numbers_of(ORDINARY, THOROUGH))
    every = sum(counts.values(), Counter())
    if pytestconfig.getoption("capture") == "no":
        with capsys.disabled():
            print(table(counts))  # noqa: T201 - asked for with -s
    assert not wrong, "\n".join(wrong[:5])
    assert every["races"] > every["programs"]
    # What the reduction is for: few runs beyond one a final state.
    assert every["executions"] < 3 * every["finals"]
    assert every["executions"] * 1000 < every["interleavings"]
    assert every["left out"] < 0.01 * every["programs"]
    # Redundant are, too, executions that differ from others only in what commutes, such as two adds.
    assert every["redundant"] < 0.15 * every["executions"]


MACHINE = {
    "polls, puts with signal": (ANYTHING, "sc", 8, False),
    "streams": (ANYTHING, "sc", 7, True),
    "late": (LATE, "ldst", 5, False),
    "late, unordered": (LATE, "nic", 4, False),
    "late, streams": (LATE, "ldst", 4, True),
}
"""What only the machine has: kinds of operations, memory model, most operations, with streams."""


@pytest.mark.parametrize("label", MACHINE)
async def test_the_law_on_what_only_the_machine_has(programs_of, label):
    kinds, memory, most, streams = MACHINE[label]
    total = programs_of(30, 600)
    compared = 0
    for number in range(total):
        rng = random.Random(f"{label} {number}")  # noqa: S311 - dice, no secret
        programs = draw(rng, kinds, most, streams=streams)
        case = case_of(programs, memory)
        truth = await every_end(case, 250)
        if truth is None:
            continue
        compared += 1
        ends = set()
        explored = await exhaust.aio(
            case, budget=BUDGET, judge=Judge(case), on_run=lambda run, ends=ends: ends.add(end_of(run))
        )
        assert explored.complete
        assert ends == truth[0], programs
        assert explored.executions <= truth[1], programs
    assert compared > total // 3


@pytest.mark.parametrize("label", MACHINE)
async def test_the_executions_that_count_are_the_behaviours_of_all_schedules(pytestconfig, label):
    kinds, memory, most, streams = MACHINE[label]
    total = 400 if pytestconfig.getoption("--thorough") else 20
    compared = 0
    for number in range(total):
        rng = random.Random(f"behaviours {label} {number}")  # noqa: S311 - dice, no secret
        case = case_of(draw(rng, kinds, most, streams=streams), memory)
        schedules = RecordedChoices(EverySchedule())
        taken = []
        turn = schedules._scheduler.turn
        while len(taken) < 150 and (not taken or turn()):
            await simulate.aio(case, schedules)
            taken.append(schedules.ops)
        if len(taken) == 150:
            continue
        compared += 1
        exploring = ExhaustiveSearch(case, Judge(case))
        explored = await exploring.run(BUDGET)
        behaviours = EquivalenceClasses(model_of(memory), exploring.tree.dependence)
        assert explored.behaviours == {behaviours.number_of(ops) for ops in taken}
        assert explored.estimate == explored.inequivalent == explored.executions - explored.redundant
    assert compared > total // 3


def can_be_next(case, met):
    """Say whether both operations of a race are next where they are said to meet: either can go first."""
    for pair in (met.actors, met.actors[::-1]):
        choices = [*met.choices_before, *pair]
        try:
            drive(case, Replay(choices))
        except DivergenceError as error:
            if error.step < len(choices):
                return False
    return True


@pytest.mark.parametrize("label", MACHINE)
async def test_the_two_sides_of_a_race_meet_where_it_is_said(label):
    kinds, memory, most, streams = MACHINE[label]
    met = 0
    for number in range(25):
        rng = random.Random(f"meetings {label} {number}")  # noqa: S311 - dice, no secret
        case = case_of(draw(rng, kinds, most, streams=streams), memory)
        explored = await exhaust.aio(case, budget=300, judge=Judge(case))
        assert all(can_be_next(case, race) for race in explored.races.values())
        met += len(explored.races)
    assert met >= 5


LOST = {
    "a wait that could have done without the first add": "st x; c += 2 || wait c >= 1; st x || c += 1",
    "a wait that came first, and need not have": "st x; wait c >= 1 || c += 1; st x",
    "a credit that is gone again": "wait c == 1; st x || c += 1; c += 1; ld x",
    "two that take one credit": "take c >= 1; ld x || st x; c += 1 || st x; d += 1",
    "a set that erases": "wait c >= 1; ld x || c += 1; st x || c := 0; st x",
    "credits that are taken away": "ld x; take c >= 1; st x || c -= 1; c -= 1 || ld x; c -= 1; st y || st x",
    "the same, counting down": "ld x; take c <= -1; st x || c += 1; c += 1 || ld x; c += 1; st y || st x",
}
"""Programs on which a simpler reduction loses final states; the first is that of the theory's ninth section."""


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
async def test_what_a_simpler_reduction_would_lose(text):
    for starts in ((0, 0), (1, 0), (-1, 0)):
        program = parse(text)
        program = parse(text, starts=starts[: len(program.cells)])
        assert not await mistakes_of(program, Counter()), program


def subtractions(text, start):
    """Return the first and the second operation that change the cell of a text, and what a search knows by then."""
    case = Case(kernel_of(parse(text, starts=(start,))), ranks=3, calls=1)
    tree = Tree(case)
    simulate(case, TreeScheduler(tree), engine="direct")
    tree.dependence.refine(tree.starts, tree.execution.ops)
    changes = [op for op in tree.execution.ops if op.kind == "notify"]
    return tree.dependence, changes[0], changes[1]


@pytest.mark.parametrize(
    ("text", "start", "depend"),
    [
        ("take c >= 1 || c -= 1 || c -= 1", 1, True),  # else sleep sets lose end states
        ("take c >= 1 || c += 1 || c += 1", 1, False),
        ("take c >= 1 || c += 1 || c -= 1", 1, False),
        ("take c <= -1 || c += 1 || c += 1", -1, True),
        ("wait c <= -1 || c += 1 || c += 1", -1, False),
    ],
)
def test_what_takes_credits_away_depends_on_each_other_and_is_one_behaviour(text, start, depend):
    dependence, first, second = subtractions(text, start)
    assert dependence.are_dependent(first, second) is depend
    assert not order_matters(dependence, first, second)


async def noticed(families) -> bool:
    """Say whether some of the first programs of these families shows a mistake."""
    for number in range(1000):
        if await mistakes_of(program_number(families[number % len(families)], number), Counter()):
            return True
    return False


def nothing(*_, **__):
    """Stand in for a rule that adds nothing."""
    return False


def no_waits(tree, wait, step):
    """Stand in for looking at waits: only at those that passed, and only at what directly preceded them."""
    if step is not None:
        for other in tree._on_path(tree.execution.races[step]):
            tree._branch_towards(
                other, tree.execution.happened_before[step] & tree.execution.steps_after(other), wait.actor.name
            )


@pytest.mark.parametrize(
    ("owner", "rule", "instead", "families"),
    [
        (CoenabledPairs, "add_execution", nothing, FAMILIES),
        (Tree, "_reverse_before_wait", no_waits, FAMILIES),
        (Tree, "_branch_towards", nothing, FAMILIES),
        (Dependence, "wait_may_pass", nothing, FAMILIES),
        (Dependence, "may_disable", nothing, FAMILIES),
        (Dependence, "refine", nothing, ("overflow",)),
        (Node, "branch_to", nothing, FAMILIES),
    ],
)
async def test_the_law_notices_a_missing_rule(monkeypatch, owner, rule, instead, families):
    monkeypatch.setattr(owner, rule, instead)
    assert await noticed(families)


def table(counts):
    """Write the counts, a family a line."""
    columns = ("programs", "executions", "redundant", "finals", "interleavings")
    lines = ["", f"{'family':38}" + "".join(f"{column:>15}" for column in columns)]
    lines += [
        f"{family:38}" + "".join(f"{count[column]:>15}" for column in columns)
        for family, count in (*counts.items(), ("all", sum(counts.values(), Counter())))
    ]
    return "\n".join(lines)


def orders_of(ops, dependence):
    """Return the order of each pair of a schedule that conflicts, pair by pair: what a number of it stands for."""
    counts, named = Counter(), []
    for op in ops:
        named.append((op.actor.name, counts[op.actor.name], op))
        counts[op.actor.name] += 1
    pairs = ((a, b) for at, b in enumerate(named) for a in named[:at] if a[0] != b[0])
    ordered = frozenset((a[:2], b[:2]) for a, b in pairs if order_matters(dependence, a[2], b[2]))
    return ordered, frozenset((*each[:2], str(each[2])) for each in named)


@pytest.mark.parametrize("label", ["polls, puts with signal", "streams"])
async def test_an_execution_counts_for_each_order_of_what_conflicts(label):
    kinds, memory, most, streams = MACHINE[label]
    for number in range(60, 80):
        rng = random.Random(f"a {label} {number}")  # noqa: S311 - dice, no secret
        case = case_of(draw(rng, kinds, most, streams=streams), memory)
        schedules = RecordedChoices(EverySchedule())
        taken = []
        while len(taken) < 400 and (not taken or schedules._scheduler.turn()):
            await simulate.aio(case, schedules)
            taken.append(schedules.ops)
        exploring = ExhaustiveSearch(case, Judge(case))
        explored = await exploring.run(BUDGET)
        classes = {orders_of(ops, exploring.tree.dependence) for ops in taken}
        assert explored.inequivalent == len(classes) if len(taken) < 400 else explored.inequivalent >= len(classes)


INDIFFERENT = {
    "a test": [
        [("take", 1, 1, 2), ("notify", 1, 3, 1)],
        [("test", 0, 2, 1), ("set", 0, 4, 2), ("test", 0, 5, 2), ("put", 1, 6, 1)],
    ],
    "a poll": [[("stream", 0, 0, [("poll", 1, 1, 1)]), ("notify", 0, 2, 2)], [("put_signal", 0, 3, 1)]],
}
"""Programs in which one operation may come before or after what it asks for, and is answered alike."""


@pytest.mark.parametrize("programs", INDIFFERENT.values(), ids=INDIFFERENT)
async def test_where_one_run_decides_several_executions_differ_only_in_what_changes_no_answer(programs):
    case = case_of(programs, "sc")
    report = await check.aio(case.kernel, ranks=case.ranks, calls=case.calls, budget=0)
    assert report.verdict == PROVED
    explored = await exhaust.aio(case, budget=BUDGET, judge=Judge(case))
    assert (explored.inequivalent, len(explored.ends), explored.failures) == (2, 1, ())
