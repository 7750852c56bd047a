"""Must-happen-before: one question, answered by clocks where they apply and by frontiers elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from asyncsim.analysis.clocks import Clocks, required_notifies
from asyncsim.analysis.frontiers import Frontiers
from asyncsim.analysis.guards import Guards, needed, sure_value
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Epoch, Place, Streams, Wait

ORDERS = ("auto", "clocks", "frontiers")


class Order(Protocol):
    """What every schedule has in common."""

    def reach(self, actor: int, index: int, other: int) -> int:
        """Return how far `other` can get, as a position in its stream, with `actor` held before `index`."""


def order_of(streams: Streams, how: str = "auto") -> tuple[Order, Guards]:
    """Return the order of a run, with the guards it rests on.

    Args:
        streams: the run.
        how: "auto", or one of the two ways by name.

    Raises:
        MisuseError: clocks were asked for, and some cell has alternatives.

    """
    if how not in ORDERS:
        raise MisuseError(f"order={how!r}; use one of {', '.join(ORDERS)}")
    guards = Guards(streams)
    if how != "frontiers":
        required = required_notifies(streams, guards)
        if required is not None:
            return Clocks(streams, required), guards
        if how == "clocks":
            raise MisuseError("clocks do not apply: some awaited cell has Sets, several producers or foreign subtractions")
    while True:
        # More epochs in which waits may pass let everybody run further, which may open more: to a fixpoint.
        order = Frontiers(streams, guards)
        if not _grow(streams, guards, order):
            return order, guards


def precedes(order: Order, x: Place, y: Place) -> bool:
    """Say whether y cannot execute, in any schedule, while x has not."""
    return order.reach(x[0], x[1], y[0]) <= y[1]


def unordered(order: Order, x: Place, y: Place) -> bool:
    """Say whether each of the two can execute before the other."""
    return not precedes(order, x, y) and not precedes(order, y, x)


def may_be_current(order: Order, wait: Wait, epoch: Epoch) -> bool:
    """Say whether the epoch can be the cell's current one while the wait is pending."""
    actor, index = wait.place
    if epoch.opener is not None:
        who, when = epoch.opener
        if order.reach(actor, index, who) <= when:
            return False
    return epoch.closer is None or order.reach(*epoch.closer, actor) >= index


def most_credits(order: Order, wait: Wait, epoch: Epoch) -> int:
    """Return the credits that others can have added to the epoch while the wait is held."""
    actor, index = wait.place
    return sum(
        tally.credits_before(order.reach(actor, index, who)) for who, tally in epoch.tallies.items() if who != actor
    )


def least_credits(order: Order, wait: Wait, epoch: Epoch) -> int:
    """Return the credits that others must have added to the epoch when the wait or test is executed."""
    actor = wait.place[0]
    return sum(
        amount
        for who, tally in epoch.tallies.items()
        if who != actor
        for at, amount in zip(tally.indexes, tally.amounts, strict=True)
        if amount > 0 and precedes(order, (who, at), wait.place)
    )


def _grow(streams: Streams, guards: Guards, order: Order) -> bool:
    grew = False
    for wait in guards.waits.values():
        epochs = streams.histories[wait.slot].epochs
        if len(epochs) == 1:
            continue
        op = wait.event.op
        for epoch in epochs:
            if epoch.number in guards.goals[wait.place] or not may_be_current(order, wait, epoch):
                continue
            need = needed(op.how, op.amount, sure_value(streams, wait, epoch))
            if need is not None and most_credits(order, wait, epoch) >= need:
                grew |= guards.admit(wait, epoch)
    return grew
