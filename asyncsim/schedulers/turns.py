"""Taking turns: what several schedulers mean by the next actor."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op

_ORDER = attrgetter("actor.order")


def next_after(ready: Sequence[Op], order: int) -> Op:
    """Return the operation of the first actor after `order`; the first of all when there is none.

    Args:
        ready: the operations to choose among, at least one, in the order of their actors.
        order: the number of an actor (`Actor.order`), or -1.

    """
    at = bisect_right(ready, order, key=_ORDER)
    return ready[at] if at < len(ready) else ready[0]


def in_turn(ready: Sequence[Op], order: int, held: Sequence[Op] = ()) -> int:
    """Return the place of the same actor if it goes on with what follows; else of the next one, as `next_after`.

    Those that are held are passed over; they must not be all. With a thousand ranks, to copy the others would be slow.

    Args:
        ready: the operations to choose among, in the order of their actors.
        order: the number of the actor that took the step before, or -1.
        held: those of `ready` that must not be chosen.

    """
    at = bisect_right(ready, order, key=_ORDER)
    if at and (last := ready[at - 1]).follows and last.actor.order == order:
        at -= 1
    elif at == len(ready):
        at = 0
    while held and ready[at] in held:
        at = at + 1 if at + 1 < len(ready) else 0
    return at


def first_landing(ready: Sequence[Op], held: Sequence[Op] = ()) -> int | None:
    """Return the place of the first landing that is not held; None if there is none.

    Args:
        ready: the operations to choose among.
        held: those of them that must not be chosen.

    """
    return next((at for at, op in enumerate(ready) if op.actor.wire and op not in held), None)
