"""Coverage: every two accesses that conflict are ordered, in every schedule as in the run.

Not every pair is looked at. What comes before a write that comes before this access is ordered with it, so
of the bytes an access touches only the last write counts, and the reads and atomic adds since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from asyncsim.certify.events import ADD, ALL, OWN, PEERS, READ, WRITE
from asyncsim.certify.reading import RejectedError

if TYPE_CHECKING:
    from asyncsim.certify.events import Access, Event
    from asyncsim.certify.proof import Proof

_Touch = tuple["Event", "Access"]


def accesses_are_ordered(proof: Proof) -> None:
    """Go through the run with the accesses that still count, for each stretch of bytes that is touched alike."""
    ends: dict[int, set[int]] = defaultdict(set)
    for event in proof.run:
        for access in event.accesses:
            ends[access.window].update(end for span in access.spans for end in span)
    bounds = {window: sorted(found) for window, found in ends.items()}
    live: dict[tuple[int, int], list[_Touch]] = defaultdict(list)
    for event in proof.run:
        for access in event.accesses:
            cuts = bounds[access.window]
            for low, high in access.spans:
                for part in range(bisect_left(cuts, low), bisect_left(cuts, high)):
                    earlier = live[access.window, part]
                    proof.program.spend(1 + len(earlier))
                    still = [touch for touch in earlier if not is_covered(proof, touch, (event, access))]
                    live[access.window, part] = [*still, (event, access)]


def is_covered(proof: Proof, earlier: _Touch, later: _Touch) -> bool:
    """Refuse a race of the two; say whether all that conflicts with the earlier does so with the later.

    Args:
        proof: the run and its cuts.
        earlier: an event and one access of it; done before the later one in the run.
        later: another one, to the same bytes.

    Raises:
        RejectedError: they conflict, and nothing orders them.

    """
    (x, a), (y, b) = earlier, later
    if a.mode == b.mode == READ:
        return x.thread == y.thread and a.eyes == b.eyes
    clash = conflict(proof, earlier, later)
    if not clash and b.mode != WRITE:
        return False
    if not proof.before(x, y):
        if clash:
            raise RejectedError(f"nothing orders {x} and {y}, which touch the same bytes")
        return False  # such as an own load that sees the write before it lands: others may not
    return x is not y and b.mode == WRITE and stands_for(proof, earlier, later) and not shines_through(proof, x, y)


def stands_for(proof: Proof, earlier: _Touch, later: _Touch) -> bool:
    """Say whether those who meet the earlier access all meet the later one, a write, too.

    Args:
        proof: the run and its cuts.
        earlier: an event and one access of it.
        later: another one, to the same bytes: a write.

    """
    (x, a), (_, b) = earlier, later
    if a.eyes != ALL or b.eyes != ALL:
        return b.eyes == a.eyes or (a.eyes == PEERS and b.eyes == ALL)
    # A load of the window's own rank meets the issue of a local store, which no landing meets.
    return a.mode != READ or not proof.program.late or x.rank != proof.program.windows[a.window][0]


def shines_through(proof: Proof, x: Event, y: Event) -> bool:
    """Say whether x is a copy under an own write: a load that the write is forwarded to may precede the copy.

    Args:
        proof: the run and its cuts.
        x: the earlier event.
        y: the later one, which writes the same bytes.

    """
    mine = x.issue is not None and y.issue is not None and x.issue.thread == y.issue.thread
    return proof.program.late and proof.program.forwarding and mine and x.index > 0


def conflict(proof: Proof, one: _Touch, other: _Touch) -> bool:
    """Say whether the order of two accesses to the same bytes can matter.

    Args:
        proof: the run and its cuts.
        one: an event and one access of it.
        other: another one, to the same bytes.

    """
    (x, a), (y, b) = one, other
    if a.mode == b.mode and (a.mode == READ or (a.mode == ADD and proof.program.windows[a.window][2])):
        return False
    if not (meets(one, other) and meets(other, one)):
        return False
    return not (forwarded(proof, x, y, b) or forwarded(proof, y, x, a))


def meets(one: _Touch, other: _Touch) -> bool:
    """Say whether the first is in the eyes of the second.

    Loads and local stores of a rank meet its local stores when they are issued. Peers meet them when
    they land, and so does whatever else lands.

    Args:
        one: an event and one access of it.
        other: another one, to the same bytes.

    """
    (x, a), (y, b) = one, other
    at_issue = x.rank == y.rank and (b.mode == READ or b.eyes != ALL)
    return a.eyes == ALL or at_issue == (a.eyes == OWN)


def forwarded(proof: Proof, landing: Event, load: Event, access: Access) -> bool:
    """Say whether a load sees the landing's write from its issue on: its own one, and no copy under way.

    Args:
        proof: the run and its cuts.
        landing: the event that writes.
        load: the event that may read it.
        access: the one of `load` to the same bytes.

    """
    own = landing.issue is not None and landing.issue.thread == load.thread
    return proof.program.forwarding and own and landing.index == 0 and access.mode == READ
