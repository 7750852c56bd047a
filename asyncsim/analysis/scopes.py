"""Order and scope: the analysis of a run under ``gpu`` in which an operation orders less than it does under ``sc``.

What can happen is found as for every run, but with updates that land late (see `late_updates`); what is *known* of it,
and so which accesses race, by `known`; and whether what reads a cell can be misled, by `visible`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from asyncsim.analysis.frontiers import Frontiers
from asyncsim.analysis.group import Suspect
from asyncsim.analysis.known import Known
from asyncsim.analysis.late_updates import with_late_updates
from asyncsim.analysis.order import order_of
from asyncsim.analysis.precede import unordered
from asyncsim.analysis.races import races
from asyncsim.analysis.signals import overflows, signal_races, undetermined_tests, unstable_waits, why_undetermined
from asyncsim.analysis.unsynchronised import why_unsynchronised
from asyncsim.analysis.visible import Visible
from asyncsim.trace import op as ops
from asyncsim.trace.finding import RACE
from asyncsim.trace.kinds import ACQ_REL, ACQUIRE, CARRYING, EXCHANGING, POLLING, RELEASE, SEEING, WORLD
from asyncsim.trace.late import model_of
from asyncsim.trace.op import change_by, include, scope_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.streams import History, Place, Streams
    from asyncsim.trace.event import Event, Trace


@dataclass(frozen=True, slots=True)
class Scoped:
    """What orders and scopes leave open in a run.

    Args:
        suspects: races, of data and of scopes.
        flags: where counting credits is not enough.
        reasons: why nothing is concluded from the run.

    """

    suspects: list[Suspect]
    flags: list[Suspect]
    reasons: list[str]


def orders_less(event: Event) -> bool:
    """Whether under ``gpu`` an operation synchronises less than under ``sc``: by its order, by its scope, or as data.

    Args:
        event: a step of a run, or what stood at the gate when it ended.

    """
    op = event.op
    if op.kind in POLLING:
        return True
    if op.cell is None or op.kind in CARRYING:
        return False
    needed = {RELEASE} if change_by(op) is not None else set()
    needed |= {ACQUIRE} if op.kind in SEEING | EXCHANGING else set()
    order = ops.order_of(op)
    return scope_of(op) != WORLD or not needed <= ({RELEASE, ACQUIRE} if order == ACQ_REL else {order})


def less_ordering(trace: Trace) -> list[Event]:
    """Return what in a run orders less than it does under ``sc``; nothing, unless its memory model knows scopes.

    Args:
        trace: the run; what was pending at its end counts, too.

    """
    if not model_of(trace.header.memory).scoped:
        return []
    pending = () if trace.footer is None else trace.footer.pending
    return [event for event in (*trace.events, *pending) if orders_less(event)]


def scoped_analysis(streams: Streams) -> Scoped:
    """Analyse a run by what is surely known.

    Args:
        streams: of the run.

    """
    late = with_late_updates(streams.trace)
    order, guards = order_of(late, "frontiers")
    assert isinstance(order, Frontiers)  # noqa: S101 - for the type checker: they were asked for
    flags = [
        replace(each, places=tuple(map(late.issue, each.places)))
        for found in (signal_races, unstable_waits, overflows)
        for each in found(late, order)
    ]
    reasons = [why_undetermined(test) for test in undetermined_tests(late, order)][:1]
    known = Known(late, order, guards)
    suspects = list(races(streams, known, why_unsynchronised(late, known)))
    for history in late.histories.values():
        suspects += _scope_races(late, known, history)
        misled = next(Visible(late, order, known, history).misleading(), None)
        reasons += [] if misled is None else [_why_misled(late, *misled)]
    return Scoped(suspects, flags, reasons)


def _scope_races(streams: Streams, known: Known, history: History) -> Iterator[Suspect]:
    """Yield two operations on one cell, one an update, that nothing orders, and of which one has no part in the other.

    Args:
        streams: of the run, with late updates.
        known: what is surely known.
        history: of the cell.

    """
    changes = {streams.issue(place) for place in (*history.sets, *(place for place, _, _ in history.updates))}
    places = changes | {wait.place for wait in (*history.waits, *history.tests)}
    places = {place for place in places if not streams.is_pending(place)}  # what is not done in one run is in none
    for x, y in combinations(sorted(places), 2):
        if x[0] == y[0] or not {x, y} & changes:
            continue
        one, other = streams.event(x).op, streams.event(y).op
        ordered = include(one.actor, scope_of(one), other.actor, scope_of(other))
        if not ordered and unordered(known, x, y):
            cell = str(history.cell)
            yield Suspect(RACE, history.cell.signal, (x, y), (cell, cell), partial(_why_scopes, streams))


def _why_scopes(streams: Streams, sides: tuple[Place, ...]) -> str:
    said = [f"{op.actor.title}'s '{op}' (scope {scope_of(op)})" for op in (streams.event(side).op for side in sides)]
    return f"{' and '.join(said)}: the scopes do not include each other, and nothing else orders the two"


def _why_misled(streams: Streams, place: Place, update: Place) -> str:
    one, other = streams.event(place).op, streams.event(update).op
    what = "come in either order with" if change_by(one) is not None else "miss"
    return f"under gpu {one.actor.title}'s '{one}' can {what} {other.actor.title}'s '{other}'"
