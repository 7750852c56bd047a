"""The one conflict relation: whether the order of two operations of different actors can matter.

By kind, not by state: an add depends on every wait of its cell, also where the wait could pass
without it. A relation that looks at the present value loses schedules in partial-order search.
"""

from __future__ import annotations

from itertools import product, starmap
from typing import TYPE_CHECKING

from asyncsim.trace.cells import SET, updates_commute
from asyncsim.trace.kinds import EXCHANGING, LANDING, LOCAL, SEEING, SIGNALLING
from asyncsim.trace.op import change_by
from asyncsim.trace.region import READ, WRITE, adds_commute, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access


def accesses_conflict(a: Access, b: Access) -> bool:
    """Say whether two accesses overlap, one of them changes memory, and they are not both adds of one type.

    Args:
        a: an access.
        b: another one, of the same world.

    """
    if (a.mode == b.mode and (a.mode == READ or adds_commute(a, b))) or (a.word and b.word):
        return False
    return a.region.slot == b.region.slot and spans_overlap(a.region.spans, b.region.spans)


def conflict(a: Op, b: Op) -> bool:
    """Say whether the two operations may not commute, or one may enable or disable the other.

    Not here: what program order, starting, joining and landing of the very same operation order.

    Args:
        a: an operation, pending or done.
        b: another one, of the same world.

    """
    # A search asks for every pair that is ready in every step; so what is cheap to tell comes first.
    x, y = a.cell, b.cell
    if x is not None and y is not None and x.slot == y.slot and _cells_conflict(a, b):
        return True
    if not a.accesses or not b.accesses:
        return False
    return any(starmap(accesses_conflict, meeting_accesses(a, b)))


def meeting_accesses(a: Op, b: Op) -> Iterator[tuple[Access, Access]]:
    """Yield what the one touches at its own step with what the other does, each in the other's eyes.

    Args:
        a: an operation.
        b: another one, of the same world.

    """
    # What lands late for its own rank (an atomic add, a non-blocking get) meets a local store when that lands, too.
    own = a.actor.rank == b.actor.rank and not (_lands_remotely(a) or _lands_remotely(b))
    return product(present_accesses(a, own=own), present_accesses(b, own=own))


def changes_commute(a: Op, b: Op) -> bool:
    """Say whether two landings at one place give the same in either order: two adds do.

    Args:
        a: the operation of a landing.
        b: that of another one at the same place: both change a cell, or both change data.

    """
    if a.cell is not None:
        return updates_commute(a.how, b.how)
    return adds_commute(a.accesses[0], b.accesses[0])


def present_accesses(op: Op, *, own: bool) -> tuple[Access, ...]:
    """Return what the operation touches at its own step, in the eyes of its own rank or of the others.

    Under a model with late effects an issue only reads its sources; a local store is seen by its own
    rank at the issue, and by all others when it lands.

    Args:
        op: the operation.
        own: whether its own rank looks; else a peer does.

    """
    if op.kind in LANDING and op.link == LOCAL:
        return () if own else op.accesses
    if not op.deferred:
        return op.accesses
    sources = () if op.late else op.accesses[:-1]
    target = op.accesses[-1:] if op.accesses and (op.accesses[-1].mode == READ or (own and stores_locally(op))) else ()
    return sources + target


def stores_locally(op: Op) -> bool:
    """Say whether an issue changes memory at once in the eyes of its own rank."""
    target = op.accesses[-1]
    here = target.mode == WRITE and target.region.owner == op.actor.rank and not target.word
    return here and not op.late and not op.adapter


def _lands_remotely(op: Op) -> bool:
    return op.kind in LANDING and op.link != LOCAL


def _present(op: Op) -> bool:
    """Say whether an operation meets its cell at its own step, and not when it lands."""
    return not (op.deferred and op.kind in SIGNALLING)


def _cells_conflict(a: Op, b: Op) -> bool:
    if not (_present(a) and _present(b)):
        return False
    change_a, change_b = change_by(a), change_by(b)
    if _tells(a) or _tells(b):
        return change_a is not None or change_b is not None
    assert change_a is not None  # noqa: S101 - for the type checker: what tells nothing of a cell changes it
    assert change_b is not None  # noqa: S101 - likewise
    return change_a != change_b if change_a[0] == change_b[0] == SET else not updates_commute(change_a[0], change_b[0])


def _tells(op: Op) -> bool:
    """Say whether what an operation does next can depend on what its cell holds."""
    return op.kind in SEEING or op.kind in EXCHANGING
