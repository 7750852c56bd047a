"""The one conflict relation: whether the order of two operations of different actors can matter.

By kind, not by state: an add depends on every wait of its cell, also where the wait could pass
without it. A relation that looks at the present value loses schedules in partial-order search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.op import ATOMIC_ADD, NOTIFY, SET, WAIT
from asyncsim.trace.region import ADD, READ, spans_overlap

if TYPE_CHECKING:
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access


def accesses_conflict(a: Access, b: Access) -> bool:
    """Say whether two accesses overlap, one of them changes memory, and they are not both adds."""
    if a.mode == b.mode and a.mode in (READ, ADD):
        return False
    return a.region.slot == b.region.slot and spans_overlap(a.region.spans, b.region.spans)


def conflict(a: Op, b: Op) -> bool:
    """Say whether the two operations may not commute, or one may enable or disable the other."""
    if a.cell is not None and b.cell is not None:
        return a.cell.slot == b.cell.slot and _cells_conflict(a, b)
    return any(accesses_conflict(x, y) for x in a.accesses for y in b.accesses)


def _cells_conflict(a: Op, b: Op) -> bool:
    if a.kind == NOTIFY and b.kind == NOTIFY:
        if a.how == SET and b.how == SET:
            return a.amount != b.amount
        return not a.how == b.how == ATOMIC_ADD
    if a.kind == NOTIFY or b.kind == NOTIFY:
        return True
    return (a.kind == WAIT and a.consume) or (b.kind == WAIT and b.consume)
