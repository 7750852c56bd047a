"""Guards: what a wait needs from the others before it can pass, made monotone.

A wait has a direction: Ge and Gt are read upwards, Le and Lt downwards, Eq and Ne either way. The changes
of others in that direction are its *credits*, those against it its *threats*: to add is up or down by its sign, to set
bits or to take the larger up, to clear bits or to take the smaller down; to turn bits over is a threat to all. For a
wait w of actor a and an epoch e of its cell let the *sure* value be

    base(e), after a's own changes in e before w, and the threats in e that this run executed before w.

Own changes are in a's program order, so certain; threats are ordered with w, or the analysis raises a
flag (S2). All that is left to know is which credits have come (of sums, how many), and that only grows: once the
guard holds it holds for ever.

A wait that is true of every value that it can see (a window that never blocks) is no wait, and one that is false
of all of them never passes, whatever comes: such a wait has neither credits nor threats.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.analysis.streams import ALWAYS, DOWN, NEVER, UP
from asyncsim.analysis.updates import Reached, fold
from asyncsim.trace.cells import COMPARE, RISING, UNSTABLE

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Epoch, Streams, Wait

_MIRRORED = {"Le": "Ge", "Lt": "Gt", "Ge": "Le", "Gt": "Lt"}


def first_way(streams: Streams, wait: Wait) -> str:
    """Return the direction of a wait; of Eq and Ne that from which its own actor's changes come to it.

    Args:
        streams: of the run.
        wait: the wait.

    """
    op = wait.event.op
    if op.how not in UNSTABLE:
        return UP if op.how in RISING else DOWN
    epoch = wait.epoch or streams.histories[wait.slot].epochs[-1]
    return DOWN if fold(epoch.kind, epoch.base, _own_changes(streams, wait, epoch)) > op.amount else UP


def sure_value(streams: Streams, wait: Wait, epoch: Epoch) -> int:
    """Return the value that the wait sees in this epoch if no free credit has come yet.

    Args:
        streams: of the run.
        wait: a wait or a test.
        epoch: of its cell.

    """
    sure = _own_changes(streams, wait, epoch)
    step = wait.event.step
    for place, amount in epoch.against(wait.sign):
        if place[0] != wait.place[0] and streams.relation(wait.place, place) == "free":
            executed = streams.event(place).step
            if executed is not None and (step is None or executed < step):
                sure = [*sure, amount]
    return epoch.base + sum(sure) if epoch.is_sum else fold(epoch.kind, epoch.base, sure)


def own_credits(streams: Streams, wait: Wait, epoch: Epoch, *, queued: bool = False) -> int:
    """Return the credits that are sure for the wait, and have been counted when it is reached.

    With `queued` those alone that came behind a copy, so that even their own actor saw them when they landed.

    Args:
        streams: of the run.
        wait: the wait.
        epoch: of its cell.
        queued: count only what came behind a copy.

    """
    if not streams.model.late:
        own = epoch.tallies.get(wait.place[0])
        return 0 if own is None or queued else own.credits_before(wait.place[1], wait.sign)
    return sum(max(amount * wait.sign, 0) for amount in _own_changes(streams, wait, epoch, queued=queued))


def _own_changes(streams: Streams, wait: Wait, epoch: Epoch, *, queued: bool = False) -> list[int]:
    """Return the amounts that are sure for the wait: of its own actor, in program order."""
    actor, index = wait.place
    own = streams.issued(epoch).get(actor)
    if own is None:
        return []
    before = bisect_left(own.indexes, index)
    if not streams.model.late:
        return own.amounts[:before]
    adds = zip(own.places[:before], own.amounts, strict=False)
    sure = ((place, amount) for place, amount in adds if streams.relation(wait.place, place) == "sure")
    return [amount for place, amount in sure if not queued or streams.is_queued(place[0])]


def needed(wait: Wait, sure: int) -> int | None:
    """Return how many credits of others make the comparison true in an epoch of sums; None: no number does.

    For Eq and Ne more credits can make it false again; that is the business of S3.

    Args:
        wait: its comparison and its direction are looked at.
        sure: what it sees before any credit of others, see `sure_value`.

    """
    how, amount, sure = _upwards(wait, sure)
    if how == "Ge":
        return max(0, amount - sure)
    if how == "Gt":
        return max(0, amount + 1 - sure)
    if how == "Eq":
        return amount - sure if sure <= amount else None
    return 0 if sure != amount else 1


def may_turn_false(wait: Wait, epoch: Epoch, sure: int, most: int) -> bool:
    """Say whether credits can make a comparison that holds stop holding (S3).

    Args:
        wait: its comparison and its direction are looked at.
        epoch: of its cell.
        sure: what it sees before any credit of others.
        most: what it sees when all that can have come.

    """
    how, amount, least = _upwards(wait, sure)
    _, _, most_upwards = _upwards(wait, most)
    if how == "Eq":
        return most_upwards > amount and can_pass(wait, epoch, sure, most)
    return how == "Ne" and least < amount <= most_upwards


def is_moved_by(wait: Wait, epoch: Epoch) -> bool:
    """Say whether the updates of an epoch, no sum, are credits to a wait; if not, all are threats.

    Args:
        wait: its direction is looked at.
        epoch: of its cell.

    """
    return epoch.direction * wait.sign > 0


def can_pass(wait: Wait, epoch: Epoch, sure: int, most: int) -> bool:
    """Say whether the wait's guard can hold in an epoch, and so whether the wait may pass there.

    Args:
        wait: its comparison and its direction are looked at.
        epoch: of its cell.
        sure: what the wait sees before any credit of others.
        most: what it sees when all that can have come.

    """
    if epoch.is_sum:
        need = needed(wait, sure)
        return need is not None and abs(most - sure) >= need
    return (goal := _goal(wait, epoch, sure)) is not None and (goal.reached is None or goal.reached.holds(most))


def _goal(wait: Wait, epoch: Epoch, sure: int) -> Goal | None:
    """Return the goal of a wait in an epoch that is no sum; None: it never passes there."""
    op = wait.event.op
    holds = COMPARE[op.how](sure, op.amount)
    if not is_moved_by(wait, epoch):
        return Goal(0) if holds else None
    return Goal(0) if holds and op.how == "Ne" else Goal(0, reached=Reached(epoch.kind, op.how, op.amount))


def _upwards(wait: Wait, sure: int) -> tuple[str, int, int]:
    """Return the comparison, its amount and a value as they look upside down, if the wait is read downwards."""
    op = wait.event.op
    if wait.way == DOWN:
        return _MIRRORED.get(op.how, op.how), -op.amount, -sure
    return op.how, op.amount, sure


@dataclass(frozen=True, slots=True)
class Goal:
    """What lets a wait pass in one epoch.

    Args:
        credits: so many, of all actors...
        without: ... or, where own writes are forwarded, of all but this actor's own.
        is_open: the epoch is open for this wait for certain: its own Set opened it, and is forwarded.
        down: credits take away.
        reached: in an epoch that is no sum, what the cell has to come to.

    """

    credits: int
    without: int | None = None
    is_open: bool = False
    down: bool = False
    reached: Reached | None = None


class Guards:
    """For every wait, the epochs in which it may pass, each with its goal.

    A goal counts the credits of *all* actors to the epoch: the wait's own, which have come for certain,
    are added to what it needs from the others. Where own writes are forwarded they may be seen before
    they land; then it counts those of the others alone.
    """

    def __init__(self, streams: Streams) -> None:
        """Begin with the epoch that each wait passed in."""
        self.streams = streams
        self.waits: dict[tuple[int, int], Wait] = {
            wait.place: wait for history in streams.histories.values() for wait in history.waits
        }
        self.goals: dict[tuple[int, int], dict[int, Goal]] = {}
        for place, wait in self.waits.items():
            self.goals[place] = {}
            epochs = streams.histories[wait.slot].epochs
            if wait.way == ALWAYS:
                self.goals[place][epochs[0].number] = Goal(0)
            elif wait.epoch is not None:
                self.admit(wait, wait.epoch)
            elif len(epochs) == 1:
                self.admit(wait, epochs[0])

    def admit(self, wait: Wait, epoch: Epoch) -> bool:
        """Let the wait pass in this epoch too; say whether that is new and possible at all.

        Args:
            wait: the wait.
            epoch: of its cell.

        """
        goals = self.goals[wait.place]
        if epoch.number in goals or wait.way in (ALWAYS, NEVER):
            return False
        streams = self.streams
        if not epoch.is_sum:
            goal = _goal(wait, epoch, sure_value(streams, wait, epoch))
            if goal is not None:
                goals[epoch.number] = goal
            return goal is not None
        need = needed(wait, sure_value(streams, wait, epoch))
        if need is None:
            return False
        down = wait.way == DOWN
        if streams.model.late and streams.model.forwarding:
            opener = epoch.opener
            own = opener is not None and streams.relation(wait.place, opener) == "sure"
            counted = own_credits(streams, wait, epoch, queued=True)
            goals[epoch.number] = Goal(need + counted, wait.place[0], own, down=down)
        else:
            goals[epoch.number] = Goal(need + own_credits(streams, wait, epoch), down=down)
        return True
