"""The analysis: from the events of one run to what holds in every schedule.

Conditions and proof: with monotone guards the frontiers are exact if S1 to S5 (see `signals`) hold;
then no race means that every schedule executes the same operations with the same values. The
background is Thornley and Chandy, "Monotonic counters: a new mechanism for thread
synchronization" (IPDPS 2000), and Helmbold and McDowell on synchronisation that permits efficient
race detection (UCSC-CRL-93-29); own subtraction keeps self-cleaning signals on the easy side of
what Netzer and Miller showed to be NP-hard.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from asyncsim.analysis.arrivals import meetings_of
from asyncsim.analysis.beyond import beyond
from asyncsim.analysis.classes import CellClass, classes_of
from asyncsim.analysis.clocks import Clocks
from asyncsim.analysis.compact import Compact, analyse_columns
from asyncsim.analysis.contracts import leftover_credits, unwritten_reads
from asyncsim.analysis.deadlock import deadlock
from asyncsim.analysis.frontiers import Frontiers
from asyncsim.analysis.group import FairOrder, findings_of
from asyncsim.analysis.mismatch import call_mismatches
from asyncsim.analysis.order import order_of
from asyncsim.analysis.polls import Polls
from asyncsim.analysis.races import races
from asyncsim.analysis.scopes import Scoped, less_ordering, scoped_analysis
from asyncsim.analysis.signals import overflows, signal_races, undetermined_tests, unstable_waits, why_undetermined
from asyncsim.analysis.streams import Streams
from asyncsim.trace.event import COMPLETE, DEADLOCK, STEP_LIMIT
from asyncsim.trace.finding import ATOMIC, RACE, SUM
from asyncsim.trace.kinds import POLLING

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.analysis.polls import Contents
    from asyncsim.analysis.streams import Place
    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Finding

RacePair = frozenset[tuple[str, int]]
FLAGS = ("signal-race", "unstable-wait", "overflow")
ORDER_FINDINGS = (*FLAGS, RACE, SUM, ATOMIC)


@dataclass(slots=True)
class Analysis:
    """What one run says of all schedules.

    Args:
        findings: grouped; `harmful` is still open where only a witness can tell.
        races: makes `race_pairs`, which can be very many.
        reasons: why the theory does not apply; empty if it does.
        exact: no flag was raised, so races are exactly those that some schedule shows.
        fast: vector clocks decided; False: frontiers.
        rotated: the frontiers of one rank were enough, because the ranks are rotations of one another.
        disputed: makes every pair of operations that the findings are about: their order may be either.
        cells: why counting credits was enough for each cell, or why not.

    """

    findings: list[Finding]
    races: Callable[[], set[RacePair]]
    reasons: list[str]
    exact: bool
    fast: bool
    cells: list[CellClass]
    rotated: bool = False
    disputed: Callable[[], set[RacePair]] = set

    @property
    def race_pairs(self) -> set[RacePair]:
        """Every race, as the (actor, index in its stream) of its two operations."""
        return self.races()

    @property
    def applies(self) -> bool:
        """Whether the theory applies to the run."""
        return not self.reasons

    @property
    def clean(self) -> bool:
        """Whether every schedule executes the same operations with the same values."""
        return self.applies and not any(finding.kind in ORDER_FINDINGS for finding in self.findings)


def analyse(
    trace: Trace,
    *,
    order: str = "auto",
    fair: Trace | None = None,
    contents: Contents | None = None,
    same_last: bool = False,
) -> Analysis:
    """Analyse a run.

    Args:
        trace: the run, with its footer.
        order: "clocks" or "frontiers" to force one of the two ways; they agree where both apply.
        fair: the run under round robin, by which races are named; by default `trace` itself.
        contents: knows what the windows hold, so that polls can be told that one store forces; by default nobody does.
        same_last: speak of those schedules alone in which the same ones arrive last; see `asyncsim.analysis.arrivals`.

    Raises:
        MisuseError: clocks were asked for, and some cell has alternatives.

    """
    if outside := beyond(trace):
        streams = Streams(trace)
        findings = [*call_mismatches(trace), *findings_of(streams, unwritten_reads(streams), FairOrder(streams, fair))]
        return Analysis(findings, set, outside, exact=False, fast=False, cells=[])
    if order == "auto" and (compact := analyse_columns(trace, fair or trace)) is not None:
        return _analysis_of(trace, compact)
    streams = Streams(trace)
    polls = Polls(streams, contents)
    found, _ = order_of(streams, order, polls, meetings=meetings_of(streams) if same_last else ())
    scoped = _scoped(streams, same_last=same_last)
    # Of a run that would not end nothing is proved, and its pairs can be very many.
    if streams.ending == STEP_LIMIT:
        suspects = []
    elif scoped is not None:
        suspects = scoped.suspects
    else:
        suspects = list(races(streams, found))
    flags = list(chain(signal_races(streams, found), unstable_waits(streams, found), overflows(streams, found)))
    flags = flags if scoped is None else scoped.flags
    own = list(chain(unwritten_reads(streams), leftover_credits(streams)))
    findings = list(call_mismatches(trace))  # first: it explains a hang better than the hang does
    findings += findings_of(streams, chain(suspects, flags, own), FairOrder(streams, fair))
    if streams.deadlocked:
        findings.append(deadlock(streams))
    tests = list(undetermined_tests(streams, found))
    reasons = [why_undetermined(test) for test in tests[:1]] if scoped is None else scoped.reasons
    # What a poll sees is known only where nothing else is open.
    polled = polls.every if suspects or flags else polls.unforced
    reasons += [f"{event.op.actor.title} polls data ({event.op})" for event in polled[:1]]
    if streams.ending not in (COMPLETE, DEADLOCK):
        reasons.append(f"the run did not end by itself: {streams.ending or 'no footer'}")
    raced = [suspect.places for suspect in suspects if suspect.kind == "race"]
    cells = classes_of(streams, flags, tests)
    return Analysis(
        findings, partial(_named, streams, raced), reasons, not flags and not reasons, isinstance(found, Clocks), cells,
        isinstance(found, Frontiers) and found.rotated,
        partial(_named, streams, [each.places for each in (*suspects, *flags) if each.kind != "overflow"]),
    )  # fmt: skip


def _scoped(streams: Streams, *, same_last: bool) -> Scoped | None:
    """Return what orders and scopes leave open; None where they order as much as under ``sc``."""
    less = less_ordering(streams.trace)
    if not less:
        return None
    polls = [event for event in less if event.op.kind in POLLING]
    if polls or same_last or streams.ending == STEP_LIMIT:
        odd = (polls or less)[0]
        return Scoped([], [], [f"under gpu {odd.op.actor.title}'s '{odd.op}' orders less than it does under sc"])
    return scoped_analysis(streams)


def _named(streams: Streams, raced: list[tuple[Place, ...]]) -> set[RacePair]:
    names = [actor.name for actor in streams.actors]
    return {frozenset((names[number], index) for number, index in places) for places in raced}


def _analysis_of(trace: Trace, compact: Compact) -> Analysis:
    """Take the findings of the columns, and what the calls of collectives say."""
    findings = [*call_mismatches(trace), *compact.findings]
    races = compact.race_pairs
    return Analysis(findings, races, [], exact=True, fast=True, cells=compact.cells, disputed=races)
