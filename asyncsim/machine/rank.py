"""Rank: what a kernel can do. Every async method stands at the gate exactly once, before its effect."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.op import (
    ATOMIC_ADD, GET, LOAD, NOTIFY, PUT, REMOTE_LOAD, REMOTE_STORE, SET, STORE, TEST, WAIT, Op,
)  # fmt: skip
from asyncsim.trace.region import Cell, Condition, Region
from asyncsim.trace.world import SignalView, WindowView

if TYPE_CHECKING:
    from collections.abc import Generator

    from asyncsim.machine.memory import Tile
    from asyncsim.trace.region import Access
    from asyncsim.trace.world import Actor, World


@types.coroutine
def _stand_at_gate(op: Op) -> Generator[Op, Any, Any]:
    """Hand the operation to whoever drives this kernel; go on with its outcome when it was chosen.

    An engine is no more than a loop that sends into a kernel what its last operation gave, so a
    kernel does not know which engine it runs on.
    """
    return (yield op)


class Phase:
    """A label for what happens in a ``with`` block."""

    __slots__ = ("_name", "_outer", "_rank")

    def __init__(self, rank: Rank, name: str) -> None:
        """Remember whose phase it is."""
        if not isinstance(name, str) or not name:
            raise MisuseError(f"rank {rank.id}: phase({name!r}); a phase is named by a short text")
        self._rank = rank
        self._name = name
        self._outer = ""

    def __enter__(self) -> None:
        """Put this label inside those that already hold."""
        self._outer = self._rank.phase_name
        self._rank.phase_name = f"{self._outer}/{self._name}" if self._outer else self._name

    def __exit__(self, *_: object) -> None:
        """Go back to the labels outside."""
        self._rank.phase_name = self._outer


class Rank:
    """One rank as its kernel sees it.

    ``id`` and ``size`` are its number and P; ``peers`` the other ranks, ascending; ``call`` the
    number of the present call, from 0. Awaiting anything but these methods in a kernel is an error.
    """

    __slots__ = ("_actor", "_world", "call", "id", "peers", "phase_name", "size")

    def __init__(self, actor: Actor, world: World) -> None:
        """Act as `actor` in `world`."""
        self.id = actor.rank
        self.size = world.ranks
        self.peers = tuple(peer for peer in range(world.ranks) if peer != actor.rank)
        self.call = 0
        self.phase_name = ""
        self._actor = actor
        self._world = world

    def phase(self, name: str) -> Phase:
        """Label what happens in a ``with`` block, for reports and traces."""
        return Phase(self, name)

    async def load(self, region: Region) -> Tile:
        """Return a private copy of a region; of a peer's region this is a one-sided remote load.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.

        Returns:
            An array of the region's shape and dtype (a numpy scalar for a single element).

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise self._no_region("load", region)
        kind = LOAD if region.owner == self.id else REMOTE_LOAD
        return await _stand_at_gate(Op(self._actor, kind, region.reads, call=self.call))  # type: ignore[no-any-return]

    async def store(self, region: Region, tile: Any, *, atomic: Literal["add"] | None = None) -> None:  # noqa: ANN401
        """Store a tile to a region; of a peer's region this is a one-sided remote store.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.
            tile: an array of exactly the region's shape and dtype; a Python number for a single element.
            atomic: "add" adds element by element instead, atomic against other adds.

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise self._no_region("store", region)
        kind = STORE if region.owner == self.id else REMOTE_STORE
        accesses = region.writes if atomic is None else self._adds(kind, region, atomic)
        if tile.__class__ is not np.ndarray or tile.dtype != region.dtype or tile.shape != region.shape:
            tile = self._tile(kind, region, tile)
        await _stand_at_gate(Op(self._actor, kind, accesses, payload=tile, call=self.call))

    async def get(self, target: Region, source: Region) -> None:
        """Copy a peer's region into an own region.

        A get whose source and destination are the same elements is a read.
        """
        self._check_copy("get", target, source)
        if target.owner != self.id:
            raise MisuseError(f"rank {self.id}: get into {target}; a get copies into an own region: window[...]")
        await _stand_at_gate(Op(self._actor, GET, (*source.reads, *_written(target, source)), call=self.call))

    async def put(self, target: Region, source: Any, *, atomic: Literal["add"] | None = None) -> None:  # noqa: ANN401
        """Copy an own region, or a private array, into a peer's region.

        Args:
            target: ``window.at(peer)[...]``.
            source: an own region, or an array, of the target's shape and dtype.
            atomic: "add" adds element by element instead, atomic against other adds.

        A put whose source and destination are the same elements is a read.
        """
        if target.__class__ is not Region or target.world is not self._world:
            raise self._no_region("put", target)
        if source.__class__ is Region:
            self._check_copy("put", target, source)
            if source.owner != self.id:
                raise MisuseError(f"rank {self.id}: put from {source}; a put copies from an own region: window[...]")
            written = _written(target, source) if atomic is None else self._adds(PUT, target, atomic)
            await _stand_at_gate(Op(self._actor, PUT, (*source.reads, *written), call=self.call))
        else:
            tile = self._tile(PUT, target, source)
            accesses = target.writes if atomic is None else self._adds(PUT, target, atomic)
            await _stand_at_gate(Op(self._actor, PUT, accesses, payload=tile, call=self.call))

    async def notify(self, cell: Cell, value: int = 1, op: str = ATOMIC_ADD) -> None:
        """Add to a cell of a peer (or an own one), or set it.

        Args:
            cell: ``signal.at(peer)[...]``.
            value: what to add (may be negative) or to set.
            op: `AtomicAdd` or `Set`.

        """
        if cell.__class__ is not Cell or cell.world is not self._world:
            raise self._no_cell("notify", cell, "signal.at(peer)[...]")
        if op not in (ATOMIC_ADD, SET):
            raise MisuseError(f"rank {self.id}: notify of {cell}: op={op!r}; use AtomicAdd or Set")
        if value.__class__ is not int:
            value = self._integer("notify", cell, value)
        if not cell.low <= value <= cell.high:
            raise MisuseError(f"rank {self.id}: notify of {cell}: value {value} is outside {cell.low} to {cell.high}")
        await _stand_at_gate(Op(self._actor, NOTIFY, (), cell, op, value, call=self.call))

    async def wait(self, condition: Condition, *, consume: bool = False) -> None:
        """Park until the condition on an own cell holds.

        Args:
            condition: a comparison of a cell: ``signal[peer] >= 1``.
            consume: subtract the compared value as it passes; otherwise the cell stays as it is.

        """
        self._check_condition("wait", condition)
        cell, how, expected = condition.cell, condition.compare, condition.expected
        await _stand_at_gate(Op(self._actor, WAIT, (), cell, how, expected, bool(consume), call=self.call))

    async def test(self, condition: Condition) -> bool:
        """Say whether the condition on an own cell holds now, without waiting."""
        self._check_condition("test", condition)
        op = Op(self._actor, TEST, (), condition.cell, condition.compare, condition.expected, call=self.call)
        return await _stand_at_gate(op)  # type: ignore[no-any-return]

    # What follows says what is wrong; none of it runs for a correct operation on arrays.

    def _no_region(self, what: str, region: object) -> MisuseError:
        if isinstance(region, Region):
            return MisuseError(f"rank {self.id}: {what} of {region}, which belongs to another run; use this run's windows")
        return MisuseError(f"rank {self.id}: {what} takes a region, window[...] or window.at(peer)[...]; got {_shown(region)}")

    def _no_cell(self, what: str, cell: object, right: str) -> MisuseError:
        if isinstance(cell, Cell):
            return MisuseError(f"rank {self.id}: {what} of {cell}, which belongs to another run; use this run's signals")
        return MisuseError(f"rank {self.id}: {what} takes a cell, {right}; got {_shown(cell)}")

    def _check_condition(self, what: str, condition: Condition) -> None:
        if condition.__class__ is not Condition:
            right = "; compare it, as in signal[peer] >= 1" if isinstance(condition, Cell) else ""
            raise MisuseError(
                f"rank {self.id}: {what} takes a condition on an own cell, signal[peer] >= 1; "
                f"got {_shown(condition)}{right}"
            )
        cell = condition.cell
        if cell.world is not self._world:
            raise self._no_cell(what, cell, "signal[...]")
        if cell.owner != self.id:
            raise MisuseError(f"rank {self.id}: {what} for {condition}; a rank waits on its own cells: {cell.signal}[...]")

    def _integer(self, what: str, cell: Cell, value: Any) -> int:  # noqa: ANN401
        if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
            raise MisuseError(f"rank {self.id}: {what} of {cell}: value {value!r} is no integer")
        return int(value.__index__())

    def _adds(self, kind: str, region: Region, atomic: object) -> tuple[Access]:
        if atomic != "add":
            raise MisuseError(f"rank {self.id}: {kind} to {region}: atomic={atomic!r}; use atomic='add' or leave it out")
        if region.dtype.kind == "b":
            raise MisuseError(f"rank {self.id}: {kind} to {region}: booleans cannot be added; use an integer window")
        return region.adds

    def _tile(self, kind: str, region: Region, tile: Any) -> Tile:  # noqa: ANN401
        """Return `tile` as an array that fits the region, or say why it does not."""
        place = f"rank {self.id}: {kind} to {region}"
        if not isinstance(tile, np.ndarray | np.generic):
            if region.shape != () or not isinstance(tile, bool | int | float | complex):
                got = _shown(tile)
                raise MisuseError(f"{place} takes an array of shape {region.shape} and dtype {region.dtype}; got {got}")
            try:
                array = np.array(tile, dtype=region.dtype)
            except (OverflowError, TypeError, ValueError) as error:
                raise MisuseError(f"{place}: {tile!r} does not fit dtype {region.dtype}") from error
            if region.dtype.kind in "biu" and array != tile:
                raise MisuseError(f"{place}: {tile!r} does not fit dtype {region.dtype}")
            return array
        if tile.shape != region.shape:
            raise MisuseError(f"{place}: the tile has shape {tile.shape}, the region has shape {region.shape}")
        if tile.dtype != region.dtype:
            raise MisuseError(
                f"{place}: the tile has dtype {tile.dtype}, the window has {region.dtype}; convert it with .astype"
            )
        return np.asarray(tile)

    def _check_copy(self, what: str, target: Region, source: Region) -> None:
        for region in (target, source):
            if region.__class__ is not Region or region.world is not self._world:
                raise self._no_region(what, region)
        if source.shape != target.shape or source.dtype != target.dtype:
            raise MisuseError(
                f"rank {self.id}: {what} from {source} to {target}: the source has shape {source.shape} and dtype "
                f"{source.dtype}, the target {target.shape} and {target.dtype}; they must be the same"
            )


def _shown(value: object) -> str:
    """Write what was given instead, the same in every process and never at length."""
    if isinstance(value, Region | Cell):
        return str(value)
    if isinstance(value, Condition):
        return f"the condition {value}"
    if isinstance(value, WindowView | SignalView):
        return f"all of {value.name!r}; index it"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, str | int | float | complex | None):
        return repr(value)
    return f"an object of type {type(value).__name__}"


def _written(target: Region, source: Region) -> tuple[Access]:
    """Return the access to a copy's destination: a read where it copies elements onto themselves."""
    same = target.slot == source.slot and target.spans == source.spans
    return target.reads if same else target.writes
