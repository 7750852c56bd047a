"""Must-happen-before: one question, answered by clocks where they apply and by frontiers elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from asyncsim.analysis.clocks import Clocks, required_notifies
from asyncsim.analysis.edges import edges_of, stores_of_one_rank
from asyncsim.analysis.frontiers import Frontiers
from asyncsim.analysis.guards import Guards, needed, sure_value
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
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
    edges = edges_of(streams)
    if how != "frontiers":
        # Clocks know one producer a cell and program order; landings, starts and joins are edges.
        required = None if edges else required_notifies(streams, guards)
        if required is not None:
            return Clocks(streams, required), guards
        if how == "clocks":
            raise MisuseError(
                "clocks do not apply: some awaited cell has Sets, several producers or foreign subtractions, "
                "or there are streams or landings"
            )
    stores = stores_of_one_rank(streams) if streams.model.late else []
    while True:
        order = _frontiers(streams, guards, edges)
        # Without these edges everybody only gets further, so what is in order now stays in order with them.
        sure = [(x, y) for x, y in stores if precedes(order, streams.issue(x), streams.issue(y))]
        if not sure:
            return order, guards
        for x, y in sure:
            edges.setdefault(y, []).append(x)
            stores.remove((x, y))
        guards = Guards(streams)


def _frontiers(streams: Streams, guards: Guards, edges: Edges) -> Frontiers:
    """More epochs in which waits may pass let everybody run further, which may open more: to a fixpoint."""
    while True:
        order = Frontiers(streams, guards, edges)
        if not _grow(streams, guards, order):
            return order


def precedes(order: Order, x: Place, y: Place) -> bool:
    """Say whether y cannot execute, in any schedule, while x has not."""
    return order.reach(x[0], x[1], y[0]) <= y[1]


def unordered(order: Order, x: Place, y: Place) -> bool:
    """Say whether each of the two can execute before the other."""
    return not precedes(order, x, y) and not precedes(order, y, x)


def may_be_current(streams: Streams, order: Order, wait: Wait, epoch: Epoch) -> bool:
    """Say whether the epoch can be the cell's current one, in the wait's eyes, while the wait is pending."""
    actor, index = wait.place
    forwarded = streams.model.late and streams.model.forwarding
    opener, closer = epoch.opener, epoch.closer
    if opener is not None and not (forwarded and streams.relation(wait.place, opener) == "sure"):
        who, when = opener
        if order.reach(actor, index, who) <= when:
            return False
    if closer is None:
        return True
    if forwarded and streams.relation(wait.place, closer) == "sure":
        return False
    return order.reach(*closer, actor) >= index


def most_credits(streams: Streams, order: Order, wait: Wait, epoch: Epoch) -> int:
    """Return the free credits that can have come to the epoch while the wait is held."""
    actor, index = wait.place
    total = 0
    for who, tally in epoch.tallies.items():
        # A task's adds are all free or all own; a wire has but one.
        if who != actor and streams.relation(wait.place, (who, tally.indexes[0])) == "free":
            total += tally.credits_before(order.reach(actor, index, who))
    return total


def least_credits(streams: Streams, order: Order, wait: Wait, epoch: Epoch) -> int:
    """Return the free credits that must have come to the epoch when the wait or test is executed."""
    return sum(
        amount
        for who, tally in epoch.tallies.items()
        for at, amount in zip(tally.indexes, tally.amounts, strict=True)
        if amount > 0 and streams.relation(wait.place, (who, at)) == "free" and precedes(order, (who, at), wait.place)
    )


def _grow(streams: Streams, guards: Guards, order: Order) -> bool:
    grew = False
    for wait in guards.waits.values():
        epochs = streams.histories[wait.slot].epochs
        if len(epochs) == 1:
            continue
        op = wait.event.op
        for epoch in epochs:
            if epoch.number in guards.goals[wait.place] or not may_be_current(streams, order, wait, epoch):
                continue
            need = needed(op.how, op.amount, sure_value(streams, wait, epoch))
            if need is not None and most_credits(streams, order, wait, epoch) >= need:
                grew |= guards.admit(wait, epoch)
    return grew
