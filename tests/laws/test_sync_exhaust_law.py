"""The law of exhaustive exploration for any synchronising operation: it reaches every final state."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
import trio
from exhaust import exhaust
from sync_brute import explore, replay
from sync_programs import FAMILIES, TICKETS, program_number
from sync_runs import kernel_of
from sync_toy import parse

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.machine.case import Case
from asyncsim.trace.finding import RACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from sync_toy import Program

ORDINARY, THOROUGH = 25, 20_000
BUDGET = 20_000
LARGEST = 300
"""Programs with more final states are left out."""


async def mistakes_of(program: Program, sums: Counter[str]) -> list[str]:
    """Compare exhaustive exploration with brute force."""
    truth = explore(program)
    if len(truth.finals) > LARGEST:
        return []
    case = Case(kernel_of(program), ranks=len(program.actors), calls=1, memory="sc")
    finals = set()
    explored = await exhaust.aio(
        case, budget=BUDGET, judge=Judge(case), on_run=lambda run: finals.add(replay(program, map(int, run.choices)))
    )
    sums.update(programs=1, executions=explored.executions, finals=len(truth.finals))
    mistakes = [] if explored.complete else ["it did not come to an end"]
    if finals != truth.finals:
        mistakes.append(f"it reaches {len(finals & truth.finals)} final states of {len(truth.finals)}")
    if not any(op.only for ops in program.actors for op in ops):  # what is left out counts in no stream
        met = {frozenset((int(name), at) for name, at, *_ in pair) for what, *pair in explored.races if what == RACE}
        mistakes += [f"missed race {sorted(pair)}" for pair in truth.races - met]
        mistakes += [f"false race {sorted(pair)}" for pair in met - truth.races]
    return mistakes


@pytest.mark.law
def test_the_law(programs_of: Callable[[int, int], int]) -> None:
    each = programs_of(ORDINARY, THOROUGH)
    sums: Counter[str] = Counter()
    wrong = []

    async def campaign() -> None:
        for family in (*FAMILIES, TICKETS):
            for number in range(each):
                program = program_number(family, number)
                wrong.extend(f"{program}: {mistake}" for mistake in await mistakes_of(program, sums))

    trio.run(campaign)
    assert not wrong, "\n".join(wrong[:5])
    assert sums["executions"] <= 8 * sums["finals"], sums


CROWDED = [
    # C17: which of the subtractions keeps the consuming wait from passing decides what may come before it.
    "ld x; wait c >= 1 c += -1; st x || c += -1; c += -1 || ld x; c += -1; st y || st x",
    "ld x; wait c == 1 c += -1; st x || c += 1; c += 1 || ld x; c += 1; st y || st x",
    "ld x; wait c <= 1 c += 1; st x || c += 1; c += 1 || ld x; c += 1; st y || st x",
    "ld x; wait c < 2 c := 0; st x || c max 2; c max 3 || ld x; c max 2; st y || st x",
    "ld x; wait c == 1 c := 0; st x || c |= 2; c |= 4 || ld x; c |= 2; st y || st x",
    "ld x; wait c == 1 c := 0; st x || c ^= 2; c ^= 4 || ld x; c ^= 2; st y || st x",
    "ld x; wait c == 1 c := 0; st x || c &= 2; c &= 4 || ld x; c &= 2; st y || st x",
    "ld x; wait c >= 1 c += -1; st x || c := 0; c := 0 || ld x; c := 0; st y || st x",  # equal Sets are independent
    "ld x; wait c > 0 c := 3; st x || c min 0; c min -1 || ld x; c min 0; st y || st x",
]


@pytest.mark.parametrize("text", CROWDED)
def test_no_final_state_is_lost_to_updates_that_commute(text: str) -> None:
    assert not trio.run(mistakes_of, parse(text, starts=(1,)), Counter())
