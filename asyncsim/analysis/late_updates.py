"""Updates that land late: what ``gpu`` lets be done after its own step, though a run has it done at once.

An update that returns nothing of its cell can come to be at any later time, once for all. Of one actor's, those of one
cell land in their order; a release at world scope lands after all older ones, and what comes behind a release fence at
world scope after those before the fence. All else is done at its step, after the older ones of its own cell. Whoever
starts, joins or meets another knows what that did: then its updates have landed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.analysis.streams import Streams
from asyncsim.trace.event import Event, Trace
from asyncsim.trace.kinds import ACQ_REL, EXCHANGING, FENCING, LAND, RELEASE, SC, SIGNALLING, WORLD
from asyncsim.trace.landing import wire_of
from asyncsim.trace.late import MODELS
from asyncsim.trace.op import Op, change_by, order_of, scope_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.streams import Place

PURE = SIGNALLING - EXCHANGING
"""Kinds that change a cell and see nothing of it."""
RELEASING = (RELEASE, ACQ_REL, SC)
_LATE = replace(MODELS["gpu"], late=True)


def with_late_updates(trace: Trace) -> Streams:
    """Return the normal form of a run under ``gpu`` in which each update that may land late has a wire of its own.

    Tasks and their operations have the same numbers as in that of the run itself.

    Args:
        trace: the run.

    """
    counts: dict[str, int] = defaultdict(int)
    events: list[Event] = []
    for event in trace.events:
        name = event.op.actor.name
        steps = _landing(event, counts[name]) if event.op.kind in PURE else (event,)
        counts[name] += 1
        events += (replace(each, step=len(events) + n) for n, each in enumerate(steps))
    return Streams(Trace(trace.header, events, trace.footer), _LATE)


def _landing(event: Event, index: int) -> tuple[Event, Event]:
    op = event.op
    landing = Op(wire_of(op.actor, index), LAND, cell=op.cell, how=op.how, amount=op.amount, call=op.call)
    return replace(event, op=replace(op, deferred=True)), replace(event, op=landing, data=None)


def add_edges(streams: Streams, edges: dict[Place, list[Place]]) -> None:
    """Add what landings of late updates need, and what needs them.

    Args:
        streams: with late updates.
        edges: those of starting, joining and meeting; added to.

    """
    wires = {issuer: number for number, issuer in enumerate(streams.issuer) if issuer is not None}
    known_after: dict[Place, list[Place]] = defaultdict(list)
    for place, sources in edges.items():
        for source in sources:
            if source[0] != place[0]:
                known_after[source].append(place)
    for task in range(streams.tasks):
        for place, needs in _needs_of(streams, task, wires, known_after):
            edges.setdefault(place, []).extend(needs)


def _needs_of(
    streams: Streams, task: int, wires: dict[Place, int], known_after: dict[Place, list[Place]]
) -> Iterator[tuple[Place, list[Place]]]:
    """Yield what needs landings of a task: of each cell the newest, since those of one cell land in their order."""
    newest: dict[int, Place] = {}
    fenced: dict[int, Place] = {}
    for index, event in enumerate(streams.events[task]):
        op, place = event.op, (task, index)
        if op.kind in FENCING and releases_all(op):
            fenced = dict(newest)
        elif op.cell is not None:
            slot, changes = op.cell.slot, change_by(op) is not None
            full = changes and releases_all(op)
            needs = dict.fromkeys((newest if full else fenced if changes else {}).values())
            if slot in newest:
                needs[newest[slot]] = None
            if place in wires:
                place = (wires[place], 0)
                newest = {slot: place} if full else {**newest, slot: place}
            elif full:
                newest, fenced = {}, {}
            else:
                newest.pop(slot, None)
                fenced = {} if changes else fenced
            if needs:
                yield place, list(needs)
        for later in known_after.get((task, index), ()):
            yield later, list(newest.values())


def releases_all(op: Op) -> bool:
    """Say whether an operation that changes a cell, or a fence, has all older updates of its actor land before.

    Args:
        op: the operation.

    """
    return order_of(op) in RELEASING and scope_of(op) == WORLD
