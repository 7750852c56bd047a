"""Witnesses: both orders of two operations, run from the state in which both stand at the gate.

A race is only a statement about orders. Its witness is the pair of schedules that differ in nothing
but the order of its two sides; what comes of them says whether the race is harmful.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.checking.hang import told
from asyncsim.checking.meeting import Holding, Meeting, did
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.choices import Choices
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import COMPLETE, DEADLOCK
from asyncsim.trace.finding import Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.outcome import Judge
    from asyncsim.machine.case import Run
    from asyncsim.machine.course import Begun
    from asyncsim.trace.finding import Finding


PATIENCE = 100
"""An operation is held while others take so many steps, and twice those of the reference: who spins never ends."""


@dataclass(frozen=True, slots=True)
class Witness:
    """What the two schedules of a finding showed.

    Args:
        confirmed: both operations, and no others in their places, were brought to the gate together (or held, for
            waits).
        harmful: True: a wrong value, a changed value, or a hang; False: the same bits both ways;
            None: only window contents that no output shows differ.
        shown: in words.
        choices: of the schedule that fails; of the last one if none does.
        ending: how that schedule ends; None if the kernel raises.
        failure: the kinds of findings that this schedule shows by itself.
        schedules: how many were run.

    """

    confirmed: bool = False
    harmful: bool | None = None
    shown: str = ""
    choices: tuple[str, ...] = ()
    ending: str | None = None
    failure: frozenset[str] = frozenset()
    schedules: int = 0


async def witness(judge: Judge, finding: Finding, *, exact: bool = False, begun: Begun | None = None) -> Witness:
    """Run both orders of a finding's pairs, one pair after the other until one is harmful.

    Args:
        judge: of the runs of the case.
        finding: a race, signal race, unstable wait, order-dependent sum or overflow, with examples.
        exact: every schedule comes to these operations, so it need not be looked whether one came to others.
        begun: is given the choices of each run when it begins, as by `simulate`.

    """
    best = Witness()
    schedules = 0
    for sides in finding.examples:
        tried = await _orders(judge, finding.kind, sides, begun, exact=exact)
        schedules += tried.schedules
        if tried.harmful:
            return replace(tried, schedules=schedules)
        if tried.confirmed and (not best.confirmed or tried.harmful is None):
            best = tried
    if best.harmful is False and finding.pairs > len(finding.examples):
        shown = f"{best.shown} (in {len(finding.examples)} of {finding.pairs} pairs; the others were not run)"
        best = replace(best, harmful=None, shown=shown)
    return replace(best, schedules=schedules)


def _attempts(judge: Judge, kind: str, sides: tuple[Side, ...]) -> list[list[Meeting | Holding]]:
    """Return the schedules to compare with one another, the cheapest first."""
    patience = PATIENCE + 2 * judge.steps
    if len(sides) == 1:
        starts = [Side(actor.name, 0, actor.rank, 0, "", "", "", ()) for actor in judge.case.world.actors]
        return [[Holding(side, None, patience) for side in (sides[0], *starts)]]
    first, second = sides
    if kind == "unstable-wait" or "wait" in (first.op, second.op):
        waits = [side for side in sides if side.op == "wait"]
        orders = [Holding(second, first, patience), Holding(first, second, patience)]
        return [[*orders, *(Holding(side, None, patience) for side in waits)]]
    # Two numbers that are added to nothing make the same sum in either order, to what others added they do not.
    return [
        [Meeting(first, second, patience, late=late), Meeting(second, first, patience, late=late)]
        for late in (False, True)
    ]


async def _orders(judge: Judge, kind: str, sides: tuple[Side, ...], begun: Begun | None, *, exact: bool) -> Witness:
    """Run the attempts on one pair until one is harmful."""
    best = Witness()
    schedules = 0
    for schedulers in _attempts(judge, kind, sides):
        tried = await _attempt(judge, schedulers, () if exact else sides, begun)
        schedules += tried.schedules
        if not tried.confirmed:
            break
        if not best.confirmed or tried.harmful is not False:
            best = tried
        if tried.harmful:
            break
    return replace(best, schedules=schedules)


async def _attempt(
    judge: Judge, schedulers: Sequence[Meeting | Holding], doubted: tuple[Side, ...], begun: Begun | None
) -> Witness:
    """Run the schedules of one attempt.

    Args:
        judge: of the runs.
        schedulers: make them.
        doubted: the sides, if another operation may have stood in the place of one, from another line.
        begun: as of `witness`.

    """
    runs: list[Run] = []
    for scheduler in schedulers:
        choices = Choices(scheduler)
        # Up to where they meet, all schedules of an attempt are the same, so the first one tells the lines of all.
        record = "witness" if doubted and isinstance(scheduler, Meeting) and not runs else None
        try:
            run = await simulate.aio(judge.case, choices, record=record, engine="direct", begun=begun, notice=False)
        except KernelError as error:
            shown = f"the kernel raises in one order: {error}"
            return Witness(True, True, shown, tuple(choices.choices), schedules=len(runs) + 1)  # noqa: FBT003
        runs.append(run)
        if isinstance(scheduler, Meeting) and not (
            scheduler.met and (run.trace is None or all(did(run.trace, side) for side in doubted))
        ):
            return Witness(schedules=len(runs))
    found = await _compare(judge, runs)
    astray = any(isinstance(scheduler, Holding) and scheduler.astray for scheduler in schedulers[:2])
    return replace(found, confirmed=bool(found.harmful) or not astray, schedules=len(runs))


async def _compare(judge: Judge, runs: list[Run]) -> Witness:
    """Say what schedules that differ only in the order of a pair made of it."""
    alike = all(judge.digests(run) == judge.digests(runs[0]) and run.ending == runs[0].ending for run in runs)
    if alike:
        return _same_outputs(runs)
    failing = [(run, findings) for run in runs if (findings := judge.findings(run))]
    if not failing:
        shown = "the outputs of the two orders differ in their bits, each within the tolerance"
        # The one that the fair schedule does not give: its replay shows the difference.
        return _of(next((run for run in reversed(runs) if not judge.is_reference(run)), runs[-1]), shown, harmful=True)
    # The one that fails alone says more than one that fails in every order.
    run, findings = min(failing, key=lambda pair: (pair[0].ending == COMPLETE, len(pair[0].choices)))
    words = [await _words(finding, run) for finding in findings]
    return _of(run, "; ".join(words), findings, harmful=True)


async def _words(finding: Finding, run: Run) -> str:
    if finding.kind == DEADLOCK:
        # Witnesses run without a recorder; the one that hangs runs again with it, to say who waits, and why for ever.
        return f"it hangs after {len(run.choices)} steps: {told(run.case, finding, run.choices).why}"
    return finding.why if finding.kind == "wrong-result" else f"{finding.kind}: {finding.why}"


def _of(run: Run, shown: str, findings: Sequence[Finding] = (), *, harmful: bool | None) -> Witness:
    kinds = frozenset(finding.kind for finding in findings)
    return Witness(harmful=harmful, shown=shown, choices=tuple(run.choices), ending=run.ending, failure=kinds)


def _same_outputs(runs: list[Run]) -> Witness:
    windows = {digest_bytes(b"".join(array.tobytes() for array in run.windows)) for run in runs}
    if len(windows) == 1:
        return _of(runs[-1], "the same bits in both orders", harmful=False)
    shown = "the outputs are the same in both orders, but the windows end with other contents"
    nothing_returned = all(y is None for ys in runs[0].outputs for y in ys)
    return _of(runs[-1], shown, harmful=True if nothing_returned else None)
