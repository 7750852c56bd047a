"""The witness of an overflow: a run in which that very cell leaves its range, or wraps and does harm by it.

Each actor is held in turn, from the start and at the operation that the analysis names, as long as any other can
move. A run that fails though the cell stayed in its range is not a witness of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.checking.witness.rendezvous import HeldOperation
from asyncsim.checking.witness.swapped import hold_limit, orders_agree
from asyncsim.checking.witness.witness import Witness, failures_in_words
from asyncsim.machine.direct import drive
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import OVERFLOW
from asyncsim.trace.finding import Side
from asyncsim.trace.kinds import EFFECTS
from asyncsim.trace.op import change_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.witness.swapped import Pairs
    from asyncsim.machine.case import Run
    from asyncsim.machine.course import Begun
    from asyncsim.trace.event import Event
    from asyncsim.trace.finding import Finding


@dataclass(frozen=True, slots=True)
class _Left:
    """Where a cell left its range: the operation, its number among its actor's, and the values around it."""

    event: Event
    index: int
    before: int
    after: int

    @property
    def side(self) -> Side:
        """The operation, as a side of a finding."""
        return Side.of(self.event, self.index, str(self.event.op.cell))


async def overflow_witness(
    judge: Judge, finding: Finding, disputed: Callable[[], Pairs], begun: Begun | None = None
) -> Witness:
    """Hold each actor in turn until a cell of the finding leaves its range.

    Args:
        judge: of the runs of the case.
        finding: an overflow, with examples.
        disputed: makes the pairs whose order may be either.
        begun: called with the choices of each run when it begins, as by `simulate`.

    """
    best = Witness()
    schedules, confirmed = 0, set()
    for actor, index in _held(judge, finding):
        schedules += 1
        scheduler = HeldOperation(actor, index, hold_limit(judge))
        try:
            run = await simulate.aio(judge.case, scheduler, record="witness", engine="direct", begun=begun)
        except KernelError:
            continue
        for number, (side,) in enumerate(finding.examples):
            left = _left(run, side.region)
            if left is not None:
                confirmed.add(number)
                found = await _seen(judge, run, left, disputed)
                if not best.confirmed or (found.harmful and not best.harmful):
                    best = replace(found, example=number)
    return replace(best, schedules=schedules, pairs=len(confirmed))


def _held(judge: Judge, finding: Finding) -> list[tuple[str, int]]:
    """Return which actors to hold, and where: at the named operations, and each from the start."""
    named = [(side.actor, side.index) for (side,) in finding.examples]
    return list(dict.fromkeys([*named, *((actor.name, 0) for actor in judge.case.world.actors)]))


def _left(run: Run, cell: str) -> _Left | None:
    """Return where in a run a cell left its range."""
    counts: dict[str, int] = {}
    value = None
    for event in () if run.trace is None else run.trace.events:
        op = event.op
        index = counts[op.actor.name] = counts.get(op.actor.name, -1) + 1
        if op.cell is None or str(op.cell) != cell or op.deferred or change_by(op) is None:
            continue
        if value is None:
            value = run.case.world.start_of(op.cell)
        after, _ = EFFECTS[op.kind](value, op)
        if not op.cell.low <= after <= op.cell.high:
            return _Left(event, index, value, after)
        value = after
    return None


async def overflow_in_run(judge: Judge, finding: Finding, choices: Sequence[str]) -> Finding:
    """Return an overflow finding about the operation that overflows in a run, with what that run shows.

    Args:
        judge: of the case.
        finding: an overflow.
        choices: the names of the actors, step by step, of a run that shows it.

    Raises:
        RuntimeError: nothing overflows in that run.

    """
    run = drive(judge.case, Replay(choices), record="witness")
    left = _left(run, finding.sides[0].region)
    if left is None:
        raise RuntimeError("nothing overflows in the witness of an overflow")
    return finding.with_(sides=(left.side,), shown=await _words(judge, run, left))


class LeavesRange:
    """A predicate of runs: whether a cell leaves its range in it, and whether that does harm.

    Args:
        judge: of the runs.
        cell: as text.
        ending: how the run must end.
        disputed: makes the pairs whose order may be either.

    """

    def __init__(self, judge: Judge, cell: str, ending: str | None, disputed: Callable[[], Pairs]) -> None:
        self._judge = judge
        self._cell = cell
        self._ending = ending
        self._disputed = disputed

    def __call__(self, run: Run) -> bool:
        """Judge a run, which is made again to see its cells."""
        return (
            run.ending == self._ending
            and bool(_harm(self._judge, run, self._disputed))
            and _left(drive(run.case, Replay(run.choices), record="witness"), self._cell) is not None
        )


async def _seen(judge: Judge, run: Run, left: _Left, disputed: Callable[[], Pairs]) -> Witness:
    """Return what a run shows in which a cell left its range."""
    kinds = frozenset(finding.kind for finding in judge.findings(run, judge.usual))
    return Witness(
        confirmed=True, harmful=_harm(judge, run, disputed), shown=await _words(judge, run, left),
        choices=tuple(run.choices), ending=run.ending, failure=kinds, sides=(left.side,),
    )  # fmt: skip


def _harm(judge: Judge, run: Run, disputed: Callable[[], Pairs]) -> bool | None:
    """Return whether a run fails, by what its cells do and not by the order of a pair."""
    if run.ending == OVERFLOW:
        return True
    if not judge.failures(run):
        return None if judge.differs_from_reference(run) else False
    alone = judge.failures(run) - judge.usual and orders_agree(judge.fair, run.choices, disputed())
    return True if alone else None


async def _words(judge: Judge, run: Run, left: _Left) -> str:
    op = left.event.op
    text = f"rank {op.actor.rank}'s {op} takes it from {left.before} to {left.after}, in step {left.event.step}"
    if run.ending == OVERFLOW or not judge.failures(run) - judge.usual:
        return text
    return f"{text}; {await failures_in_words(judge, run)}"
