"""Sampling by a check: some schedules of one case, here, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.checking.search.sampler import Sampler
from asyncsim.checking.search.tally import Progress, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.keep import WitnessWriter
    from asyncsim.checking.search.looking import SampledRaces
    from asyncsim.machine.case import Case
    from asyncsim.trace.finding import Finding


class Sampling:
    """Many schedules of one case, here, one after the other.

    Args:
        case: what is run.
        judge: says what is wrong with a run.
        writer: makes the first witness of each failure, at once.
        looking: looks at the schedules for races; None: nobody does.

    """

    def __init__(self, case: Case, judge: Judge, writer: WitnessWriter, looking: SampledRaces | None = None) -> None:
        self.interrupted = False
        self._sampler = Sampler(case, judge, behaviours=False, looking=looking)
        self._tally = Tally(writer)

    @property
    def done(self) -> int:
        """How many schedules were run."""
        return self._tally.done

    async def run(self, plan: Iterator[str], total: int, progress: Callable[[Progress], None] | None = None) -> None:
        """Run the schedules of `plan`; stop cleanly at Ctrl-C.

        Args:
            plan: schedulers as text.
            total: how many the plan has, for the progress.
            progress: called after each; None: nobody is told.

        """
        try:
            for number, text in enumerate(plan):
                await self._tally.count_shard(await self._sampler.run_schedule_in_loop(number, text))
                if progress is not None:
                    progress(self._tally.progress(total))
        except KeyboardInterrupt:
            self.interrupted = True

    def findings(self) -> list[Finding]:
        """Return one finding for each thing that is wrong, with how often it was seen and where first."""
        return self._tally.findings()

    def notes(self) -> list[str]:
        """Return a remark if some results, none of them wrong, are not the fair schedule's bit for bit."""
        return self._tally.notes()
