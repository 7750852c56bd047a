"""What a report says against what its replay lines do: title, sides, words, ending and token belong together."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import late_programs
import late_runs
import naive
import numpy as np
import programs
import trio
from late_families import FAMILIES as LATE_FAMILIES

from asyncsim.checking.ends import DIFFER
from asyncsim.checking.outcome import Judge
from asyncsim.checking.replay import replay
from asyncsim.checking.swapped import Swap
from asyncsim.checking.symptoms import Symptoms
from asyncsim.checking.witness import shown_by
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.kernel import Kernel
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.errors import AsyncsimError
from asyncsim.trace.token import decode

if TYPE_CHECKING:
    from asyncsim.checking.report import Report
    from asyncsim.trace.finding import Finding

PAIRED = ("race", "signal-race", "unstable-wait", "order-dependent-sum")
BY_THEMSELVES = ("deadlock", "wrong-result", "overflow", "step-limit", "unwritten-read", "ranks-differ")


def random_case(number: int) -> Case:
    """Return always the same racy program for the same number: all ranks, streams and memories in turn."""
    rng = random.Random(f"told {number}")  # noqa: S311 - dice, no secret
    kind = number % 4
    if kind == 0:
        family = programs.FAMILIES[number // 4 % len(programs.FAMILIES)]
        program = programs.program_number(family, number)
        return Case(programs.kernel_of(program), len(program.actors), program.calls)
    if kind == 1:
        return naive.case_of(naive.draw(rng, naive.ANYTHING, 9, streams=rng.random() < 0.3))
    family = sorted(LATE_FAMILIES)[number // 4 % len(LATE_FAMILIES)]
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


def slips(report: Report) -> list[str]:
    """Return where a report contradicts what its replay lines do."""
    case = report.case
    judge = Judge(case)
    fair = drive(case, Fifo(), record="fifo")
    judge.take_as_reference(fair)
    found = []
    for finding in report.findings:
        if finding.token is not None:
            found += [f"{finding.title}: {slip}" for slip in _slips(finding, case, judge, fair.choices)]
        elif finding.harmful:
            found.append(f"{finding.title}: harmful, and nothing replays it")
    return found


def _slips(finding: Finding, case: Case, judge: Judge, fair: list[str]) -> list[str]:
    token = decode(finding.token or "")
    try:
        run = replay(token, case.kernel, engine="direct").run
    except AsyncsimError as error:
        return [f"does not replay: {type(error).__name__}: {error}"]
    found = []
    kinds = {each.kind for each in Symptoms(case).findings(run)}
    if finding.kind in BY_THEMSELVES and finding.harmful and finding.kind not in kinds and len(finding.examples) == 0:
        found.append(f"the replay shows {sorted(kinds)}")
    if finding.kind in PAIRED:
        swap = Swap(*finding.sides)
        if swap.inverted(fair):
            found.append("the sides are not in the order of the fair run")
        if finding.harmful:
            found += _harm(finding, judge, swap, run)
    if finding.kind == "overflow" and finding.examples and str(finding.harmful) == "True" and not judge.failures(run):
        found.append("nothing overflows or fails")
    return found


def trio_run(function: Any, *arguments: Any) -> Any:
    """Run an async function that waits for nothing but runs."""
    return trio.run(partial(function, *arguments))


def _harm(finding: Finding, judge: Judge, swap: Swap, run: Any) -> list[str]:
    found = []
    inverted = swap.inverted(run.choices)
    if not inverted and not judge.usual:
        found.append("the pair of the title is in order in its witness")
    fails = judge.failures(run) - judge.usual
    if fails:
        words = trio_run(shown_by, judge, run)
        if finding.shown == DIFFER:
            return found
        if not finding.shown.startswith(words):
            found.append(f"the report says {finding.shown!r}, the replay {words!r}")
    if inverted and fails:
        scheduler = swap.fair(run.choices, 10_000)
        other = drive(run.case, scheduler)
        if not scheduler.reversed:
            found.append("the pair cannot come in the order of the fair run")
        if not fails - judge.failures(other):
            found.append("it fails the same with the pair in order")
    return found
