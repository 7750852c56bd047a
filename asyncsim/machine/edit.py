"""Edits at work: they stand between a kernel and its engine, and change what comes to the gate.

An edit finds its operations by the source lines they come from, just before they would stand at the
gate. What it leaves out is answered at once, as if it had been done; the barrier that it adds is made
of ordinary operations on a signal of its own. So nothing else need know of edits: the gate, the
memory model, the analysis and a replay see the operations of one more kernel.

A run without edits is driven without any of this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asyncsim.trace.edit import BARRIER, DROP, NARROW, RELAX, SKIP
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import (
    BLOCK,
    CARRYING,
    FENCING,
    KINDS,
    NOTIFY,
    NOTIFYING,
    PUT,
    QUIETING,
    RANK,
    RELAXED,
    WAITING,
    WORLD,
)
from asyncsim.trace.op import Op, change_by, order_of, scope_of, with_said

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from asyncsim.machine.rank import Rank
    from asyncsim.machine.record import Place
    from asyncsim.machine.site import Frame, Sites
    from asyncsim.trace.edit import Edit
    from asyncsim.trace.world import SignalView, World

    Watch = Callable[[Op, Sequence[Frame]], None]
    """Is told of each operation of a kernel, before any edit, with the lines it comes from, outermost first."""


_ENDLESS = 100_000
"""So many operations in a row are taken away only where a loop has no other."""


class Editor:
    """Applies the edits of one run.

    Args:
        edits: in the order in which they apply.
        world: holds, behind the kernel's memory, a signal for each barrier.
        sites: finds lines.
        watch: is told of each operation that the kernel itself makes; None: nobody.

    """

    def __init__(
        self, edits: Sequence[Edit], world: World, sites: Sites, watch: Watch | None = None, *, deferred: bool = False
    ) -> None:
        """Start with nothing applied; `deferred`: what a rank does to peers lands later."""
        self._edits = edits
        self._world = world
        self._sites = sites
        self._watch = watch
        self._deferred = deferred
        self._applied = [False] * len(edits)
        barriers = [number for number, edit in enumerate(edits) if edit.what == BARRIER]
        signals = list(world.layouts)[len(world.layouts) - len(barriers) :]
        self._signals = dict(zip(barriers, signals, strict=True))
        # Most operations are no business of an edit that takes away: their lines are not looked up.
        everything = watch is not None or bool(barriers)
        self._kinds = frozenset(KINDS if everything else (kind for edit in edits for kind in _OBJECTS[edit.what]))
        self._met: dict[tuple[int, int], int] = {}
        self._calls: dict[tuple[int, int], int] = {}
        self._visits: dict[tuple[int, int], object] = {}

    @property
    def unapplied(self) -> tuple[str, ...]:
        """The edits that no operation met so far."""
        return tuple(str(edit) for edit, applied in zip(self._edits, self._applied, strict=True) if not applied)

    def drive(self, place: Place) -> Generator[Op, Any, Any]:
        """Drive the program of a place as an engine would, and yield the operations of the edited one."""
        program = place.coroutine
        outcome: Any = None
        removed = 0
        try:
            while True:
                try:
                    op = program.send(outcome)
                except StopIteration as stop:
                    yield from self._before_return(place)
                    return stop.value
                if isinstance(op, Op) and op.kind in self._kinds:
                    frames = self._sites.stack(program)
                    if self._watch is not None:
                        self._watch(op, frames)
                    if self._signals:
                        place.last = self._sites.of(program)
                        yield from self._meetings(place, frames)
                    op = self._changed(op, frames)
                    if op is None:
                        outcome = None
                        removed += 1
                        if removed > _ENDLESS:
                            raise MisuseError(f"without it the kernel loops for ever: {removed} times and more")
                        continue
                removed = 0
                try:
                    outcome = yield op
                except MisuseError as foreign:  # it awaited what is no operation, and must hear it at its own line
                    program.throw(foreign)
                    raise
        finally:
            program.close()

    def _changed(self, op: Op, frames: Sequence[Frame]) -> Op | None:
        """Return what is left of an operation: all, a part, or nothing."""
        lines = [frame.text for frame in frames]
        for number, edit in enumerate(self._edits):
            if op.kind not in _OBJECTS[edit.what] or edit.reach(lines) is None:
                continue
            if edit.what in (RELAX, NARROW):
                weaker = weakened(op, edit.what)
                self._applied[number] = self._applied[number] or weaker is not None
                op = weaker or op
            elif not op.result:
                self._applied[number] = True
                return self._rest(op)
        return op

    def _rest(self, op: Op) -> Op | None:
        """Return what is left of an operation whose waiting or notifying is taken away; None: nothing."""
        if op.kind in WAITING and (change := change_by(op)) is not None:
            return Op(op.actor, NOTIFY, (), op.cell, *change, call=op.call, deferred=self._deferred)
        if op.kind in CARRYING:
            return Op(
                op.actor, PUT, op.accesses, payload=op.payload, call=op.call, late=op.late, deferred=op.deferred,
                adapter=op.adapter,
            )  # fmt: skip
        return None

    def _meetings(self, place: Place, frames: Sequence[Frame]) -> Iterator[Op]:
        """Yield the operations of the barriers that stand before an operation."""
        lines = [frame.text for frame in frames]
        for number in self._signals:
            reach = self._edits[number].reach(lines)
            if reach is not None and self._comes(number, place, frames[reach].awaited):
                yield from self._meet(place, number)

    def _comes(self, number: int, place: Place, awaited: object) -> bool:
        """Say whether a rank comes to a site now, for the first time in its call or, if that is asked, again.

        It comes again when the line awaits another coroutine than before, which is kept, or its place in
        memory might be the next one's too.
        """
        who = place.rank.actor
        if self._edits[number].every:
            actor = (number, who.order)
            known, self._visits[actor] = self._visits.get(actor), awaited
            return known is not awaited
        key = (number, who.rank)
        last, self._calls[key] = self._calls.get(key), place.call
        return last != place.call

    def _before_return(self, place: Place) -> Iterator[Op]:
        """Yield the operations of the barriers at the end of a call. A stream does not end one."""
        if not place.rank.actor.depth:
            for number in self._signals:
                if not self._edits[number].site:
                    yield from self._meet(place, number)

    def _meet(self, place: Place, number: int) -> Generator[Op, Any, None]:
        """Take the actor of a place through one barrier."""
        self._applied[number] = True
        rank = place.rank
        names = list(self._world.layouts)
        signal: Any = self._world.views(rank.actor.rank)[names.index(self._signals[number])]
        generation = self._met[number, rank.actor.rank] = self._met.get((number, rank.actor.rank), 0) + 1
        meeting = _barrier(rank, signal, generation)
        outcome: Any = None
        try:
            while True:
                try:
                    op = meeting.send(outcome)
                except StopIteration:
                    return
                place.inserted = (*place.last[:1], *self._sites.of(meeting))
                outcome = yield op
        finally:
            place.inserted = None
            meeting.close()


_RELAXING = frozenset(name for name, kind in KINDS.items() if RELAXED in kind.orders)
_OBJECTS = {
    SKIP: WAITING | QUIETING | FENCING, DROP: NOTIFYING | CARRYING, BARRIER: frozenset[str](),
    RELAX: _RELAXING, NARROW: _RELAXING | FENCING,
}  # fmt: skip
"""The kinds of operations that an edit changes. What returns a value is not taken away, as a poll: it would return
another."""

_NARROWER = {WORLD: RANK, RANK: BLOCK}


def weakened(op: Op, what: str) -> Op | None:
    """Return an operation that orders less; None: it orders nothing that could be taken away so.

    Args:
        op: any operation.
        what: `RELAX`: its order; `NARROW`: its scope, by one.

    """
    if op.kind not in _OBJECTS[what] or (what == RELAX and order_of(op) == RELAXED):
        return None
    order, scope, update, operand, result = op.said
    if what == NARROW:
        narrower = _NARROWER.get(scope_of(op))
        return None if narrower is None else with_said(op, (order, narrower, update, operand, result))
    if op.kind in NOTIFYING:
        return replace(op, relaxed=True, link="")
    return with_said(op, (RELAXED, scope, update, operand, result))


async def _barrier(rank: Rank, signal: SignalView, generation: int) -> None:
    """Do as `asyncsim.barrier` does; `rank` is one of the world, whatever groups its kernel turns to."""
    for peer in rank.peers:
        await rank.notify(signal.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(signal[peer] >= generation)
