"""The exploration of one case under way: its plan cut into batches, its journal, and what Ctrl-C leaves of it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.interrupts import InterruptMask
from asyncsim.checking.search.sampler import Sampler, mixed_plan, seeded_plan
from asyncsim.checking.search.shard import Shard
from asyncsim.checking.search.tally import Tally
from asyncsim.checking.search.witness_writer import WitnessWriter
from asyncsim.checking.workers.batch import Batch, CaseSpec
from asyncsim.checking.workers.journal import Journal, append_failures
from asyncsim.checking.workers.pool import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from asyncsim.checking.search.tally import Progress
    from asyncsim.checking.workers.pool import WorkerPool
    from asyncsim.machine.case import Case, Run

_BATCH_STEPS = 30_000
"""A batch has about so many steps: a fraction of a second, which is what a lost worker costs."""
_BATCH = 250


class Exploration:
    """The exploration of one case under way.

    Args:
        case: what is explored.
        fair: its fair run.
        scheduler, save, resume, behaviours: as of `asyncsim.checking.verdict.explore.explore`.

    Attributes:
        interrupted: Ctrl-C was pressed.
        on_progress: called with the progress.

    """

    def __init__(  # noqa: PLR0913 - as above
        self,
        case: Case,
        fair: Run,
        scheduler: str | None,
        *,
        save: Path | None = None,
        resume: Path | str | None = None,
        behaviours: bool = False,
    ) -> None:
        """Open the journal; run nothing yet."""
        self.judge = Judge(case)
        self.judge.set_reference(fair)
        self.tally = Tally(WitnessWriter(case, save))
        self.interrupted = False
        self.on_progress: Callable[[Progress], None] | None = None
        self._mask = InterruptMask()
        self._case = case
        self._behaviours = behaviours
        self._runs = 0
        steps = max(len(fair.choices), 1)  # a scheduler that has this argument refuses 0
        seed = case.seed
        self._plan = mixed_plan(case.ranks, seed, steps) if scheduler is None else seeded_plan(scheduler, seed, steps)
        self._most = max(1, min(_BATCH, _BATCH_STEPS // steps))
        self._journal: Journal | None = None
        if resume is not None:
            self._journal = Journal(resume, {
                "kernel": case.kernel.ref, "source": case.kernel.source, "ranks": case.ranks, "calls": case.calls,
                "memory": case.memory, "seed": seed, "plan": scheduler or "mixed", "steps": steps,
                "behaviours": behaviours,
            })  # fmt: skip

    async def run(self, runs: int, pool: WorkerPool | None) -> None:
        """Run the first schedules of the plan that were not run before, here or by a pool; stop cleanly at Ctrl-C.

        Args:
            runs: how many, from the beginning of the plan.
            pool: the processes that run them, closed in the end; None: this process runs them.

        """
        done = [] if self._journal is None else [shard for shard in self._journal.shards if shard.stop <= runs]
        spread = None if pool is None else Dispatcher(pool, self._receive)
        if pool is not None:
            self._most = min(self._most, max(1, -(-runs // (4 * pool.jobs))))
        self._runs = runs
        try:
            for shard in done:
                await self.tally.add(shard)
            batches = self._batches([(shard.start, shard.stop) for shard in done])
            if spread is None:
                await self._run_here(batches)
            else:
                await spread.run(batches)
        except KeyboardInterrupt:
            self._mask.begin()
            self.interrupted = True
            self.on_progress = None  # the observer may be what interrupted it
            if spread is not None:
                await spread.collect_after_stop()
            await self.tally.count_remaining()
            for shard in [] if self._journal is None else self._journal.unfinished_failures():
                if shard.start < runs:
                    await self.tally.count_shard(shard)
        finally:
            if pool is not None:
                pool.close()

    def close(self) -> None:
        """Close the journal; Ctrl-C is heard again."""
        if self._journal is not None:
            self._journal.close()
        self._mask.end()

    def _batches(self, done: list[tuple[int, int]]) -> Iterator[Batch]:
        """Yield what is left to run."""
        case = self._case
        journal = None if self._journal is None else str(self._journal.path.resolve())
        spec = CaseSpec(
            case.kernel.ref, case.kernel.source, case.ranks, case.calls, case.memory, case.seed, self._behaviours,
            journal,
        )  # fmt: skip
        at = 0
        for start, stop in [*done, (self._runs, self._runs)]:
            while at < start:
                size = min(self._most, start - at)
                yield Batch(spec, at, tuple(islice(self._plan, size)))
                at += size
            for _ in islice(self._plan, stop - at):
                pass
            at = stop

    async def _receive(self, shard: Shard) -> None:
        """Add a shard of another process."""
        if self._journal is not None:
            self._journal.add(shard)
        await self.tally.add(shard)
        if self.on_progress is not None:
            self.on_progress(self.tally.progress(self._runs))

    async def _run_here(self, batches: Iterator[Batch]) -> None:
        sampler = Sampler(self._case, self.judge, behaviours=self._behaviours)
        for batch in batches:
            whole = Shard(batch.start)
            try:
                for number, text in enumerate(batch.texts, batch.start):
                    shard = await sampler.run_schedule_in_loop(number, text)
                    if batch.spec.journal is not None:
                        append_failures(batch.spec.journal, shard, whole)
                    await self.tally.add(shard)
                    whole.join(shard)
                    if self.on_progress is not None:
                        self.on_progress(self.tally.progress(self._runs))
            finally:
                if self._journal is not None:
                    self._journal.add(whole)
