"""Columns: the events of a long run, about sixty bytes a step, given out again one by one as `Event`.

A run of fifteen million steps does not fit into memory as objects. What differs from step to step lies
in one array a field; what repeats (places, source lines, phases) is kept once and numbered. An analysis
that can reads the arrays as numpy ones; every other sees a sequence of events.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from asyncsim.trace.cells import HOWS
from asyncsim.trace.event import Digest, Event
from asyncsim.trace.kinds import KINDS
from asyncsim.trace.op import Op, SyncOp, with_said
from asyncsim.trace.values import INLINE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from asyncsim.trace.event import Site
    from asyncsim.trace.op import Said
    from asyncsim.trace.region import Access, Cell
    from asyncsim.trace.world import Actor

_KINDS = tuple(KINDS)
_KIND = {kind: number for number, kind in enumerate(_KINDS)}
_HOW = {how: number for number, how in enumerate(HOWS)}
CONSUME, LATE, RELAXED, DEFERRED, UNWRITTEN, SEEN, ADAPTER = (1 << bit for bit in range(7))
"""Bits of a step's flags; `SEEN`: it has a cell's value."""
_DIGEST = 8

Numbers = np.ndarray[Any, np.dtype[Any]]


def among(kinds: Collection[str]) -> Numbers:
    """Return an array of booleans that `Steps.kind` selects from: of each step whether it is of one of these kinds.

    Args:
        kinds: of `asyncsim.trace.kinds.KINDS`.

    """
    return np.array([kind in kinds for kind in KINDS])


def done_as(hows: Collection[str]) -> Numbers:
    """Return the same for `Steps.how`.

    Args:
        hows: names of updates or comparisons.

    """
    return np.array([how in hows for how in HOWS])


@dataclass(frozen=True, slots=True)
class Steps:
    """The columns as numpy arrays of one length, the number of steps.

    Args:
        actor: the number of the actor, as `Columns.actors` lists them.
        kind: of the operation, by its number in the table of kinds: see `among`.
        how: by its number in the table of updates and comparisons: see `done_as`.
        amount: of a notify, wait or test.
        place: the accesses, by their number in `Columns.places`; -1: none.
        cell: the slot of the cell; -1: none.
        call: of the kernel.
        where: phase and source lines, by their number in `Columns.wheres`.
        flags: bits.

    """

    actor: Numbers
    kind: Numbers
    how: Numbers
    amount: Numbers
    place: Numbers
    cell: Numbers
    call: Numbers
    where: Numbers
    flags: Numbers


class Columns(Sequence[Event]):
    """Events that were appended, without their payloads, and with data as a trace file keeps it."""

    def __init__(self) -> None:
        self.actors: list[Actor] = []
        self.places: list[tuple[Access, ...]] = []
        self.cells: dict[int, Cell] = {}
        self.wheres: list[tuple[str, Site]] = []
        self._links: dict[int, str] = {}
        self._said: dict[int, Said] = {}
        self._numbers: dict[int, int] = {}
        self._place_numbers: dict[tuple[Access, ...], int] = {}
        self._where_numbers: dict[tuple[str, Site], int] = {}
        self._actor, self._place, self._where, self._call = array("i"), array("i"), array("i"), array("i")
        self._kind, self._how, self._flags = array("b"), array("b"), array("b")
        # Both hold small numbers, nearly always: they are widened when the first large one comes.
        self._amount, self._have = array("i"), array("i")
        self._offset = array("q")
        self._cell, self._elements = array("i"), array("i")
        self._blob = bytearray()
        self._times: array[float] | None = None

    @classmethod
    def of(cls, events: Iterable[Event]) -> Columns:
        """Return events as columns."""
        made = cls()
        for event in events:
            data = event.data if isinstance(event.data, bytes) else None
            made.take(event.op, event.call, event.phase, event.at, data, event.have, event.unwritten, event.time)
        return made

    def take(  # noqa: C901, PLR0912, PLR0913, PLR0917 - the fields of an event; in every step
        self,
        op: Op,
        call: int,
        phase: str,
        at: Site,
        data: bytes | None,
        have: int | None,
        unwritten: bool,  # noqa: FBT001 - by place, as `Event` takes it: this runs in every step
        time: float | None,
    ) -> None:
        """Append a step.

        Args:
            op: the operation that was done.
            call: which call of the kernel it belongs to, from 0.
            phase: the path of phases it was done in; empty outside of all.
            at: where in the sources.
            data: the bytes that it moved, if they are kept; None for an operation on a cell.
            have: what a cell held when it was done; None for data.
            unwritten: whether it read an element that nothing had written.
            time: in seconds of virtual time; None without a clock.

        """
        actor = op.actor
        number = self._numbers.get(actor.order)
        if number is None:
            number = self._numbers[actor.order] = len(self.actors)
            self.actors.append(actor)
        self._actor.append(number)
        self._kind.append(_KIND[op.kind])
        self._how.append(_HOW[op.how])
        try:
            self._amount.append(op.amount)
        except OverflowError:
            self._amount = array("q", [*self._amount, op.amount])
        self._call.append(call)
        where = self._where_numbers.get((phase, at))
        if where is None:
            where = self._where_numbers[phase, at] = len(self.wheres)
            self.wheres.append((phase, at))
        self._where.append(where)
        flags = SEEN if have is not None else 0
        if unwritten:
            flags |= UNWRITTEN
        if op.consume or op.late or op.relaxed or op.deferred:
            flags |= CONSUME * op.consume | LATE * op.late | RELAXED * op.relaxed | DEFERRED * op.deferred
            flags |= ADAPTER * op.adapter
        self._flags.append(flags)
        try:
            self._have.append(have or 0)
        except OverflowError:
            self._have = array("q", [*self._have, have or 0])
        cell = op.cell
        if cell is None:
            self._cell.append(-1)
        else:
            try:
                self._cell.append(cell.slot)
            except OverflowError:  # a word far behind in the windows
                self._cell = array("q", [*self._cell, cell.slot])
            self.cells[cell.slot] = cell
        self._take_data(op, data)
        if op.link:
            self._links[len(self._kind) - 1] = op.link
        if op.__class__ is SyncOp:
            self._said[len(self._kind) - 1] = op.said
        if time is not None:
            if self._times is None:
                self._times = array("d")
            self._times.append(time)

    def _take_data(self, op: Op, data: bytes | None) -> None:
        """Keep a few elements as they are, many as their digest."""
        accesses = op.accesses
        if not accesses:
            self._place.append(-1)
            self._elements.append(-1)
            self._offset.append(0)
            return
        place = self._place_numbers.get(accesses)
        if place is None:
            place = self._place_numbers[accesses] = len(self.places)
            self.places.append(accesses)
        self._place.append(place)
        self._offset.append(len(self._blob))
        if data is None:
            self._elements.append(-1)
            return
        elements = len(data) // accesses[-1].region.dtype.itemsize
        self._elements.append(elements)
        self._blob += data if elements <= INLINE else sha256(data).digest()[:_DIGEST]

    def __len__(self) -> int:
        return len(self._kind)

    @overload
    def __getitem__(self, at: int) -> Event: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...

    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        """Return an event, made anew each time it is asked for."""
        if isinstance(at, slice):
            return [self[step] for step in range(*at.indices(len(self)))]
        step = at + len(self) if at < 0 else at
        if not 0 <= step < len(self):
            raise IndexError(f"step {at} of {len(self)}")
        flags, place, slot = self._flags[step], self._place[step], self._cell[step]
        op = Op(
            self.actors[self._actor[step]],
            _KINDS[self._kind[step]],
            self.places[place] if place >= 0 else (),
            self.cells[slot] if slot >= 0 else None,
            HOWS[self._how[step]],
            self._amount[step],
            bool(flags & CONSUME),
            None,
            self._call[step],
            bool(flags & LATE),
            bool(flags & RELAXED),
            self._links.get(step, ""),
            bool(flags & DEFERRED),
            adapter=bool(flags & ADAPTER),
        )
        if step in self._said:
            op = with_said(op, self._said[step])
        phase, lines = self.wheres[self._where[step]]
        have = self._have[step] if flags & SEEN else None
        time = None if self._times is None else self._times[step]
        return Event(step, op, op.call, phase, lines, self._data(step), have, bool(flags & UNWRITTEN), time)

    def _data(self, step: int) -> bytes | Digest | None:
        elements, offset = self._elements[step], self._offset[step]
        if elements < 0:
            return None
        if elements > INLINE:
            return Digest(self._blob[offset : offset + _DIGEST].hex(), elements)
        size = elements * self.places[self._place[step]][-1].region.dtype.itemsize
        return bytes(self._blob[offset : offset + size])

    @property
    def steps(self) -> Steps:
        """The columns as numpy arrays; no step can be appended while they are in use."""
        return Steps(
            *(
                np.frombuffer(column, column.typecode) if len(column) else np.empty(0, column.typecode)
                for column in (
                    self._actor, self._kind, self._how, self._amount, self._place, self._cell, self._call, self._where,
                    self._flags,
                )
            )
        )  # fmt: skip

    @property
    def saying(self) -> Collection[int]:
        """The steps whose operation says an order, a scope, an update or that it has a result, ascending."""
        return self._said.keys()

    def differs_in(self, other: Columns) -> tuple[str, int] | None:
        """Return the first (actor, index in its stream) whose operation or data is another in `other`; None if none is.

        Actors are compared by name, in the order of this run; of each, its operations in its own order.
        """
        own, foreign = self._by_actor(), other._by_actor()
        # Regions are numbered as they were met, in each run anew; -2: never met there.
        places = np.array([other._place_numbers.get(place, -2) for place in self.places] + [-1])
        sizes, other_sizes = self._item_sizes(), other._item_sizes()
        for name in dict.fromkeys((*own, *foreign)):
            mine, others = own.get(name), foreign.get(name)
            if mine is None or others is None:
                return name, 0
            common = min(len(mine), len(others))
            unequal = self._unequal(mine[:common], other, others[:common], places)
            unequal |= self._unequal_data((mine[:common], sizes), other, (others[:common], other_sizes))
            differing = np.flatnonzero(unequal)
            if len(differing):
                return name, int(differing[0])
            if len(mine) != len(others):
                return name, common
        return None

    def _by_actor(self) -> dict[str, Numbers]:
        actor = self.steps.actor
        by_time = np.argsort(actor, kind="stable")
        ends = np.searchsorted(actor[by_time], np.arange(len(self.actors) + 1))
        return {self.actors[n].name: by_time[ends[n] : ends[n + 1]] for n in range(len(self.actors))}

    def _unequal(self, mine: Numbers, other: Columns, others: Numbers, places: Numbers) -> Numbers:
        """Say for each pair of steps whether they differ in what they do, or in the data they moved."""
        unequal = np.zeros(len(mine), bool)
        for name in ("_kind", "_how", "_amount", "_cell", "_call", "_elements"):
            a, b = getattr(self, name), getattr(other, name)
            unequal |= np.frombuffer(a, a.typecode)[mine] != np.frombuffer(b, b.typecode)[others]
        if self._said or other._said:
            unequal |= [
                self._said.get(a) != other._said.get(b) for a, b in zip(mine.tolist(), others.tolist(), strict=True)
            ]
        unequal |= places[np.frombuffer(self._place, "i")[mine]] != np.frombuffer(other._place, "i")[others]
        return unequal

    def _unequal_data(self, own: tuple[Numbers, Numbers], other: Columns, foreign: tuple[Numbers, Numbers]) -> Numbers:
        """Say for each pair of steps whether they moved other bytes, taking those of one length together.

        Of each run there are its steps, and the size of an element by the number of its place.
        """
        mine, others = own[0], foreign[0]
        sizes, theirs = self._kept(*own), other._kept(*foreign)
        unequal: Numbers = sizes != theirs
        here, there = np.frombuffer(self._blob, np.uint8), np.frombuffer(other._blob, np.uint8)
        starts, ends = np.frombuffer(self._offset, "q")[mine], np.frombuffer(other._offset, "q")[others]
        for size in np.unique(sizes):
            if size > 0:
                same = np.flatnonzero((sizes == size) & (theirs == size))
                span = np.arange(size)
                unequal[same] |= (here[starts[same, None] + span] != there[ends[same, None] + span]).any(axis=1)
        return unequal

    def _item_sizes(self) -> Numbers:
        return np.array([place[-1].region.dtype.itemsize for place in self.places] + [0])

    def _kept(self, steps: Numbers, item_sizes: Numbers) -> Numbers:
        """Return how many bytes of each of these steps the blob holds."""
        elements = np.frombuffer(self._elements, "i")[steps].astype(np.int64)
        kept: Numbers = np.where(
            elements > INLINE, _DIGEST, elements * item_sizes[np.frombuffer(self._place, "i")[steps]]
        )
        kept[elements < 0] = 0
        return kept
