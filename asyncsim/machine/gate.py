"""The gate: who stands where, who is ready, and the one place where a choice is made.

Exactly one actor runs at a time. It runs to its next operation, stands here, and whoever comes
last has the scheduler choose among the *pending operations that are ready*. A chosen operation
takes effect at once. The gate knows neither trio nor coroutines: engines drive it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Protocol

from asyncsim.machine.effect import CellOverflow
from asyncsim.machine.pick import picks
from asyncsim.trace.event import COMPLETE, DEADLOCK, OVERFLOW, STEP_LIMIT
from asyncsim.trace.kinds import BLOCKING, EXCHANGING, JOINING, MEETING, WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.machine.memory import Memory, Tile
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


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

    def peek(self, op: Op) -> Tile:
        """Return what a poll looks at, in the eyes of its actor."""

    def arrive(self, op: Op) -> None:
        """Note that an actor has come to a meeting, which it has not left yet."""

    def fresh(self) -> Sequence[Op]:
        """Return the landings that have become possible since this was last asked."""


class Gate:
    """Bookkeeping of one run.

    Args:
        memory: the values.
        effects: the memory model.
        scheduler: makes every choice.
        awaited: those who are yet to come here for the first time; nobody is chosen while there are any.
        max_steps: after so many steps the run ends with the ending *step-limit*.
        observer: is told of each step, and of what it gave; None: nobody.

    """

    def __init__(  # noqa: PLR0913 - what a run consists of
        self,
        memory: Memory,
        effects: Effects,
        scheduler: Scheduler,
        *,
        awaited: Sequence[object],
        max_steps: int,
        observer: Callable[[Op, Any], None] | None = None,
    ) -> None:
        self.memory = memory
        self.choices: list[Actor] = []
        self.ending: str | None = None
        self.outcome: Any = None
        """What the operation gave that was chosen last: a tile, a bool or nothing."""
        self._effects = effects
        self._passes = effects.passes
        self._table = effects.table
        self._late = effects.late
        # What has a result takes effect at its own step; where writes land late, it may have to wait for its actor's.
        self._blocking = BLOCKING | EXCHANGING if effects.late else BLOCKING
        self._observer = observer
        self._eventful = observer is not None or effects.late
        self._awaited = awaited
        self._max_steps = max_steps
        self._ready: list[Op] = []
        self._orders: list[int] = []
        # Where the chosen one stood. Mostly its actor comes back there, so the place is kept until it is known.
        self._gap = -1
        self._going: Actor | None = None
        self._waits: dict[int, list[Op]] = {}
        # The other operations that can block. Few stand here, so each is looked at after every step.
        self._parked: list[Op] = []
        self._finished: set[str] = set()
        self._synced: dict[str, int] = {}
        self._pick = picks(scheduler, self._orders, self.choices, late=effects.late)

    def turn(self, op: Op | None) -> Op | None:  # noqa: C901 - every step comes through here
        """Let an actor stand here with its next operation; then choose one, and let it take effect.

        Wires have no task: a landing that is chosen happens here, and the next choice follows.

        Args:
            op: what the actor whose turn it was does next; None: it has left.

        Returns:
            The operation whose actor goes on, with its `outcome`. None while somebody is awaited, and when
            the run is over.

        Raises:
            MisuseError: the scheduler chose what is not ready.

        """
        ready = self._ready
        if op is not None:
            if op.kind in self._blocking:
                self._stand(op)
            elif op.actor is self._going:
                ready[self._gap] = op
                self._going = None
            else:
                self._make_ready(op)
        choices = self.choices
        pick = self._pick
        while not self._awaited:
            if not ready:
                self.ending = DEADLOCK if self._stands_for_ever() else COMPLETE
                return None
            if len(choices) >= self._max_steps:
                self.ending = STEP_LIMIT
                return None
            at = self._gap = pick(ready)
            chosen = ready[at]
            actor = self._going = chosen.actor
            choices.append(actor)
            try:
                outcome = self.outcome = self._table[chosen.kind](chosen)
            except CellOverflow:
                self._overflow(chosen)
                return None
            if self._eventful:
                self._tell(chosen, outcome)
            cell = chosen.cell
            if cell is not None and (waits := self._waits.get(cell.slot)):
                self._recheck(waits, chosen)
            if self._parked:
                self._look_at_parked(chosen)
            if not actor.wire:
                return chosen
            self._close_gap()
        return None

    def _stands_for_ever(self) -> bool:
        """Say whether somebody stands here who should go on: streams that outlive a call end with the last rank."""
        if not (self._parked or any(self._waits.values())):
            return False
        return any(actor.name not in self._finished for actor in self.memory.world.actors)

    def leave(self, actor: Actor) -> None:
        """Note that an actor has finished and will not come back."""
        self._close_gap()
        self._finished.add(actor.name)
        if self._parked:
            self._look_at_parked()

    def pending(self) -> list[Op]:
        """Return what stands at the gate, in the order of actors."""
        blocked = [op for waits in self._waits.values() for op in waits] + self._parked
        ready = [op for op in self._ready if op.kind not in self._blocking]
        return sorted(ready + blocked, key=lambda op: op.actor.order)

    def _close_gap(self) -> None:
        """Take the chosen operation away: its actor does not come back to the place where it stood."""
        if self._going is not None:
            del self._ready[self._gap], self._orders[self._gap]
            self._going = None

    def _stand(self, op: Op) -> None:
        """Let an actor stand here with an operation that may have to wait."""
        if self._stands_by_cell(op):
            slot = op.cell.slot  # type: ignore[union-attr]  # a wait has a cell
            self._waits.setdefault(slot, []).append(op)
            if self._passes(op):
                self._make_ready(op)
            else:
                self._close_gap()
            return
        self._parked.append(op)
        if op.kind in MEETING:
            self._synced[op.link] = self._synced.get(op.link, 0) + 1
            self._effects.arrive(op)
        self._look_at_parked()

    def _stands_by_cell(self, op: Op) -> bool:
        """Say whether nothing but its cell decides whether an operation can go on."""
        return op.kind in WAITING and not op.accesses and not (self._late and op.update)

    def _make_ready(self, op: Op) -> None:
        if op.actor is self._going:
            self._ready[self._gap] = op
            self._going = None
            return
        self._close_gap()
        at = bisect_left(self._orders, op.actor.order)
        self._orders.insert(at, op.actor.order)
        self._ready.insert(at, op)

    def _overflow(self, op: Op) -> None:
        """End the run: a cell would have left its range."""
        self.ending = OVERFLOW
        self._close_gap()
        if self._stands_by_cell(op):
            self._waits[op.cell.slot].remove(op)  # type: ignore[union-attr]  # a wait has a cell
        if self._observer is not None:
            self._observer(op, None)

    def _tell(self, op: Op, outcome: Any) -> None:  # noqa: ANN401 - whatever an operation gives
        """Tell the observer of a step, and let the landings stand here that it made possible."""
        if self._observer is not None:
            self._observer(op, outcome)
        if self._late:
            for landing in self._effects.fresh():
                self._make_ready(landing)

    def _recheck(self, waits: list[Op], chosen: Op) -> None:
        """Wake the waits of a cell that now pass, and park again those that no longer do."""
        if chosen.kind in WAITING and self._stands_by_cell(chosen):
            waits.remove(chosen)
        passes = self._passes
        for op in waits:
            self._place(op, ready=passes(op))

    def _look_at_parked(self, chosen: Op | None = None) -> None:
        if chosen is not None and chosen.kind in self._blocking and chosen in self._parked:
            self._parked.remove(chosen)
        for op in self._parked:
            self._place(op, ready=self._may_go_on(op))

    def _may_go_on(self, op: Op) -> bool:
        if op.kind in JOINING:
            return op.link in self._finished
        if op.kind in MEETING:
            return self._synced[op.link] >= op.amount
        return self._effects.passes(op)

    def _place(self, op: Op, *, ready: bool) -> None:
        """Put an operation among the ready ones, or take it away."""
        self._close_gap()
        at = bisect_left(self._orders, op.actor.order)
        was = at < len(self._ready) and self._ready[at] is op
        if ready and not was:
            self._orders.insert(at, op.actor.order)
            self._ready.insert(at, op)
        elif was and not ready:
            del self._orders[at], self._ready[at]
