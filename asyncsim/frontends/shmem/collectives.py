"""Collectives. Each synchronises as far as its data needs, and no further."""

from __future__ import annotations

from functools import reduce as fold
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.shmem.constants import CONSTANTS
from asyncsim.frontends.shmem.pe import Pe, present_pe
from asyncsim.frontends.shmem.rma import common_size
from asyncsim.frontends.shmem.teams import TEAM_WORLD, Team
from asyncsim.guest.answers import answers
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asyncsim.guest.places import Array

_FOLDS: Mapping[str, Any] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "max": np.maximum, "min": np.minimum,
    "sum": np.add, "prod": np.multiply,
}  # fmt: skip


class _Call:
    """One collective, of one PE."""

    def __init__(self, what: str, target: Any, source: Any, team: Team | None, **facts: Any) -> None:
        self.what = what
        self.own: Pe = present_pe()
        self.team = (team or TEAM_WORLD).usable(what)
        self.members = list(self.team.members)
        self.place = self.members.index(self.own.me)
        self.target, self.source = target, source
        common_size(what, target, source, 0)
        self.into = self.own.symmetric(what, "target", target)
        self.start = self.into.offset(target)
        self.block = self.own.symmetric(what, "source", source)
        self.own.collective(what, self.team.key, dtype=target.dtype.name, **facts)

    def begin(self) -> None:
        """Come to the cells of a round."""
        self.cells, self.base, _ = self.own.round(self.team.key)

    def check_room(self, size: int, into: int) -> None:
        """Refuse more elements than the source and the target have."""
        for name, count, array in (("source", size, self.source), ("target", into, self.target)):
            if count > array.size:
                raise MisuseError(f"{self.what}: {count} elements, and {name} has {array.size}: out of range")

    def concatenate(self, count: int, start: int) -> None:
        """Put so many elements to all targets from an element on, and wait for the others'."""
        self.begin()
        tile = self.values(0, count)
        for place in range(len(self.members)):
            self.write(place, tile, start)
        self.wait_for(range(len(self.members)))

    def values(self, start: int, size: int, step: int = 1) -> Array:
        """Return elements of the source, as they are now."""
        if not size:
            return np.zeros(0, self.source.dtype)
        flat: Array = self.source.ravel(order="K")[start : start + (size - 1) * step + 1 : step]  # a view
        self.own.load(self.block, flat)
        return flat.copy()

    def write(self, place: int, tile: Array, at: int, step: int = 1) -> None:
        """Put elements to the target of a member, with the signal of this round; to the own one, store them."""
        own, pe = self.own, self.members[place]
        cell = self.cells.at(pe)[self.base + own.me]
        if place == self.place:
            if tile.size:
                self.store(tile, at, step)
            return
        if not tile.size:
            own.do(own.rank.notify(cell, 1, order="relaxed"))
            return
        there = own.region(self.into, (self.start + at, tile.size, step), pe)
        own.do(own.rank.put_signal(there, tile, cell, 1))

    def store(self, tile: Array, at: int, step: int = 1) -> None:
        """Store elements to the own target."""
        run = (self.start + at, tile.size, step)
        self.into.flat[run[0] : run[0] + (tile.size - 1) * step + 1 : step] = tile
        self.own.note_store(self.into, [run])

    def wait_for(self, places: Any) -> None:
        """Wait for the signals of members in this round."""
        pes = [self.members[place] for place in places if place != self.place]
        cells, base = self.cells, self.base
        self.own.do(self.own.rank.wait_all([cells[base + pe] >= 1 for pe in pes]))

    def exchange(self, value: Any) -> list[Any]:
        """Hand a value to all members, and return theirs."""
        found = self.own.hand(self.team.key, value, to=self.members, of=self.members)
        return [found[pe] for pe in self.members]


@answers
def barrier_all() -> None:
    """Complete everything on the default context, and meet all PEs."""
    pe = present_pe()
    pe.collective("barrier_all")
    pe.barrier()


@answers
def sync_all() -> None:
    """Meet all PEs; completes no put."""
    TEAM_WORLD.sync()


@answers
def sync(team: Team | None = None) -> None:
    """Meet the members of a team; completes no put."""
    (team or TEAM_WORLD).sync()


@answers
def broadcast(target: Any, source: Any, root: int, size: int | None = None, team: Team | None = None) -> None:
    """Copy the root's source to everybody's target, its own included."""
    call = _Call("broadcast", target, source, team, root=root)
    root = call.own.number("broadcast", "PE", root, len(call.members))
    count = common_size("broadcast", target, source, size)
    call.begin()
    if call.place != root:
        call.wait_for([root])
        return
    for place in range(len(call.members)):
        call.write(place, call.values(0, count), 0)


@answers
def collect(target: Any, source: Any, size: int | None = None, team: Team | None = None) -> None:
    """Concatenate as much of each source as its PE says, on everybody's target."""
    call = _Call("collect", target, source, team)
    count = source.size if size is None else int(size)
    call.check_room(count, 0)
    sizes = call.exchange(count)
    call.check_room(0, sum(sizes))
    call.concatenate(count, sum(sizes[: call.place]))


@answers
def fcollect(target: Any, source: Any, size: int | None = None, team: Team | None = None) -> None:
    """Concatenate equal parts of all sources, on everybody's target."""
    count = int(size) if size is not None else getattr(source, "size", 0)
    call = _Call("fcollect", target, source, team, size=count)
    call.check_room(count, count * len(call.members))
    call.concatenate(count, call.place * count)


@answers
def alltoall(target: Any, source: Any, size: int | None = None, team: Team | None = None) -> None:
    """Hand the n-th part of the source to the n-th member."""
    _alltoall("alltoall", target, source, 1, 1, size, team)


@answers
def alltoalls(target: Any, source: Any, tst: int = 1, sst: int = 1, size: int | None = None,
              team: Team | None = None) -> None:  # fmt: skip
    """Do the same with strides."""
    _alltoall("alltoalls", target, source, tst, sst, size, team)


def _alltoall(what: str, target: Any, source: Any, tst: int, sst: int, size: int | None, team: Team | None) -> None:
    members = len((team or TEAM_WORLD).usable(what).members)
    if size is None:
        size, rest = divmod(common_size(what, target, source, None, tst, sst), members)
        if rest:
            raise MisuseError(f"{what}: the arrays have not the same number of elements for each of {members} PEs")
    common_size(what, target, source, size * members, tst, sst)
    call = _Call(what, target, source, team, size=size)
    call.begin()
    for place in range(members):
        tile = call.values(place * size * sst, size, sst)
        call.write(place, tile, call.place * size * tst, tst)
    call.wait_for(range(members))


@answers
def reduce(
    target: Any, source: Any, op: Any = CONSTANTS["OP_SUM"], size: int | None = None, team: Team | None = None
) -> None:
    """Combine all sources element by element, on everybody's target."""
    name = str(op).lower()
    if name not in _FOLDS:
        raise MisuseError(f"reduce: there is no operation {op!r}; use {', '.join(_FOLDS)}")
    if name in ("and", "or", "xor") and getattr(source, "dtype", np.dtype(int)).kind not in "iub":
        raise MisuseError(f"{name}_reduce: source holds {source.dtype}; it is for integers")
    count = common_size(f"{name}_reduce", target, source, size)
    call = _Call(f"{name}_reduce", target, source, team, size=count)
    values = call.exchange(call.values(0, count))
    made = fold(_FOLDS[name], values)
    if count:
        call.store(np.asarray(made, target.dtype), 0)


def _reducing(op: str) -> Callable[..., None]:
    def reducing(target: Any, source: Any, size: int | None = None, team: Team | None = None) -> None:
        reduce(target, source, op, size, team)

    return reducing


REDUCTIONS: dict[str, Any] = {f"{name}_reduce": _reducing(name) for name in _FOLDS}
"""Each by its name in shmem4py."""
