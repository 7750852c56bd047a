"""Exhaustive exploration by several workers, each below another prefix.

Rounds: every part is searched for so many executions; then what is left of them, and, if these
are few, they are cut again. What a round does depends on what the one before showed and on nothing
else, so it does not matter which worker was faster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.checking.record.interrupts import InterruptMask
from asyncsim.checking.search.dependence import Refinement
from asyncsim.checking.search.dpor import Prefix
from asyncsim.checking.search.exhaust import MOST_CUT, ExhaustiveResult, ExhaustiveSearch
from asyncsim.checking.search.tally import Progress
from asyncsim.checking.workers.batch import CaseSpec, check_not_nested, importable_name
from asyncsim.checking.workers.pool import Dispatcher, WorkerPool
from asyncsim.checking.workers.subtree import Subtree, SubtreeResult, run_subtree, split
from asyncsim.machine.simulate import Blocking
from asyncsim.trace.errors import DivergenceError, MisuseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.shard import Failure, Shard
    from asyncsim.machine.case import Case

PARTS = 8
"""Parts for each worker: some are much larger than others."""
FIRST = 50
"""So many executions are made by one process first: mostly that is all there are."""
SLICE, LARGEST = 50, 3200
"""Executions of a part in the first round; twice as many in the next, until there are so many."""


@Blocking
async def exhaust_parallel(  # noqa: PLR0913 - each is a choice of the user's
    case: Case,
    judge: Judge,
    *,
    budget: int,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    found: Callable[[Failure], Awaitable[None]] | None = None,
    mask: InterruptMask | None = None,
) -> ExhaustiveResult:
    """Run every inequivalent execution of a case, or as many as the budget allows, by several workers.

    Ends, results, inequivalent executions, kinds of failures and completeness are those of
    one process alone. How many executions are made is not: above the cut every operation that
    is awake is tried, a wait before and after adds that it does not need, too; more of them turn out to be redundant;
    the first are made again. That depends on `jobs`, as do the schedules that show the failures, and what is seen if
    the budget ends it; not on which processes run them. Where an overflow or an exception ends a run early, what was
    executed by then may differ, but not that it happens.

    Args:
        case: what is run.
        judge: says what is wrong with a run; workers make their own, with the fair run as the reference.
        budget: how many executions at most.
        jobs: how many workers; 1: this process alone, unless there is an executor.
        executor: runs the parts; None: a pool of processes.
        progress: called after every execution here, and after every part elsewhere.
        found: called with each failure of a new kind: before long, and always in the same order.
        mask: begins when Ctrl-C comes; the caller ends it. None: a second one interrupts when this returns.

    Raises:
        DivergenceError: the kernel did not do the same again under the same schedule.
        MisuseError: the budget allows no run; other processes cannot find the kernel.

    """
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise MisuseError(f"budget={budget!r}; exhaustive exploration makes at least one execution")
    own = InterruptMask()
    try:
        if executor is None and jobs == 1:
            exploring = ExhaustiveSearch(case, judge, progress=progress, mask=mask or own)
            return await _alone(exploring, budget, found, mask or own)
        check_not_nested()
        importable_name(case.kernel)
        pool = WorkerPool(jobs, executor, run=run_subtree)
        return await ParallelSearch(case, judge, pool, progress=progress, found=found, mask=mask or own).run(budget)
    finally:
        own.end()


async def _alone(
    exploring: ExhaustiveSearch,
    budget: int,
    found: Callable[[Failure], Awaitable[None]] | None,
    mask: InterruptMask | None,
) -> ExhaustiveResult:
    part = reported = 0
    while True:
        part = min(max(2 * part, SLICE), budget)
        explored = await exploring.run(part)
        new, reported = explored.failures[reported:], len(explored.failures)
        for failure in new:
            try:
                if found is not None:
                    await found(failure)
            except KeyboardInterrupt:
                if mask is not None:
                    mask.begin()
                explored = replace(explored, interrupted=True)
        if exploring.over or explored.interrupted or part == budget:
            return explored


class ParallelSearch:
    """An exhaustive exploration that is divided.

    Args:
        case, judge, progress, found: as of `exhaust_parallel`.
        pool: searches the parts; it is closed in the end.
        parts: into how many the tree is cut; None: so many for each worker.
        first: how many executions are made here before that; None: a few.
        mask: begins when Ctrl-C comes; the caller ends it. None: a second one interrupts.

    """

    def __init__(  # noqa: PLR0913 - as above
        self,
        case: Case,
        judge: Judge,
        pool: WorkerPool,
        *,
        progress: Callable[[Progress], None] | None = None,
        found: Callable[[Failure], Awaitable[None]] | None = None,
        parts: int | None = None,
        first: int | None = None,
        mask: InterruptMask | None = None,
    ) -> None:
        self._mask = mask
        self._case = case
        self._judge = judge
        self._pool = pool
        self._progress = progress
        self._found = found
        self._wanted = PARTS * pool.jobs if parts is None else parts
        self._first = FIRST if first is None else first
        self._seen = ExhaustiveResult()
        self._repeated = 0
        self._limited = self._interrupted = False
        self._open: list[tuple[Prefix, int]] = []
        """What is left, with how many executions that may be."""
        self._round: dict[int, SubtreeResult] = {}
        kernel = case.kernel
        self._spec = CaseSpec(
            kernel.ref, kernel.source, case.ranks, case.calls, case.memory, case.seed, behaviours=False,
            max_steps=case.max_steps, edits=tuple(map(str, case.edits)),
        )  # fmt: skip

    async def run(self, budget: int) -> ExhaustiveResult:
        """Explore until nothing is left, the budget is used up, or Ctrl-C is pressed."""
        try:
            here = ExhaustiveSearch(self._case, self._judge, progress=self._progress, mask=self._mask)
            explored = await _alone(here, min(self._first, budget), self._found, self._mask)
            if here.over or explored.interrupted or explored.executions == budget:
                return explored
            # What these executions have shown is seen; they will be made again.
            self._seen, self._repeated = replace(explored, endless=0), explored.executions
            self._open = [(Prefix(Refinement()), explored.estimate)]
            refinement = here.tree.dependence.refinement
            while (now := await self._explore(refinement, budget)) != refinement:
                refinement = now
                self._repeated = self._seen.executions
                self._seen = replace(self._seen, behaviours=frozenset(), races={})  # the dependence is another now
        except KeyboardInterrupt:
            self._interrupt()
        finally:
            self._pool.close()
        complete = not self._open and not self._limited and not self._interrupted
        estimate = self._seen.inequivalent if complete else self._estimate()
        return replace(self._seen, complete=complete, estimate=estimate, interrupted=self._interrupted)

    def _interrupt(self) -> None:
        if self._mask is not None:
            self._mask.begin()
        self._interrupted = True
        self._progress = None  # the observer may be what interrupted it

    async def _explore(self, refinement: Refinement, budget: int) -> Refinement:
        """Explore all from the start; return what was learnt if that is more than was known, which ends it early."""
        everything = Prefix(refinement)
        self._open = [(everything, self._estimate())]
        await self._split_open()
        size = SLICE
        while self._open and self._seen.endless < MOST_CUT and (left := budget - self._seen.executions) > 0:
            now, later = self._open[:left], self._open[left:]
            share = min(size, left // len(now))
            await self._search([part for part, _ in now], share)
            known = refinement
            for searched in self._round.values():
                known |= searched.refinement
            if known != refinement:
                self._open = [(everything, 1)]
                return known
            rests = [(part.rest, part.explored.estimate - part.count) for part in self._round.values()]
            self._open = [(rest, max(number, 1)) for rest, number in rests if rest is not None] + later
            if 0 < len(self._open) < 2 * self._pool.jobs and self._wanted > 1:
                await self._split_open()
            size = min(2 * size, LARGEST)
        return refinement

    async def _split_open(self) -> None:
        """Cut what is left into as many parts as are wanted."""
        total = sum(number for _, number in self._open)
        parts = await split(self._case, [part for part, _ in self._open], self._wanted)
        self._open = [(part, max(total // len(parts), 1)) for part in parts]

    async def _search(self, parts: list[Prefix], share: int) -> None:
        """Search each of the parts for so many executions, and add what they show, in their order."""
        batches = [Subtree(self._spec, number, ("",), part, share) for number, part in enumerate(parts)]
        self._round = {}
        spread = Dispatcher(self._pool, self._receive)
        try:
            await spread.run(iter(batches))
        except KeyboardInterrupt:
            self._interrupt()
            await spread.collect_after_stop()
        finally:
            self._round = dict(sorted(self._round.items()))
            for searched in self._round.values():
                await self._add_result(searched)
        if self._interrupted:
            raise KeyboardInterrupt

    async def _receive(self, part: Shard) -> None:
        if not isinstance(part, SubtreeResult):
            raise TypeError(f"{type(part).__name__} is not the result of a search below a prefix")
        self._round[part.start] = part
        if self._progress is not None:
            done = self._seen.executions + sum(searched.count for searched in self._round.values())
            self._progress(Progress(done, max(self._estimate(), done), len(self._seen.failures)))

    async def _add_result(self, searched: SubtreeResult) -> None:
        if searched.diverged is not None:
            reason, step = searched.diverged
            raise DivergenceError(reason, step=step)
        self._limited |= searched.limited
        new = self._seen.new_failures(searched.explored)
        self._seen = self._seen.joined(searched.explored)
        for failure in new:
            await self._report_failure(failure)

    async def _report_failure(self, failure: Failure) -> None:
        """Report a failure; after Ctrl-C meanwhile the other parts are added all the same."""
        if self._found is not None:
            try:
                await self._found(failure)
            except KeyboardInterrupt:
                self._interrupt()

    def _estimate(self) -> int:
        return max(self._seen.executions - self._repeated + sum(number for _, number in self._open), 1)
