"""What can disturb a wait while it is pending (S2, S3), and whether it needs to wait at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.guards import may_turn_false, sure_value
from asyncsim.analysis.precede import extent, may_be_current, most_value, precedes, precedes_reaching
from asyncsim.analysis.streams import ALWAYS, NEVER
from asyncsim.trace.cells import APPLY, RISING, STRICT, UNSTABLE
from asyncsim.trace.kinds import WAITING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.precede import Order
    from asyncsim.analysis.streams import Epoch, Place, Streams, Wait


def threats(streams: Streams, order: Order, wait: Wait) -> Iterator[Place]:
    """Yield S2: each change against the wait's direction, by another actor, that is not ordered with it.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: the wait; one that is true or false whatever comes has none.

    """
    if wait.way in (ALWAYS, NEVER):
        return
    for place in streams.histories[wait.slot].against(wait.sign):
        own = place[0] == wait.place[0]  # the wait is sure of it, or it comes after
        if not own and streams.relation(wait.place, place) == "free" and not strictly_ordered(order, place, wait.place):
            yield place


def strictly_ordered(order: Order, threat: Place, wait: Place) -> bool:
    """S2: the threat was executed whenever the wait is *reached*, or the wait whenever the threat can be.

    Args:
        order: of all schedules.
        threat: a change against the wait's direction.
        wait: the wait.

    """
    return precedes_reaching(order, threat, wait) or precedes(order, wait, threat)


def undone(streams: Streams, order: Order, wait: Wait) -> tuple[Place, bool] | None:
    """Return S3: what can make the wait false again before it is noticed, and whether that is a Set; else None.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: the wait.

    """
    op = wait.event.op
    epochs = streams.histories[wait.slot].epochs
    if wait.way in (ALWAYS, NEVER) or (len(epochs) == 1 and op.how not in UNSTABLE):
        return None
    passable = False
    for epoch in epochs:
        if not may_be_current(streams, order, wait, epoch):
            continue
        sure = sure_value(streams, wait, epoch)
        most = most_value(streams, order, wait, epoch, sure)
        if passable and epoch.openers and not holds(op.how, op.amount, sure):
            return _first_to_come(order, wait, epoch), True
        if may_turn_false(wait, epoch, sure, most):
            culprit = _overshooting(streams, order, wait, epoch, sure)
            if culprit is not None:
                return culprit, False
        low, high = sorted((sure, most))
        passable = passable or can_hold(op.how, op.amount, low, high)
    return None


def is_disturbed(streams: Streams, order: Order, wait: Wait) -> bool:
    """Say whether S2 or S3 finds something.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: the wait.

    """
    return any(True for _ in threats(streams, order, wait)) or undone(streams, order, wait) is not None


def constant(streams: Streams, order: Order, wait: Wait) -> str | None:
    """Return ALWAYS or NEVER where every value that the wait can see gives the same answer; else None.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: a wait or a test.

    """
    answers = {
        answer
        for epoch in streams.histories[wait.slot].epochs
        if may_be_current(streams, order, wait, epoch)
        for answer in answers_to(wait.event.op.how, wait.event.op.amount, *extent(streams, order, wait, epoch))
    }
    if len(answers) != 1:
        return None
    return ALWAYS if True in answers else NEVER


def value_seen(streams: Streams, order: Order, wait: Wait) -> int | None:
    """Return what the cell holds whenever the operation sees it, in every schedule; None where that can differ.

    Args:
        streams: of the run.
        order: of all schedules.
        wait: an operation whose program gets the value; of a wait only what lets it pass counts.

    """
    op = wait.event.op
    seen: set[int] = set()
    for epoch in streams.histories[wait.slot].epochs:
        if may_be_current(streams, order, wait, epoch):
            low, high = extent(streams, order, wait, epoch)
            if op.kind in WAITING:
                low, high = _satisfying(op.how, op.amount, low, high)
            if low < high:
                return None
            seen.update(range(low, high + 1))
    return seen.pop() if len(seen) == 1 else None


def _satisfying(how: str, amount: int, low: int, high: int) -> tuple[int, int]:
    """Return the least and the most between `low` and `high` of which a comparison is true; none: least above most."""
    if how == "Eq":
        return max(low, amount), min(high, amount)
    if how == "Ne":
        return low + (low == amount), high - (high == amount)
    if how in RISING:
        return max(low, amount + (how in STRICT)), high
    return low, min(high, amount - (how in STRICT))


def holds(how: str, amount: int, value: int) -> bool:
    """Say what the comparison says of a value.

    Args:
        how: the name of the comparison: Eq, Ne, Gt, Ge, Lt or Le.
        amount: what is compared with.
        value: of the cell.

    """
    return answers_to(how, amount, value, value) == {True}


def can_hold(how: str, amount: int, low: int, high: int) -> bool:
    """Say whether the comparison can be true of a value between `low` and `high`.

    Args:
        how: the name of the comparison: Eq, Ne, Gt, Ge, Lt or Le.
        amount: what is compared with.
        low: the least value of the cell.
        high: the most.

    """
    return True in answers_to(how, amount, low, high)


def answers_to(how: str, amount: int, low: int, high: int) -> set[bool]:
    """Return what the comparison can say for values between `low` and `high`.

    Args:
        how: the name of the comparison: Eq, Ne, Gt, Ge, Lt or Le.
        amount: what is compared with.
        low: the least value of the cell.
        high: the most.

    """
    inside = low <= amount <= high
    if how in ("Eq", "Ne"):
        equal = {True, False} if inside and low != high else {inside}
        return equal if how == "Eq" else {not answer for answer in equal}
    if how in ("Ge", "Lt"):
        at_least = {value >= amount for value in (low, high)}
        return at_least if how == "Ge" else {not answer for answer in at_least}
    above = {value > amount for value in (low, high)}
    return above if how == "Gt" else {not answer for answer in above}


def _first_to_come(order: Order, wait: Wait, epoch: Epoch) -> Place:
    """Return one of those that begin an epoch which can come while the wait is pending."""
    actor, index = wait.place
    return next(((who, at) for who, at in epoch.openers if at < order.reach(actor, index, who)), epoch.openers[0])


def _overshooting(streams: Streams, order: Order, wait: Wait, epoch: Epoch, sure: int) -> Place | None:
    """Return a foreign credit of the epoch that can come while the wait is pending, and makes it false.

    In this run it came after the wait, if the wait was passed: so it is one whose coming before makes the difference.
    """
    actor, index = wait.place
    come = [
        (step, (who, at), amount)
        for who, tally in epoch.tallies.items()
        if streams.relation(wait.place, (who, tally.indexes[0])) == "free"
        for at, amount in zip(tally.indexes, tally.amounts, strict=True)
        if epoch.helps(amount, wait.sign) and at < order.reach(actor, index, who)
        if (step := streams.events[who][at].step) is not None
    ]
    op, value, latest = wait.event.op, sure, None
    passed = -1 if wait.event.step is None else wait.event.step
    for step, place, amount in sorted(come):
        value = APPLY[epoch.kind](value, amount)
        latest = place
        if step > passed and not holds(op.how, op.amount, value):
            return place
    return latest
