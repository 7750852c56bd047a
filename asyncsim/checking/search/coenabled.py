"""Races of an exploration: pairs of operations that are coenabled, that is, can both be next.

These are accesses to data that conflict, and changes of a cell that can erase each other. Two of them between which
nothing happened in an execution can be brought together: do what happened before either of them, and nothing else. So
every race that some schedule has shows in one of the executions that are explored, without any analysis but the order
that the search keeps anyway.

Of sampled schedules only some steps are searched for races: that costs 25 to 140 microseconds a step, several
times the step itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.analysis.races import kind_of
from asyncsim.checking.search.cellwise import changes_cell
from asyncsim.checking.search.dependence import Dependence
from asyncsim.checking.search.execution import Execution, initial_cells, members
from asyncsim.trace.cells import SET, updates_commute
from asyncsim.trace.conflict import meeting_accesses
from asyncsim.trace.finding import RACE
from asyncsim.trace.kinds import EXCHANGING, FETCHING, LANDING, POLLING
from asyncsim.trace.late import model_of
from asyncsim.trace.region import READ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.checking.search.equivalence import RecordedChoices
    from asyncsim.machine.case import Case
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access

SIGNAL_RACE = "signal-race"
OpKey = tuple[str, int, str, tuple[object, ...]]
"""An operation of any schedule: its actor, its place in the actor's stream, its kind and its regions or cell."""
PairKey = tuple[str, OpKey, OpKey]
"""A race, a signal race or atomics whose order may show, and the two operations."""


@dataclass(frozen=True, slots=True)
class Coenabled:
    """How the two operations of a pair are brought together.

    Args:
        choices: of an execution that has both.
        first, second: their steps in it.
        before: the steps that happened before one of them, as a bit set.

    """

    choices: tuple[str, ...]
    first: int
    second: int
    before: int

    @property
    def choices_before(self) -> list[str]:
        """The choices after which both are next."""
        return [self.choices[step] for step in members(self.before)]

    @property
    def actors(self) -> tuple[str, str]:
        """The actors of the two."""
        return self.choices[self.first], self.choices[self.second]


class CoenabledPairs:
    """The pairs of an exploration.

    Args:
        forwards: an actor sees its own writes before they land.

    Attributes:
        pairs: each pair, with where it was coenabled first.

    """

    def __init__(self, *, forwards: bool) -> None:
        self.pairs: dict[PairKey, Coenabled] = {}
        self._forwards = forwards

    def add_execution(self, execution: Execution, start: int) -> None:
        """Note the pairs of an execution whose later operation is not among its first `start` steps.

        Args:
            execution: the execution.
            start: how many of its steps were examined before.

        """
        choices: tuple[str, ...] = ()
        for second in range(start, len(execution.ops)):
            for first in execution.races[second]:
                for kind in self._kinds(execution, first, second):
                    one, other = sorted(
                        (_op_key(execution, first), _op_key(execution, second)), key=lambda key: key[:2]
                    )
                    if (kind, one, other) not in self.pairs:
                        choices = choices or tuple(op.actor.name for op in execution.ops)
                        before = (execution.happened_before[first] | execution.happened_before[second]) & ~(1 << first)
                        self.pairs[kind, one, other] = Coenabled(choices, first, second, before)

    def _kinds(self, execution: Execution, first: int, second: int) -> Iterator[str]:
        """Yield what two steps are to each other; two puts with signals may be so by their data and their cells."""
        a, b = execution.ops[first], execution.ops[second]
        if _may_erase(a, b):
            yield SIGNAL_RACE
        kind = self._kind_of_data(execution, first, second)
        if kind is not None:
            yield kind

    def _kind_of_data(self, execution: Execution, first: int, second: int) -> str | None:
        a, b = execution.ops[first], execution.ops[second]
        if not (a.accesses and b.accesses) or a.kind in POLLING or b.kind in POLLING:
            return None
        kind = None
        for x, y in meeting_accesses(a, b):
            found = kind_of(x, y)
            if (
                found is None
                or self._is_forwarded(execution, first, b, y)
                or self._is_forwarded(execution, second, a, x)
            ):
                continue
            if found == RACE:
                return RACE
            kind = found
        return kind

    def _is_forwarded(self, execution: Execution, landing: int, op: Op, access: Access) -> bool:
        """Return whether an access reads what its own actor has issued: it sees that early, unless it is fetched."""
        wire = execution.ops[landing].actor
        previous = execution.previous[landing]
        return (
            self._forwards
            and access.mode == READ
            and execution.ops[landing].kind in LANDING
            and wire.name.partition(">")[0] == op.actor.name
            and previous is not None
            and execution.ops[previous].kind not in FETCHING
        )


def _may_erase(a: Op, b: Op) -> bool:
    """Return whether both change a cell, and one can undo the other; two that set it to the same commute."""
    if a.cell is None or b.cell is None or a.cell.slot != b.cell.slot or not (changes_cell(a) and changes_cell(b)):
        return False
    if a.kind in EXCHANGING or b.kind in EXCHANGING:  # what has a result is meant to compete
        return False
    if a.how == b.how == SET:
        return a.amount != b.amount
    return not updates_commute(a.how, b.how)


def _op_key(execution: Execution, step: int) -> OpKey:
    op = execution.ops[step]
    places = tuple((access.mode, access.region.slot, access.region.spans) for access in op.accesses)
    cell = () if op.cell is None else (op.cell.slot,)
    return (op.actor.name, execution.indexes[step], op.kind, (*places, *cell))


SAMPLED_STEPS, LONGEST = 30_000, 4000
"""So many steps of sampled schedules are searched, which takes a second or a few; none of longer schedules."""


class SampledRaces:
    """The races of sampled schedules of one case.

    Args:
        case: the case.
        usual: about how many steps a schedule has. Of one that has far more, only the first are searched: it polls.
        steps: of all schedules together.

    Attributes:
        coenabled: the races.
        schedules: how many were searched.

    """

    def __init__(self, case: Case, usual: int, steps: int = SAMPLED_STEPS) -> None:
        self.schedules = 0
        self._starts = initial_cells(case)
        self._dependence = Dependence(model_of(case.memory))
        self.coenabled = CoenabledPairs(forwards=self._dependence.forwards)
        self._longest = 2 * usual
        self._left = steps if usual <= LONGEST else 0

    def add_run(self, recorded: RecordedChoices) -> None:
        """Search a run for races, as far as steps are left."""
        if self._left <= 0:
            return
        ops = recorded.ops[: min(self._longest, self._left)]
        self._dependence.refine(self._starts, ops)
        execution = Execution(self._dependence, self._starts)
        for step, op in enumerate(ops):
            execution.extend(op, recorded.ready_at_sync.get(step, ()))
        self.coenabled.add_execution(execution, 0)
        self.schedules += 1
        self._left -= len(ops)
