"""Must-happen-before: what can come while a wait is pending, as an order of all schedules says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from asyncsim.analysis.guards import is_moved_by
from asyncsim.analysis.updates import fold
from asyncsim.trace.kinds import STARTING

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.streams import Epoch, Place, Streams, Wait


class Order(Protocol):
    """What every schedule has in common."""

    @property
    def edges(self) -> Edges:
        """What operations need beside program order and credits."""

    def reach(self, actor: int, index: int, other: int) -> int:
        """Return how far `other` can get, as a position in its stream, with `actor` held before `index`."""


def precedes(order: Order, x: Place, y: Place) -> bool:
    """Say whether y cannot execute, in any schedule, while x has not.

    Args:
        order: of all schedules.
        x: an operation.
        y: another one, or the same: the answer is then yes.

    """
    return order.reach(x[0], x[1], y[0]) <= y[1]


def unordered(order: Order, x: Place, y: Place) -> bool:
    """Say whether each of the two can execute before the other.

    Args:
        order: of all schedules.
        x: an operation.
        y: another one.

    """
    return not precedes(order, x, y) and not precedes(order, y, x)


def precedes_reaching(order: Order, x: Place, y: Place, edges: Edges | None = None) -> bool:
    """Say whether y cannot even be next, with all that starting and joining let it wait for, while x has not executed.

    So a stream that is started once another was joined is reached after all that the other did. `edges` are those to
    be met when y is reached, if not all that the order knows.

    Args:
        order: of all schedules.
        x: an operation.
        y: another one.
        edges: None: those of the order.

    """
    reached = order.reach(*x, y[0])
    if reached != y[1]:
        return reached < y[1]
    return any(order.reach(*x, actor) <= index for actor, index in (order.edges if edges is None else edges).get(y, ()))


def may_be_current(streams: Streams, order: Order, wait: Wait, epoch: Epoch) -> bool:
    """Say whether the epoch can be the cell's current one, in the wait's eyes, while the wait is pending.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: a wait or a test.
        epoch: of its cell.

    """
    actor, index = wait.place
    forwarded = streams.model.late and streams.model.forwarding

    def is_seen(change: Place) -> bool:
        return forwarded and streams.relation(wait.place, change) == "sure"

    begins = (is_seen(opener) or order.reach(actor, index, opener[0]) > opener[1] for opener in epoch.openers)
    if epoch.openers and not any(begins):
        return False
    place = wait.place
    return not any(is_seen(closer) or _is_before_reaching(streams, order, closer, place) for closer in epoch.closers)


def _is_before_reaching(streams: Streams, order: Order, x: Place, y: Place) -> bool:
    """Say whether y cannot be next while x has not executed; what begins a stream is next once that was started."""
    reached = order.reach(*x, y[0])
    if reached != y[1] or y[1]:
        return reached < y[1]
    starts = (place for place in order.edges.get(y, ()) if streams.event(place).op.kind in STARTING)
    return any(order.reach(*x, actor) <= index for actor, index in starts)


def most_value(streams: Streams, order: Order, wait: Wait, epoch: Epoch, sure: int) -> int:
    """Return what the wait sees in an epoch when all credits that can have come while it is held have come.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: the wait that is held.
        epoch: of its cell.
        sure: what it sees before any credit of others.

    """
    if epoch.is_sum:
        return sure + wait.sign * most_credits(streams, order, wait, epoch)
    if not is_moved_by(wait, epoch):
        return sure
    actor, index = wait.place
    return fold(
        epoch.kind, sure,
        (
            amount
            for who, tally in epoch.tallies.items()
            for at, amount in zip(tally.indexes, tally.amounts, strict=True)
            if streams.relation(wait.place, (who, at)) == "free" and at < order.reach(actor, index, who)
        ),
    )  # fmt: skip


def most_credits(streams: Streams, order: Order, wait: Wait, epoch: Epoch) -> int:
    """Return the free credits that can have come to the epoch while the wait is held.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: the wait that is held.
        epoch: of its cell.

    """
    actor, index = wait.place
    total = 0
    for who, tally in streams.issued(epoch).items():
        if who != actor:
            # With a task held, what the others issue lands at once.
            total += tally.credits_before(order.reach(actor, index, who), wait.sign)
        elif streams.model.late:
            total += sum(
                max(amount * wait.sign, 0)
                for place, amount in zip(tally.places, tally.amounts, strict=True)
                if streams.relation(wait.place, place) == "free"
            )
    return total


def extent(streams: Streams, order: Order, wait: Wait, epoch: Epoch) -> tuple[int, int]:
    """Return the least and the most that a pending wait, or a test, can see in an epoch.

    What has surely come when it is reached counts for both; what may have come, for the one or the other.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: a wait or a test.
        epoch: of its cell.

    """
    low = high = epoch.base
    come: list[int] = []
    may: list[int] = []
    for who, tally in epoch.tallies.items():
        reached = order.reach(*wait.place, who)
        for at, amount in zip(tally.indexes, tally.amounts, strict=True):
            relation = streams.relation(wait.place, (who, at))
            if relation == "after" or (relation == "free" and at >= reached):
                continue
            sure = relation == "sure" or precedes_reaching(order, (who, at), wait.place)
            if not epoch.is_sum:
                (come if sure else may).append(amount)
                continue
            low += amount if sure else min(amount, 0)
            high += amount if sure else max(amount, 0)
    if epoch.is_sum:
        return low, high
    least = fold(epoch.kind, epoch.base, come)
    if epoch.direction or not may:
        low, high = sorted((least, fold(epoch.kind, least, may)))
        return low, high
    cell = streams.histories[wait.slot].cell
    return cell.low, cell.high
