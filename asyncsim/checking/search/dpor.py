"""Dynamic partial-order reduction: which schedules are left to run, told from those that were run.

Source: source-DPOR with sleep sets, Algorithm 1 of Abdulla, Aronis, Jonsson and Sagonas, "Optimal
dynamic partial order reduction", POPL 2014. An execution is taken apart into what happened before
what; wherever two operations raced, the state before the first of them gets a branch that leads to
the other order, unless it has one already. Flanagan and Godefroid's backtrack sets, with sleep sets,
lose end states; source sets do not.

How this differs: waits. The original knows locks, whose races can be judged one by one.

* The sets are worked out when an execution is over, on all of it, since a wait that passed on one
  add may pass on another one that came later.
* A plain wait and what cannot make it false (an add for a ``>=``) are never reversed for their own
  sake. An add that was not needed is a race with the wait all the same: without it the wait may pass
  earlier, and what follows may come before what led to that add. Where no other operation of the
  execution could have let it pass, the add is needed, and there is nothing to reverse.
* An operation that can make a wait false may keep it from passing until something else lets it, or
  for ever. So all such operations before a wait are looked at, not only those with nothing between;
  also for waits that still stand there at the end; and every first step towards the wait becomes a branch.
* A step that ends the run early (an overflow, an exception) hides what would have come: every actor
  that was ready there becomes a branch.

A search can be confined to what lies below a prefix of steps. It then leaves out the branches that
its races ask for above, which is right if every alternative there is another search's: see
`asyncsim.checking.workers.split`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.checking.search.coenabled import Meetings
from asyncsim.checking.search.contents import Contents
from asyncsim.checking.search.dependence import Relation, can_be_kept, holds
from asyncsim.checking.search.execution import Trail, members
from asyncsim.checking.search.prefixes import Learnt, Prefix, Step
from asyncsim.trace.errors import DivergenceError
from asyncsim.trace.late import model_of
from asyncsim.trace.op import LAND, NOTIFY, POLL, WAIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.trace.op import Op


def starts_of(case: Case) -> list[int]:
    """Return the values of all cells at the start, by slot."""
    return [signal.start for signal in case.world.signals for _ in range(signal.cells_a_rank * case.ranks)]


class Branching:
    """A state on the way, and who goes next there.

    Args:
        ready: who could go, and with which operation, by name.
        asleep: those of them whose going next was explored elsewhere, with their operations.

    Attributes:
        planned: who has to go next in some execution, in the order in which that was found out.
        chosen: who goes next in the present one.
        done: who did in an earlier one.

    """

    __slots__ = ("asleep", "chosen", "done", "planned", "ready")

    def __init__(self, ready: dict[str, Op], asleep: dict[str, Op]) -> None:
        self.ready = ready
        self.asleep = asleep
        self.planned: list[str] = []
        self.done: list[str] = []
        self.chosen = ""

    def plan(self, actors: Iterable[str]) -> None:
        """Let each of the actors go next in some execution."""
        self.planned += [actor for actor in actors if actor in self.ready and actor not in self.planned]

    def plan_one(self, actors: Sequence[str]) -> None:
        """Let any of the actors go next, if none of them does so far; one that is asleep costs nothing."""
        if not any(actor in self.planned for actor in actors):
            self.plan(sorted(actors, key=lambda actor: actor not in self.asleep)[:1])

    def turn(self) -> bool:
        """Choose the next one that is planned and awake; say whether there is one."""
        self.done.append(self.chosen)
        left = (actor for actor in self.planned if actor not in self.done and actor not in self.asleep)
        self.chosen = next(left, "")
        return bool(self.chosen)

    @property
    def width(self) -> int:
        """How many branches there are, as far as is known."""
        return sum(actor not in self.asleep for actor in self.planned)

    def asleep_after(self, relation: Relation) -> dict[str, Op]:
        """Return who stays asleep when the chosen one has gone."""
        op = self.ready[self.chosen]
        sleepers = {**self.asleep, **{actor: self.ready[actor] for actor in self.done}}
        return {actor: other for actor, other in sleepers.items() if not relation.dependent(other, op)}


class Tree:
    """The executions that were made and those that are still to make, depth first.

    Args:
        case: whose executions they are.
        prefix: what the search is confined to; None: it is not.

    Attributes:
        over: nothing is left.
        outgrown: the search has learnt what its prefix does not know, and is over.
        meetings: the races of the executions that were made.

    """

    def __init__(self, case: Case, prefix: Prefix | None = None) -> None:
        self.starts = starts_of(case)
        """The values of the cells at the start, by slot."""
        self.relation = Relation(model_of(case.memory))
        self.path: list[Branching] = []
        self.trail = Trail(self.relation, self.starts)
        self._contents = Contents(case)
        self.meetings = Meetings(forwards=self.relation.forwards)
        self.redundant = self.over = self.outgrown = False
        self._fresh = True
        self._shared = 0  # so many steps were taken apart after an earlier execution
        self._prefix = prefix
        self._given: tuple[Step, ...] = ()
        self._floor = 0  # nothing is planned before this step
        if prefix is not None:
            self.relation.tight |= prefix.learnt.tight
            self.relation.adding |= prefix.learnt.adding
            self.relation.lowered |= prefix.learnt.lowered
            self._given = prefix.fixed + prefix.path
            self._floor = len(prefix.fixed)

    def arrive(self, step: int, ready: Sequence[Op]) -> Branching | None:
        """Return the state at this step of the present execution; None once nobody is awake.

        All that can come then was explored elsewhere. The execution goes on to its end all the same,
        with anybody: what is met on the way, a wait that stays blocked above all, may race with steps
        of the path. (Broken off there, it loses an end state in one of some 10,000 small programs.)

        Args:
            step: from 0.
            ready: the operations that are ready in it, at least one.

        """
        if step < len(self.path):
            return self.path[step]
        if self.redundant:
            return None
        if step < len(self._given):
            return self._resume(self._given[step], step, ready)
        asleep = self._asleep()
        awake = [op for op in ready if op.actor.name not in asleep]
        if not awake:
            self.redundant = True
            return None
        state = Branching({op.actor.name: op for op in ready}, asleep)
        state.chosen = self.first(awake)
        state.planned.append(state.chosen)
        self.path.append(state)
        return state

    def _asleep(self) -> dict[str, Op]:
        return self.path[-1].asleep_after(self.relation) if self.path else {}

    def _resume(self, given: Step, step: int, ready: Sequence[Op]) -> Branching:
        state = Branching({op.actor.name: op for op in ready}, self._asleep())
        state.chosen, state.done, state.planned = given.chosen, list(given.done), list(given.planned)
        missing = [name for name in (state.chosen, *state.done) if name not in state.ready]
        if missing:
            now = ", ".join(state.ready)
            raise DivergenceError(f"the same choices led elsewhere: {missing[0]} is not ready; now {now}", step=step)
        self.path.append(state)
        return state

    def advance(self, *, waiting: Sequence[Op] = (), cut_short: bool = False) -> bool:
        """Take the present execution apart and turn to the next one; say whether there is one.

        Args:
            waiting: what stood there at its end and could not go on.
            cut_short: its last step ended it, while others could have gone on.

        """
        fresh, self._fresh = self._fresh, False
        self.redundant = False
        self._given = ()
        if self.relation.tighten(self.starts, self.trail.ops):
            if self._prefix is not None:
                self.outgrown = self.over = True
                return False
            if not self._start_over(fresh=fresh):
                return True
        if cut_short and self._floor < len(self.path) == len(self.trail.ops):
            self.path[-1].plan(self.path[-1].ready)
        self._take_apart(waiting)
        while len(self.path) > self._floor and not self.path[-1].turn():
            self.path.pop()
        self._shared = max(len(self.path) - 1, 0)
        self.trail.cut(self._shared)
        self.over = len(self.path) <= self._floor
        return not self.over

    @property
    def learnt(self) -> Learnt:
        """What the search knows of the case."""
        relation = self.relation
        return Learnt(frozenset(relation.tight), frozenset(relation.adding), frozenset(relation.lowered))

    @property
    def rest(self) -> Prefix | None:
        """What is left of the search below its prefix; None if nothing is."""
        if self._prefix is None or self.over:
            return None
        if self._given or not self.path:  # its first execution did not come to its end
            return self._prefix
        path = [Step(state.chosen, tuple(state.done), tuple(state.planned)) for state in self.path[self._floor :]]
        return Prefix(self._prefix.learnt, self._prefix.fixed, tuple(path))

    def _start_over(self, *, fresh: bool) -> bool:
        """Order the steps anew by a relation that has changed; say whether this execution can still be used."""
        if not fresh:  # what was concluded from earlier executions may be wrong
            self.path.clear()
            self.trail.cut(0)
            self.meetings.found.clear()
            self._fresh, self._shared = True, 0
            return False
        ops = list(self.trail.ops)
        self.trail.cut(0)
        for op, state in zip(ops, self.path, strict=True):  # nobody sleeps in the first execution
            self.trail.extend(op, tuple(state.ready.values()))
        return True

    def _take_apart(self, waiting: Sequence[Op]) -> None:
        """Plan what the races of the present execution ask for."""
        self.meetings.take(self.trail, self._shared)
        for step, op in enumerate(self.trail.ops):
            if can_be_kept(op):
                self._undo_before_wait(op, step)
            elif step >= self._shared:
                for other in self._on_path(self.trail.races[step]):
                    past = self.trail.before[step] & self.trail.since(other)
                    self._plan_towards(other, past, op.actor.name)
        for op in waiting:
            if can_be_kept(op):
                self._undo_before_wait(op, None)

    @property
    def explored(self) -> float:
        """The share of the tree that lies behind, if all branches of a state are alike (Knuth's assumption)."""
        share, part = 0.0, 1.0
        for state in self.path[self._floor :]:
            part /= max(state.width, 1)
            share += part * len(state.done)
        return 1.0 if self.over else share

    def first(self, awake: Sequence[Op]) -> str:
        """Choose who goes first in a new state: a plain wait, else who has done least, a notify last.

        Any choice is right. With this one a wait passes on as little as it needs, so that few adds
        before it turn out not to have been needed.
        """
        counts = self.trail.counts

        def key(op: Op) -> tuple[bool, int, bool, int]:
            plain = op.kind == WAIT and not op.consume
            # A landing is as far as who issued it.
            count = counts.get(op.actor.name.partition(">")[0], 0)
            return not plain, count, op.kind == NOTIFY or (op.kind == LAND and op.cell is not None), op.actor.order

        return min(awake, key=key).actor.name

    def _on_path(self, steps: Iterable[int]) -> list[int]:
        return [step for step in steps if self._floor <= step < len(self.path)]

    def _plan_towards(self, step: int, past: int, actor: str) -> None:
        """Before `step`, plan a first step of `past`, at the end of which `actor` goes."""
        first = list(self.trail.first(past))
        self.path[step].plan_one(first or [actor])

    def _undo_before_wait(self, wait: Op, step: int | None) -> None:
        """Plan what lets a wait pass without one of the operations before it on its cell.

        Args:
            wait: a wait or poll.
            step: when it passed; None if it still stood there at the end.

        """
        trail = self.trail
        blurred = wait.kind != POLL and trail.is_blurred(wait)
        previous = trail.last_of(wait.actor.name) if step is None else trail.previous[step]
        needed = 0 if previous is None else trail.before[previous] | 1 << previous
        for other in self._on_path(trail.met_by(wait)):
            if step is not None and other > step:
                continue
            op = trail.ops[other]
            disabling = self.relation.dependent(op, wait) and self.relation.may_disable(op, wait)
            if disabling and not needed >> other & 1:
                certain = needed
            elif not disabling and step is not None and other in trail.races[step]:
                certain = trail.before[step] & ~(1 << other)
            else:
                continue
            since = trail.since(other)
            free = trail.free_of(since, other, step)
            passes = None if blurred else self._passes(wait, other, certain, free)
            if passes and (wait.kind == POLL or not disabling):
                self._plan_towards(other, certain & since, wait.actor.name)
            elif passes is not False:
                self.path[other].plan(trail.first(free))
                if previous is None or previous < other:
                    self.path[other].plan([wait.actor.name])

    def _passes(self, wait: Op, other: int, certain: int, free: int) -> bool | None:
        """Say whether a wait passes in the place of step `other`; None: it may, if others come before it.

        Args:
            wait: a wait or poll.
            other: a step that it meets; all before it in time have been done.
            certain: what has been done besides, since the wait comes after it.
            free: what may have been done besides, since it comes neither after `other` nor after the wait.

        """
        trail, cell = self.trail, wait.cell
        earlier, later, free = (1 << other) - 1, certain & trail.since(other), free & ~certain
        if cell is None:
            if self._contents.passes(wait, trail, earlier, later):
                return True
            return False if self._contents.passes(wait, trail, earlier, later, free) is False else None
        value = trail.value(cell.slot, earlier | later, wait)
        if holds(wait, value):
            return True
        helpful = members(trail.at(("cell", cell.slot)) & free)
        foreign = [trail.ops[n] for n in helpful if not self.relation.sees_at_issue(wait, trail.ops[n])]
        return None if self.relation.may_hold(wait, value, foreign) else False
