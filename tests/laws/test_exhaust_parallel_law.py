"""The law of exhaustive exploration in parts: wherever the tree of schedules is cut, it finds what one search finds."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from itertools import count

import brute
import pytest
from exhaust import exhaust
from late_families import FAMILIES as LATE_FAMILIES
from late_programs import program_number as late_number
from late_runs import kernel_of as late_kernel
from naive import ANYTHING, LATE, case_of, draw, end_of, every_end
from parted import BUDGET, SIZES, divided, facts, storing_case
from programs import FAMILIES, kernel_of, program_number

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.dpor import Node
from asyncsim.checking.workers import exhaust_parallel as module
from asyncsim.checking.workers import subtree as splitting
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking


async def differences(case, sizes, counts, *, jobs=1):
    """Return the numbers of parts with which an exploration says something else than one in one piece."""
    alone = await exhaust.aio(case, budget=BUDGET, judge=Judge(case))
    counts["cases"] += 1
    wrong = []
    for size in sizes:
        together = await divided(case, size, jobs=jobs)
        counts["runs"] += together.executions - together.redundant
        counts["alone"] += alone.executions - alone.redundant
        if facts(together) != facts(alone):
            wrong.append(size)
    return wrong


@Blocking
async def campaign(cases, *, engine="direct", **more):
    """Compare each case at two sizes in turn; return what is wrong, and how much was run."""
    counts = Counter()
    wrong = []
    for number, (name, case) in enumerate(cases):
        sizes = SIZES[number % 4], SIZES[(number + 1) % 4]
        wrong += [(name, size) for size in await differences(case, sizes, counts, **more)]
    return wrong, counts


def early(total, start=0):
    for number in range(start, start + total):
        family = FAMILIES[number % len(FAMILIES)]
        program = program_number(family, number)
        yield f"{family} {number}", Case(kernel_of(program), ranks=len(program.actors), calls=program.calls)


def late(total, start=0):
    for number in range(start, start + total):
        family = list(LATE_FAMILIES)[number % len(LATE_FAMILIES)]
        memory = ("ldst", "nic")[number // len(LATE_FAMILIES) % 2]
        program = late_number(family, number, total=7)
        yield f"{family} {number} {memory}", Case(late_kernel(program, {}), len(program.ranks), 1, memory)


def drawn(total):
    for number in range(total):
        rng = random.Random(f"parts {number}")  # noqa: S311 - dice, no secret
        kinds, memory, most, streams = ((ANYTHING, "sc", 7, number % 3 == 0), (LATE, "ldst", 4, False))[number % 2]
        yield case_of(draw(rng, kinds, most, streams=streams), memory)


def small_ones(total):
    """Yield programs with few final states: the others take most of the time."""
    for number in count():
        family = FAMILIES[number % len(FAMILIES)]
        if total and len(brute.explore(program_number(family, number)).finals) <= 12:
            total -= 1
            yield from early(1, number)
        if not total:
            return


def test_any_cut_finds_what_one_search_finds():
    wrong, counts = campaign(small_ones(100), engine="direct")
    assert not wrong
    assert counts["cases"] == 100
    assert counts["runs"] < 1.2 * counts["alone"]


def test_any_cut_finds_what_one_search_finds_where_writes_land_late():
    wrong, counts = campaign(late(30), engine="direct")
    assert not wrong
    assert counts["runs"] < 1.2 * counts["alone"]


@pytest.mark.parametrize("cases", [partial(small_ones, 40), partial(late, 30)])
def test_what_is_left_off_is_taken_up_and_cut_again(monkeypatch, cases):
    monkeypatch.setattr(module, "SLICE", 1)
    monkeypatch.setattr(module, "LARGEST", 2)
    wrong, _ = campaign(cases(), engine="direct", jobs=3)
    assert not wrong


@Blocking
async def compare_with_every_run(total, *, engine="direct"):
    """Compare with all schedules, one after the other."""
    wrong, compared = [], 0
    for number, case in enumerate(drawn(total)):
        truth = await every_end(case, 150)
        if truth is None:
            continue
        ends = set()
        explored = await divided(case, SIZES[number % 4], on_run=lambda run, ends=ends: ends.add(end_of(run)))
        if explored.executions == 1:
            continue  # nothing was left to divide
        compared += 1
        if not explored.complete or ends != truth[0]:
            wrong.append(number)
    return wrong, compared


def test_the_parts_have_every_end_that_there_is():
    wrong, compared = compare_with_every_run(120, engine="direct")
    assert not wrong
    assert compared > 15


def no_wake(state, dependence):
    """Stand in for sleeping: nobody is ever woken."""
    return state.sleep_set | {actor: state.ready[actor] for actor in state.done}


def eldest_only(state):
    """Stand in for who is awake at a cut."""
    return AWAKE(state)[:1]


AWAKE = splitting._awake


@pytest.mark.parametrize(
    ("owner", "rule", "instead"), [(Node, "sleep_set_after", no_wake), (splitting, "_awake", eldest_only)]
)
def test_the_law_notices_a_missing_rule(monkeypatch, owner, rule, instead):
    monkeypatch.setattr(owner, rule, instead)
    assert campaign([("storing", storing_case())] * 4, engine="direct")[0]
