"""Subtrees of an exhaustive exploration: the tree of schedules is cut where it is wide enough, and each part searched.

Above the cut every operation that is ready is tried, but for those that sleep: each child of a state
sleeps on what its parent sleeps on and on its elder siblings, as far as it does not depend on them.
Sleep sets over a full expansion lose no class of equivalent schedules (Godefroid, "Partial-order
methods for the verification of concurrent systems", LNCS 1032, 1996, chapter 5). So what a search
below the cut would branch off above it is either another part, or it sleeps, which means that
another part has it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asyncsim.checking.search.dependence import Refinement
from asyncsim.checking.search.dpor import Decision, Prefix, Tree
from asyncsim.checking.search.exhaust import NAME, ExhaustiveResult, ExhaustiveSearch, TreeScheduler
from asyncsim.checking.search.shard import DIES, Failure, Shard
from asyncsim.checking.workers.batch import Batch, judge_of, stop_requested
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.trace.errors import AsyncsimError, DivergenceError, KernelError, MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.dpor import Node
    from asyncsim.checking.search.tally import Progress
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.simulate import Engine
    from asyncsim.trace.op import Op

_PROBES_PER_PART = 8
"""So many states are probed for each part that is wanted, at most: a narrow tree is not worth more."""


async def split(case: Case, parts: Sequence[Prefix], wanted: int) -> list[Prefix]:
    """Cut parts into smaller ones, the shallow ones first, until there are about so many.

    Args:
        case: what is explored.
        parts: which together are to be searched.
        wanted: how many there should be. There are fewer where the tree is narrow, or where they are
            whole executions, which cannot be cut.

    Returns:
        Parts that have all executions between them, in the order of their schedules. Where everything
        sleeps below a part, it is left out.

    """
    done: set[Prefix] = set()
    current = list(parts)
    probes = wanted * _PROBES_PER_PART
    while len(current) < wanted and probes > 0 and not done.issuperset(current):
        level: list[Prefix] = []
        for number, part in enumerate(current):
            enough = len(level) + len(current) - number >= wanted
            if part in done or enough or probes <= 0:
                level.append(part)
                continue
            probes -= 1
            smaller = await _cut(case, part)
            if len(smaller) == 1 and not part.path:
                done.update(smaller)  # a whole execution
            level += smaller
        current = level
    return current


async def _cut(case: Case, part: Prefix) -> list[Prefix]:
    """Return a part for each way on from the first state below it that has several; one, if there is none."""
    tree = Tree(case, part)
    probe = _Probe(tree, len(part.fixed), narrow=not part.path)
    with suppress(_ReachedError, KernelError):
        await simulate.aio(case, probe, engine="direct")
    fixed = [*part.fixed, *(Decision(node.chosen) for node in tree.path[len(part.fixed) : probe.at])]
    if probe.asleep:
        return []
    if probe.fork is None:
        return [Prefix(part.refinement, tuple(fixed))]
    node = probe.fork
    gone = list(part.path[0].done) if part.path else []
    parts = []
    for actor in _awake(node):
        if actor in gone:
            continue
        path = part.path[1:] if part.path and actor == part.path[0].chosen else ()
        parts.append(Prefix(part.refinement, (*fixed, Decision(actor, tuple(gone))), path))
        gone.append(actor)
    return parts


def _awake(node: Node) -> list[str]:
    """Return the actors that are awake at a state, the chosen one first: a search that was left off has come to it."""
    return sorted(
        (actor for actor in node.ready if actor not in node.sleep_set), key=lambda actor: actor != node.chosen
    )


class _ReachedError(Exception):
    """The run has reached a fork: it need not go on."""


class _Probe(TreeScheduler):
    """A scheduler that goes along a prefix, and on as long as there is one way only.

    Args:
        tree: of the prefix.
        at: where it ends.
        narrow: go on. A search that is under way below the prefix is cut right there.

    Attributes:
        at: how many steps there is only one way for.
        fork: the state where there are several; None: there is none.
        asleep: everything sleeps there.

    """

    def __init__(self, tree: Tree, at: int, *, narrow: bool) -> None:
        super().__init__(tree)
        self.at = at
        self.fork: Node | None = None
        self.asleep = False
        self._narrow = narrow

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the only way, or raise."""
        if self._step == self.at:
            node = self._tree.node_at(self._step, ready)
            if node is None:
                self.asleep = True
                raise _ReachedError
            if not self._narrow or len(_awake(node)) > 1:
                self.fork = node
                raise _ReachedError
            self.at += 1
        return super().choose(ready)


@dataclass(frozen=True, slots=True)
class Subtree(Batch):
    """A part of an exhaustive exploration; `start` is its place among the others of its round.

    Args:
        prefix: where it lies.
        budget: how many executions at most.

    """

    prefix: Prefix
    budget: int

    def fatal_shard(self) -> SubtreeResult:
        """Return what is said of a part with an execution that ends its process, each time."""
        died = super(Subtree, self).fatal_shard().first[DIES]
        choices = tuple(step.chosen for step in self.prefix.fixed)
        shown = f"below the prefix {','.join(choices)}" if choices else ""
        failure = Failure(died.finding.with_(shown=shown), choices, NAME, "")
        return SubtreeResult(self.start, 1, explored=ExhaustiveResult(1, failures=(failure,)), limited=True)


@dataclass(slots=True)
class SubtreeResult(Shard):
    """What a search below a prefix showed.

    Args:
        explored: what its executions showed.
        limited: something was not seen to its end.
        rest: what is left; None if nothing is.
        refinement: what the prefix does not know; then nothing but what was found counts.
        diverged: how the same choices led to something else; then there is no tree to search.

    """

    explored: ExhaustiveResult = field(default_factory=ExhaustiveResult)
    limited: bool = False
    rest: Prefix | None = None
    refinement: Refinement = field(default_factory=Refinement)
    diverged: tuple[str, int] | None = None


def run_subtree(batch: Batch) -> Shard:
    """Search a part of the case that the batch names.

    Raises:
        MisuseError: the kernel cannot be found here, or has another source.

    """
    try:
        return search_subtree(judge_of(batch.spec), batch)
    except AsyncsimError as error:
        raise MisuseError(str(error)) from None  # the others do not survive the way back


def search_subtree(judge: Judge, batch: Batch, *, on_run: Callable[[Run], None] | None = None) -> SubtreeResult:
    """Search a part here, with a judge that is here; a shorter one if the pool has to stop.

    Args:
        judge: of the case.
        batch: a part of an exhaustive exploration.
        on_run: called after each execution.

    Raises:
        TypeError: it is a part of something else.

    """
    if not isinstance(batch, Subtree):
        raise TypeError(f"{type(batch).__name__} is not a part of an exhaustive exploration")
    try:
        return _search(judge, batch, on_run, engine="direct")
    except DivergenceError as error:
        return SubtreeResult(batch.start, 1, limited=True, diverged=(error.reason, error.step))


@Blocking
async def _search(
    judge: Judge,
    batch: Subtree,
    on_run: Callable[[Run], None] | None,
    *,
    engine: Engine,  # noqa: ARG001 - a plain call needs no event loop
) -> SubtreeResult:
    exploring = ExhaustiveSearch(judge.case, judge, on_run, _stop_if_told, batch.prefix)
    found = await exploring.run(batch.budget)
    return SubtreeResult(
        batch.start,
        found.executions,
        explored=found,
        limited=exploring.limited,
        rest=exploring.tree.rest,
        refinement=exploring.tree.dependence.refinement,
    )


def _stop_if_told(_: Progress) -> None:
    if stop_requested():
        raise KeyboardInterrupt
