"""What is surely visible under ``gpu``: whether what reads a cell can be misled by an older version, or a late one.

Signals that are ordered by what can happen (S1 to S4, see `signals`) may still be seen in another order. So each
wait that does not change its cell, and each read, has to know by *happens-before* what could mislead it:

S1h  updates that do not commute come in one order at their cell;
S2h  a change against a wait's direction is known when the wait is reached, or comes after it;
S3h  a life of a cell that does not satisfy a wait begins after it; an earlier one in which it could pass is known to be
     over when it is reached;
Rh   what returns a value knows each update of its cell, or comes before it.

Sound, not exact: most of what is found here does no harm, and exploration decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.guards import can_pass, sure_value
from asyncsim.analysis.precede import most_value, precedes
from asyncsim.analysis.steady import holds
from asyncsim.analysis.streams import ALWAYS, NEVER
from asyncsim.trace.op import change_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.known import Known
    from asyncsim.analysis.precede import Order
    from asyncsim.analysis.streams import Epoch, History, Place, Streams, Wait


class Visible:
    """What each operation on one cell surely sees of it.

    Args:
        streams: of the run, with late updates.
        order: of all schedules of these.
        known: what is surely known.
        history: of the cell.

    """

    def __init__(self, streams: Streams, order: Order, known: Known, history: History) -> None:
        self._streams = streams
        self._order = order
        self._known = known
        self._history = history
        self._kinds: dict[Place, str] = {streams.issue(place): epoch.kind for place, _, epoch in history.updates} | {
            streams.issue(place): "" for place in history.sets
        }
        self._sets = set(map(streams.issue, history.sets))

    def misleading(self) -> Iterator[tuple[Place, Place]]:
        """Yield operations that may be misled, each with an update by which."""
        yield from self._unordered_updates()
        for wait in self._history.waits:
            if change_by(wait.event.op) is None:  # what changes the cell sees its newest version
                yield from ((wait.place, update) for update in self._misleading_wait(wait))
        for read in self._history.tests:
            if change_by(read.event.op) is None:
                yield from ((read.place, update) for update in self._unknown_to(read.place))

    def _unordered_updates(self) -> Iterator[tuple[Place, Place]]:
        updates = list(self._kinds)
        for n, x in enumerate(updates):
            for y in updates[:n]:
                commute = self._kinds[x] == self._kinds[y] and not {x, y} & self._sets
                if x[0] != y[0] and not commute and not (self._comes_before(x, y) or self._comes_before(y, x)):
                    yield x, y

    def _misleading_wait(self, wait: Wait) -> Iterator[Place]:
        if wait.way == NEVER or wait.event.op.result:
            yield from self._unknown_to(wait.place)
        if wait.way not in (ALWAYS, NEVER):
            for threat in map(self._streams.issue, self._history.against(wait.sign)):
                if threat[0] != wait.place[0] and not self._is_settled(threat, wait.place):
                    yield threat
        epochs = self._history.epochs
        own = len(epochs) if wait.epoch is None else epochs.index(wait.epoch)
        for n, epoch in enumerate(epochs):
            if n > own and wait.way not in (ALWAYS, NEVER) and not self._holds_at_start(wait, epoch):
                openers = map(self._streams.issue, epoch.openers)
                yield from (each for each in openers if each[0] != wait.place[0] and not self._passed(wait.place, each))
            if n < own and self._could_pass(wait, epoch) and epoch.closers:
                closers = list(map(self._streams.issue, epoch.closers))
                if not any(self._seen(each, wait.place) for each in closers):
                    yield closers[0]

    def _holds_at_start(self, wait: Wait, epoch: Epoch) -> bool:
        op = wait.event.op
        return holds(op.how, op.amount, sure_value(self._streams, wait, epoch))

    def _could_pass(self, wait: Wait, epoch: Epoch) -> bool:
        if wait.way == ALWAYS:
            return True
        if wait.way == NEVER:
            return False  # it knows each update, or is found by that
        sure = sure_value(self._streams, wait, epoch)
        return can_pass(wait, epoch, sure, most_value(self._streams, self._order, wait, epoch, sure))

    def _unknown_to(self, place: Place) -> Iterator[Place]:
        return (each for each in self._kinds if each[0] != place[0] and not self._is_settled(each, place))

    def _is_settled(self, update: Place, place: Place) -> bool:
        return self._seen(update, place) or self._passed(place, update)

    def _seen(self, update: Place, place: Place) -> bool:
        """Say whether an operation surely sees an update, or what came after it at the cell, once it is reached."""
        known = self._known
        if known.precedes_reaching(update, place):
            return True
        later = (each for each in self._kinds if each != update and known.precedes_reaching(each, place))
        if any(self._comes_before(update, each) for each in later):
            return True
        return any(
            known.precedes_reaching(wait.place, place) and known.needs(wait, update) for wait in self._history.waits
        )

    def _passed(self, place: Place, update: Place) -> bool:
        """Say whether an operation surely happens before an update, or before one that comes before it at the cell."""
        if precedes(self._known, place, update):
            return True
        earlier = (each for each in self._kinds if each != update and precedes(self._known, place, each))
        return any(self._comes_before(each, update) for each in earlier)

    def _comes_before(self, x: Place, y: Place) -> bool:
        """Say whether of two updates x comes first at their cell, in every execution."""
        known = self._known
        if precedes(known, x, y):
            return True
        return any(
            (wait.place == y or precedes(known, wait.place, y)) and known.needs(wait, x) for wait in self._history.waits
        )
