"""What a report says against what its replay lines do: title, sides, words, ending and token belong together."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import late_programs
import late_runs
import naive
import numpy as np
import programs
import trio
from late_families import FAMILIES as LATE_FAMILIES
from toy import LOAD, STORE, Op

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.record.replay import replay
from asyncsim.checking.search.ends import DIFFER
from asyncsim.checking.witness.swapped import Swap
from asyncsim.checking.witness.witness import failures_in_words
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.kernel import Kernel
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.errors import AsyncsimError
from asyncsim.trace.late import model_of
from asyncsim.trace.token import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toy import Program

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.case import Run
    from asyncsim.trace.finding import Finding, Side

PAIRED = ("race", "signal-race", "unstable-wait", "order-dependent-sum")


def random_case(number: int) -> Case:
    """Return always the same program for the same number: all families, ranks, streams and memories in turn."""
    rng = random.Random(f"told {number}")  # noqa: S311 - dice, no secret
    turn, kind = divmod(number, 4)
    if kind == 0:
        program = programs.program_number(programs.FAMILIES[turn % len(programs.FAMILIES)], number)
        return Case(programs.kernel_of(program), len(program.actors), program.calls)
    if kind == 1:
        return naive.case_of(naive.draw(rng, naive.ANYTHING, 9, streams=rng.random() < 0.3))
    family = sorted(LATE_FAMILIES)[turn % len(LATE_FAMILIES)]
    late = late_programs.program_number(family, number, total=rng.choice((6, 9, 12)))
    return Case(returning(late), len(late.ranks), 1, ("ldst", "nic")[kind - 2])


def returning(program: Any) -> Kernel:
    """Make a kernel of a late program, each rank of which returns what its loads and tests gave."""
    data = Window("data", (len(program.elements),), np.int64, initialised=True)
    cells = (Signal(f"cell{number}", (1,), start=start) for number, start in enumerate(program.starts))
    return Kernel(run_returning, memory=(data, *cells), params={"program": program})


async def run_returning(rank: Any, *memory: Any, program: Any) -> list[int]:
    """Do what the program says of this rank."""
    log: dict[tuple[int, int], int] = {}
    await late_runs._run_rank(rank, *memory, program=program, log=log)
    return [value for _, value in sorted(log.items())]


def beside_a_race(program: Program, rng: random.Random) -> Program:
    """Add a race that has nothing to do with the rest: a store and a load of an own element, first or last of all."""
    element = len(program.elements)
    last = rng.random() < 0.6
    racing = {0: Op(STORE, element), 1: Op(LOAD, element)}
    actors = [
        (*ops, racing[rank]) if rank in racing and last else (racing[rank], *ops) if rank in racing else ops
        for rank, ops in enumerate(program.actors)
    ]
    return replace(program, actors=tuple(actors), elements=(*program.elements, 1))


def step_of(choices: Sequence[str], side: Side) -> int | None:
    """Return the step of a side's operation; None if it was not executed."""
    own = [step for step, name in enumerate(choices) if name == side.actor]
    return own[side.index] if side.index < len(own) else None


def is_inverted(choices: Sequence[str], sides: Sequence[Side]) -> bool:
    """Say whether the second side was executed, and the first not before it."""
    first, second = (step_of(choices, side) for side in sides)
    return second is not None and (first is None or second < first)


def slips(report: Report) -> list[str]:
    """Return where a report contradicts what its replay lines do."""
    case = report.case
    judge = Judge(case)
    fair = drive(case, Fifo(), record="fifo")
    judge.set_reference(fair)
    judge.set_fair_run(fair)
    found = []
    for finding in report.findings:
        if finding.token is not None:
            found += [f"{finding.title}: {slip}" for slip in _slips(finding, case, judge, fair.choices)]
        elif finding.harmful:
            found.append(f"{finding.title}: harmful, and nothing replays it")
    return found


def _slips(finding: Finding, case: Case, judge: Judge, fair: list[str]) -> list[str]:
    try:
        run = replay(decode(finding.token or ""), case.kernel, engine="direct").run
    except AsyncsimError as error:
        return [f"does not replay: {type(error).__name__}: {error}"]
    if finding.kind in PAIRED:
        found = ["the sides are not in the order of the fair run"] if is_inverted(fair, finding.sides) else []
        return found + (_harm(finding, judge, run) if finding.harmful else [])
    if finding.kind == "overflow" and finding.examples and finding.harmful:
        return _leaving(finding, run)
    kinds = {each.kind for each in Symptoms(case).findings(run)}
    return [] if finding.kind in kinds or not finding.harmful else [f"the replay shows {sorted(kinds)}"]


def _harm(finding: Finding, judge: Judge, run: Run) -> list[str]:
    """Hold the failing run against what is told of it, and against itself with the pair in order."""
    old = model_of(run.case.memory).old or {}
    if any((side.actor, side.index) in old for side in finding.sides):  # it returns what was there before
        return [] if judge.failures(run) else ["the older version does no harm"]
    if not is_inverted(run.choices, finding.sides):
        return [] if judge.usual else ["the pair of the title is in order in its witness"]
    fails = judge.failures(run) - judge.usual
    if finding.shown.startswith(DIFFER) or not fails:
        return []
    found = []
    words = trio.run(partial(failures_in_words, judge, run))
    if not finding.shown.startswith(words):
        found.append(f"the report says {finding.shown!r}, the replay {words!r}")
    scheduler = Swap(*finding.sides).fair(run.choices, 10_000)  # type: ignore[misc]  # they are two
    if not fails - judge.failures(drive(run.case, scheduler)):
        found.append("it fails the same with the pair in order")
    return found


def _leaving(finding: Finding, run: Run) -> list[str]:
    """Look for the operation of the title in the replay: there the cell leaves its range."""
    (side,) = finding.sides
    step = step_of(run.choices, side)
    if step is None or run.trace is None:
        return ["what overflows was not executed"]
    op = run.trace.events[step].op
    if op.cell is None or str(op.cell) != side.region:
        return [f"the replay does something else there: {op}"]
    told = f"takes it from {_before(run, step)} to "
    return [] if told in finding.shown else [f"the report says {finding.shown!r}, the replay {told!r}"]


def _before(run: Run, step: int) -> int:
    """Return what the cell of a step held before it, by what was done to it."""
    events = run.trace.events if run.trace is not None else []
    cell = events[step].op.cell
    assert cell is not None
    value = int(run.case.world.layouts[cell.signal].start)  # type: ignore[union-attr]  # a cell's is a signal
    for event in events[:step]:
        op = event.op
        if str(op.cell) != str(cell) or op.deferred or op.kind == "test" or (op.kind == "wait" and not op.consume):
            continue
        value = op.amount if op.how == "Set" else value - op.amount if op.consume else value + op.amount
        value = int(cell.wrapped(value)) if cell.wrap else value
    return value
