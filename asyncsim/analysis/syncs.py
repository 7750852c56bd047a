"""What a pass of frontiers looks at: the operations that can be blocked, or that can let others go on.

Wires are no actors here. Unless a landing is held, each lands as soon as it is issued: all that it needs was issued
before it, and lands as well. So a landing stands at its issue, and is looked at there only if it changes a cell or if,
not landing, it holds up another one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.kinds import WAITING

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.guards import Goal, Guards
    from asyncsim.analysis.streams import Place, Streams

Dependants = dict["Place", list["Place"]]
"""Of each step of a wire, what needs it to have happened."""


@dataclass(slots=True, eq=False)
class Sync:
    """An operation that can be blocked, or that can let others go on; all the rest never stops anybody.

    Args:
        place: where it stands.
        slot: the cell that it waits for or changes; -1 for none.
        guard: of a wait, the epochs in which it may pass, with their goals.
        epoch: what it adds to, or opens.
        credits: how much it adds; less than 0 only where some wait on the cell is read downwards. Else an operand.
        combine: how it changes the cell, if it neither sets it nor adds to it: the name of an update.
        opens: whether it begins an epoch: it is a Set, or the first of its kind may be.
        needs: what other tasks must have done.
        landings: the steps of its landings that others need and that may be held up, in their order.
        signal: the landing that changes the cell, if it does not do so itself.
        stops: whether it can be blocked.
        changes: whether it lets others go on, or leaves landings that may be held up.
        queued: the signal comes behind a copy, so that even its own actor sees it no earlier than it lands.

    """

    place: Place
    slot: int = -1
    guard: tuple[tuple[int, Goal], ...] | None = None
    epoch: int = -1
    credits: int = 0
    combine: str = ""
    opens: bool = False
    needs: tuple[Place, ...] = ()
    landings: tuple[Place, ...] = ()
    signal: Place | None = None
    stops: bool = False
    changes: bool = False
    queued: bool = False


def dependants_of(streams: Streams, edges: Edges) -> Dependants:
    """Return what needs each step of a wire; where it fetches, the landing needs the fetch.

    Args:
        streams: of the run.
        edges: what each operation needs beside program order and credits.

    """
    found: Dependants = defaultdict(list)
    for place, needs in edges.items():
        for source in needs:
            if source[0] >= streams.tasks:
                found[source].append(place)
    for wire in range(streams.tasks, len(streams.events)):
        for step in range(1, len(streams.events[wire])):
            found[wire, step - 1].append((wire, step))
    return dict(found)


def synchronising(streams: Streams, guards: Guards, edges: Edges, dependants: Dependants) -> list[list[Sync]]:
    """Return the operations that can be blocked or let others go on, by task, each task's in its own order.

    Args:
        streams: of the run.
        guards: in which epochs each wait may pass, and with how many credits.
        edges: what each operation needs beside program order and credits.
        dependants: as `dependants_of` returns them.

    """
    changes = _changes(streams)
    needs_of = _needs(streams, edges)
    watched = {source for needs in needs_of.values() for source in needs}
    held_up = {place for places in dependants.values() for place in places}
    landings: dict[Place, list[Place]] = defaultdict(list)
    for wire in range(streams.tasks, len(streams.events)):
        issue = streams.issue((wire, 0))
        landings[issue] += [(wire, step) for step in range(len(streams.events[wire]))]
    syncs: list[list[Sync]] = []
    for actor in range(streams.tasks):
        own: list[Sync] = []
        for index, event in enumerate(streams.events[actor]):
            place = (actor, index)
            sync = Sync(place, needs=needs_of.get(place, ()))
            if event.op.cell is not None and event.op.kind in WAITING:
                sync.slot, sync.guard = event.op.cell.slot, tuple(guards.goals[place].items())
            for step in landings.get(place, ()):
                if step in changes:
                    sync.signal, sync.queued = step, streams.is_queued(step[0])
                if step in dependants and (step in held_up or step in changes):
                    sync.landings += (step,)
            if (change := changes.get(sync.signal or place)) is not None:
                sync.slot, sync.epoch, sync.credits, sync.combine, sync.opens = change
            sync.stops = sync.guard is not None or bool(sync.needs) or place in held_up
            sync.changes = sync.epoch >= 0 or bool(sync.landings)
            if sync.stops or sync.changes or place in watched:
                own.append(sync)
        syncs.append(own)
    return syncs


def _changes(streams: Streams) -> dict[Place, tuple[int, int, int, str, bool]]:
    """Return what lets a wait go on: the cell, the epoch, how it is changed by how much, and whether that begins it."""
    found: dict[Place, tuple[int, int, int, str, bool]] = {}
    for slot, history in streams.histories.items():
        downwards = history.is_read_downwards
        for place, amount, epoch in history.updates:
            if not epoch.is_sum:
                found[place] = (slot, epoch.number, amount, epoch.kind, epoch.by_kind)
            elif amount > 0 or (amount < 0 and downwards):
                found[place] = (slot, epoch.number, amount, "", epoch.by_kind)
            elif epoch.by_kind:
                found[place] = (slot, epoch.number, 0, "", True)
        for opened in history.epochs:
            if opened.opener is not None and not opened.by_kind:
                found[opened.opener] = (slot, opened.number, 0, "", True)
    return found


def _needs(streams: Streams, edges: Edges) -> dict[Place, tuple[Place, ...]]:
    """Return what tasks need of other tasks; a landing of another was issued. What needs itself never happens."""
    found = {}
    for place, needs in edges.items():
        if place[0] < streams.tasks:
            sources = dict.fromkeys(map(streams.issue, needs))
            found[place] = tuple(source for source in sources if source[0] != place[0] or source == place)
    return found
