"""The normal form of a run: the stream of each actor, and the history of each cell.

Wires are actors like all others: the landing of a late write is the one operation of its wire (a
non-blocking copy fetches first). "Own" always means the same task's, its wires included, never the
same rank's.

A cell's history is split into *epochs*, in the order of this run: at its Sets, and where the kind of its updates
changes. Within an epoch all updates commute: own ones are certain (program order), and of the others' all that
matters is which have come; of sums, how much. See `asyncsim.analysis.guards` for what follows for waits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

from asyncsim.analysis.tally import Tally
from asyncsim.analysis.updates import change_in, direction_of
from asyncsim.trace.cells import ADDING, APPLY, SET, XOR
from asyncsim.trace.event import DEADLOCK
from asyncsim.trace.kinds import EXCHANGING, NOTIFYING, QUEUED, QUIETING, SIGNALLING, TESTING, WAITING
from asyncsim.trace.landing import awaits_to, index_of, is_counted
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.late import Model
    from asyncsim.trace.region import Cell
    from asyncsim.trace.world import Actor

UP, DOWN, ALWAYS, NEVER = "up", "down", "always", "never"
"""How a wait is read: cells move up or down to where it passes; or it passes at once, or not at all, whatever comes."""

Place = tuple[int, int]
"""An operation: the number of its actor, and its index in that actor's stream."""


@dataclass(slots=True)
class Epoch:
    """The life of a cell from one Set to the next, or for as long as all its updates are of one kind.

    `number` is unique in the run; `base` what the cell holds before its updates. Any of the `openers` begins it: the
    Set, or each of its updates; none: it is there from the start. The `closers` are those of the next. `kind` is that
    of its updates, empty while there are none; `tallies` has them by actor.
    """

    number: int
    slot: int
    base: int
    openers: list[Place] = field(default_factory=list)
    closers: list[Place] = field(default_factory=list)
    kind: str = ""
    by_kind: bool = False
    tallies: dict[int, Tally] = field(default_factory=dict)
    _against: dict[int, list[tuple[Place, int]]] = field(default_factory=dict)
    _direction: int | None = None

    @property
    def opener(self) -> Place | None:
        """The first of those that begin it; None: it is there from the start."""
        return self.openers[0] if self.openers else None

    @property
    def is_sum(self) -> bool:
        """Whether its updates add: then only how much has come matters, and each has its own direction."""
        return not self.kind or self.kind in ADDING

    @property
    def direction(self) -> int:
        """Which way its updates move the cell, if it is no sum and complete: 1, -1 or `EITHER_WAY`."""
        if self._direction is None:
            amounts = (amount for tally in self.tallies.values() for amount in tally.amounts)
            self._direction = direction_of(self.kind, self.base, amounts)
        return self._direction

    def opposes(self, amount: int, sign: int) -> bool:
        """Say whether an update can move the cell against a direction; of an epoch that is complete.

        Args:
            amount: of the update, one of this epoch.
            sign: 1: upwards; -1: downwards.

        """
        return (amount if self.is_sum else self.direction) * sign < 0 or not (self.is_sum or self.direction)

    def helps(self, amount: int, sign: int) -> bool:
        """Say whether an update moves the cell in a direction, if at all; of an epoch that is complete.

        Args:
            amount: of the update, one of this epoch.
            sign: 1: upwards; -1: downwards.

        """
        return (amount if self.is_sum else self.direction) * sign > 0

    def against(self, sign: int) -> list[tuple[Place, int]]:
        """Return the updates that do not go in this direction, with their amounts, of an epoch that is complete."""
        if sign not in self._against:
            self._against[sign] = [
                ((who, at), amount)
                for who, tally in self.tallies.items()
                for at, amount in zip(tally.indexes, tally.amounts, strict=True)
                if self.opposes(amount, sign)
            ]
        return self._against[sign]


@dataclass(slots=True)
class Wait:
    """A wait or test, where it stands, and the epoch in which it was executed (None: it never was).

    `way` is the direction in which a wait is read, or ALWAYS or NEVER; see `asyncsim.analysis.guards`.
    """

    place: Place
    event: Event
    epoch: Epoch | None
    way: str = UP

    @property
    def slot(self) -> int:
        """The cell's slot."""
        return _cell(self.event).slot

    @property
    def sign(self) -> int:
        """Of the changes that are credits to it: 1, or -1 where it is read downwards."""
        return -1 if self.way == DOWN else 1


@dataclass(slots=True)
class History:
    """All that one cell met in this run."""

    cell: Cell
    epochs: list[Epoch]
    final: int
    """The value after the last operation, without wrapping."""
    sets: list[Place] = field(default_factory=list)
    updates: list[tuple[Place, int, Epoch]] = field(default_factory=list)
    """All that is no Set: (who, amount, epoch); a consuming wait is an add of a negative amount."""
    waits: list[Wait] = field(default_factory=list)
    tests: list[Wait] = field(default_factory=list)
    """All that see the cell and never stand: tests, reads, atomics whose program gets the value."""
    _against: dict[int, list[Place]] = field(default_factory=dict)

    @property
    def is_sum(self) -> bool:
        """Whether all updates that are no Sets add."""
        return all(epoch.is_sum for epoch in self.epochs)

    def against(self, sign: int) -> list[Place]:
        """Return the updates, Sets apart, that can go against a direction, of a history that is complete."""
        if sign not in self._against:
            self._against[sign] = [place for place, amount, epoch in self.updates if epoch.opposes(amount, sign)]
        return self._against[sign]

    @property
    def is_read_downwards(self) -> bool:
        """Whether to take away from the cell can let some wait pass."""
        return any(wait.way == DOWN for wait in self.waits)


class Streams:
    """A trace taken apart: `streams[a][i]` is the i-th operation of actor a, pending ones last."""

    def __init__(self, trace: Trace, model: Model | None = None) -> None:
        """Take it apart; `model`: that of its wires, if not the one that the trace names."""
        self.trace = trace
        by_order: dict[int, Actor] = {actor.order: actor for actor in trace.header.world.actors}
        pending = () if trace.footer is None else trace.footer.pending
        for event in (*trace.events, *pending):  # a stream may be blocked at its first operation
            by_order.setdefault(event.op.actor.order, event.op.actor)
        self.actors = [by_order[order] for order in sorted(by_order)]
        self.number = {actor.order: number for number, actor in enumerate(self.actors)}
        self.model = model or model_of(trace.header.memory)
        by_name = {actor.name: number for number, actor in enumerate(self.actors)}
        self.issuer = [
            (by_name[actor.name.partition(">")[0]], index_of(actor.name)) if actor.wire else None
            for actor in self.actors
        ]
        """Of a wire, the operation whose landing it carries; None for a task."""
        self.tasks = self.issuer.count(None)
        """How many tasks there are: the first so many actors, before all wires."""
        self._quiets: list[list[tuple[int, int]]] = [[] for _ in self.actors]
        """By actor, what its quiets await, and which await it: (the first operation that it does not, the quiet)."""
        self.events: list[list[Event]] = [[] for _ in self.actors]
        self.histories: dict[int, History] = {}
        self._epochs = 0
        self._issued: dict[int, dict[int, Tally]] = {}
        for event in trace.events:
            self._take(event)
        self.executed = [len(stream) for stream in self.events]
        footer = trace.footer
        self.ending = footer.ending if footer is not None else None
        for event in pending:
            # What stands at the gate belongs to the stream: another schedule might execute it.
            self._take(event, pending=True)
        if self.model.late and self.model.forwarding:
            self._look_through_own_sets()

    @property
    def deadlocked(self) -> bool:
        """Whether the run ended because nobody could go on."""
        return self.ending == DEADLOCK

    def event(self, place: Place) -> Event:
        """Return the event at a place."""
        return self.events[place[0]][place[1]]

    def issue(self, place: Place) -> Place:
        """Return the operation that a landing belongs to; any other operation is its own."""
        return self.issuer[place[0]] or place

    def issued(self, epoch: Epoch) -> dict[int, Tally]:
        """Return the updates of an epoch by the tasks that issue them, with the indexes of the issues."""
        if not self.model.late:
            return epoch.tallies
        if epoch.number not in self._issued:
            found: dict[int, Tally] = defaultdict(Tally)
            adds = (
                (self.issue((who, at)), amount, (who, at))
                for who, tally in epoch.tallies.items()
                for at, amount in zip(tally.indexes, tally.amounts, strict=True)
            )
            for (task, index), amount, place in sorted(adds):
                found[task].indexes.append(index)
                found[task].amounts.append(amount)
                found[task].places.append(place)
            self._issued[epoch.number] = dict(found)
        return self._issued[epoch.number]

    def step(self, place: Place) -> float:
        """Return when an operation was executed; infinity if it never was."""
        step = self.event(place).step
        return inf if step is None else step

    def relation(self, wait: Place, change: Place) -> str:
        """Say what a change of a cell is to a wait: "sure", "after" it, or "free" to come at any time.

        Own changes before the wait are sure if they are immediate, forwarded, or awaited by a quiet. What is
        queued behind a copy is not forwarded.

        Args:
            wait: the operation that waits or tests.
            change: the operation, or the landing, that changes its cell.

        """
        actor, index = wait
        owner, at = self.issuer[change[0]] or change
        if owner != actor:
            return "free"
        if at >= index:
            return "after"
        if self.issuer[change[0]] is None or (self.model.forwarding and not self.is_queued(change[0])):
            return "sure"
        quiets = self._quiets[actor]
        place = bisect_left(quiets, (at + 1, 0))
        return "sure" if place < len(quiets) and quiets[place][1] < index else "free"

    def awaited_to(self, quiet: Place) -> int:
        """Return the index of the first operation of its actor that a quiet does not await."""
        actor, index = quiet
        most, stream = self.event(quiet).op.amount, self.events[actor]
        copies = (at for at in range(index - 1, -1, -1) if is_counted(stream[at].op))
        return awaits_to(index, most, [*islice(copies, most)][::-1])

    def is_queued(self, actor: int) -> bool:
        """Say whether an actor is a wire with a signal that comes behind a copy."""
        return self.events[actor][-1].op.link == QUEUED

    def is_pending(self, place: Place) -> bool:
        """Say whether the operation stood at the gate when the run ended."""
        return place[1] >= self.executed[place[0]]

    def _take(self, event: Event, *, pending: bool = False) -> None:
        op = event.op
        number = self.number[op.actor.order]
        stream = self.events[number]
        place = (number, len(stream))
        stream.append(event)
        if op.kind in QUIETING:
            quiets, end = self._quiets[number], self.awaited_to(place)
            if not quiets or quiets[-1][0] < end:  # else the last one awaited as much
                quiets.append((end, place[1]))
        if op.cell is None or (op.deferred and op.kind in SIGNALLING):
            return
        history = self._history(op.cell)
        epoch = history.epochs[-1]
        # Plain waits and notifies are most of what there is: of these no more is asked.
        if op.kind in WAITING:
            history.waits.append(Wait(place, event, None if pending else epoch))
            if not (op.consume or op.update):
                return
        elif op.kind in TESTING or op.kind in EXCHANGING:
            history.tests.append(Wait(place, event, epoch))
        elif op.kind in NOTIFYING:
            self._change(history, place, op.how, op.amount)
            return
        change = change_in(event)
        if change is not None:
            self._change(history, place, *change)

    def _look_through_own_sets(self) -> None:
        """Where writes are forwarded, a wait sees its own pending Sets: move it to the epoch they will open."""
        for history in self.histories.values():
            for wait in history.waits + history.tests:
                if wait.epoch is None:
                    continue
                for epoch in history.epochs[history.epochs.index(wait.epoch) + 1 :]:
                    opener = epoch.opener
                    own = opener is not None and self.issuer[opener[0]] is not None
                    if opener is not None and own and self.relation(wait.place, opener) == "sure":
                        wait.epoch = epoch

    def _change(self, history: History, place: Place, how: str, amount: int) -> None:
        epoch = history.epochs[-1]
        before, history.final = history.final, APPLY[how](history.final, amount)
        if how == SET or (how == XOR and history.cell.slot in self._awaited):
            self._open(history, history.final).openers.append(place)
            history.sets.append(place)
            return
        if epoch.kind not in ("", how):
            epoch = self._open(history, before)
            epoch.by_kind = True
        epoch.kind = how
        if epoch.by_kind:
            epoch.openers.append(place)
        history.updates.append((place, amount, epoch))
        tally = epoch.tallies.get(place[0])
        if tally is None:
            tally = epoch.tallies[place[0]] = Tally()
        tally.indexes.append(place[1])
        tally.amounts.append(amount)

    @cached_property
    def _awaited(self) -> frozenset[int]:
        """The cells, by slot, that somebody waits for: there bits that are turned over are as good as set.

        Which way that moves a cell depends on what it holds, so it has to be ordered with all else.
        """
        footer = self.trace.footer
        events = (*self.trace.events, *(() if footer is None else footer.pending))
        return frozenset(_cell(event).slot for event in events if event.op.kind in WAITING)

    def _open(self, history: History, base: int) -> Epoch:
        """Begin the next epoch of a cell; who begins it ends the last."""
        epoch = Epoch(self._next_epoch(), history.cell.slot, base)
        history.epochs[-1].closers = epoch.openers
        history.epochs.append(epoch)
        return epoch

    def _history(self, cell: Cell) -> History:
        history = self.histories.get(cell.slot)
        if history is None:
            value = self.trace.header.world.start_of(cell)
            history = self.histories[cell.slot] = History(cell, [Epoch(self._next_epoch(), cell.slot, value)], value)
        return history

    def _next_epoch(self) -> int:
        self._epochs += 1
        return self._epochs - 1


def _cell(event: Event) -> Cell:
    cell = event.op.cell
    assert cell is not None  # noqa: S101 - for the type checker: only operations on cells come here
    return cell
