"""Two runs that differ in the order of one pair: what the one shows and the other does not, that order has done.

A race is harmful by what its own order does, and not by that of another race that the same schedule turned
round. So a failing run is held against its counterpart: the same choices, followed as far as they can be, with
this pair in the order of the fair run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from operator import ne
from typing import TYPE_CHECKING

from asyncsim.checking.witness.rendezvous import PairReversal, run_matches_side
from asyncsim.machine.direct import drive
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import KernelError
from asyncsim.trace.kinds import WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.machine.case import Case, Run
    from asyncsim.trace.finding import Side

    Pairs = Iterable[frozenset[tuple[str, int]]]

PATIENCE = 100
"""An operation is held for so many steps of others, and twice those of the reference: a spinning actor never ends."""


@dataclass(frozen=True, slots=True)
class Swap:
    """A pair of operations, in the order of the fair run."""

    first: Side
    second: Side

    def inverted(self, choices: Sequence[str]) -> bool:
        """Return whether in these choices the second was executed, and the first not before it."""
        first, second = (step_of_side(choices, side) for side in (self.first, self.second))
        return second is not None and (first is None or second < first)

    def fair(self, choices: Sequence[str], patience: int) -> PairReversal:
        """Return what follows a run in which it is inverted, and puts it right.

        Args:
            choices: the names of the actors, step by step, of the run.
            patience: how many steps an operation is held at most.

        """
        return PairReversal(choices, self.second, self.first, patience)


def hold_limit(judge: Judge) -> int:
    """Return how many steps an operation is held at most."""
    return PATIENCE + 2 * judge.steps


def step_of_side(choices: Sequence[str], side: Side) -> int | None:
    """Return the step in which a side was executed; None if it was not.

    Args:
        choices: the names of the actors, step by step, of a run.
        side: names an actor and the index of an operation of it.

    """
    steps = (step for step, name in enumerate(choices) if name == side.actor)
    return next(islice(steps, side.index, None), None)


def differ_in_pair_alone(one: Sequence[str], other: Sequence[str], swap: Swap) -> bool:
    """Return whether two runs are the same but for the pair, whose sides follow one another in both.

    Args:
        one: the choices of a run in which the pair is in order.
        other: those of the other run.
        swap: the pair.

    """
    at = step_of_side(one, swap.first)
    if at is None or len(one) != len(other):
        return False
    names = [swap.first.actor, swap.second.actor]
    apart = sum(map(ne, one, other))  # no copies: the lists can be very long
    return apart == len(names) and list(one[at : at + 2]) == names and list(other[at : at + 2]) == names[::-1]


class FailsByPair:
    """A predicate of runs: whether it fails in a given way, and by the order of one pair alone.

    Args:
        judge: of the runs.
        swap: the pair.
        known: the choices of a run that does.
        kinds: of findings, one of which the run must show.
        ending: how it must end.
        right: its counterpart must not fail at all; else it must fail in another way.
        disputed: makes the pairs whose order may be either, this one among them.
        doubted: another operation may be in the place of a side.

    """

    def __init__(  # noqa: PLR0913 - what the run is asked for
        self,
        judge: Judge,
        swap: Swap,
        *,
        known: Sequence[str],
        kinds: frozenset[str],
        ending: str | None,
        right: bool,
        disputed: Callable[[], Pairs],
        doubted: bool,
    ) -> None:
        self._judge = judge
        self._swap = swap
        self._known = known
        self._kinds = kinds
        self._ending = ending
        self._right = right
        self._disputed = disputed
        self._doubted = doubted
        self._pairs: Pairs | None = None

    def __call__(self, run: Run) -> bool:
        """Judge a run, and make its counterpart."""
        if len(run.choices) == len(self._known) and not any(map(ne, run.choices, self._known)):  # no copies, as above
            return True
        if run.ending != self._ending or not self._swap.inverted(run.choices):
            return False
        kinds = {finding.kind for finding in self._judge.findings(run, self._judge.usual)}
        return bool(kinds & self._kinds) and self._by_the_pair(run) and self._is_meant(run)

    def _by_the_pair(self, run: Run) -> bool:
        """Return whether the counterpart does not fail alike, and differs in nothing but what the pair has done."""
        scheduler = self._swap.fair(run.choices, hold_limit(self._judge))
        try:
            other = drive(self._judge.case, scheduler)
        except KernelError:
            return False
        differs = scheduler.reversed and self._fails_by_order(self._judge.failures(run), self._judge.failures(other))
        return differs and self._no_other_order_differs(run.choices, other.choices)

    def _is_meant(self, run: Run) -> bool:
        swap = self._swap
        return not self._doubted or sides_match_run(run.case, run.choices, (swap.first, swap.second))

    def _fails_by_order(self, here: frozenset[str], there: frozenset[str]) -> bool:
        return bool(here - there - self._judge.usual) and not (self._right and there - self._judge.usual)

    def _no_other_order_differs(self, choices: Sequence[str], others: Sequence[str]) -> bool:
        """Return whether the two runs differ in no other order that matters, but for what this pair's has done."""
        swap = self._swap
        at = step_of_side(choices, swap.second) or 0
        names = [swap.first.actor, swap.second.actor]
        next_to_it = swap.first.op in WAITING or list(choices[at : at + 2]) == names[::-1]
        if next_to_it and choices[:at] == others[:at] and list(others[at : at + 2]) == names:
            return True  # what differs after the two is what they have done; what waits in vain is later
        if self._pairs is None:
            own = frozenset((side.actor, side.index) for side in (swap.first, swap.second))
            self._pairs = [pair for pair in self._disputed() if pair != own]
        return orders_agree(choices, others, self._pairs)


def sides_match_run(case: Case, choices: Sequence[str], sides: Sequence[Side]) -> bool:
    """Return whether in a run the sides are the operations that they name, from their lines.

    Args:
        case: what was run.
        choices: the names of the actors, step by step, of the run.
        sides: of a finding.

    """
    try:
        trace = drive(case, Replay(choices), record="witness").trace
    except KernelError as error:
        trace = error.trace
    return trace is not None and all(run_matches_side(trace, side) for side in sides)


def orders_agree(one: Sequence[str], other: Sequence[str], pairs: Pairs) -> bool:
    """Return whether two runs have each of the pairs in the same order, as far as both have executed it.

    Args:
        one: the choices of a run.
        other: those of another one.
        pairs: of operations, each by its actor's name and its index there.

    """
    here, there = _steps(one), _steps(other)
    return not any(
        (here[a] < here[b]) != (there[a] < there[b])
        for a, b in pairs
        if a in here and b in here and a in there and b in there
    )


def _steps(choices: Sequence[str]) -> dict[tuple[str, int], int]:
    counts: dict[str, int] = {}
    steps = {}
    for step, name in enumerate(choices):
        number = counts[name] = counts.get(name, -1) + 1
        steps[name, number] = step
    return steps
