"""Guards: what a wait needs from the others before it can pass, made monotone.

For a wait w of actor a and an epoch e of its cell let the *sure* value be

    base(e) + a's own adds in e before w + other actors' subtractions in e that this run
    executed before w.

Own adds are in a's program order, so certain; the subtractions of others are ordered with w, or
the analysis raises a flag (S2). All that is left to know is how many of the others' non-negative
adds have come, and that only grows: once the guard holds it holds for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Epoch, Streams, Wait


def sure_value(streams: Streams, wait: Wait, epoch: Epoch) -> int:
    """Return the value that the wait sees in this epoch if no other actor has added yet."""
    actor, index = wait.place
    value = epoch.base
    step = wait.event.step
    for who, tally in epoch.tallies.items():
        if who == actor:
            value += tally.before(index)
            continue
        for at, amount in zip(tally.indexes, tally.amounts, strict=True):
            if amount < 0:
                executed = streams.events[who][at].step
                if executed is not None and (step is None or executed < step):
                    value += amount
    return value


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


class Guards:
    """For every wait, the epochs in which it may pass, each with the credits it then needs.

    A goal counts the non-negative adds of *all* actors to the epoch: the wait's own, which come
    before it for certain, are added to what it needs from the others.
    """

    def __init__(self, streams: Streams) -> None:
        """Begin with the epoch that each wait passed in."""
        self.streams = streams
        self.waits: dict[tuple[int, int], Wait] = {
            wait.place: wait for history in streams.histories.values() for wait in history.waits
        }
        self.goals: dict[tuple[int, int], dict[int, int]] = {}
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
        need = needed(op.how, op.amount, sure_value(self.streams, wait, epoch))
        if need is None:
            return False
        actor, index = wait.place
        own = epoch.tallies.get(actor)
        goals[epoch.number] = need + (own.credits_before(index) if own is not None else 0)
        return True
