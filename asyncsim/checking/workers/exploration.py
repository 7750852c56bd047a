"""The exploration of one case under way: its plan cut into batches, its journal, and what Ctrl-C leaves of it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.interrupts import Deaf
from asyncsim.checking.search.keep import Keeper
from asyncsim.checking.search.plan import mixed_plan, seeded_plan
from asyncsim.checking.search.sampler import Sampler
from asyncsim.checking.search.shard import Part
from asyncsim.checking.search.tally import Tally
from asyncsim.checking.workers.batch import Batch, Work
from asyncsim.checking.workers.journal import Journal, note_new
from asyncsim.checking.workers.pool import Spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from asyncsim.checking.search.tally import Progress
    from asyncsim.checking.workers.pool import Crew
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
        interrupted: Ctrl-C came.
        told: is called with the progress.

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
        self.judge.take_as_reference(fair)
        self.tally = Tally(Keeper(case, save))
        self.interrupted = False
        self.told: Callable[[Progress], None] | None = None
        self._deaf = Deaf()
        self._case = case
        self._behaviours = behaviours
        self._runs = 0
        steps = max(len(fair.choices), 1)  # a scheduler that asks for it takes no 0
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

    async def run(self, runs: int, crew: Crew | None) -> None:
        """Run the first schedules of the plan that were not run before, here or by a crew; stop cleanly at Ctrl-C.

        Args:
            runs: how many, from the beginning of the plan.
            crew: the processes that run them, closed in the end; None: this process runs them.

        """
        done = [] if self._journal is None else [part for part in self._journal.parts if part.stop <= runs]
        spread = None if crew is None else Spread(crew, self._take)
        if crew is not None:
            self._most = min(self._most, max(1, -(-runs // (4 * crew.jobs))))
        self._runs = runs
        try:
            for part in done:
                await self.tally.arrive(part)
            batches = self._batches([(part.start, part.stop) for part in done])
            if spread is None:
                await self._run_here(batches)
            else:
                await spread.run(batches)
        except KeyboardInterrupt:
            self._deaf.begin()
            self.interrupted = True
            self.told = None  # who watched may be what interrupted it
            if spread is not None:
                await spread.wind_down()
            await self.tally.count_early()
            for part in [] if self._journal is None else self._journal.found_elsewhere():
                if part.start < runs:
                    await self.tally.count(part)
        finally:
            if crew is not None:
                crew.close()

    def close(self) -> None:
        """Close the journal; Ctrl-C is heard again."""
        if self._journal is not None:
            self._journal.close()
        self._deaf.end()

    def _batches(self, done: list[tuple[int, int]]) -> Iterator[Batch]:
        """Yield what is left to run."""
        case = self._case
        journal = None if self._journal is None else str(self._journal.path.resolve())
        work = Work(
            case.kernel.ref, case.kernel.source, case.ranks, case.calls, case.memory, case.seed, self._behaviours,
            journal,
        )  # fmt: skip
        at = 0
        for start, stop in [*done, (self._runs, self._runs)]:
            while at < start:
                size = min(self._most, start - at)
                yield Batch(work, at, tuple(islice(self._plan, size)))
                at += size
            for _ in islice(self._plan, stop - at):
                pass
            at = stop

    async def _take(self, part: Part) -> None:
        """Take a part that another process has made."""
        if self._journal is not None:
            self._journal.add(part)
        await self.tally.arrive(part)
        if self.told is not None:
            self.told(self.tally.progress(self._runs))

    async def _run_here(self, batches: Iterator[Batch]) -> None:
        sampler = Sampler(self._case, self.judge, behaviours=self._behaviours)
        for batch in batches:
            whole = Part(batch.start)
            try:
                for number, text in enumerate(batch.texts, batch.start):
                    part = await sampler.here(number, text)
                    if batch.work.journal is not None:
                        note_new(batch.work.journal, part, whole)
                    await self.tally.arrive(part)
                    whole.join(part)
                    if self.told is not None:
                        self.told(self.tally.progress(self._runs))
            finally:
                if self._journal is not None:
                    self._journal.add(whole)
