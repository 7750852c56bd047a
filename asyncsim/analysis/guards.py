"""Guards: what a wait needs from the others before it can pass, made monotone.

For a wait w of actor a and an epoch e of its cell let the *sure* value be

    base(e) + a's own adds in e before w + other actors' subtractions in e that this run
    executed before w.

Own adds are in a's program order, so certain; the subtractions of others are ordered with w, or
the analysis raises a flag (S2). All that is left to know is how many of the others' non-negative
adds have come, and that only grows: once the guard holds it holds for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Epoch, Streams, Wait


def sure_value(streams: Streams, wait: Wait, epoch: Epoch) -> int:
    """Return the value that the wait sees in this epoch if no free credit has come yet."""
    actor, index = wait.place
    value = epoch.base
    step = wait.event.step
    for who, tally in epoch.tallies.items():
        if who == actor:
            value += tally.before(index)
            continue
        for at, amount in zip(tally.indexes, tally.amounts, strict=True):
            relation = streams.relation(wait.place, (who, at))
            if relation == "sure":
                value += amount
            elif relation == "free" and amount < 0:
                executed = streams.events[who][at].step
                if executed is not None and (step is None or executed < step):
                    value += amount
    return value


def own_credits(streams: Streams, wait: Wait, epoch: Epoch) -> int:
    """Return the non-negative amounts that are sure for the wait, and have been counted when it is reached."""
    actor, index = wait.place
    total = 0
    for who, tally in epoch.tallies.items():
        if who == actor:
            total += tally.credits_before(index)
        elif streams.issuer[who] is not None:
            total += sum(
                amount
                for at, amount in zip(tally.indexes, tally.amounts, strict=True)
                if amount > 0 and streams.relation(wait.place, (who, at)) == "sure"
            )
    return total


def needed(how: str, amount: int, sure: int) -> int | None:
    """Return how many foreign credits make the comparison true in an epoch; None: no number does.

    For Eq, Ne, Lt and Le more credits can make it false again; that is the business of S3.
    """
    if how == "Ge":
        return max(0, amount - sure)
    if how == "Gt":
        return max(0, amount + 1 - sure)
    if how == "Eq":
        return amount - sure if sure <= amount else None
    if how == "Ne":
        return 0 if sure != amount else 1
    below = sure < amount if how == "Lt" else sure <= amount
    return 0 if below else None


def may_turn_false(how: str, amount: int, sure: int, most: int) -> bool:
    """Say whether credits between 0 and `most` can make a comparison that holds stop holding (S3)."""
    top = sure + most
    if how == "Eq":
        return sure <= amount < top
    if how == "Ne":
        return sure < amount <= top
    if how == "Lt":
        return sure < amount <= top
    if how == "Le":
        return sure <= amount < top
    return False


@dataclass(frozen=True, slots=True)
class Goal:
    """What lets a wait pass in one epoch.

    Args:
        credits: so many, of all actors...
        without: ... or, where own writes are forwarded, of all but this actor's own.
        is_open: the epoch is open for this wait for certain: its own Set opened it, and is forwarded.

    """

    credits: int
    without: int | None = None
    is_open: bool = False


class Guards:
    """For every wait, the epochs in which it may pass, each with its goal.

    A goal counts the non-negative adds of *all* actors to the epoch: the wait's own, which have
    come for certain, are added to what it needs from the others. Where own writes are forwarded they
    may be seen before they land; then it counts those of the others alone.
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
            if wait.epoch is not None:
                self.admit(wait, wait.epoch)
            elif len(epochs) == 1:
                self.admit(wait, epochs[0])

    def admit(self, wait: Wait, epoch: Epoch) -> bool:
        """Let the wait pass in this epoch too; say whether that is new and possible at all."""
        goals = self.goals[wait.place]
        if epoch.number in goals:
            return False
        op = wait.event.op
        streams = self.streams
        need = needed(op.how, op.amount, sure_value(streams, wait, epoch))
        if need is None:
            return False
        if not streams.model.late:
            goals[epoch.number] = Goal(need + own_credits(streams, wait, epoch))
        elif streams.model.forwarding:
            opener = epoch.opener
            own = opener is not None and streams.relation(wait.place, opener) == "sure"
            goals[epoch.number] = Goal(need, wait.place[0], own)
        else:
            goals[epoch.number] = Goal(need + own_credits(streams, wait, epoch))
        return True
