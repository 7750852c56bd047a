"""Schedules that follow a list of choices, but for one pair of operations: brought together, reversed, or held.

A side of a finding numbers an operation of its actor. In another schedule the result of a `test` can make the
actor do something else there, and then that is not evidence of the side: the operation there must be of the
same kind, on the same region, and from the same line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.kinds import POLLING, TESTING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Side
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

_ORDER = attrgetter("actor.order")
SPINNING = TESTING | POLLING
"""An actor may be at one of these again and again, so no other actor is held for it."""


class ChoiceList:
    """Picks the ready actor that is first in a list of choices; when the list has ended, in fair turn.

    An actor that blocks, or is held, is passed over and catches up as soon as it can.

    Args:
        choices: actors by name, step by step.

    """

    def __init__(self, choices: Sequence[str]) -> None:
        self._choices = choices

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._done: dict[str, int] = {}
        self._planned: dict[str, int] = {}
        self._behind: dict[str, deque[tuple[int, int]]] = {}
        self._at = 0
        self._orders = {actor.name: actor.order for actor in actors}
        self._fair = Fifo()
        self._fair.begin(actors)

    def executed(self, name: str) -> int:
        """Return how many operations of an actor were executed."""
        return self._done.get(name, 0)

    def index_of_side(self, ready: Sequence[Op], side: Side) -> int | None:
        """Return the index of a side's operation among those that are ready; None if it is not there.

        Args:
            ready: the operations that are ready, in the order of their actors.
            side: names an actor and the index of an operation of it.

        """
        return self.index_of_actor(ready, side.actor) if self.executed(side.actor) == side.index else None

    def index_of_actor(self, ready: Sequence[Op], name: str) -> int | None:
        """Return the index of an actor among those that are ready, by bisection: there can be a thousand.

        Args:
            ready: the operations that are ready, in the order of their actors.
            name: of the actor.

        """
        order = self._orders.get(name)
        if order is None:
            at = next((at for at, op in enumerate(ready) if op.actor.name == name), None)
            if at is not None:
                self._orders[name] = ready[at].actor.order
            return at
        at = bisect_left(ready, order, key=_ORDER)
        return at if at < len(ready) and ready[at].actor.order == order else None

    def execute(self, ready: Sequence[Op], at: int) -> Op:
        """Return the operation in a place, and count it.

        Args:
            ready: the operations that are ready.
            at: the index of the one that is executed.

        """
        op = ready[at]
        self._done[op.actor.name] = self.executed(op.actor.name) + 1
        return op

    def next_index(self, ready: Sequence[Op], held: Sequence[Op] = ()) -> int:
        """Return the index of the next one.

        Args:
            ready: at least one operation, in the order of actors.
            held: some among them, not all, that are passed over.

        """
        names = [op.actor.name for op in held]
        at = self._next_behind(ready, names)
        while at is None and self._at < len(self._choices):
            name = self._choices[self._at]
            number = self._planned[name] = self._planned.get(name, -1) + 1
            if number >= self.executed(name):
                known = name in self._behind
                self._behind.setdefault(name, deque()).append((self._at, number))
                at = None if known or name in names else self.index_of_actor(ready, name)
            self._at += 1
        return self._fair.pick(ready, held) if at is None else at

    def _next_behind(self, ready: Sequence[Op], held: Sequence[str]) -> int | None:
        """Return the index of the first one in the list that was passed over and can go on now."""
        first, found = len(self._choices), None
        for name, waiting in list(self._behind.items()):
            while waiting and waiting[0][1] < self.executed(name):
                waiting.popleft()
            if not waiting:
                del self._behind[name]
            elif waiting[0][0] < first and name not in held and (at := self.index_of_actor(ready, name)) is not None:
                first, found = waiting[0][0], at
        return found


class PairReversal:
    """Follows a run, but for one pair: where the one side is next, the other goes first.

    Args:
        choices: of the run.
        held: the side that is held until the other was executed.
        until: the other.
        patience: so many steps it is held while others move, and then no more.
        eager: an actor that goes on as far as it can, once `until` was executed, and `held` if it can be; or None.

    `reversed`: `held` was not executed before `until`.
    """

    def __init__(
        self, choices: Sequence[str], held: Side, until: Side, patience: int, *, eager: str | None = None
    ) -> None:
        self._followed = ChoiceList(choices)
        self._held = held
        self._until = until
        self._patience = patience
        self._eager = eager
        self.reversed = False

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._followed.begin(actors)
        self._waited = 0
        self.reversed = False

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose what the run has next, of the pair the other way round."""
        choices = self._followed
        op = choices.execute(ready, self._next_of(ready))
        if not self.reversed and choices.executed(self._held.actor) <= self._held.index:
            self.reversed = choices.executed(self._until.actor) > self._until.index
        return op

    def _next_of(self, ready: Sequence[Op]) -> int:
        choices = self._followed
        if self.reversed and self._eager is not None:
            at = choices.index_of_side(ready, self._held)
            if at is None:
                at = choices.index_of_actor(ready, self._eager)
            if at is not None and ready[at].kind not in SPINNING:
                return at
        at = choices.next_index(ready)
        if self.reversed or self._waited > self._patience or at != choices.index_of_side(ready, self._held):
            return at
        other = choices.index_of_side(ready, self._until)
        if other is not None:
            return other
        self._waited += 1
        return at if len(ready) == 1 else choices.next_index(ready, [ready[at]])


def run_matches_side(trace: Trace, side: Side) -> bool:
    """Return whether the operation of a run that a side numbers comes from the side's line, in its call.

    Args:
        trace: of a run; pending operations count, too.
        side: of a finding.

    """
    pending = () if trace.footer is None else trace.footer.pending
    own = (event for event in chain(trace.events, pending) if event.op.actor.name == side.actor)
    event = next(islice(own, side.index, None), None)
    return event is not None and op_matches_side(event.op, side) and (event.call, event.at) == (side.call, side.at)


def op_matches_side(op: Op, side: Side) -> bool:
    """Return whether an operation is of the kind of a side, and on its region, cell or stream.

    Args:
        op: an operation.
        side: of a finding.

    """
    if op.kind != side.op:
        return False
    places = [str(access.region) for access in op.accesses]
    if op.cell is not None:
        places.append(str(op.cell))
    return side.region in (places or [op.link])


_AS_FAIR, _FIRST, _LATE = "as in the fair run", "the awaited one first", "as late as can be"
HOWS = (_AS_FAIR, _FIRST, _LATE)
"""How two are brought together: while one is held, all others go on as in the fair run until the other has come; or
the other before all others; or both are held as long as any other actor can move."""


class Rendezvous:
    """Brings two actors to their operations, then lets one go first; all others as in the fair run.

    Args:
        first, second: the sides; `first` goes before `second`.
        fair: the choices of the fair run.
        patience: so many steps of others one is held, and then no more.
        how: one of `HOWS`.

    """

    def __init__(self, first: Side, second: Side, fair: Sequence[str], patience: int, *, how: str = HOWS[0]) -> None:
        self._sides = (first, second)
        self._followed = ChoiceList(fair)
        self._patience = patience
        self._how = how
        self.met = False

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._followed.begin(actors)
        self._next: list[Side] = []
        self._over = False
        self._held = 0
        self._meant: set[str] = set()
        self.met = False

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose as the fair run did among those that are not held; then the two sides."""
        return self._followed.execute(ready, self._next_of(ready))

    def _next_of(self, ready: Sequence[Op]) -> int:
        if not self._over and not self.met:
            indexes = [at for side in self._sides if (at := self._followed.index_of_side(ready, side)) is not None]
            held = [ready[at] for at in indexes]
            free = len(held) < len(ready)
            self._held += bool(held)
            impatient = self._held > self._patience
            if not all(map(self._is_meant, held)):
                self._over = True  # it did something else: they cannot be brought together any more
            elif len(held) == len(self._sides) and not (self._how == _LATE and free and not impatient):
                self.met = True
                self._next = list(self._sides)
            elif not free or impatient:
                self._over = True  # they cannot be brought together: go on as the fair run did
            else:
                at = self._awaited_first(ready, held)
                return self._followed.next_index(ready, held) if at is None else at
        while self._next:
            at = self._followed.index_of_actor(ready, self._next.pop(0).actor)
            if at is not None:
                return at
        return self._followed.next_index(ready)

    def _awaited_first(self, ready: Sequence[Op], held: Sequence[Op]) -> int | None:
        """Return the index of the awaited one, if it goes before all others."""
        if self._how != _FIRST or len(held) != 1:
            return None
        side = self._sides[held[0].actor.name == self._sides[0].actor]
        for name in (side.actor, side.actor.partition(">")[0]):  # what lands is issued before
            at = self._followed.index_of_actor(ready, name)
            if at is not None and ready[at] is not held[0] and ready[at].kind not in SPINNING:
                return at
        return None

    def _is_meant(self, op: Op) -> bool:
        """Return whether an operation is that of its side; it is examined once."""
        name = op.actor.name
        if name not in self._meant and op_matches_side(op, next(side for side in self._sides if side.actor == name)):
            self._meant.add(name)
        return name in self._meant


class HeldOperation:
    """Holds one operation until no other actor can go on.

    Args:
        actor: whose operation is held.
        index: which of its operations.
        patience: so many steps of others it is held, and then no more.

    """

    def __init__(self, actor: str, index: int, patience: int) -> None:
        self._actor = actor
        self._index = index
        self._patience = patience

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._followed = ChoiceList(())
        self._followed.begin(actors)
        self._waited = 0

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose in fair turn among those that are not held."""
        choices = self._followed
        at = choices.index_of_actor(ready, self._actor) if choices.executed(self._actor) == self._index else None
        self._waited += at is not None
        if at is None or len(ready) == 1 or self._waited > self._patience:
            return choices.execute(ready, choices.next_index(ready))
        return choices.execute(ready, choices.next_index(ready, [ready[at]]))
