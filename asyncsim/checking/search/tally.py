"""The tally of an exploration: its shards in the order of the plan, so that nothing depends on where they ran.

How much a sample has not shown: the probability that the next schedule shows a behaviour that none so far showed
is about the share of schedules whose behaviour was seen exactly once (Good, "The population frequencies of species
and the estimation of population parameters", Biometrika 40 (1953), equation 9). It is about what the same mix of
schedulers would show, not about what there is. Memory stays bounded by keeping only the behaviours whose number lies
below a threshold, which is halved whenever they become too many, and counting each of them for all those that were
dropped (Gibbons, "Distinct sampling for highly-accurate answers to distinct values queries", VLDB 2001). The outcome
depends on the sample alone, not on its order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.checking.record.interrupts import interrupts_deferred
from asyncsim.trace.event import STOPPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.checking.record.stage import Stage
    from asyncsim.checking.search.shard import Failure, Shard
    from asyncsim.checking.search.witness_writer import WitnessWriter
    from asyncsim.trace.finding import Finding


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exploration is.

    Args:
        done: schedules that were run.
        total: of how many.
        found: findings so far.
        behaviours: different ones seen so far, about; None where they are not counted.
        unseen: the probability that the next schedule shows a new one, about; None likewise.
        stage: what a check is doing besides running schedules; None: schedules are run.

    """

    done: int
    total: int
    found: int
    behaviours: int | None = None
    unseen: float | None = None
    stage: Stage | None = None


class Tally:
    """What an exploration has shown so far.

    Args:
        writer: makes the witness of the first failure of each kind, at once.

    Attributes:
        done: how many schedules were counted, and
        arrived: how many with those that wait for earlier ones.
        judged: how many of the counted did not end their process.
        seen: the behaviours.

    """

    def __init__(self, writer: WitnessWriter) -> None:
        self.done = 0
        self.arrived = 0
        self.judged = 0
        self.seen = GoodTuring()
        self._writer = writer
        self._any_right = writer.case.kernel.any_right
        self._first: dict[str, Failure] = {}
        self._witnessed: dict[str, Finding] = {}
        self._times: dict[str, int] = {}
        self._other_bits = 0
        self._early: dict[int, Shard] = {}
        self._next = 0

    async def add(self, shard: Shard) -> None:
        """Add a shard; it is counted as soon as all before it are."""
        self.arrived += shard.count
        self._early[shard.start] = shard
        while (ready := self._early.pop(self._next, None)) is not None:
            self._next = ready.stop
            await self.count_shard(ready)

    async def count_remaining(self) -> None:
        """Count what has arrived though something before it is missing: nothing more will."""
        for start in sorted(self._early):
            await self.count_shard(self._early.pop(start))

    async def count_shard(self, shard: Shard) -> None:
        """Count the next shard, and keep what it is the first to show."""
        self.done += shard.count
        self.judged += shard.judged
        self.arrived = max(self.arrived, self.done)
        self.seen.add(shard.behaviours)
        self._other_bits += shard.other_bits
        new = [key for key in shard.first if key not in self._first]
        self._first |= {key: shard.first[key] for key in new}
        for key, times in shard.times.items():
            self._times[key] = self._times.get(key, 0) + times
        with interrupts_deferred():  # a witness that was begun is written
            for key in new:
                failure = shard.first[key]
                ending = None if failure.ending == STOPPED else failure.ending
                if failure.ending:
                    self._witnessed[key] = await self._writer.write_witness(
                        failure.finding, failure.choices, ending=ending
                    )

    @property
    def found(self) -> int:
        """How many findings there are."""
        return len(self._first)

    def progress(self, total: int) -> Progress:
        """Return the progress."""
        if not self.seen.schedules:
            return Progress(self.arrived, total, self.found)
        return Progress(self.arrived, total, self.found, self.seen.behaviours, self.seen.unseen)

    def findings(self) -> list[Finding]:
        """Return one finding for each thing that is wrong, with how often it was seen and where first."""
        found = []
        for key, failure in self._first.items():
            finding = self._witnessed.get(key, failure.finding)
            often = f"in {self._times.get(key, 1)} of {self.done} schedules, first under {failure.scheduler}"
            found.append(finding.with_(shown=f"{finding.shown}; {often}" if finding.shown else often))
        return found

    def notes(self) -> list[str]:
        """Return remarks: how much was seen, and whether right results are the fair schedule's bit for bit."""
        notes = []
        if self.seen.schedules:
            notes.append(self.seen.summary())
        if self._other_bits:
            often = f"in {self._other_bits} of {self.done} schedules"
            which = "each of them right" if self._any_right else "each within the tolerance"
            notes.append(f"{often} the results differ in their bits from those of the fair one, {which}")
        return notes


MOST_BEHAVIOURS = 1 << 15
"""So many behaviours are kept; beyond it their numbers are estimates, within about one in a hundred."""
_BITS = 64


class GoodTuring:
    """The behaviours of a sample.

    Args:
        most: how many are kept at most.

    """

    def __init__(self, most: int = MOST_BEHAVIOURS) -> None:
        self.schedules = 0
        self._most = most
        self._shift = 0
        self._again: dict[int, bool] = {}

    def add(self, numbers: Iterable[int]) -> None:
        """Add the behaviours of some schedules, as uniform numbers of 64 bits."""
        again = self._again
        limit = 1 << _BITS - self._shift
        for number in numbers:
            self.schedules += 1
            if number < limit:
                again[number] = number in again
                if len(again) > self._most:
                    limit = self._halve()
                    again = self._again

    def _halve(self) -> int:
        while len(self._again) > self._most:
            self._shift += 1
            limit = 1 << _BITS - self._shift
            self._again = {number: again for number, again in self._again.items() if number < limit}
        return limit

    @property
    def exact(self) -> bool:
        """Whether nothing was dropped."""
        return not self._shift

    @property
    def behaviours(self) -> int:
        """How many different ones there are in the sample; an estimate unless `exact`."""
        return len(self._again) << self._shift

    @property
    def unseen(self) -> float:
        """The probability that the next schedule shows a new one, estimated; 1 for an empty sample."""
        once = sum(not again for again in self._again.values()) << self._shift
        return min(once / self.schedules, 1.0) if self.schedules else 1.0

    def summary(self) -> str:
        """Return the estimate in words."""
        about = "" if self.exact else "about "
        number, schedules = self.behaviours, self.schedules
        seen = f"{schedules} schedule{'s' * (schedules != 1)}, {about}{number} behaviour{'s' * (number != 1)}"
        unseen = self.unseen
        chance = f"about {unseen:.2g}" if unseen else f"less than about {1 / schedules:.2g}"
        return (
            f"{seen}, that is, orders of the operations that conflict; "
            f"the next schedule shows a new one with probability {chance}"
        )
