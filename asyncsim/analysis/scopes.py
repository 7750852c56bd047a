"""Order and scope: where an operation synchronises less than it does where all happens at its step, for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.kinds import ACQ_REL, ACQUIRE, CARRYING, CHANGING, EXCHANGING, POLLING, RELEASE, SEEING, WORLD
from asyncsim.trace.op import order_of, scope_of

if TYPE_CHECKING:
    from asyncsim.trace.event import Event


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
    needed = {order for order, kinds in ((RELEASE, CHANGING), (ACQUIRE, SEEING | EXCHANGING)) if op.kind in kinds}
    order = order_of(op)
    return scope_of(op) != WORLD or not needed <= ({RELEASE, ACQUIRE} if order == ACQ_REL else {order})
