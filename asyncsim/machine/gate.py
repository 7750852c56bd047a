"""The gate: who stands where, who is ready, and the one place where a choice is made.

Exactly one actor runs at a time. It runs to its next operation, stands here, and whoever comes
last has the scheduler choose among the *pending operations that are ready*. A chosen operation
takes effect at once. The gate knows neither trio nor coroutines: engines drive it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Protocol

from asyncsim.machine.effect import COMPARE, EFFECTS, CellOverflow
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE, DEADLOCK, OVERFLOW, STEP_LIMIT
from asyncsim.trace.op import NOTIFY, WAIT, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.memory import Memory
    from asyncsim.trace.world import Actor


class Scheduler(Protocol):
    """Who goes next. One method matters."""

    def begin(self, actors: Sequence[Actor]) -> None:
        """Forget the last run: a new one starts, with these actors."""

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return one of `ready`: at least one operation, at most one an actor, in the order of actors.

        What is offered is about to happen; nothing of it has. The sequence changes after the call.
        """


class Gate:
    """Bookkeeping of one run.

    Args:
        memory: the values.
        scheduler: makes every choice.
        moving: how many actors are on their way to the gate at the start.
        max_steps: after so many steps the run ends with the ending *step-limit*.

    """

    def __init__(self, memory: Memory, scheduler: Scheduler, *, moving: int, max_steps: int) -> None:
        """Start with nobody at the gate."""
        self.memory = memory
        self.choices: list[Actor] = []
        self.ending: str | None = None
        self.last: Op | None = None
        self.observer: Callable[[Op, Any], None] | None = None
        self._scheduler = scheduler
        self._max_steps = max_steps
        self._moving = moving
        self._ready: list[Op] = []
        self._orders: list[int] = []
        self._waits: dict[int, list[Op]] = {}

    def arrive(self, op: Op) -> None:
        """Stand at the gate with the next operation."""
        self._moving -= 1
        if op.kind == WAIT:
            cell = op.cell
            assert cell is not None  # noqa: S101 - for the type checker: a wait has a cell
            self._waits.setdefault(cell.slot, []).append(op)
            if not COMPARE[op.how](self.memory.cells[cell.slot], op.amount):
                return
        self._make_ready(op)

    def leave(self) -> None:
        """Note that an actor has finished and will not come back."""
        self._moving -= 1

    def next(self) -> Op | None:
        """Return the operation whose turn it is; None while somebody is on the way, or when the run is over."""
        if self._moving or self.ending is not None:
            return None
        ready = self._ready
        if not ready:
            self.ending = DEADLOCK if any(self._waits.values()) else COMPLETE
            return None
        if len(self.choices) >= self._max_steps:
            self.ending = STEP_LIMIT
            return None
        op = self._scheduler.choose(ready)
        at = bisect_left(self._orders, op.actor.order) if op.__class__ is Op else len(ready)
        if at == len(ready) or ready[at] is not op:
            raise MisuseError(f"{type(self._scheduler).__name__} chose {op}, which is not among the ready operations")
        del ready[at], self._orders[at]
        return op

    def perform(self, op: Op) -> Any:  # noqa: ANN401 - a tile, a bool or nothing, by kind
        """Let a chosen operation take effect, and return what its actor gets."""
        self.choices.append(op.actor)
        if op.kind == WAIT:
            self._waits[op.cell.slot].remove(op)  # type: ignore[union-attr]
        try:
            outcome = EFFECTS[op.kind](self.memory, op)
        except CellOverflow:
            self.ending = OVERFLOW
            self.last = op
            outcome = None
        if self.observer is not None:
            self.observer(op, outcome)
        if op.kind == NOTIFY or op.consume:
            self._recheck(op.cell.slot)  # type: ignore[union-attr]
        self._moving += 1
        return outcome

    def pending(self) -> list[Op]:
        """Return what stands at the gate, in the order of actors."""
        blocked = [op for waits in self._waits.values() for op in waits]
        ready = [op for op in self._ready if op.kind != WAIT]
        return sorted(ready + blocked, key=lambda op: op.actor.order)

    def _make_ready(self, op: Op) -> None:
        at = bisect_left(self._orders, op.actor.order)
        self._orders.insert(at, op.actor.order)
        self._ready.insert(at, op)

    def _recheck(self, slot: int) -> None:
        """Wake the waits of a changed cell that now pass, and park again those that no longer do."""
        waits = self._waits.get(slot)
        if not waits:
            return
        value = self.memory.cells[slot]
        for op in waits:
            at = bisect_left(self._orders, op.actor.order)
            was = at < len(self._ready) and self._ready[at] is op
            now = COMPARE[op.how](value, op.amount)
            if now and not was:
                self._orders.insert(at, op.actor.order)
                self._ready.insert(at, op)
            elif was and not now:
                del self._orders[at], self._ready[at]
