"""Witnesses: both orders of two operations, run from the state in which both are ready.

A race is only a statement about orders. Its witness is a failing run in which the two sides come the other way
round than in the fair one, and which does not fail with the two in their order and all else the same. So no
finding stands on what another one does: not a race, not a credit that another actor can consume, not an overflow.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.symptoms import describe_hang
from asyncsim.checking.search.ends import DIFFER
from asyncsim.checking.witness.rendezvous import HOWS, HeldOperation, PairReversal, Rendezvous, run_matches_side
from asyncsim.checking.witness.swapped import Swap, differ_in_pair_alone, hold_limit
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.choices import Choices
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import DEADLOCK
from asyncsim.trace.kinds import WAITING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.machine.case import Run
    from asyncsim.machine.course import Begun
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.finding import Finding, Side

SAME = "the same bits in both orders"
BOTH_RIGHT = "another result in each order, and both are right"


@dataclass(frozen=True, slots=True)
class Witness:
    """What the schedules of a finding showed.

    Args:
        confirmed: both operations, and no others in their places, were brought to the gate together.
        harmful: True: a wrong value, a changed value, or a hang; False: the same bits both ways;
            None: that was not shown.
        shown: in words.
        choices: of the schedule that fails; of the last one if none does.
        ending: how that schedule ends; None if the kernel raises.
        failure: the kinds of findings that this schedule shows by itself.
        right: with the pair in the order of the fair run the schedule does not fail; else it fails in another way.
        schedules: how many were run.
        example: the number of the pair that it is about.
        sides: the operations, where they are not those of the example.
        pairs: how many pairs were brought together.
        memory: the memory model of the schedule, if not that of the case: it names the reads that go back.

    """

    confirmed: bool = False
    harmful: bool | None = None
    shown: str = ""
    choices: Sequence[str] = ()
    ending: str | None = None
    failure: frozenset[str] = frozenset()
    right: bool = False
    schedules: int = 0
    example: int = 0
    sides: tuple[Side, ...] = ()
    pairs: int = 0
    memory: str = ""


@dataclass(frozen=True, slots=True)
class _Tried:
    """One run of a witness: a run, or what the kernel raised in it."""

    choices: Sequence[str]
    run: Run | None = None
    error: str = ""


async def race_witness(judge: Judge, finding: Finding, *, exact: bool = False, begun: Begun | None = None) -> Witness:
    """Run both orders of a finding's pairs, one pair after the other until one is harmful.

    Args:
        judge: of the runs of the case.
        finding: a race, signal race, unstable wait or order-dependent sum, with examples.
        exact: every schedule executes these operations, so that need not be examined, and the number of pairs is
            that of the analysis. Else all examples are brought together, to count them.
        begun: called with the choices of each run when it begins, as by `simulate`.

    """
    best = Witness()
    schedules = confirmed = 0
    for number, (first, second) in enumerate(finding.examples):
        trial = _Trial(judge, finding.kind, Swap(first, second), begun, exact=exact)
        tried = await trial.orders(further=not best.harmful)
        schedules += trial.schedules
        confirmed += tried.confirmed
        if tried.confirmed and (not best.confirmed or _rank(tried) > _rank(best)):
            best = replace(tried, example=number)
        if best.harmful and exact:
            break
    if best.harmful is False and exact and finding.pairs > len(finding.examples):
        shown = f"{best.shown} (in {len(finding.examples)} of {finding.pairs} pairs; the others were not run)"
        best = replace(best, harmful=None, shown=shown)
    return replace(best, schedules=schedules, pairs=finding.pairs if exact else confirmed)


def _rank(found: Witness) -> int:
    """Return how strong a witness is: most of all one that is right in the fair order."""
    return {False: 0, None: 1, True: 2}[found.harmful] + found.right


class _Trial:
    """The orders of one pair.

    Args:
        judge: of the runs.
        kind: of the finding.
        swap: the pair.
        begun: as of `witness`.
        exact: as of `witness`.

    """

    def __init__(self, judge: Judge, kind: str, swap: Swap, begun: Begun | None, *, exact: bool) -> None:
        self.schedules = 0
        self._judge = judge
        self._kind = kind
        self._swap = swap
        self._begun = begun
        self._exact = exact
        self._patience = hold_limit(judge)

    async def orders(self, *, further: bool) -> Witness:
        """Make pairs of runs until one shows harm.

        Args:
            further: search for harm; else it is enough that the two can be brought together.

        """
        best = Witness()
        async with aclosing(self._both()) as pairs:
            async for one, other in pairs:
                found = await self._compared(one, other) if further else Witness(harmful=False)
                if not best.confirmed or _rank(found) > _rank(best):
                    best = replace(found, confirmed=True)
                if (best.harmful and best.right) or not further:
                    break
        return best

    async def _both(self) -> AsyncGenerator[tuple[_Tried, _Tried], None]:
        """Yield pairs of runs: with the sides in the order of the fair run, and the other way round."""
        first, second = self._swap.first, self._swap.second
        for how in HOWS:
            meeting = Rendezvous(first, second, self._judge.fair, self._patience, how=how)
            one = await self._run(meeting, recorded=not self._exact)
            if not meeting.met or not self._is_meant(one):
                continue
            for eager in self._eager():
                turned = PairReversal(one.choices, first, second, self._patience, eager=eager)
                other = await self._run(turned)
                if turned.reversed and (pair := await self._with_fair(one, other)):
                    yield pair
        for side in (first, second):
            if side.op in WAITING:
                other = await self._run(HeldOperation(side.actor, side.index, self._patience), recorded=not self._exact)
                if self._swap.inverted(other.choices) and self._is_meant(other):
                    scheduler = self._swap.fair(other.choices, self._patience)
                    one = await self._run(scheduler)
                    if scheduler.reversed:
                        yield one, other

    def _eager(self) -> list[str | None]:
        """Return the actors to run first, once the pair is reversed: those that may wait for a credit too soon."""
        if self._kind not in ("signal-race", "unstable-wait"):
            return [None]
        sides = self._swap.first, self._swap.second
        owner = sides[0].region.rpartition("@")[2]
        return [None, *dict.fromkeys([owner, *(side.actor.partition(">")[0] for side in sides)])]

    async def _with_fair(self, one: _Tried, other: _Tried) -> tuple[_Tried, _Tried] | None:
        """Return the other run with what differs from it in the order of the pair alone."""
        if differ_in_pair_alone(one.choices, other.choices, self._swap):
            return one, other
        scheduler = self._swap.fair(other.choices, self._patience)
        back = await self._run(scheduler)
        return (back, other) if scheduler.reversed else None

    async def _run(self, scheduler: Scheduler, *, recorded: bool = False) -> _Tried:
        self.schedules += 1
        choices = Choices(scheduler)
        record = "witness" if recorded else None
        try:
            run = await simulate.aio(
                self._judge.case, choices, record=record, engine="direct", begun=self._begun, notice=False
            )
        except KernelError as error:
            return _Tried(choices.choices, error=str(error))
        return _Tried(run.choices, run)

    def _is_meant(self, tried: _Tried) -> bool:
        """Return whether the sides were the operations that they name, from their lines; known of a recorded run."""
        if tried.run is None or tried.run.trace is None:
            return True
        return all(run_matches_side(tried.run.trace, side) for side in (self._swap.first, self._swap.second))

    async def _compared(self, one: _Tried, other: _Tried) -> Witness:
        """Return what the order of the pair does: `one` has that of the fair run, `other` the other."""
        judge = self._judge
        here, there = (self._failures(tried) for tried in (one, other))
        if there - here - judge.usual:
            return replace(await self._failing(other, judge.usual), right=not here - judge.usual)
        if here - there and judge.usual and not there - judge.usual:
            # The fair run fails itself: this one is near it, and is left as it is.
            return replace(await self._failing(one, there), right=True, failure=frozenset())
        if one.run is None or other.run is None:
            return Witness()
        if here != there:
            return Witness(shown="both orders fail here: the schedule turns other races round, too")
        same = judge.digests(one.run) == judge.digests(other.run)
        if same or judge.another_right_result(one.run, other.run):
            return _same_outputs(one.run, other.run) if same else _of(other.run, BOTH_RIGHT, harmful=False)
        shown = DIFFER if here else f"{DIFFER}, each within the tolerance"
        # The one that differs from the fair run: its replay shows the difference.
        return _of(one.run if judge.is_reference(other.run) else other.run, shown, harmful=True)

    def _failures(self, tried: _Tried) -> frozenset[str]:
        return self._judge.failures(tried.run) if tried.run is not None else frozenset([tried.error])

    async def _failing(self, tried: _Tried, beside: frozenset[str]) -> Witness:
        if tried.run is None:
            return Witness(
                harmful=True, shown=f"the kernel raises in one order: {tried.error}", choices=tuple(tried.choices)
            )
        findings = self._judge.findings(tried.run, beside)
        return _of(tried.run, await failures_in_words(self._judge, tried.run, beside), findings, harmful=True)


async def failures_in_words(judge: Judge, run: Run, beside: frozenset[str] | None = None) -> str:
    """Return in words what a failing run shows.

    Args:
        judge: of the case.
        run: one that fails.
        beside: failures that are left out; None: those of the fair run.

    """
    findings = judge.findings(run, judge.usual if beside is None else beside)
    return "; ".join([await _words(finding, run) for finding in findings])


async def _words(finding: Finding, run: Run) -> str:
    if finding.kind == DEADLOCK:
        # Witnesses run without a recorder; the one that hangs runs again with it, for what waits, and why for ever.
        return f"it hangs after {len(run.choices)} steps: {describe_hang(run.case, finding, run.choices).why}"
    return finding.why if finding.kind == "wrong-result" else f"{finding.kind}: {finding.why}"


def _of(run: Run, shown: str, findings: Sequence[Finding] = (), *, harmful: bool | None) -> Witness:
    kinds = frozenset(finding.kind for finding in findings)
    return Witness(harmful=harmful, shown=shown, choices=run.choices, ending=run.ending, failure=kinds)


def _same_outputs(one: Run, other: Run) -> Witness:
    windows = {digest_bytes(b"".join(array.tobytes() for array in run.windows)) for run in (one, other)}
    if len(windows) == 1:
        return _of(other, SAME, harmful=False)
    shown = "the outputs are the same in both orders, but the windows end with other contents"
    nothing_returned = all(y is None for ys in one.outputs for y in ys)
    return _of(other, shown, harmful=True if nothing_returned else None)
