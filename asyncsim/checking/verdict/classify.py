"""Classification of findings about an order, after all exploration: benign, harmful, or not shown to be harmful.

Two schedules with the same bits do not make a race benign. It is called so where every inequivalent execution ends
alike, or where both of its orders were followed to all their ends, and these are the same; and harmful where they are
not. Else it is not shown to be harmful, which says nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.analysis.analyse import ORDER_FINDINGS
from asyncsim.analysis.group import EXAMPLES, FairOrder, findings_of
from asyncsim.analysis.races import suspect_at
from asyncsim.analysis.signals import signal_race_at
from asyncsim.analysis.streams import Streams
from asyncsim.checking.diagnose.outcome import RIGHT
from asyncsim.checking.record.interrupts import interrupts_deferred
from asyncsim.checking.search.coenabled import SIGNAL_RACE
from asyncsim.checking.search.ends import NOT_FOLLOWED, OrderComparison, OrderEffect
from asyncsim.checking.witness.rendezvous import Rendezvous
from asyncsim.checking.witness.witness import failures_in_words
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.choices import Choices
from asyncsim.schedulers.fair import FairAtLast
from asyncsim.schedulers.lenient import Lenient
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asyncsim.analysis.group import Suspect
    from asyncsim.analysis.streams import Place
    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.coenabled import Coenabled, PairKey
    from asyncsim.checking.search.exhaust import ExhaustiveResult
    from asyncsim.checking.search.witness_writer import WitnessWriter
    from asyncsim.machine.case import Case
    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Finding, Side


BUDGET, STEPS = 400, 40_000
"""How many executions, and about how many steps, it may take to follow the orders of all findings of a check."""


def _ignore() -> None:
    """Ignore that executions are made."""


@dataclass(slots=True)
class RaceClassifier:
    """Classifies the findings of one case as benign or harmful.

    Args:
        judge: of its runs; it knows the fair one.
        fair: the fair run, recorded.
        writer: keeps the witnesses.
        findings: what was found by now; classified in place, and added to.
        races: that were met, as of `asyncsim.checking.search.exhaust.ExhaustiveResult`.
        explored: what an exhaustive exploration has shown; None: there was none.
        budget: how many executions may be made to follow orders.

    """

    judge: Judge
    fair: Trace
    writer: WitnessWriter
    findings: list[Finding]
    races: Mapping[PairKey, Coenabled]
    explored: ExhaustiveResult | None = None
    budget: int = BUDGET

    async def classify(self, begin: Callable[[], None] = _ignore) -> int:
        """Add the races that were met, classify all; return how many executions that took.

        Args:
            begin: called if executions are made.

        Raises:
            DivergenceError: the kernel did not do the same again under the same schedule.
            KeyboardInterrupt: Ctrl-C came; what is not classified by then is not called benign.

        """
        explored = self.explored
        met_races = _MetRaces(self.judge.case, self.fair, self.races)
        await self._add(met_races, complete=explored is not None and explored.complete)
        left = [n for n, found in enumerate(self.findings) if found.kind in ORDER_FINDINGS and found.harmful is None]
        any_right = self.judge.case.kernel.any_right
        alike = explored is not None and (any_right or len(explored.contents) == 1)
        if explored is not None and alike and explored.complete and not explored.failures:
            what = "the same bits" if len(explored.contents) == 1 else RIGHT
            words = f"{what} in all {explored.inequivalent} inequivalent executions"
            for number in left:
                self.findings[number] = await self._with_schedule(
                    self.findings[number].with_(harmful=False, shown=words), met_races
                )
            return 0
        ends = OrderComparison(self.judge, min(self.budget, STEPS // max(self.judge.steps, 1)))
        for number in left:
            finding = self.findings[number]
            if finding.examples and len(finding.sides) == 2:  # noqa: PLR2004 - a pair
                begin()
                self.findings[number] = await self._with_schedule(
                    await self._classified(finding, met_races, ends), met_races
                )
        return ends.executions

    async def _add(self, met_races: _MetRaces, *, complete: bool) -> None:
        """Add the races that were not found before; where all were met, their number is that of the pairs."""
        known = {kind_of(finding): number for number, finding in enumerate(self.findings)}
        for finding in await met_races.findings():
            number = known.get(kind_of(finding))
            if number is None:
                self.findings.append(finding)
            elif complete:
                self.findings[number] = self.findings[number].with_(pairs=finding.pairs)

    async def _with_schedule(self, finding: Finding, met_races: _MetRaces) -> Finding:
        """Return a finding with a schedule in which its sides come the other way round than in the fair run."""
        met = met_races.meeting(finding.sides)
        if met is None or finding.token is not None:
            return finding
        first, second = finding.sides
        prefix = [*met.choices_before, second.actor, first.actor]
        choices = Choices(FairAtLast(Lenient([(name, 1) for name in prefix]), len(prefix)))
        ending = None
        with suppress(KernelError):
            ending = (await simulate.aio(self.judge.case, choices, engine="direct", notice=False)).ending
        return await self.writer.write_witness(finding, choices.choices, ending=ending)

    async def _classified(self, finding: Finding, met_races: _MetRaces, ends: OrderComparison) -> Finding:
        shown: list[OrderEffect] = []
        for sides, why in zip(finding.examples, finding.whys, strict=True):
            choices_before = await self._coenabled_after(sides, met_races)
            if choices_before is None:
                shown.append(OrderEffect(None, NOT_FOLLOWED))
                continue
            shown.append(await ends.compare(choices_before, sides[0].actor, sides[1].actor))
            if shown[-1].harmful:
                return await self._with_execution(finding.with_(sides=sides, why=why), shown[-1])
        worst = next((one for one in shown if one.harmful is None), shown[0])
        if worst.harmful is False and finding.pairs > len(shown):
            worst = OrderEffect(
                None, f"{worst.words} (in {len(shown)} of {finding.pairs} pairs; the others were not run)"
            )
        return finding.with_(harmful=worst.harmful, shown=_joined_words(finding.shown, worst))

    async def _with_execution(self, finding: Finding, shown: OrderEffect) -> Finding:
        end, words = shown.end, shown.words
        if end is None:
            return finding.with_(harmful=True, shown=words)
        if not words:
            words = end.error if end.run is None else await failures_in_words(self.judge, end.run)
        ending = None if end.run is None else end.run.ending
        with interrupts_deferred():  # a witness that was begun is written
            return await self.writer.write_witness(finding.with_(harmful=True, shown=words), end.choices, ending=ending)

    async def _coenabled_after(self, sides: tuple[Side, ...], met_races: _MetRaces) -> list[str] | None:
        """Return the choices after which both sides are next; None: they were not brought together."""
        met = met_races.meeting(sides)
        if met is not None:
            return met.choices_before
        first, second = sides
        meeting = Rendezvous(first, second, self.judge.fair, 2 * self.judge.steps)
        choices = Choices(meeting)
        with suppress(KernelError):
            await simulate.aio(self.judge.case, choices, engine="direct", notice=False)
        if not meeting.met:
            return None
        done = [step for step, name in enumerate(choices.choices) if name == first.actor]
        return choices.choices[: done[first.index]]


def withdraw_benign(findings: list[Finding]) -> None:
    """Mark findings about an order as undecided where only two schedules show that they are benign."""
    for number, finding in enumerate(findings):
        if finding.kind in ORDER_FINDINGS and finding.harmful is False:
            findings[number] = finding.with_(harmful=None)


def _joined_words(known: str, shown: OrderEffect) -> str:
    """Return what two schedules showed, and what following them did, unless that says all."""
    if shown.harmful is False or not known:
        return shown.words
    return known if shown.words in known else f"{known}; {shown.words}"


NAME = "exhaust"
"""What stands for the scheduler in the header of a run that is made again to see its lines."""


class _MetRaces:
    """The races of an exploration of a case, `races` of its result; they are named by the fair run."""

    def __init__(self, case: Case, fair: Trace, races: Mapping[PairKey, Coenabled]) -> None:
        """Make no run yet."""
        self._case = case
        self._fair = fair
        self._races = races
        self._met = {_key(one[:2], other[:2]): met for (_, one, other), met in races.items()}

    def meeting(self, sides: tuple[Side, ...]) -> Coenabled | None:
        """Return where the two sides of a finding were met; None: nowhere."""
        return self._met.get(_key(*((side.actor, side.index) for side in sides)))

    async def findings(self) -> list[Finding]:
        """Return a finding for all races that differ only in rank or element.

        Raises:
            DivergenceError: the kernel did not do the same again under the same schedule.

        """
        runs: dict[tuple[str, ...], list[PairKey]] = {}
        for pair, met in self._races.items():
            runs.setdefault(met.choices, []).append(pair)
        groups: dict[tuple[object, ...], Finding] = {}
        for choices, pairs in runs.items():
            streams = Streams(await self._recorded(choices))
            number = {actor.name: n for n, actor in enumerate(streams.actors)}
            suspects = [
                _suspect(streams, kind, (number[one[0]], one[1]), (number[other[0]], other[1]))
                for kind, one, other in pairs
            ]
            for finding in findings_of(streams, suspects, FairOrder(streams, self._fair)):
                known = groups.get(kind_of(finding))
                groups[kind_of(finding)] = finding if known is None else _merged_findings(known, finding)
        return list(groups.values())

    async def _recorded(self, choices: tuple[str, ...]) -> Trace:
        """Make a run again that may have been cut short, with its lines."""
        case = replace(self._case, max_steps=max(len(choices), 1))
        try:
            trace = (await simulate.aio(case, Replay(choices), record=NAME, engine="direct")).trace
        except KernelError as error:
            trace = error.trace
        if trace is None:
            raise RuntimeError("a recorded run has no trace")
        return trace


def _suspect(streams: Streams, kind: str, x: Place, y: Place) -> Suspect:
    return signal_race_at(streams, x, y) if kind == SIGNAL_RACE else suspect_at(streams, x, y, kind)


def kind_of(finding: Finding) -> tuple[object, ...]:
    """Return what two findings have in common that differ only in rank or element."""
    places = tuple(side.at for side in finding.sides)
    return finding.kind, finding.hazard, finding.scope, finding.window, places


def _merged_findings(one: Finding, other: Finding) -> Finding:
    examples, whys = one.examples + other.examples, one.whys + other.whys
    return one.with_(pairs=one.pairs + other.pairs, examples=examples[:EXAMPLES], whys=whys[:EXAMPLES])


def _key(*places: tuple[str, int]) -> frozenset[tuple[str, int]]:
    return frozenset(places)
