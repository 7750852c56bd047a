"""Sampling: which scheduler each of many schedules has, and what each schedule shows, as a shard."""

from __future__ import annotations

import inspect
import traceback
from array import array
from itertools import count
from pathlib import PurePath
from typing import TYPE_CHECKING

from asyncsim.checking.search.cause import Causes
from asyncsim.checking.search.equivalence import EquivalenceClasses, RecordedChoices
from asyncsim.checking.search.shard import Failure, Shard
from asyncsim.checking.search.tally import Progress, Tally
from asyncsim.machine.direct import drive
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fair import FairAtLast
from asyncsim.schedulers.table import SCHEDULERS, make
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import COMPLETE, STOPPED
from asyncsim.trace.finding import Finding
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.coenabled import SampledRaces
    from asyncsim.checking.search.witness_writer import WitnessWriter
    from asyncsim.machine.case import Case, Run

PCT_DEPTH = 3


def mixed_plan(ranks: int, seed: int, steps: int) -> Iterator[str]:
    """Yield scheduler texts without end: every rank starved once, then PCT, POS and random in turn.

    Args:
        ranks: P.
        seed: of the first of each; the next has the next.
        steps: how long a run is, which PCT needs to place its priority changes.

    """
    yield from (f"starve:rank={rank}" for rank in range(ranks))
    for n in count(seed):
        yield from (f"pct:depth={PCT_DEPTH},steps={steps},seed={n}", f"pos:seed={n}", f"random:seed={n}")


def seeded_plan(scheduler: str, seed: int, steps: int) -> Iterator[str]:
    """Yield one scheduler with one seed after another; the same text each time if it has none.

    Args:
        scheduler: as text, with or without arguments: "pct:k=3".
        seed: of the first; each further one has the next.
        steps: how long a run is, for schedulers that take it.

    Raises:
        MisuseError: there is no such scheduler.

    """
    make(scheduler, seed=seed)  # says what is wrong with the text before anything runs
    takes = inspect.signature(SCHEDULERS[scheduler.partition(":")[0].strip()]).parameters
    for n in count(seed):
        extra = [
            f"{key}={value}"
            for key, value in (("steps", steps), ("seed", n))
            if key in takes and f"{key}=" not in scheduler.replace(" ", "")
        ]
        joint = ("," if ":" in scheduler else ":") if extra else ""
        yield f"{scheduler}{joint}{','.join(extra)}"


_MOST_KNOWN = 1024
"""So many different results are remembered with what is wrong with them. Mostly there are a few dozen."""


class Sampler:
    """Judges schedules of one case, each for itself: the same schedule shows the same, whatever was run before.

    Args:
        case: what is run.
        judge: says what is wrong with a run; it knows the fair one.
        behaviours: whether to number the behaviour of each run.
        races: the runs that are made here are searched for races; None: they are not.

    """

    def __init__(self, case: Case, judge: Judge, *, behaviours: bool, races: SampledRaces | None = None) -> None:
        self._races = races
        self.case = case
        self._judge = judge
        self._causes = Causes(case)
        self._behaviours = EquivalenceClasses(model_of(case.memory)) if behaviours else None
        self._known: dict[str, tuple[list[Finding], bool]] = {}

    def run_schedule(self, number: int, text: str) -> Shard:
        """Run one schedule; return its shard.

        Args:
            number: of the schedule in the plan, from 0.
            text: its scheduler.

        """
        recorded = self._scheduler(text)
        try:
            outcome: Run | KernelError = drive(self.case, recorded)
        except KernelError as error:
            outcome = error
        return self.shard_of(number, text, recorded, outcome)

    async def run_schedule_in_loop(self, number: int, text: str) -> Shard:
        """Run one schedule, after a checkpoint of trio: for other tasks, Ctrl-C and cancellations.

        Args:
            number: of the schedule in the plan, from 0.
            text: its scheduler.

        """
        recorded = self._scheduler(text)
        try:
            outcome: Run | KernelError = await simulate.aio(self.case, recorded, engine="direct", notice=False)
        except KernelError as error:
            outcome = error
        finally:
            if self._races is not None:
                self._races.add_run(recorded)
        return self.shard_of(number, text, recorded, outcome)

    def _scheduler(self, text: str) -> RecordedChoices:
        """Make the scheduler; in a run that goes on and on it becomes a fair one."""
        return RecordedChoices(FairAtLast(make(text), 1000 + 4 * self._judge.steps))

    def shard_of(self, number: int, text: str, recorded: RecordedChoices, outcome: Run | KernelError) -> Shard:
        """Return the shard of one schedule.

        Args:
            number: of the schedule in the plan, from 0.
            text: its scheduler.
            recorded: what the scheduler chose.
            outcome: the run, or what the kernel raised.

        """
        shard = Shard(number, 1)
        if self._behaviours is not None:
            shard.behaviours = array("Q", [self._behaviours.number_of(recorded.ops)])
        if isinstance(outcome, KernelError):
            finding = Finding("wrong-result", f"the kernel raises under this schedule: {outcome}", harmful=True)
            shard.times[_raised(outcome)] = 1
            shard.first[_raised(outcome)] = Failure(finding, tuple(recorded.choices), text, STOPPED)
            return shard
        findings, other_bits = self._judged(outcome)
        shard.other_bits = int(other_bits)
        for finding in findings:
            cause = self._causes.cause_of(finding, recorded.ops)
            found = finding.with_(sides=(*finding.sides, *cause.sides))
            shard.times[cause.key] = 1
            shard.first[cause.key] = Failure(found, tuple(outcome.choices), text, outcome.ending)
        return shard

    def _judged(self, run: Run) -> tuple[list[Finding], bool]:
        """Return what is wrong with a run, and whether its results are right, but in other bits than the fair one's.

        The same bits have the same faults, and to compare with a golden costs as much as half a run.
        """
        if run.ending != COMPLETE or run.unwritten:
            return self._judged_anew(run)
        shown = " ".join(digest or "" for digests in self._judge.digests(run) for digest in digests)
        known = self._known.get(shown)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[shown] = self._judged_anew(run)
        return known

    def _judged_anew(self, run: Run) -> tuple[list[Finding], bool]:
        findings = self._judge.findings(run)
        return findings, not findings and self._judge.differs_from_reference(run)


def _raised(error: KernelError) -> str:
    """Return the key of what a kernel raised: the type, and the line."""
    cause = error.__cause__ or error
    frames = traceback.extract_tb(cause.__traceback__)
    place = f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"raises | {type(cause).__name__} | {place}"


class Sampling:
    """Many schedules of one case, here, one after the other.

    Args:
        case: what is run.
        judge: says what is wrong with a run.
        writer: makes the first witness of each failure, at once.
        races: the schedules are searched for races; None: they are not.

    Attributes:
        tally: what they showed.
        interrupted: Ctrl-C was pressed.

    """

    def __init__(self, case: Case, judge: Judge, writer: WitnessWriter, races: SampledRaces | None = None) -> None:
        self.interrupted = False
        self._sampler = Sampler(case, judge, behaviours=False, races=races)
        self.tally = Tally(writer)

    async def run(self, plan: Iterator[str], total: int, progress: Callable[[Progress], None] | None = None) -> None:
        """Run the schedules of `plan`; stop cleanly at Ctrl-C.

        Args:
            plan: schedulers as text.
            total: how many the plan has, for the progress.
            progress: called after each; or None.

        """
        try:
            for number, text in enumerate(plan):
                await self.tally.count_shard(await self._sampler.run_schedule_in_loop(number, text))
                if progress is not None:
                    progress(self.tally.progress(total))
        except KeyboardInterrupt:
            self.interrupted = True
