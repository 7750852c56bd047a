"""Races that an exploration has met, as findings: in the words of the analysis, a finding for all that are alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.analysis.group import EXAMPLES, FairOrder, findings_of
from asyncsim.analysis.races import suspect_at
from asyncsim.analysis.signals import signal_race_at
from asyncsim.analysis.streams import Streams
from asyncsim.checking.search.coenabled import SIGNAL_RACE
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.analysis.group import Suspect
    from asyncsim.analysis.streams import Place
    from asyncsim.checking.search.coenabled import Met, Pair
    from asyncsim.machine.case import Case
    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Finding, Side

NAME = "exhaust"
"""What stands for the scheduler in the header of a run that is made again to see its lines."""


class Raced:
    """The races of an exploration.

    Args:
        case: what was explored.
        fair: its fair run, by which races are named.
        races: as of `asyncsim.checking.search.exhaust.Exhausted`.

    """

    def __init__(self, case: Case, fair: Trace, races: Mapping[Pair, Met]) -> None:
        """Make no run yet."""
        self._case = case
        self._fair = fair
        self._races = races
        self._met = {_key(one[:2], other[:2]): met for (_, one, other), met in races.items()}

    def meeting(self, sides: tuple[Side, ...]) -> Met | None:
        """Return where the two sides of a finding were met; None: nowhere."""
        return self._met.get(_key(*((side.actor, side.index) for side in sides)))

    async def findings(self) -> list[Finding]:
        """Return a finding for all races that differ only in rank or element.

        Raises:
            DivergenceError: the kernel did not do the same again under the same schedule.

        """
        runs: dict[tuple[str, ...], list[Pair]] = {}
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
                groups[kind_of(finding)] = finding if known is None else _joined(known, finding)
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


def _joined(one: Finding, other: Finding) -> Finding:
    examples, whys = one.examples + other.examples, one.whys + other.whys
    return one.with_(pairs=one.pairs + other.pairs, examples=examples[:EXAMPLES], whys=whys[:EXAMPLES])


def _key(*places: tuple[str, int]) -> frozenset[tuple[str, int]]:
    return frozenset(places)
