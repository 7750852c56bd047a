"""What operations touch, and in whose eyes they do so at which of their steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.conflict import present_accesses
from asyncsim.trace.kinds import POLLING
from asyncsim.trace.region import READ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access

OWN, PEERS = "own", "peers"


@dataclass(frozen=True, slots=True)
class Entry:
    """An access, and in whose eyes it happens at this operation: everybody's (None), its own rank's, all others'."""

    place: Place
    access: Access
    rank: int
    eyes: str | None


def entries_of(streams: Streams) -> Iterator[Entry]:
    """Yield every access to at least one byte, but those of polls: they synchronise."""
    for actor, stream in enumerate(streams.events):
        rank = streams.actors[actor].rank
        for index, event in enumerate(stream):
            if event.op.kind not in POLLING:
                for access, eyes in _accesses(event.op):
                    if access.region.spans:
                        yield Entry((actor, index), access, rank, eyes)


def _accesses(op: Op) -> list[tuple[Access, str | None]]:
    """Return what an operation touches at its own step, and in whose eyes."""
    own = present_accesses(op, own=True)
    peers = present_accesses(op, own=False)
    if own == peers:
        return [(access, None) for access in own]
    found: list[tuple[Access, str | None]] = [(access, None if access in peers else OWN) for access in own]
    return found + [(access, PEERS) for access in peers if access not in own]


def is_met(x: Entry, y: Entry) -> bool:
    """Say whether x happens at this operation in the eyes of y.

    Loads and local stores of the same rank meet a local store when it is issued. All others meet it
    when it lands: peers, but also what lands late for this very rank (an atomic add, a non-blocking get).

    Args:
        x: an access to memory that the other touches, too.
        y: the access that may meet it.

    """
    if x.eyes is None:
        return True
    at_issue = x.rank == y.rank and (y.access.mode == READ or y.eyes is not None)
    return at_issue == (x.eyes == OWN)
