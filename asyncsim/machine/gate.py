"""The gate: who stands where, who is ready, and the one place where a choice is made.

Exactly one actor runs at a time. It runs to its next operation, stands here, and whoever comes
last has the scheduler choose among the *pending operations that are ready*. A chosen operation
takes effect at once. The gate knows neither trio nor coroutines: engines drive it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Protocol

from asyncsim.machine.effect import CellOverflow
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE, DEADLOCK, OVERFLOW, STEP_LIMIT
from asyncsim.trace.op import JOIN, POLL, QUIET, SYNC, WAIT, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.machine.memory import Memory
    from asyncsim.trace.world import Actor


class Scheduler(Protocol):
    """Who goes next. One method matters.

    A scheduler whose `blocks` is true promises that, with no landing to choose, it returns the operation of
    the actor that it chose last, if that is ready and `Op.follows`. Then it is not asked: the run is the same.
    """

    def begin(self, actors: Sequence[Actor]) -> None:
        """Forget the last run: a new one starts, with these actors."""

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return one of `ready`: at least one operation, at most one an actor, in the order of actors.

        What is offered is about to happen; nothing of it has. The sequence changes after the call.
        """


class Effects(Protocol):
    """What operations do: the memory model."""

    def passes(self, op: Op) -> bool:
        """Say whether a wait, poll or quiet can go on now."""

    @property
    def table(self) -> Mapping[str, Callable[[Op], Any]]:
        """What an operation of each kind does at its own step; it returns a tile, a bool or nothing."""

    @property
    def late(self) -> bool:
        """Whether anything ever lands later."""

    def seen(self, op: Op) -> int:
        """Return the value of an operation's cell, in the eyes of its actor."""

    def fresh(self) -> Sequence[Op]:
        """Return the landings that have become possible since this was last asked."""


class Gate:
    """Bookkeeping of one run.

    Args:
        memory: the values.
        effects: the memory model.
        scheduler: makes every choice.
        moving: how many actors are on their way to the gate at the start.
        max_steps: after so many steps the run ends with the ending *step-limit*.

    """

    def __init__(self, memory: Memory, effects: Effects, scheduler: Scheduler, *, moving: int, max_steps: int) -> None:
        """Start with nobody at the gate."""
        self.memory = memory
        self.choices: list[Actor] = []
        self.ending: str | None = None
        self.observer: Callable[[Op, Any], None] | None = None
        self._effects = effects
        self._passes = effects.passes
        self._table = effects.table
        self._late = effects.late
        self._scheduler = scheduler
        self._choose = scheduler.choose
        self._max_steps = max_steps
        self.blocks: bool = getattr(scheduler, "blocks", False) and not effects.late
        """Whether the operations of one await may go on one after the other, as `goes_on` finds."""
        self._moving = moving
        self._ready: list[Op] = []
        self._orders: list[int] = []
        # Where the chosen one stood. Mostly it comes back there, so its place is kept until it is known.
        self._gap = -1
        self._waits: dict[int, list[Op]] = {}
        # The other operations that can block. Few stand here, so each is looked at after every step.
        self._parked: list[Op] = []
        self._finished: set[str] = set()
        self._synced: dict[str, int] = {}

    def arrive(self, op: Op) -> None:
        """Stand at the gate with the next operation."""
        self._moving -= 1
        kind = op.kind
        if kind == WAIT:
            slot = op.cell.slot  # type: ignore[union-attr]  # a wait has a cell
            waits = self._waits.get(slot)
            if waits is None:
                waits = self._waits[slot] = []
            waits.append(op)
            if not self._passes(op):
                self._close_gap()
                return
        elif kind in _PARKING:
            self._parked.append(op)
            if kind == SYNC:
                self._synced[op.link] = self._synced.get(op.link, 0) + 1
            self._look_at_parked()
            return
        gap = self._gap
        if gap >= 0 and self._orders[gap] == op.actor.order:
            self._ready[gap] = op
            self._gap = -1
        else:
            self._make_ready(op)

    def enter(self) -> None:
        """Note that an actor was started, and is on its way."""
        self._moving += 1

    def leave(self, actor: Actor) -> None:
        """Note that an actor has finished and will not come back."""
        self._moving -= 1
        self._close_gap()
        self._finished.add(actor.name)
        if self._parked:
            self._look_at_parked()

    def next(self) -> Op | None:
        """Return the operation whose turn it is; None while somebody is on the way, or when the run is over.

        Wires have no task: a landing that is chosen happens here, and the next choice follows.
        """
        ready, orders = self._ready, self._orders
        while not self._moving and self.ending is None:
            if not ready:
                self.ending = DEADLOCK if self._parked or any(self._waits.values()) else COMPLETE
                return None
            if len(self.choices) >= self._max_steps:
                self.ending = STEP_LIMIT
                return None
            op = self._choose(ready)
            at = bisect_left(orders, op.actor.order) if op.__class__ is Op else len(ready)
            if at == len(ready) or ready[at] is not op:
                who = type(self._scheduler).__name__
                raise MisuseError(f"{who} chose {op}, which is not among the ready operations")
            if not op.actor.wire:
                self._gap = at
                return op
            del ready[at], orders[at]
            self.perform(op)
        return None

    def goes_on(self, op: Op) -> bool:
        """Say whether an operation that follows its actor's last step, and has just come, is what `next` would return.

        Then its turn has come. The scheduler, which has promised to choose it, is not asked.
        """
        choices = self.choices
        # What came before may have been left out by an edit, so it is looked whose step was the last.
        if self._moving or not choices or choices[-1] is not op.actor or len(choices) >= self._max_steps:
            return False
        ready = self._ready
        at = bisect_left(self._orders, op.actor.order)
        if at == len(ready) or ready[at] is not op:
            return False
        self._gap = at
        return True

    def perform(self, op: Op) -> Any:  # noqa: ANN401, C901 - every step comes through here
        """Let a chosen operation take effect, and return what its actor gets."""
        actor = op.actor
        self.choices.append(actor)
        cell = op.cell
        waits = None
        if cell is not None:
            waits = self._waits.get(cell.slot)
            if op.kind == WAIT:
                waits.remove(op)  # type: ignore[union-attr]  # it stands there
        elif self._parked and op.kind in _PARKING:
            self._parked.remove(op)
        try:
            outcome = self._table[op.kind](op)
        except CellOverflow:
            self.ending = OVERFLOW
            self._close_gap()
            outcome = None
        if self.observer is not None:
            self.observer(op, outcome)
        if self._late:
            for landing in self._effects.fresh():
                self._make_ready(landing)
        if waits:
            self._recheck(waits)
        if self._parked:
            self._look_at_parked()
        if not actor.wire:
            self._moving += 1
        return outcome

    def pending(self) -> list[Op]:
        """Return what stands at the gate, in the order of actors."""
        blocked = [op for waits in self._waits.values() for op in waits] + self._parked
        ready = [op for op in self._ready if op.kind != WAIT and op.kind not in _PARKING]
        return sorted(ready + blocked, key=lambda op: op.actor.order)

    def _close_gap(self) -> None:
        """Take the chosen operation away: its actor does not come back to the place where it stood."""
        if self._gap >= 0:
            del self._ready[self._gap], self._orders[self._gap]
            self._gap = -1

    def _make_ready(self, op: Op) -> None:
        if self._gap >= 0:
            self._close_gap()
        at = bisect_left(self._orders, op.actor.order)
        self._orders.insert(at, op.actor.order)
        self._ready.insert(at, op)

    def _recheck(self, waits: Sequence[Op]) -> None:
        """Wake the waits of a changed cell that now pass, and park again those that no longer do."""
        passes = self._passes
        for op in waits:
            self._place(op, ready=passes(op))

    def _look_at_parked(self) -> None:
        for op in self._parked:
            self._place(op, ready=self._may_go_on(op))

    def _may_go_on(self, op: Op) -> bool:
        if op.kind == JOIN:
            return op.link in self._finished
        if op.kind == SYNC:
            return self._synced[op.link] >= op.amount
        return self._effects.passes(op)

    def _place(self, op: Op, *, ready: bool) -> None:
        """Put an operation among the ready ones, or take it away."""
        if self._gap >= 0:
            self._close_gap()
        at = bisect_left(self._orders, op.actor.order)
        was = at < len(self._ready) and self._ready[at] is op
        if ready and not was:
            self._orders.insert(at, op.actor.order)
            self._ready.insert(at, op)
        elif was and not ready:
            del self._orders[at], self._ready[at]


_PARKING = frozenset((JOIN, SYNC, QUIET, POLL))
"""What can block, besides a wait."""
