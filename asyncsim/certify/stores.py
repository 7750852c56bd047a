"""L6 between actors: peers see the local stores of one rank to one place in the order of issue.

Which is issued first in every schedule is taken from program order, starting, joining and meeting alone;
that other actors of the rank are ordered by signals would have to be proved before it could be used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from asyncsim.certify.events import PEERS
from asyncsim.certify.reading import RejectedError

if TYPE_CHECKING:
    from asyncsim.certify.events import Event
    from asyncsim.certify.proof import Proof


def order_stores(proof: Proof) -> None:
    """Add the edges between landings of local stores by different actors of one rank."""
    program = proof.program
    actors = Counter(stream[0].rank for stream in program.threads[: program.actors] if stream)
    stores: dict[int, list[Event]] = defaultdict(list)
    for event in proof.run:
        if actors[event.rank] > 1 and any(access.eyes == PEERS for access in event.accesses):
            stores[event.accesses[0].window].append(event)
    if not stores:
        return
    clocks = _clocks(proof)
    for landings in stores.values():
        program.spend(len(landings) ** 2)
        for y in landings:
            needed = [x for x in landings if _is_first(x, y, clocks) and x.accesses[0].overlaps(y.accesses[0])]
            if any(x.step > y.step for x in needed):
                raise RejectedError(f"the run takes {y} before an older local store")
            program.need(y, needed)


def _is_first(x: Event, y: Event, clocks: dict[Event, list[int]]) -> bool:
    one, other = x.issue, y.issue
    if one is None or other is None or one.thread == other.thread:
        return False
    return clocks[other][one.thread] > one.index


def _clocks(proof: Proof) -> dict[Event, list[int]]:
    """Return for each step of an actor how many steps of each actor come before it by these edges."""
    actors = proof.program.actors
    clocks: dict[Event, list[int]] = {}
    last: dict[int, Event] = {}
    for event in proof.run:
        if event.issue is None:
            proof.program.spend(actors)
            before = [last[event.thread], *event.needs] if event.thread in last else event.needs
            known = [clocks[other] for other in before if other in clocks]
            clock = [max(column) for column in zip([0] * actors, *known, strict=True)]
            clock[event.thread] = event.index + 1
            clocks[event] = clock
            last[event.thread] = event
    return clocks
