"""What a pass of frontiers looks at: the operations that can be blocked, or that can let others go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.op import LAND, NOTIFY, PUT_SIGNAL, SET, WAIT

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.guards import Goal, Guards
    from asyncsim.analysis.streams import Place, Streams


@dataclass(slots=True, eq=False)
class Sync:
    """An operation that can be blocked, or that can let others go on; all the rest never stops anybody."""

    index: int
    slot: int = -1
    guard: tuple[tuple[int, Goal], ...] | None = None
    epoch: int = -1
    credits: int = 0
    opens: bool = False
    owner: int = -1
    needs: tuple[Place, ...] = ()


def synchronising(streams: Streams, guards: Guards, edges: Edges) -> list[list[Sync]]:
    """Return these operations, by actor, each actor's in its own order."""
    histories = streams.histories.values()
    epoch_of = {place: epoch for history in histories for place, _, epoch in history.adds}
    opened = {
        epoch.opener: epoch.number for history in histories for epoch in history.epochs if epoch.opener is not None
    }
    sources = {source for needs in edges.values() for source in needs}
    syncs: list[list[Sync]] = []
    for actor, stream in enumerate(streams.events):
        owner, _ = streams.issuer[actor] or (actor, 0)
        own: list[Sync] = []
        for index, event in enumerate(stream):
            op = event.op
            place = (actor, index)
            sync = Sync(index, owner=owner, needs=tuple(edges.get(place, ())))
            changes = op.kind in (NOTIFY, PUT_SIGNAL, LAND) and not op.deferred
            if op.cell is not None and op.kind == WAIT:
                sync.slot = op.cell.slot
                sync.guard = tuple(guards.goals[place].items())
                if op.consume and op.amount < 0:  # to subtract a negative number is to add
                    sync.epoch, sync.credits = epoch_of[place], -op.amount
            elif op.cell is not None and changes and op.how == SET:
                sync.slot, sync.epoch, sync.opens = op.cell.slot, opened[place], True
            elif op.cell is not None and changes and op.amount > 0:
                sync.slot, sync.epoch, sync.credits = op.cell.slot, epoch_of[place], op.amount
            if sync.slot >= 0 or sync.needs or place in sources:
                own.append(sync)
        syncs.append(own)
    return syncs
