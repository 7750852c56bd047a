"""An execution: the operations that were executed so far, with what happened before what.

Sets of steps are integers used as bit sets: bit n stands for step n. An execution is cut back and
extended again from one execution of a search to the next, so that what two executions share is
worked out once.

What a poll would see after some of the steps follows from the tiles that were stored there, so a search knows
which of the stores before a poll it could have done without. It is not always known: what is copied from window
to window is in no operation, and where writes land late a rank sees its own before others do.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from asyncsim.checking.search.cellwise import value_after
from asyncsim.checking.search.dependence import is_rank_quiet, locations_of
from asyncsim.checking.search.pending import PendingWrites
from asyncsim.machine.effect import satisfied
from asyncsim.machine.memory import Memory
from asyncsim.trace.cells import ADDING, APPLY
from asyncsim.trace.kinds import JOINING, LANDING, MEETING, STARTING
from asyncsim.trace.op import change_by
from asyncsim.trace.region import READ, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.checking.search.dependence import Dependence, Location
    from asyncsim.machine.case import Case
    from asyncsim.machine.memory import Deposit
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access


def initial_cells(case: Case) -> list[int]:
    """Return the values of all cells at the start, by slot."""
    return [signal.start for signal in case.world.signals for _ in range(signal.cells_a_rank * case.ranks)]


class Execution:
    """The steps of one execution.

    Args:
        dependence: what orders operations.
        starts: the values of the cells at the start, by slot.

    Attributes:
        ops: the operations, step by step.
        happened_before: for each step, the steps that happened before it.
        races: for each step, the steps of other actors that are ordered directly before it, with
            none between. Latest first.
        previous: for each step, the step before it of the same actor; for the first of a stream or
            wire, the one that started or issued it; None for the first of a rank.
        counts: how many steps of each actor were executed.
        indexes: for each step, how many of its actor were executed before it.

    """

    def __init__(self, dependence: Dependence, starts: Sequence[int]) -> None:
        self.ops: list[Op] = []
        self.happened_before: list[int] = []
        self.races: list[list[int]] = []
        self.previous: list[int | None] = []
        self.counts: dict[str, int] = {}
        self.indexes: list[int] = []
        self._dependence = dependence
        self._starts = starts
        self._steps_at: dict[Location, list[int]] = {}
        self._last: dict[str, int] = {}
        self._children: list[list[str]] = []
        self._pending = PendingWrites(dependence.model)

    def truncate(self, length: int) -> None:
        """Forget all steps from `length` on."""
        while len(self.ops) > length:
            op = self.ops.pop()
            children = self._children.pop()
            for child in children:
                del self._last[child]
            if op.kind not in STARTING:
                self._pending.undo(op, children)
            self.happened_before.pop()
            self.indexes.pop()
            self.races.pop()
            previous = self.previous.pop()
            self.counts[op.actor.name] -= 1
            for location in locations_of(op):
                self._steps_at[location].pop()
            if previous is None:
                del self._last[op.actor.name]
            else:
                self._last[op.actor.name] = previous

    def extend(self, op: Op, ready: Sequence[Op] = ()) -> None:
        """Append a step.

        Args:
            op: the operation.
            ready: what was ready with it: of a rank-local barrier, its other members.

        """
        step = len(self.ops)
        previous = self._last.get(op.actor.name)
        before = 0 if previous is None else self.happened_before[previous] | 1 << previous
        for other in self._awaited(op, ready):
            before |= self.happened_before[other] | 1 << other
        races = []
        for other in self.steps_of_others_at(op):
            if not before >> other & 1 and self._dependence.is_ordered(self.ops[other], op):
                races.append(other)
                before |= self.happened_before[other] | 1 << other
        if is_rank_quiet(op):  # only now, or it would seem that what it waits for had to be issued before it
            for wire in self._pending.wires_before(op):
                before |= self.happened_before[self._last[wire]] | 1 << self._last[wire]
        self.ops.append(op)
        self.happened_before.append(before)
        self.races.append(races)
        self.previous.append(previous)
        self._last[op.actor.name] = step
        index = self.counts.get(op.actor.name, 0)
        children = [op.link] if op.kind in STARTING else self._pending.issue(op, index)
        self._last |= dict.fromkeys(children, step)
        self._children.append(children)
        self.counts[op.actor.name] = index + 1
        self.indexes.append(index)
        for location in locations_of(op):
            self._steps_at.setdefault(location, []).append(step)

    def last_step_of(self, actor: str) -> int | None:
        """Return the last step of an actor."""
        return self._last.get(actor)

    def steps_of_others_at(self, op: Op) -> list[int]:
        """Return the steps of other actors at the locations of `op`, latest first."""
        steps = {step for location in locations_of(op, seeking=True) for step in self._steps_at.get(location, ())}
        return sorted((step for step in steps if self.ops[step].actor.name != op.actor.name), reverse=True)

    def _awaited(self, op: Op, ready: Sequence[Op]) -> list[int]:
        """Return the steps that no schedule does the other way round with this one, program order aside."""
        if op.kind in JOINING:
            return [self._last[op.link]]
        if op.kind in MEETING:
            here = (
                self._last.get(other.actor.name) for other in ready if other.kind in MEETING and other.link == op.link
            )
            gone = (step for step, other in enumerate(self.ops) if other.kind in MEETING and other.link == op.link)
            return [step for step in (*here, *gone) if step is not None]
        return [] if is_rank_quiet(op) else [self._last[wire] for wire in self._pending.wires_before(op)]

    def steps_after(self, step: int) -> int:
        """Return all steps after this one in time."""
        return (1 << len(self.ops)) - (1 << (step + 1))

    def steps_independent_of(self, steps: int, other: int, wait: int | None) -> int:
        """Return those of `steps` that happened neither after step `other` nor after step `wait`, if there is one.

        Args:
            steps: a set of steps: bit s stands for step s.
            other: a step.
            wait: a step; None: there is none.

        """
        bar = 1 << other | (0 if wait is None else 1 << wait)
        return sum(1 << step for step in members(steps & ~bar) if not self.happened_before[step] & bar)

    def initials(self, steps: int) -> dict[str, int]:
        """Return those of `steps` that none of the others happened before, by actor."""
        return {self.ops[step].actor.name: step for step in members(steps) if not self.happened_before[step] & steps}

    def steps_at(self, location: Location) -> int:
        """Return the steps at a location."""
        return sum(1 << step for step in self._steps_at.get(location, ()))

    def cell_value(self, slot: int, steps: int, wait: Op | None = None) -> int:
        """Return what a cell holds after the operations among `steps`; with a wait, in the eyes of its actor.

        Args:
            slot: of the cell.
            steps: a set of steps: bit s stands for step s.
            wait: an operation that waits for the cell; None: the value in memory.

        """
        value = self._starts[slot]
        for step in self._steps_at.get(("cell", slot), ()):
            if steps >> step & 1:
                op = self.ops[step]
                if wait is not None and self._dependence.sees_before_landing(wait, op):
                    continue
                if wait is not None and op.deferred and op.actor.name == wait.actor.name and self._is_seen(step):
                    value = APPLY[op.how](value, op.amount)
                else:
                    value = value_after(value, op)
        return value

    def _is_seen(self, step: int) -> bool:
        """Return whether an actor sees the signal that it sent at a step before it lands."""
        return self._dependence.forwards and not self._pending.is_queued(self._children[step][-1])

    def is_value_uncertain(self, wait: Op) -> bool:
        """Return whether `cell_value` may be wrong for a wait: the actor has pending changes, and the cell is set."""
        if wait.cell is None or wait.cell.region is not None:
            return True
        ops = [self.ops[step] for step in self._steps_at.get(("cell", wait.cell.slot), ())]
        own = any(op.deferred and op.actor.name == wait.actor.name for op in ops)
        changes = (change for op in ops if (change := change_by(op)) is not None)
        return own and self._dependence.forwards and (bool(wait.update) or any(how not in ADDING for how, _ in changes))


def members(steps: int) -> Iterator[int]:
    """Yield the steps of a set, ascending."""
    while steps:
        low = steps & -steps
        yield low.bit_length() - 1
        steps ^= low


MOST_STORES = 3
"""So many stores are tried in all orders; more may let any poll pass."""


class PollContents:
    """What polls see of the windows of a case.

    Args:
        case: the case; it determines the initial windows.

    """

    def __init__(self, case: Case) -> None:
        """Make no memory yet: only polls ask for it."""
        self._case = case
        self._memory: Memory | None = None

    def passes(self, poll: Op, execution: Execution, before: int, after: int = 0, others: int = 0) -> bool | None:
        """Return whether a poll could pass after these steps; None: it is not known.

        Args:
            poll: the poll.
            execution: the execution.
            before: the first steps, in their order.
            after: those that follow.
            others: more steps, each of which may be executed or not, also among those in `after`.

        """
        first, then, more = (self._deposits(poll, execution, steps) for steps in (before, after, others))
        if first is None or then is None or more is None:
            return None
        if not more:
            return self._is_satisfied(poll, first + then)
        free = then + more
        if len(free) > MOST_STORES:
            return True
        tries = (first + list(some) for n in range(len(free) + 1) for some in permutations(free, n))
        return any(self._is_satisfied(poll, deposits) for deposits in tries)

    def _is_satisfied(self, poll: Op, deposits: list[Deposit]) -> bool:
        if self._memory is None:
            self._memory = Memory(self._case.world, self._case.seed)
        return satisfied(poll, self._memory.peek(poll.accesses[0].region, deposits))

    def _deposits(self, poll: Op, execution: Execution, steps: int) -> list[Deposit] | None:
        """Return what these steps leave where the poll reads; None if some of it is not known."""
        found: list[Deposit] = []
        target = poll.accesses[0].region
        for step in members(execution.steps_at(("window", target.slot)) & steps):
            op = execution.ops[step]
            for access in op.accesses:
                if access.mode == READ or not spans_overlap(access.region.spans, target.spans):
                    continue
                deposit = self._deposit(poll, execution, step, access)
                if deposit is None:
                    return None
                found += deposit
        return found

    def _deposit(self, poll: Op, execution: Execution, step: int, access: Access) -> list[Deposit] | None:
        """Return what one access of a step leaves, if it is known: nothing, or the tile."""
        op = execution.ops[step]
        issue = op
        if op.kind in LANDING:
            previous = execution.previous[step]
            assert previous is not None  # noqa: S101 - for the type checker: what lands was issued
            issue = execution.ops[previous]
        if (op.deferred or op.kind in LANDING) and op.actor.rank == poll.actor.rank:
            return None
        if op.deferred:
            return []
        if issue.payload is None:
            return None
        part = access.region.part
        tile = issue.payload
        return [(access, tile if part is None else tile.reshape(-1)[slice(*part)])]
