"""Schedules that bring two operations together, or hold one: what witnesses are made with.

A side of a finding says which operation of its actor it is, by number. In another schedule an answer of a
`test` can make the actor do something else there, and then that is no evidence of the side: what stands
there must be of the same kind, on the same region, and come from the same line.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from asyncsim.schedulers.fifo import Fifo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Side
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

_ORDER = attrgetter("actor.order")


def did(trace: Trace, side: Side) -> bool:
    """Say whether the operation of a run that a side numbers comes from the side's line, in its call."""
    pending = () if trace.footer is None else trace.footer.pending
    own = (event for event in chain(trace.events, pending) if event.op.actor.name == side.actor)
    event = next(islice(own, side.index, None), None)
    return event is not None and is_of(event.op, side) and (event.call, event.at) == (side.call, side.at)


def is_of(op: Op, side: Side) -> bool:
    """Say whether an operation is of the kind of a side, and on its region, cell or stream."""
    if op.kind != side.op:
        return False
    places = [str(access.region) for access in op.accesses]
    if op.cell is not None:
        places.append(str(op.cell))
    return side.region in (places or [op.link])


class _Standing:
    """Finds the operations of a few actors among those that are ready, without looking at all of a thousand.

    Args:
        names: of the actors.
        actors: those that are there from the start; a stream is looked for until it was seen once.

    """

    def __init__(self, names: Sequence[str], actors: Sequence[Actor]) -> None:
        orders = {actor.name: actor.order for actor in actors}
        self._orders = {name: orders.get(name) for name in names}

    def among(self, ready: Sequence[Op]) -> list[Op]:
        """Return those of the actors' operations that are ready."""
        found = []
        for name, order in self._orders.items():
            if order is None:
                op = next((op for op in ready if op.actor.name == name), None)
                if op is not None:
                    self._orders[name] = op.actor.order
                    found.append(op)
            elif (at := bisect_left(ready, order, key=_ORDER)) < len(ready) and ready[at].actor.order == order:
                found.append(ready[at])
        return found


class Meeting:
    """Brings two actors to their operations, everyone else in fair turn, then lets one go first.

    Args:
        first, second: the sides; `first` goes before `second`.
        patience: so many steps of others one is held, and then no more.
        late: hold them for as long as anybody else can move; else only until both have come.

    """

    def __init__(self, first: Side, second: Side, patience: int, *, late: bool = False) -> None:
        """Hold both sides until both stand at the gate."""
        self._sides = {first.actor: first, second.actor: second}
        self._order = (first.actor, second.actor)
        self._patience = patience
        self._late = late
        self.met = False

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._done = {actor.name: 0 for actor in actors}
        self._fair = Fifo()
        self._fair.begin(actors)
        self._next: list[str] = []
        self._standing = _Standing(self._order, actors)
        self._over = False
        self._held = 0
        self._meant: set[str] = set()
        self.met = False

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose in fair turn among those that are not held; the two sides when they have met."""
        op = ready[self._place(ready)]
        self._done[op.actor.name] = self._done.get(op.actor.name, 0) + 1
        return op

    def _place(self, ready: Sequence[Op]) -> int:
        if not self._over and not self.met:
            held = [op for op in self._standing.among(ready) if self._stands(op)]
            free = len(held) < len(ready)
            self._held += bool(held)
            impatient = self._held > self._patience
            if not all(map(self._is_meant, held)):
                self._over = True  # it did something else: they cannot meet any more
            elif len(held) == len(self._order) and not (self._late and free and not impatient):
                self.met = True
                self._next = list(self._order)
            elif not free or impatient:
                self._over = True  # they cannot meet: go on in fair turn
            else:
                return self._fair.pick(ready, held)
        if self._next:
            name = self._next.pop(0)
            at = next((at for at, op in enumerate(ready) if op.actor.name == name), None)
            if at is not None:
                return at
        return self._fair.pick(ready)

    def _stands(self, op: Op) -> bool:
        return self._sides[op.actor.name].index == self._done.get(op.actor.name, 0)

    def _is_meant(self, op: Op) -> bool:
        """Say whether what stands in the place of a side is its operation; it is looked at once."""
        name = op.actor.name
        if name not in self._meant and is_of(op, self._sides[name]):
            self._meant.add(name)
        return name in self._meant


class Holding:
    """Holds one operation until another was executed, or until nobody else can go on.

    Args:
        held: the side that is held.
        until: the side it waits for; None: hold as long as anybody else can move.
        patience: so many steps of others it is held, and then no more.

    `astray` says that another operation than that of a side was executed in its place.
    """

    def __init__(self, held: Side, until: Side | None, patience: int) -> None:
        """Hold `held`."""
        self._held = held
        self._until = until
        self._patience = patience
        self.astray = False

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._done = {actor.name: 0 for actor in actors}
        self._fair = Fifo()
        self._fair.begin(actors)
        self._standing = _Standing((self._held.actor,), actors)
        self._free = False
        self._waited = 0
        self.astray = False

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose in fair turn among those that are not held."""
        until = self._until
        if until is not None and self._done.get(until.actor, 0) > until.index:
            self._free = True
        held = [op for op in self._standing.among(ready) if self._stops(op)]
        self._waited += bool(held)
        if len(held) == len(ready) or self._waited > self._patience:
            self._free = True
            held = []
        op = ready[self._fair.pick(ready, held)]
        self._look(op)
        self._done[op.actor.name] = self._done.get(op.actor.name, 0) + 1
        return op

    def _stops(self, op: Op) -> bool:
        return not self._free and self._done.get(op.actor.name, 0) == self._held.index

    def _look(self, op: Op) -> None:
        for side in (self._held, self._until):
            if (
                side is not None
                and side.op
                and (op.actor.name, self._done.get(op.actor.name, 0))
                == (
                    side.actor,
                    side.index,
                )
            ):
                self.astray |= not is_of(op, side)
