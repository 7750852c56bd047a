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
from typing import TYPE_CHECKING, Any

from asyncsim.machine.effect import Immediate, satisfied
from asyncsim.machine.knowledge import HappensBefore, Version
from asyncsim.trace.cells import COMPARE, SET
from asyncsim.trace.kinds import (
    CARRYING,
    EFFECTS,
    EXCHANGING,
    KINDS,
    NOTIFYING,
    POLLING,
    READING,
    SEEING,
    STORING,
    WAITING,
)
from asyncsim.trace.op import change_by, change_where, scope_of
from asyncsim.trace.region import ADD, READ, WRITE, Access, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.machine.memory import Deposit, Memory, Tile
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Region

Read = tuple[str, int]
"""A read: its actor's name, and its index among that actor's operations."""


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
        self._before = HappensBefore()
        self._regions: dict[int, list[Version]] = defaultdict(list)
        self._signals: dict[int, list[Version]] = {}

    @property
    def table(self) -> dict[str, Callable[[Op], Any]]:
        """What an operation of each kind does; made when asked, as for `Immediate`."""
        return dict.fromkeys(KINDS, self._perform)

    def arrive(self, op: Op) -> None:
        """Note that an actor has come to a meeting."""
        self._before.arrive(op)

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
        self._before.before(op)
        outcome = None
        if op.cell is not None and op.kind not in CARRYING:
            outcome = self._on_cell(op)
        elif op.accesses:
            outcome = self._on_data(op)
        self._before.after(op)
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
        version = self._before.version(op)
        version.access, version.before = access, self._memory.peek(region)
        self._regions[region.slot].append(version)
        return version

    def _region_as_read(self, op: Op, region: Region) -> Tile:
        """Return what an operation reads of a region; it may be asked before its turn."""
        return self._memory.peek(region, _undone(self._newer(op, region)))

    def _newer(self, op: Op, region: Region) -> list[Version]:
        """Return the versions, the oldest first, that are newer than the one that an operation returns."""
        found = [each for each in self._regions[region.slot] if _meets(each, region)]
        fitting = self._before.readable(op.actor, [_START, *found])
        if op.kind in POLLING:
            tiles = [(back, self._memory.peek(region, _undone(found[len(found) - back :]))) for back in fitting]
            fitting = [back for back, tile in tiles if satisfied(op, tile)]
        return found[len(found) - self._chosen(op, fitting) :]

    # Cells.

    def _on_cell(self, op: Op) -> Any:  # noqa: ANN401 - a number, a bool or nothing, by kind
        """Read a cell, change it, or both."""
        seen, version = self._cell_as_read(op)
        if op.kind in SEEING or op.kind in EXCHANGING:
            self._before.acquire(op, version)
        if change_where(op, seen) is None:
            return EFFECTS[op.kind](seen, op)[1]
        return self._update(op)

    def _cell_as_read(self, op: Op) -> tuple[int, Version]:
        """Return what an operation reads of its cell, and which version that is; it may be asked before its turn."""
        found = self._written(op)
        if change_by(op) is not None:  # it reads the newest one
            return self._value(op, found, 0), found[-1]
        fitting = self._before.readable(op.actor, found)
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
        plain = change_by(op)[0] == SET and op.kind in NOTIFYING  # type: ignore[index]  # it is an update
        spots = self._before.releases(op, last, reads=not plain)
        if _is_signal(op):
            version = self._before.version(op)
            self._signals[_slot(op)].append(version)
            outcome = self._change(op)
            version.value = super().seen(op)
        else:
            version = self._note_write(op, op.accesses[0])
            outcome = self._change(op)
        version.scope, version.spots = scope_of(op), spots
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

    def _chosen(self, op: Op, fitting: Sequence[int]) -> int:
        """Return how many versions back an operation reads.

        Args:
            op: what reads.
            fitting: the versions that it may return, as how many back they are, the newest first: of a wait those that
                let it pass.

        """
        read = (op.actor.name, self._before.count(op.actor))
        older = [back for back in fitting if back]
        if older:
            self.offers[read] = max(len(older), self.offers.get(read, 0))
        wanted = self._old.get(read, 0)
        return older[min(wanted, len(older)) - 1] if wanted and older else 0


_START = Version(None, 0)


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
