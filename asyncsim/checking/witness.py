"""Witnesses: both orders of two operations, run from the state in which both stand at the gate.

A race is only a statement about orders. Its witness is the pair of schedules that differ in nothing
but the order of its two sides; what comes of them says whether the race is harmful.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.analysis.deadlock import deadlock
from asyncsim.analysis.streams import Streams
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.choices import Choices
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import COMPLETE, DEADLOCK
from asyncsim.trace.finding import Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.outcome import Judge
    from asyncsim.machine.case import Case, Run
    from asyncsim.trace.finding import Finding
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


@dataclass(frozen=True, slots=True)
class Witness:
    """What the two schedules of a finding showed.

    Args:
        confirmed: both operations were brought to the gate together (or held, for waits).
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


class Meeting:
    """Brings two actors to their operations, everyone else in fair turn, then lets one go first.

    Args:
        first, second: the sides; `first` goes before `second`.
        late: hold them for as long as anybody else can move; else only until both have come.

    """

    def __init__(self, first: Side, second: Side, *, late: bool = False) -> None:
        """Hold both sides until both stand at the gate."""
        self._targets = {first.actor: first.index, second.actor: second.index}
        self._order = (first.actor, second.actor)
        self._late = late
        self.met = False

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._done = {actor.name: 0 for actor in actors}
        self._fair = Fifo()
        self._fair.begin(actors)
        self._next: list[str] = []
        self._over = False
        self.met = False

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose in fair turn among those that are not held; the two sides when they have met."""
        op = self._choose(ready)
        self._done[op.actor.name] = self._done.get(op.actor.name, 0) + 1
        return op

    def _choose(self, ready: Sequence[Op]) -> Op:
        if not self._over and not self.met:
            held = [op for op in ready if self._targets.get(op.actor.name) == self._done.get(op.actor.name, 0)]
            free = [op for op in ready if op not in held]
            if len(held) == len(self._order) and not (self._late and free):
                self.met = True
                self._next = list(self._order)
            elif free:
                return self._fair.choose(free)
            else:
                self._over = True  # they cannot meet: go on in fair turn
        if self._next:
            name = self._next.pop(0)
            chosen = next((op for op in ready if op.actor.name == name), None)
            if chosen is not None:
                return chosen
        return self._fair.choose(ready)


class Holding:
    """Holds one operation until another was executed, or until nobody else can go on.

    Args:
        held: the side that is held.
        until: the side it waits for; None: hold as long as anybody else can move.

    """

    def __init__(self, held: Side, until: Side | None) -> None:
        """Hold `held`."""
        self._held = held
        self._until = until

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._done = {actor.name: 0 for actor in actors}
        self._fair = Fifo()
        self._fair.begin(actors)
        self._free = False

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose in fair turn among those that are not held."""
        until = self._until
        if until is not None and self._done.get(until.actor, 0) > until.index:
            self._free = True
        others = [op for op in ready if not self._stops(op)]
        if not others:
            self._free = True
        op = self._fair.choose(others or ready)
        self._done[op.actor.name] = self._done.get(op.actor.name, 0) + 1
        return op

    def _stops(self, op: Op) -> bool:
        return (
            not self._free
            and op.actor.name == self._held.actor
            and self._done.get(op.actor.name, 0) == self._held.index
        )


async def witness(case: Case, judge: Judge, finding: Finding) -> Witness:
    """Run both orders of a finding's pairs, one pair after the other until one is harmful.

    Args:
        case: the case.
        judge: of its runs.
        finding: a race, signal race, unstable wait, order-dependent sum or overflow, with examples.

    """
    best = Witness()
    schedules = 0
    for sides in finding.examples:
        tried = await _orders(case, judge, finding.kind, sides)
        schedules += tried.schedules
        if tried.harmful:
            return replace(tried, schedules=schedules)
        if tried.confirmed and (not best.confirmed or tried.harmful is None):
            best = tried
    if best.harmful is False and finding.pairs > len(finding.examples):
        shown = f"{best.shown} (in {len(finding.examples)} of {finding.pairs} pairs; the others were not run)"
        best = replace(best, harmful=None, shown=shown)
    return replace(best, schedules=schedules)


def _attempts(case: Case, kind: str, sides: tuple[Side, ...]) -> list[list[Meeting | Holding]]:
    """Return the schedules to compare with one another, the cheapest first."""
    if len(sides) == 1:
        starts = [Side(actor.name, 0, actor.rank, 0, "", "", "", ()) for actor in case.world.actors]
        return [[Holding(side, None) for side in (sides[0], *starts)]]
    first, second = sides
    if kind == "unstable-wait" or "wait" in (first.op, second.op):
        waits = [side for side in sides if side.op == "wait"]
        return [[Holding(second, first), Holding(first, second), *(Holding(side, None) for side in waits)]]
    # Two numbers that are added to nothing make the same sum in either order, to what others added they do not.
    return [[Meeting(first, second, late=late), Meeting(second, first, late=late)] for late in (False, True)]


async def _orders(case: Case, judge: Judge, kind: str, sides: tuple[Side, ...]) -> Witness:
    """Run the attempts on one pair until one is harmful."""
    best = Witness()
    schedules = 0
    for schedulers in _attempts(case, kind, sides):
        tried = await _attempt(case, judge, schedulers)
        schedules += tried.schedules
        if not tried.confirmed:
            break
        if not best.confirmed or tried.harmful is not False:
            best = tried
        if tried.harmful:
            break
    return replace(best, schedules=schedules)


async def _attempt(case: Case, judge: Judge, schedulers: Sequence[Meeting | Holding]) -> Witness:
    runs: list[Run] = []
    for scheduler in schedulers:
        choices = Choices(scheduler)
        try:
            run = await simulate.aio(case, choices, engine="direct")
        except KernelError as error:
            shown = f"the kernel raises in one order: {error}"
            return Witness(True, True, shown, tuple(choices.choices), schedules=len(runs) + 1)  # noqa: FBT003
        runs.append(run)
        if isinstance(scheduler, Meeting) and not scheduler.met:
            return Witness(schedules=len(runs))
    return replace(await _compare(judge, runs), confirmed=True, schedules=len(runs))


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
        again = await simulate.aio(run.case, Replay(run.choices), record="replay", engine="direct")
        why = f": {deadlock(Streams(again.trace)).why}" if again.trace is not None else ""
        return f"it hangs after {len(run.choices)} steps{why}"
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
