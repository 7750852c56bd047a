"""The memory model ``gpu``, with the older versions that a load may return.

Updates take effect in the order of the run, for everybody; what a *read* returns need not be the newest version
of its place, but may be any that is not older than the newest one that its actor knows: what it wrote itself, what
happens before, and, of a word that it read before as an atomic, what it got there. Happens-before is the order of
each actor and synchronisation: from a release to an acquire that reads what it wrote, or what a chain of updates
made of it, where the scopes of both include each other (PTX ISA, "Memory consistency model").

Which reads return an older version is said by the model's text, so that a run remains its kernel, its world and
its choices: ``gpu:old=1#3,2.1#5~2`` has operation 3 of actor 1 return the version before the newest, and operation 5
of stream 2.1 the one before that; where there is none so old, the oldest that may be read. `Versions.offers` says
of each read how many it had.

Not modelled: a load that is done later than it stands in the program (load buffering).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncsim.machine.effect import Immediate, satisfied
from asyncsim.trace.cells import COMPARE, SET
from asyncsim.trace.kinds import (
    ACQ_REL,
    ACQUIRE,
    BLOCK,
    CARRYING,
    EFFECTS,
    EXCHANGING,
    FENCING,
    JOINING,
    KINDS,
    MEETING,
    NOTIFYING,
    POLLING,
    READING,
    RELEASE,
    SC,
    SEEING,
    STARTING,
    STORING,
    WAITING,
    WORLD,
)
from asyncsim.trace.op import change_by, change_where, order_of, scope_of
from asyncsim.trace.region import ADD, READ, WRITE, Access, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from asyncsim.machine.memory import Deposit, Memory, Tile
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Region
    from asyncsim.trace.world import Actor

Clock = dict[int, int]
"""How many operations of each actor, by its order, happen before."""
Read = tuple[str, int]
"""A read: its actor's name, and its index among that actor's operations."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an actor releases, with what happens before there, and which versions it has observed besides."""

    actor: Actor
    scope: str
    clock: Clock
    observed: frozenset[Version]


@dataclass(slots=True, eq=False)
class Version:
    """What one operation wrote to a place.

    Args:
        actor: who wrote it; None: it was there at the start.
        at: the operation's number within its actor, from 1.
        scope: of an atomic; empty: a plain store, with which nothing synchronises.
        spots: the releases that are seen by reading it.
        value: of a cell, what it holds from then on.
        access: of a region, which elements were written.
        before: what they held before.

    """

    actor: Actor | None
    at: int
    scope: str = ""
    spots: list[Spot] = field(default_factory=list)
    value: int = 0
    access: Access | None = None
    before: Tile | None = None


class Versions(Immediate):
    """The effects of operations under ``gpu``: see above.

    Args:
        memory: the values.
        old: how many versions back a read goes, by actor and index.

    """

    def __init__(self, memory: Memory, old: Mapping[Read, int]) -> None:
        """Start with nothing written."""
        super().__init__(memory)
        self.offers: dict[Read, int] = {}
        """How many older versions each read could have returned, at most, at the time it was done or last tried."""
        self._old = old
        self._clocks: dict[int, Clock] = defaultdict(dict)
        self._regions: dict[int, list[Version]] = defaultdict(list)
        self._signals: dict[int, list[Version]] = {}
        self._observed: dict[int, set[Version]] = defaultdict(set)
        """The versions that an actor, or what it has acquired of others, has read as atomics."""
        self._started: dict[str, int] = {}
        self._released: dict[int, list[Spot]] = defaultdict(list)
        """The release fences of each actor."""
        self._unfenced: dict[int, list[Spot]] = defaultdict(list)
        """The releases that each actor has seen by relaxed reads, for an acquire fence to take up."""
        self._fenced: list[Spot] = []
        """The fences that are sequentially consistent, in the order of the run."""
        self._met: dict[str, tuple[Clock, set[Version]]] = {}

    @property
    def table(self) -> dict[str, Callable[[Op], Any]]:
        """What an operation of each kind does; made when asked, as for `Immediate`."""
        return dict.fromkeys(KINDS, self._perform)

    def arrive(self, op: Op) -> None:
        """Note that an actor has come to a meeting: what it did happens before what comes after that, for all."""
        clock, observed = self._met.setdefault(op.link, ({}, set()))
        _join(clock, self._clocks[op.actor.order])
        observed |= self._observed[op.actor.order]

    def passes(self, op: Op) -> bool:
        """Say whether a wait or poll can go on now, on the version that it is to return."""
        if op.cell is not None:
            value, _ = self._cell_as_read(op)
            return COMPARE[op.how](value, op.amount)
        return not op.accesses or satisfied(op, self.peek(op))

    def seen(self, op: Op) -> int:
        """Return the value of an operation's cell that its actor reads."""
        return self._cell_as_read(op)[0]

    def peek(self, op: Op) -> Tile:
        """Return what a poll reads."""
        return self._region_as_read(op, op.accesses[0].region)

    def _perform(self, op: Op) -> Any:  # noqa: ANN401 - a tile, a number, a bool or nothing, by kind
        """Do what the operation does, and keep what it makes happen before what."""
        kind, order = op.kind, op.actor.order
        clock = self._clocks[order]
        if kind in STARTING:
            child = self._started[op.link] = op.payload.actor.order
            self._clocks[child] = {**clock, order: clock.get(order, 0) + 1}
            self._observed[child] = set(self._observed[order])
        elif kind in JOINING:
            _join(clock, self._clocks[self._started[op.link]])
            self._observed[order] |= self._observed[self._started[op.link]]
        elif kind in MEETING:
            _join(clock, self._met[op.link][0])
            self._observed[order] |= self._met[op.link][1]
        elif kind in FENCING:
            self._fence(op)
        outcome = None
        if op.cell is not None and kind not in CARRYING:
            outcome = self._on_cell(op)
        elif op.accesses:
            outcome = self._on_data(op)
        clock[order] = clock.get(order, 0) + 1
        return outcome

    # Data.

    def _on_data(self, op: Op) -> Tile | None:
        """Read, store or copy; of a put with signal also the signal."""
        if op.kind in READING:
            return self._load_old(op, op.accesses[0].region)
        if op.kind in STORING:
            self._note_write(op, op.accesses[0])
            self._store(op)
            return None
        target = op.accesses[-1]
        tile: Tile = op.payload if op.payload is not None else self._load_old(op, op.accesses[0].region)
        if target.mode != READ:
            self._note_write(op, target)
            self._write_tile(target, tile)
        if op.kind in CARRYING:
            self._update(op)
        return tile

    def _write_tile(self, target: Access, tile: Tile) -> None:
        if target.mode == ADD:
            self._memory.add(target.region, tile)
        else:
            self._memory.write(target.region, tile)

    def _load_old(self, op: Op, region: Region) -> Tile:
        newer = self._newer(op, region)
        return self._memory.read(region) if not newer else self._memory.peek(region, _undone(newer))

    def _note_write(self, op: Op, access: Access) -> Version:
        """Keep what was there before, with who overwrites it."""
        region = access.region
        order = op.actor.order
        version = Version(
            op.actor, self._clocks[order].get(order, 0) + 1, access=access, before=self._memory.peek(region)
        )
        self._regions[region.slot].append(version)
        return version

    def _region_as_read(self, op: Op, region: Region) -> Tile:
        """Return what an operation reads of a region; it may be asked before its turn."""
        return self._memory.peek(region, _undone(self._newer(op, region)))

    def _newer(self, op: Op, region: Region) -> list[Version]:
        """Return the versions, the oldest first, that are newer than the one that an operation returns."""
        found = [each for each in self._regions[region.slot] if _meets(each, region)]
        fitting: Sequence[int] = range(self._readable(op, found) + 1)
        if op.kind in POLLING:
            tiles = [self._memory.peek(region, _undone(found[len(found) - back :])) for back in fitting]
            fitting = [back for back, tile in enumerate(tiles) if satisfied(op, tile)]
        return found[len(found) - self._chosen(op, fitting) :]

    # Cells.

    def _on_cell(self, op: Op) -> Any:  # noqa: ANN401 - a number, a bool or nothing, by kind
        """Read a cell, change it, or both."""
        seen, version = self._cell_as_read(op)
        if op.kind in SEEING or op.kind in EXCHANGING:
            self._acquire(op, version)
        if change_where(op, seen) is None:
            return EFFECTS[op.kind](seen, op)[1]
        return self._update(op)

    def _cell_as_read(self, op: Op) -> tuple[int, Version]:
        """Return what an operation reads of its cell, and which version that is; it may be asked before its turn."""
        found = self._written(op)
        if change_by(op) is not None:  # it reads the newest one
            return self._value(op, found, 0), found[-1]
        most = self._readable(op, found[1:])
        fitting: Sequence[int] = range(most + 1)
        if op.kind in WAITING:
            fitting = [back for back in fitting if COMPARE[op.how](self._value(op, found, back), op.amount)]
        back = self._chosen(op, fitting)
        return self._value(op, found, back), found[-1 - back]

    def _value(self, op: Op, found: Sequence[Version], back: int) -> int:
        """Return what a version of an operation's cell holds: the newest one, or one that is older."""
        if _is_signal(op):
            return found[-1 - back].value
        return int(self._memory.peek(op.accesses[0].region, _undone(found[len(found) - back :])))

    def _update(self, op: Op) -> Any:  # noqa: ANN401 - a number or nothing, by kind
        """Change a cell. Who acquires the new version sees what its actor releases, and what an older one did.

        An update that reads what it changes hands on what the version before it released; a Set does not.
        """
        last = self._written(op)[-1]
        order, scope = op.actor.order, scope_of(op)
        spots = list(self._released[order])
        if order_of(op) in _RELEASING:
            spots.append(self._spot(op.actor, scope, itself=1))
        plain = change_by(op)[0] == SET and op.kind in NOTIFYING  # type: ignore[index]  # it is an update
        if not plain and self._include(op.actor, scope, last.actor, last.scope):
            spots += last.spots
        if _is_signal(op):
            version = Version(op.actor, self._clocks[order].get(order, 0) + 1)
            self._signals[_slot(op)].append(version)
            outcome = self._change(op)
            version.value = super().seen(op)
        else:
            version = self._note_write(op, op.accesses[0])
            outcome = self._change(op)
        version.scope, version.spots = scope, spots
        return outcome

    def _written(self, op: Op) -> list[Version]:
        """Return the versions of an operation's cell, the oldest first: what it held at the start comes before all."""
        if not _is_signal(op):
            region = op.accesses[0].region
            return [_START, *(each for each in self._regions[region.slot] if _meets(each, region))]
        found = self._signals.get(_slot(op))
        if found is None:
            found = self._signals[_slot(op)] = [Version(None, 0, value=super().seen(op))]
        return found

    # What happens before what.

    def _chosen(self, op: Op, fitting: Sequence[int]) -> int:
        """Return how many versions back an operation reads.

        Args:
            op: what reads.
            fitting: the versions that it may return, as how many back they are, the newest first: of a wait those that
                let it pass.

        """
        read = (op.actor.name, self._clocks[op.actor.order].get(op.actor.order, 0))
        older = [back for back in fitting if back]
        if older:
            self.offers[read] = max(len(older), self.offers.get(read, 0))
        wanted = self._old.get(read, 0)
        return older[min(wanted, len(older)) - 1] if wanted and older else 0

    def _readable(self, op: Op, found: Sequence[Version]) -> int:
        """Return how many older versions an operation may read, of those that were written to its place."""
        clock, observed = self._clocks[op.actor.order], self._observed[op.actor.order]
        most = 0
        for version in reversed(found):
            writer = version.actor
            if writer is None or clock.get(writer.order, 0) >= version.at or version in observed:
                break
            most += 1
        return most

    def _acquire(self, op: Op, version: Version) -> None:
        """Take up what the version that was read releases: now, or at a later fence."""
        actor, scope = op.actor, scope_of(op)
        if not self._include(actor, scope, version.actor, version.scope):
            return
        self._observed[actor.order].add(version)
        if order_of(op) in _ACQUIRING:
            self._join(actor, scope, version.spots)
        else:
            self._unfenced[actor.order] += version.spots

    def _fence(self, op: Op) -> None:
        actor, scope, order = op.actor, scope_of(op), order_of(op)
        if order in _ACQUIRING or order == SC:
            self._join(actor, scope, self._unfenced[actor.order])
        if order == SC:
            self._join(actor, scope, self._fenced)
        if order in _RELEASING or order == SC:
            spot = self._spot(actor, scope)
            self._released[actor.order].append(spot)
            if order == SC:
                self._fenced.append(spot)

    def _spot(self, actor: Actor, scope: str, *, itself: int = 0) -> Spot:
        """Return a release of what its actor did so far; of an operation that writes, `itself` is 1."""
        clock = self._clocks[actor.order]
        clock = {**clock, actor.order: clock.get(actor.order, 0) + itself}
        return Spot(actor, scope, clock, frozenset(self._observed[actor.order]))

    def _join(self, actor: Actor, scope: str, spots: Iterable[Spot]) -> None:
        for spot in spots:
            if self._include(actor, scope, spot.actor, spot.scope):
                _join(self._clocks[actor.order], spot.clock)
                self._observed[actor.order] |= spot.observed

    def _include(self, a: Actor, scope: str, b: Actor | None, other: str) -> bool:
        """Say whether the scopes of two operations include each other; with what is no atomic nothing synchronises."""
        return b is not None and bool(other) and self._covers(scope, a, b) and self._covers(other, b, a)

    def _covers(self, scope: str, a: Actor, b: Actor) -> bool:
        if scope == BLOCK:
            return a.in_block == b.in_block
        return scope == WORLD or a.rank == b.rank


_START = Version(None, 0)
_RELEASING, _ACQUIRING = (RELEASE, ACQ_REL), (ACQUIRE, ACQ_REL)


def _join(clock: Clock, other: Mapping[int, int]) -> None:
    for order, count in other.items():
        if count > clock.get(order, 0):
            clock[order] = count


def _meets(version: Version, region: Region) -> bool:
    assert version.access is not None  # noqa: S101 - for the type checker: it was written to a region
    return spans_overlap(version.access.region.spans, region.spans)


def _undone(newer: Sequence[Version]) -> list[Deposit]:
    """Return what takes the newest versions back, in the order in which that is done."""
    return [
        (Access(each.access.region, WRITE), each.before)
        for each in reversed(newer)
        if each.access is not None and each.before is not None
    ]


def _is_signal(op: Op) -> bool:
    """Say whether the cell of an operation is one of a signal; else it is an element of a window."""
    return not op.accesses or op.kind in CARRYING


def _slot(op: Op) -> int:
    assert op.cell is not None  # noqa: S101 - for the type checker: the caller knows
    return op.cell.slot
