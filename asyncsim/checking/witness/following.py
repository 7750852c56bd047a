"""Following a list of choices as far as that can be: how two runs are made that differ in one pair alone."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING

from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.op import POLL, TEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.finding import Side
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

_ORDER = attrgetter("actor.order")
SPINNING = (TEST, POLL)
"""Who stands before one of these may stand there again and again, so nobody is kept waiting for him."""


class ChoiceList:
    """Picks, of those who are ready, the one who comes first in a list of choices; when it has ended, in fair turn.

    Whoever blocks, or is held, is passed over and catches up as soon as he can.

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
        """Return the place of a side's operation among those that are ready; None if it is not there.

        Args:
            ready: the operations that are ready, in the order of their actors.
            side: names an actor and the index of an operation of it.

        """
        return self.index_of_actor(ready, side.actor) if self.executed(side.actor) == side.index else None

    def index_of_actor(self, ready: Sequence[Op], name: str) -> int | None:
        """Return the place of an actor among those that are ready, without looking at all of a thousand.

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
            at: the place of the one that is taken.

        """
        op = ready[at]
        self._done[op.actor.name] = self.executed(op.actor.name) + 1
        return op

    def next_index(self, ready: Sequence[Op], held: Sequence[Op] = ()) -> int:
        """Return the place of the next one.

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
        """Return the place of the first one in the list who was passed over and can go on now."""
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
        eager: an actor who goes on as far as he can, once `until` was executed, and `held` if it can be; None: nobody.

    `reversed` says that `held` was not executed before `until`.
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
        op = choices.execute(ready, self._place(ready))
        if not self.reversed and choices.executed(self._held.actor) <= self._held.index:
            self.reversed = choices.executed(self._until.actor) > self._until.index
        return op

    def _place(self, ready: Sequence[Op]) -> int:
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
