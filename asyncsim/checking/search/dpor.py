"""Dynamic partial-order reduction: which schedules are left to run, derived from those that were run.

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
  for ever. So all such operations before a wait are examined, not only those with nothing between;
  also for waits that are blocked at the end; and every first step towards the wait becomes a branch.
* A step that ends the run early (an overflow, an exception) hides what would have come: every actor
  that was ready there becomes a branch.

A search can be confined to what lies below a prefix of steps, so that parts of it can be done elsewhere, or
later. It then leaves out the branches that its races ask for above, which is right if every alternative there
is another search's (`asyncsim.checking.workers.subtree`). A prefix names actors; which operations sleep below
it follows when the steps are taken again: operations never travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.checking.search.cellwise import wait_passes
from asyncsim.checking.search.coenabled import CoenabledPairs
from asyncsim.checking.search.dependence import Dependence, Refinement, can_be_disabled
from asyncsim.checking.search.execution import Execution, PollContents, initial_cells, members
from asyncsim.trace.errors import DivergenceError
from asyncsim.trace.kinds import LANDING, NOTIFYING, POLLING, WAITING
from asyncsim.trace.late import model_of
from asyncsim.trace.op import change_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.trace.op import Op


@dataclass(frozen=True, slots=True)
class Decision:
    """The choices at one state, by name.

    Args:
        chosen: the actor that goes next.
        done: the actors that went next in earlier executions, or do so in another part of the search.
        source_set: the actors that go next in some execution of this part, chosen and done ones included.

    """

    chosen: str
    done: tuple[str, ...] = ()
    source_set: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefix:
    """A subtree of the tree of schedules: all below some steps, but for what sleeps there.

    Args:
        refinement: what is known of the case. It decides what sleeps.
        fixed: the steps; nothing else is explored at their states.
        path: where a search below them was left off; empty: it has not begun.

    """

    refinement: Refinement
    fixed: tuple[Decision, ...] = ()
    path: tuple[Decision, ...] = ()


class Node:
    """A state of an execution, and which actors go next there.

    Args:
        ready: the operations that are ready, by the name of their actor.
        sleep_set: those that were explored elsewhere.

    Attributes:
        source_set: the actors that go next in some execution, in the order in which that was found out.
        chosen: the one that goes next in the present execution.
        done: those that did in earlier ones.

    """

    __slots__ = ("chosen", "done", "ready", "sleep_set", "source_set")

    def __init__(self, ready: dict[str, Op], sleep_set: dict[str, Op]) -> None:
        self.ready = ready
        self.sleep_set = sleep_set
        self.source_set: list[str] = []
        self.done: list[str] = []
        self.chosen = ""

    def branch_to(self, actors: Iterable[str]) -> None:
        """Add actors to the source set."""
        self.source_set += [actor for actor in actors if actor in self.ready and actor not in self.source_set]

    def branch_to_one_of(self, actors: Sequence[str]) -> None:
        """Add one of the actors to the source set, if none is in it; one that is asleep costs nothing."""
        if not any(actor in self.source_set for actor in actors):
            self.branch_to(sorted(actors, key=lambda actor: actor not in self.sleep_set)[:1])

    def choose_next(self) -> bool:
        """Choose the next actor of the source set that is awake; return whether there is one."""
        self.done.append(self.chosen)
        left = (actor for actor in self.source_set if actor not in self.done and actor not in self.sleep_set)
        self.chosen = next(left, "")
        return bool(self.chosen)

    @property
    def branches(self) -> int:
        """How many branches are known."""
        return sum(actor not in self.sleep_set for actor in self.source_set)

    def sleep_set_after(self, dependence: Dependence) -> dict[str, Op]:
        """Return the sleep set after the chosen operation: what does not depend on it."""
        op = self.ready[self.chosen]
        sleepers = {**self.sleep_set, **{actor: self.ready[actor] for actor in self.done}}
        return {actor: other for actor, other in sleepers.items() if not dependence.are_dependent(other, op)}


class Tree:
    """The executions that were made and those that are still to make, depth first.

    Args:
        case: whose executions they are.
        prefix: what the search is confined to; None: it is not.

    Attributes:
        over: nothing is left.
        outdated: the search has learnt what its prefix does not know, and is over.
        coenabled: the races of the executions that were made.

    """

    def __init__(self, case: Case, prefix: Prefix | None = None) -> None:
        self.starts = initial_cells(case)
        """The values of the cells at the start, by slot."""
        self.dependence = Dependence(model_of(case.memory))
        self.path: list[Node] = []
        self.execution = Execution(self.dependence, self.starts)
        self._contents = PollContents(case)
        self.coenabled = CoenabledPairs(forwards=self.dependence.forwards)
        self.redundant = self.over = self.outdated = False
        self._is_first = True
        self._shared_steps = 0  # the races of so many steps were reversed after an earlier execution
        self._prefix = prefix
        self._prescribed: tuple[Decision, ...] = ()
        self._prefix_length = 0  # no branch is added before this step
        if prefix is not None:
            self.dependence.refinement = prefix.refinement
            self._prescribed = prefix.fixed + prefix.path
            self._prefix_length = len(prefix.fixed)

    def node_at(self, step: int, ready: Sequence[Op]) -> Node | None:
        """Return the node at this step of the present execution; None once all that is ready sleeps.

        All that can come then was explored elsewhere. The execution goes on to its end all the same, with any
        actor: what it executes, or a wait that stays blocked, may race with steps of the path. (Stopped there,
        the search loses an end state in one of some 10,000 small programs.)

        Args:
            step: from 0.
            ready: the operations that are ready in it, at least one.

        """
        if step < len(self.path):
            return self.path[step]
        if self.redundant:
            return None
        if step < len(self._prescribed):
            return self._restored_node(self._prescribed[step], step, ready)
        sleep_set = self._sleep_set()
        awake = [op for op in ready if op.actor.name not in sleep_set]
        if not awake:
            self.redundant = True
            return None
        node = Node({op.actor.name: op for op in ready}, sleep_set)
        node.chosen = self.preferred(awake)
        node.source_set.append(node.chosen)
        self.path.append(node)
        return node

    def _sleep_set(self) -> dict[str, Op]:
        return self.path[-1].sleep_set_after(self.dependence) if self.path else {}

    def _restored_node(self, given: Decision, step: int, ready: Sequence[Op]) -> Node:
        node = Node({op.actor.name: op for op in ready}, self._sleep_set())
        node.chosen, node.done, node.source_set = given.chosen, list(given.done), list(given.source_set)
        missing = [name for name in (node.chosen, *node.done) if name not in node.ready]
        if missing:
            now = ", ".join(node.ready)
            raise DivergenceError(f"the same choices led elsewhere: {missing[0]} is not ready; now {now}", step=step)
        self.path.append(node)
        return node

    def advance(self, *, waiting: Sequence[Op] = (), cut_short: bool = False) -> bool:
        """Add the branches that the present execution asks for, and turn to the next one; return whether there is one.

        Args:
            waiting: the operations that were blocked at its end.
            cut_short: its last step ended it, while others could have gone on.

        """
        fresh, self._is_first = self._is_first, False
        self.redundant = False
        self._prescribed = ()
        if self.dependence.refine(self.starts, self.execution.ops):
            if self._prefix is not None:
                self.outdated = self.over = True
                return False
            if not self._restart(fresh=fresh):
                return True
        if cut_short and self._prefix_length < len(self.path) == len(self.execution.ops):
            self.path[-1].branch_to(self.path[-1].ready)
        self._reverse_races(waiting)
        while len(self.path) > self._prefix_length and not self.path[-1].choose_next():
            self.path.pop()
        self._shared_steps = max(len(self.path) - 1, 0)
        self.execution.truncate(self._shared_steps)
        self.over = len(self.path) <= self._prefix_length
        return not self.over

    @property
    def rest(self) -> Prefix | None:
        """What is left of the search below its prefix; None if nothing is."""
        if self._prefix is None or self.over:
            return None
        if self._prescribed or not self.path:  # its first execution did not come to its end
            return self._prefix
        path = [
            Decision(node.chosen, tuple(node.done), tuple(node.source_set)) for node in self.path[self._prefix_length :]
        ]
        return Prefix(self._prefix.refinement, self._prefix.fixed, tuple(path))

    def _restart(self, *, fresh: bool) -> bool:
        """Order the steps by the refined dependence; return whether this execution can still be used."""
        if not fresh:  # what was concluded from earlier executions may be wrong
            self.path.clear()
            self.execution.truncate(0)
            self.coenabled.pairs.clear()
            self._is_first, self._shared_steps = True, 0
            return False
        ops = list(self.execution.ops)
        self.execution.truncate(0)
        for op, node in zip(ops, self.path, strict=True):  # nothing sleeps in the first execution
            self.execution.extend(op, tuple(node.ready.values()))
        return True

    def _reverse_races(self, waiting: Sequence[Op]) -> None:
        """Add the branches that the races of the present execution ask for."""
        self.coenabled.add_execution(self.execution, self._shared_steps)
        for step, op in enumerate(self.execution.ops):
            if can_be_disabled(op):
                self._reverse_before_wait(op, step)
            elif step >= self._shared_steps:
                for other in self._on_path(self.execution.races[step]):
                    past = self.execution.happened_before[step] & self.execution.steps_after(other)
                    self._branch_towards(other, past, op.actor.name)
        for op in waiting:
            if can_be_disabled(op):
                self._reverse_before_wait(op, None)

    @property
    def explored_share(self) -> float:
        """The explored share of the tree, if all branches of a state are alike (Knuth's assumption)."""
        share, part = 0.0, 1.0
        for node in self.path[self._prefix_length :]:
            part /= max(node.branches, 1)
            share += part * len(node.done)
        return 1.0 if self.over else share

    def preferred(self, awake: Sequence[Op]) -> str:
        """Choose the actor that goes first in a new state: a plain wait, else the least advanced, a notify last.

        Any choice is right. With this one a wait passes on as little as it needs, so that few adds
        before it turn out not to have been needed.
        """
        counts = self.execution.counts

        def key(op: Op) -> tuple[bool, int, bool, int]:
            plain = op.kind in WAITING and change_by(op) is None
            # A landing counts as its issuer.
            count = counts.get(op.actor.name.partition(">")[0], 0)
            late = op.kind in NOTIFYING or (op.kind in LANDING and op.cell is not None)
            return not plain, count, late, op.actor.order

        return min(awake, key=key).actor.name

    def _on_path(self, steps: Iterable[int]) -> list[int]:
        return [step for step in steps if self._prefix_length <= step < len(self.path)]

    def _branch_towards(self, step: int, past: int, actor: str) -> None:
        """Before `step`, add an initial of `past`, or `actor` if it is empty."""
        first = list(self.execution.initials(past))
        self.path[step].branch_to_one_of(first or [actor])

    def _reverse_before_wait(self, wait: Op, step: int | None) -> None:
        """Add branches in which a wait passes without one of the operations before it on its cell.

        Args:
            wait: a wait or poll.
            step: when it passed; None: it was blocked at the end.

        """
        execution = self.execution
        blurred = wait.kind not in POLLING and execution.is_value_uncertain(wait)
        previous = execution.last_step_of(wait.actor.name) if step is None else execution.previous[step]
        needed = 0 if previous is None else execution.happened_before[previous] | 1 << previous
        for other in self._on_path(execution.steps_of_others_at(wait)):
            if step is not None and other > step:
                continue
            op = execution.ops[other]
            disabling = self.dependence.are_dependent(op, wait) and self.dependence.may_disable(op, wait)
            if disabling and not needed >> other & 1:
                certain = needed
            elif not disabling and step is not None and other in execution.races[step]:
                certain = execution.happened_before[step] & ~(1 << other)
            else:
                continue
            since = execution.steps_after(other)
            free = execution.steps_independent_of(since, other, step)
            passes = None if blurred else self._wait_passes(wait, other, certain, free)
            if passes and (wait.kind in POLLING or not disabling):
                self._branch_towards(other, certain & since, wait.actor.name)
            elif passes is not False:
                self.path[other].branch_to(execution.initials(free))
                if previous is None or previous < other:
                    self.path[other].branch_to([wait.actor.name])

    def _wait_passes(self, wait: Op, other: int, certain: int, free: int) -> bool | None:
        """Return whether a wait passes in the place of step `other`; None: it may, if others come before it.

        Args:
            wait: a wait or poll.
            other: a step that it meets; all before it in time have been done.
            certain: what has been done besides, since the wait comes after it.
            free: what may have been done besides, since it comes neither after `other` nor after the wait.

        """
        execution, cell = self.execution, wait.cell
        earlier, later, free = (1 << other) - 1, certain & execution.steps_after(other), free & ~certain
        if cell is None:
            if self._contents.passes(wait, execution, earlier, later):
                return True
            return False if self._contents.passes(wait, execution, earlier, later, free) is False else None
        value = execution.cell_value(cell.slot, earlier | later, wait)
        if wait_passes(wait, value):
            return True
        helpful = members(execution.steps_at(("cell", cell.slot)) & free)
        foreign = [execution.ops[n] for n in helpful if not self.dependence.sees_before_landing(wait, execution.ops[n])]
        return None if self.dependence.wait_may_pass(wait, value, foreign) else False
