"""Exhaustive exploration: one execution of every class of schedules that differ in what they can lead to.

Every execution is a run of its own (stateless search: Godefroid, "Model checking for programming
languages using VeriSoft", POPL 1997). `asyncsim.checking.search.dpor` decides which are left. A wait that
nothing lets pass is not among the ready operations, so it is never explored as a failed try.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from asyncsim.checking.search.dpor import Tree
from asyncsim.checking.search.equivalence import EquivalenceClasses
from asyncsim.checking.search.shard import Failure
from asyncsim.checking.search.tally import Progress
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.errors import DivergenceError, KernelError
from asyncsim.trace.event import COMPLETE, DEADLOCK, STEP_LIMIT, STOPPED
from asyncsim.trace.finding import Finding
from asyncsim.trace.late import is_with_old_reads, model_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.record.interrupts import InterruptMask
    from asyncsim.checking.search.coenabled import Coenabled, PairKey
    from asyncsim.checking.search.dpor import Prefix
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.memory import Tile
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

NAME = "exhaust"
"""What stands for the scheduler in headers and failures."""


@dataclass(frozen=True, slots=True)
class ExhaustiveResult:
    """What an exhaustive exploration found out.

    Args:
        executions: how many runs were made, redundant ones included.
        behaviours: a number for each inequivalent execution among them, see `asyncsim.checking.search.equivalence`.
        complete: every inequivalent execution was run; False when the budget ran out, when Ctrl-C came,
            or when a run met the limit of steps.
        estimate: of a complete exploration, how many inequivalent executions there are; else how many are to be
            made in all, redundant ones included: Knuth's estimate from the branches seen so far, which may be far off.
        ends: a digest of every end state: ending, outputs, windows, cells.
        contents: a digest of the outputs and windows of every end state.
        results: a digest of the outputs of every end state.
        failures: the first execution of each kind of failure.
        races: the pairs of accesses that were seen to race, each with where they were coenabled.
        interrupted: Ctrl-C ended it early.
        endless: how many executions were cut short, since they became much longer than the fair run.

    """

    executions: int = 0
    behaviours: frozenset[int] = frozenset()
    complete: bool = False
    estimate: int = 0
    ends: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    failures: tuple[Failure, ...] = ()
    races: Mapping[PairKey, Coenabled] = field(default_factory=dict)
    interrupted: bool = False
    endless: int = 0

    @property
    def inequivalent(self) -> int:
        """How many of the executions differ in what can lead elsewhere."""
        return len(self.behaviours)

    @property
    def redundant(self) -> int:
        """How many were like another one, or made before the dependence was fully refined."""
        return self.executions - self.inequivalent

    def new_failures(self, other: ExhaustiveResult) -> list[Failure]:
        """Return the failures of another result that are of no kind seen here."""
        kinds = {failure.kind for failure in self.failures}
        return [failure for failure in other.failures if failure.kind not in kinds]

    def joined(self, other: ExhaustiveResult) -> ExhaustiveResult:
        """Return this result with what the executions of another one showed."""
        return replace(
            self,
            executions=self.executions + other.executions,
            behaviours=self.behaviours | other.behaviours,
            ends=self.ends | other.ends,
            contents=self.contents | other.contents,
            results=self.results | other.results,
            failures=(*self.failures, *self.new_failures(other)),
            races={**other.races, **self.races},
            endless=self.endless + other.endless,
        )

    @property
    def over(self) -> bool:
        """Whether a check learns nothing more by going on."""
        return self.complete or self.interrupted or bool(self.failures)


LONGER, MOST_CUT = 200, 10
"""An execution that becomes twice as long as the fair run, and by so many steps longer, is cut short: it polls what
another would write, and there are endlessly many such. After so many of them the exploration ends, incomplete."""


class ExhaustiveSearch:
    """An exhaustive exploration under way; it can be continued with another budget.

    Args:
        case: what is run.
        judge: finds what is wrong with a run.
        on_run: called with every run that ended.
        progress: called after every execution, with the estimate as the total.
        prefix: the part of the schedules that is explored; None: all. Of a part, `tree.rest` is what is left, and
            where its dependence is refined it is given up, incomplete: `tree.outdated`.
        mask: begins when Ctrl-C is pressed; the caller ends it. None: a second Ctrl-C interrupts.

    """

    def __init__(  # noqa: PLR0913 - as above
        self,
        case: Case,
        judge: Judge,
        on_run: Callable[[Run], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
        prefix: Prefix | None = None,
        *,
        mask: InterruptMask | None = None,
    ) -> None:
        self._mask = mask
        self._short = 0 < judge.steps < (case.step_limit - LONGER) // 2
        self._case = replace(case, max_steps=2 * judge.steps + LONGER) if self._short else case
        self.endless = 0
        """How many executions were cut short."""
        self._over_long = False
        self._judge = judge
        self._on_run = on_run
        self._progress = progress
        self.tree = Tree(self._case, prefix)
        self._walk = TreeScheduler(self.tree)
        self._executions = 0
        self._classes = EquivalenceClasses(model_of(case.memory), self.tree.dependence)
        self._behaviours: set[int] = set()
        self._over = self.limited = self._interrupted = False
        self._ends: set[str] = set()
        self._contents: set[str] = set()
        self._results: set[str] = set()
        self._failures: dict[str, Failure] = {}
        self._judged: set[str] = set()

    async def run(self, budget: int) -> ExhaustiveResult:
        """Go on until there is nothing left, `budget` executions were made in all, or Ctrl-C is pressed."""
        try:
            while not (self._over or self._over_long) and self._executions < budget:
                waiting, cut_short = await self._execute()
                self._executions += 1
                self._advance(waiting, cut_short=cut_short)
                if self._progress is not None:
                    self._progress(Progress(self._executions, self._estimate(), len(self._failures)))
        except KeyboardInterrupt:
            if self._mask is not None:
                self._mask.begin()
            self._interrupted = True
        complete = self._over and not self.limited and not self.tree.outdated
        return ExhaustiveResult(
            self._executions, frozenset(self._behaviours), complete, self._estimate(complete=complete),
            frozenset(self._ends), frozenset(self._contents), frozenset(self._results), tuple(self._failures.values()),
            dict(self.tree.coenabled.pairs), self._interrupted, self.endless,
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether nothing is left to run, or is worth it: too many executions had to be cut short."""
        return self._over or self._over_long

    def _advance(self, waiting: Sequence[Op], *, cut_short: bool) -> None:
        """Turn to the next execution, and note which behaviour this one was."""
        ops = list(self.tree.execution.ops)
        known = self.tree.dependence.refinement
        self._over = not self.tree.advance(waiting=waiting, cut_short=cut_short)
        if self.tree.dependence.refinement != known:  # other executions are equivalent now
            self._classes = EquivalenceClasses(model_of(self._case.memory), self.tree.dependence)
            self._behaviours.clear()
        if self.tree.path or self._over:  # it was not in vain
            self._behaviours.add(self._classes.number_of(ops))

    def _estimate(self, *, complete: bool = False) -> int:
        explored = self.tree.explored_share
        if complete:
            return len(self._behaviours)
        return self._executions if self._over or not explored else max(round(self._executions / explored), 1)

    async def _execute(self) -> tuple[Sequence[Op], bool]:
        """Make the next execution; return what waits at its end, and whether its last step cut it short."""
        try:
            run = await simulate.aio(self._case, self._walk, engine="direct")
        except KernelError as error:
            why = f"the kernel raises under this schedule: {error}"
            self._note("raises", Finding("wrong-result", why, harmful=True), None)
            self._add_end(STOPPED, (), ())
            return (), True
        if self._short and run.ending == STEP_LIMIT:
            self.limited = True
            self.endless += 1
            self._over_long = self.endless >= MOST_CUT
            return (), True
        outputs = [part or "" for parts in self._judge.digests(run) for part in parts]
        shown = " ".join((run.ending, *outputs, *run.unwritten))
        if shown not in self._judged:  # the same bits have the same faults
            self._judged.add(shown)
            for finding in self._judge.findings(run):
                self._note(finding.kind, finding, run.ending)
        self._add_end(run.ending, outputs, run.windows)
        if self._on_run is not None:
            self._on_run(run)
        self.limited |= run.ending == STEP_LIMIT
        waiting = await self._waiting(run) if run.standing and run.ending in (COMPLETE, DEADLOCK) else ()
        return waiting, run.ending not in (COMPLETE, DEADLOCK)

    async def _waiting(self, run: Run) -> Sequence[Op]:
        """Return the waits that were blocked at the end. Only a recorded run has them; so repeat it."""
        again = await simulate.aio(self._case, Replay(run.choices), record=NAME, engine="direct")
        trace = again.trace
        if trace is None or trace.footer is None:
            raise RuntimeError("a recorded run has no trace")
        return [event.op for event in trace.footer.pending]

    def _note(self, kind: str, finding: Finding, ending: str | None) -> None:
        if kind not in self._failures:
            choices = tuple(op.actor.name for op in self.tree.execution.ops)
            memory = self._case.memory if is_with_old_reads(self._case.memory) else ""
            self._failures[kind] = Failure(finding, choices, NAME, ending or STOPPED, memory)

    def _add_end(self, ending: str, outputs: Sequence[str], windows: Sequence[Tile]) -> None:
        execution = self.tree.execution
        everything = (1 << len(execution.ops)) - 1
        cells = [str(execution.cell_value(slot, everything)) for slot in range(len(self.tree.starts))]
        result = digest_bytes(" ".join((ending, *outputs)).encode())
        windows_too = digest_bytes(b"".join((result.encode(), *(array.tobytes() for array in windows))))
        self._results.add(result)
        self._contents.add(windows_too)
        self._ends.add(digest_bytes(f"{windows_too} {' '.join(cells)}".encode()))


class TreeScheduler:
    """The scheduler of an exploration: along the path of the tree, and on from its end."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._step = 0

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run."""
        self._step = 0

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose as the tree does."""
        step = self._step
        state = self._tree.node_at(step, ready)
        chosen = self._tree.preferred(ready) if state is None else state.chosen
        op = next((op for op in ready if op.actor.name == chosen), None)
        if op is None or (state is not None and (len(ready) != len(state.ready) or not _same(op, state.ready[chosen]))):
            was = "" if state is None else _listed(state.ready.values())
            raise DivergenceError(
                f"the same choices led to other operations: ready were {was}; now {_listed(ready)}", step=step
            )
        if step == len(self._tree.execution.ops):
            self._tree.execution.extend(op, ready)
        self._step = step + 1
        return op


def _listed(ops: Iterable[Op]) -> str:
    return ", ".join(f"{op.actor.name} ({op})" for op in ops)


def _same(a: Op, b: Op) -> bool:
    """Return whether two operations of one world are the same."""
    if a is b:
        return True
    return _facts(a) == _facts(b)


def _facts(op: Op) -> tuple[object, ...]:
    """Return what an operation does; the pieces of a torn tile are regions made anew in each execution."""
    places = tuple((access.region.slot, access.region.spans, access.mode) for access in op.accesses)
    cell = op.cell.slot if op.cell is not None else -1
    return (op.kind, places, cell, op.how, op.amount, op.consume, op.said)
