"""What can happen next, and what it does to the cells, when only each actor's own order is known."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.trace.cells import COMPARE
from asyncsim.trace.event import Event, Trace
from asyncsim.trace.kinds import CHANGING, EXCHANGING, FETCH, JOINING, LAND, MEETING, SEEING, STARTING, WAITING
from asyncsim.trace.landing import landings_of
from asyncsim.trace.late import model_of
from asyncsim.trace.op import Op, change_by, holds_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.trace.landing import Landing
    from asyncsim.trace.region import Cell
    from asyncsim.trace.world import Actor


@dataclass(slots=True)
class State:
    """How far everybody is, and what the cells hold that were touched."""

    at: list[int]
    cells: dict[int, int]
    begun: set[str]
    come: dict[str, int]

    def copy(self) -> State:
        """Return one that can go on by itself."""
        return State(list(self.at), dict(self.cells), set(self.begun), dict(self.come))

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """All that decides what can still happen."""
        return tuple(self.at), tuple(sorted(self.cells.items()))


class Progress:
    """The tasks of a trace with their streams; landings go with the operation that leaves them.

    Args:
        trace: its events in any order that keeps each actor's own.

    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.model = model_of(trace.header.memory)
        self.exact = bool(trace.header.recorded)
        streams: dict[str, list[Event]] = {actor.name: [] for actor in trace.header.world.actors}
        actors: dict[str, Actor] = {actor.name: actor for actor in trace.header.world.actors}
        self._landings_by_issue: dict[str, list[Event]] = defaultdict(list)
        for event in trace.events:
            actor = event.op.actor
            if actor.wire:
                self._landings_by_issue[_issue(actor.name)].append(event)
            else:
                streams.setdefault(actor.name, []).append(event)
                actors[actor.name] = actor
        self.actors = sorted(actors.values(), key=lambda actor: actor.order)
        self.streams = [streams[actor.name] for actor in self.actors]
        self.number = {actor.name: number for number, actor in enumerate(self.actors)}
        pending = () if trace.footer is None else trace.footer.pending
        self._standing: set[str] = {event.op.actor.name for event in pending}
        self._waiting: dict[str, int] = defaultdict(int)
        for event in pending:
            if event.op.kind in MEETING:
                self._waiting[event.op.link] += 1
        for each in self._landings_by_issue.values():
            each.sort(key=lambda event: event.op.actor.order)  # stable: a fetch stays before its landing

    def start(self) -> State:
        """Return where everybody begins."""
        begun = {actor.name for actor in self.trace.header.world.actors}
        state = State([0] * len(self.actors), {}, begun, defaultdict(int, self._waiting))
        for number in range(len(self.actors)):
            self.arrive(state, number)
        return state

    def arrive(self, state: State, number: int) -> None:
        """Note that an actor stands at its next operation: at a meeting that counts.

        Args:
            state: changed in place.
            number: of the actor.

        """
        event = self.next(state, number)
        if event is not None and event.op.kind in MEETING and self.actors[number].name in state.begun:
            state.come[event.op.link] = state.come.get(event.op.link, 0) + 1

    def next(self, state: State, number: int) -> Event | None:
        """Return what an actor does next; None at the end of its stream.

        Args:
            state: how far every actor is.
            number: of the actor.

        """
        stream = self.streams[number]
        return stream[state.at[number]] if state.at[number] < len(stream) else None

    def value(self, state: State, cell: Cell) -> int:
        """Return what a cell holds.

        Args:
            state: what the cells hold that were touched; others hold their start.
            cell: the cell.

        """
        held = state.cells.get(cell.slot)
        if held is None:
            return self.trace.header.world.start_of(cell)
        return held

    def can(self, state: State, number: int) -> bool:
        """Say whether an actor can take its next step.

        Args:
            state: how far every actor is, and what the cells hold.
            number: of the actor.

        """
        event = self.next(state, number)
        if event is None or self.actors[number].name not in state.begun:
            return False
        op = event.op
        if op.kind in JOINING:
            stream = self.number.get(op.link)
            ended = stream is None or state.at[stream] == len(self.streams[stream])
            return ended and op.link not in self._standing
        if op.kind in MEETING:
            return state.come.get(op.link, 0) >= op.amount
        return op.cell is None or self._fits(event, self.value(state, op.cell))

    def _fits(self, event: Event, value: int) -> bool:
        """Say whether an operation can meet this value of its cell."""
        op = event.op
        if op.kind in WAITING and not COMPARE[op.how](value, op.amount):
            return False
        if not self.exact or event.have is None:
            return True
        if op.kind in SEEING or op.kind in EXCHANGING:
            return value == event.have
        return op.deferred or holds_after(op, value) == event.have

    def changes(self, state: State, number: int) -> bool:
        """Say whether the next step of an actor changes a cell.

        Args:
            state: how far every actor is.
            number: of the actor.

        """
        event = self.next(state, number)
        if event is None or event.op.cell is None:
            return False
        return change_by(event.op) is not None

    def take(self, state: State, number: int) -> int | None:
        """Take the next step of an actor; return what its cell holds, as an event says it.

        Args:
            state: changed in place.
            number: of an actor that can take a step.

        """
        event = self.next(state, number)
        assert event is not None  # noqa: S101 - for the type checker: it can
        op = event.op
        have = None
        if op.kind in STARTING:
            state.begun.add(op.link)
            if (stream := self.number.get(op.link)) is not None:
                self.arrive(state, stream)
        elif op.cell is not None:
            have = self.value(state, op.cell)
            after = holds_after(op, have)
            if change_by(op) is not None:
                state.cells[op.cell.slot] = after
            if op.kind in _LEAVING:
                have = after
        state.at[number] += 1
        self.arrive(state, number)
        return have

    def made(self, order: Sequence[int]) -> Trace:
        """Return the trace in this order of actors."""
        state = self.start()
        events: list[Event] = []
        for number in order:
            event = self.next(state, number)
            assert event is not None  # noqa: S101 - as above
            index = state.at[number]
            have = self.take(state, number)
            events.append(replace(event, step=len(events), have=have if self.exact else event.have))
            for landed in self._landings(event, index, have):
                events.append(replace(landed, step=len(events)))
        footer = self.trace.footer
        if self.exact and footer is not None:
            pending = [self._pending(state, event) for event in footer.pending]
            footer = replace(footer, pending=pending)
        return Trace(self.trace.header, events, footer)

    def _pending(self, state: State, event: Event) -> Event:
        if event.op.cell is None:
            return event
        return replace(event, have=self.value(state, event.op.cell))

    def _landings(self, event: Event, index: int, have: int | None) -> Iterator[Event]:
        """Yield what lands of an operation, at once: that order is legal under every memory model."""
        op = event.op
        if not op.deferred:
            return
        if not self.exact:
            yield from self._landings_by_issue.get(f"{op.actor.name}>{index}", ())
            return
        for landing in landings_of(op, index, self.model):
            if landing.source is not None:
                yield replace(event, op=Op(landing.actor, FETCH, landing.source.reads, call=op.call), have=None)
            yield replace(event, op=_landing_op(landing, op), have=None if landing.cell is None else have)


_LEAVING = CHANGING - EXCHANGING
"""What is told of these is what they left in their cell."""


def _issue(wire: str) -> str:
    """Return the actor and index that a wire's name begins with: ``1>7`` of ``1>7.1`` and ``1>7s``."""
    issuer, _, rest = wire.partition(">")
    return f"{issuer}>{rest.partition('.')[0].removesuffix('s')}"


def _landing_op(landing: Landing, op: Op) -> Op:
    accesses = () if landing.access is None else (landing.access,)
    return Op(
        landing.actor, LAND, accesses, landing.cell, landing.how, landing.amount, call=op.call,
        link=landing.link,
    )  # fmt: skip
