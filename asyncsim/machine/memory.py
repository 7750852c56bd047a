"""The values of a run: every window of every rank, every cell, and what was ever written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.machine.free import check_room
from asyncsim.trace.cells import APPLY
from asyncsim.trace.region import ADD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.region import Access, Cell, Region
    from asyncsim.trace.world import World

Tile = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Pending:
    """An update of a word that may land: of what the word holds it gives what it holds next."""

    cell: Cell
    how: str
    amount: int

    def __call__(self, value: int) -> int:
        """Return what the word holds after it."""
        return self.cell.wrapped(APPLY[self.how](value, self.amount))


Deposit = tuple["Access", Tile | Pending]
"""What landed, or may land: where and how, and the tile, or the piece of it that the access is for."""


def check_size(world: World) -> None:
    """Refuse a world that no memory can hold.

    Raises:
        MisuseError: a declaration is too large for the memory that is free.

    """
    for window in world.windows:
        known = 0 if window.initialised else 1
        size = math.prod(window.shape) * (window.dtype.itemsize + known) * len(window.members)
        check_room(f"window {window.name!r} of shape {window.shape} on {world.ranks} ranks", size)
    for signal in world.signals:
        size = signal.cells_a_rank * world.ranks * _CELL
        check_room(f"signal {signal.name!r} of shape {signal.shape} on {world.ranks} ranks", size)


_CELL = 8
"""Bytes a cell."""


class Memory:
    """The arrays and counters of one run. Indexed by the slots that the world numbered.

    Args:
        world: what there is.
        seed: draws the content of windows declared ``dirty="random"``.

    """

    def __init__(self, world: World, seed: int) -> None:
        """Make every window zero, or as declared, and every cell its start value."""
        self.world = world
        self.arrays: list[Tile] = []
        self._written: list[Tile | None] = []
        self._shared: list[bool] = []
        # A region that was once seen written stays so: the second look costs one set lookup.
        self._whole: set[Region] = set()
        self.unwritten: list[Region] = []
        for number, window in enumerate(world.windows):
            rng = np.random.default_rng(np.random.SeedSequence([seed, 1, number])) if window.dirty == "random" else None
            for rank in range(world.ranks):
                shape = window.shape if rank in window.members else (0,) * len(window.shape)
                array = np.zeros(shape, window.dtype)
                if rng is not None:
                    array[...] = (rng.standard_normal(shape) * 64).astype(window.dtype)
                elif window.dirty is not None:
                    array[...] = window.dirty
                self.arrays.append(array)
                # Views of one memory share what they know of it, byte by byte.
                known = np.zeros(array.nbytes, np.int8) if window.shared else np.zeros(shape, bool)
                self._written.append(None if window.initialised else known)
                self._shared.append(window.shared)
        self.cells: list[int] = []
        for signal in world.signals:
            self.cells += [signal.start] * (signal.cells_a_rank * world.ranks)

    def read(self, region: Region) -> Tile:
        """Return a private copy of the region; note it if nobody wrote some element of it."""
        if region not in self._whole and not self._is_written(region):  # `note_read`, here without a call
            self.unwritten.append(region)
        # As `_array` says, here and below without a call: these run in every step.
        array = self.arrays[region.slot] if region.over is None else self._array(region)
        tile: Tile = array[region.index].copy()
        return tile

    def held(self, cell: Cell) -> int:
        """Return what a cell holds, of a signal or a word."""
        region = cell.region
        return self.cells[cell.slot] if region is None else int(self._array(region)[region.index])

    def note_read(self, region: Region) -> None:
        """Note it if nobody wrote some element of a region that is read."""
        if region not in self._whole and not self._is_written(region):
            self.unwritten.append(region)

    def hold(self, cell: Cell, value: int) -> None:
        """Let a cell hold a value.

        Args:
            cell: of a signal, or a word.
            value: within its range.

        """
        region = cell.region
        if region is None:
            self.cells[cell.slot] = value
        else:
            self._array(region)[region.index] = value
            self._mark(region)

    def _array(self, region: Region) -> Tile:
        """Return the window that a region is in, as that window sees its memory."""
        array = self.arrays[region.slot]
        return array if region.over is None else _seen_as(array, region)

    def _known(self, region: Region) -> Tile | None:
        """Return what was written of that window, non-zero for each element; None: all may be read."""
        written = self._written[region.slot]
        if written is None or not self._shared[region.slot]:
            return written
        return _mask(written, region, self.arrays[region.slot].shape)

    def peek(self, region: Region, deposits: Sequence[Deposit] = ()) -> Tile:
        """Return a private copy of the region for a look that is no load; `deposits` as for `read_over`.

        Args:
            region: where to look.
            deposits: what is to be seen on top, in this order; memory is left as it is.

        """
        array = self.arrays[region.slot]
        if deposits:
            array = array.copy()
            for access, tile in deposits:
                _deposit(_seen_as(array, access.region), access, tile)
        seen: Tile = _seen_as(array, region)[region.index].copy()
        return seen

    def write(self, region: Region, tile: Tile) -> None:
        """Store the tile.

        Args:
            region: where to.
            tile: of the region's shape; it is copied.

        """
        array = self.arrays[region.slot] if region.over is None else self._array(region)
        array[region.index] = tile
        if region not in self._whole:
            self._mark(region)

    def add(self, region: Region, tile: Tile) -> None:
        """Add the tile, element by element, in the window's dtype (integers wrap, as in hardware).

        Args:
            region: where to.
            tile: of the region's shape and dtype.

        """
        array = self._array(region)
        box = tuple(slice(*dim) for dim in region.box)
        with np.errstate(all="ignore"):
            array[box] += tile.reshape(array[box].shape)
        if region not in self._whole:
            self._mark(region)

    def deposit(self, access: Access, tile: Tile) -> None:
        """Let data land: store or add a tile, or the piece of it that the access is for.

        Args:
            access: where, and whether it is stored or added.
            tile: as many elements as the access has; for a piece, those of the piece alone.

        """
        _deposit(self._array(access.region), access, tile)
        written = self._known(access.region)
        if written is not None:
            _mark(written, access.region)

    def read_over(self, region: Region, deposits: Sequence[Deposit]) -> Tile:
        """Return a private copy of the region as it would be if these had landed already, in this order.

        Of a piece the whole tile is returned; only of its own elements it is noted if nobody wrote them.

        Args:
            region: where to read.
            deposits: what is pending and is seen by the reader, in the order of landing; memory is left as it is.

        """
        written = self._written[region.slot]
        if written is not None:
            known = written.copy()
            shape = self.arrays[region.slot].shape
            shared = self._shared[region.slot]
            for access, _ in deposits:
                _mark(_mask(known, access.region, shape) if shared else known, access.region)
            if not _full(_elements(_mask(known, region, shape) if shared else known, region)):
                self.unwritten.append(region)
        return self.peek(region, deposits)

    def _is_written(self, region: Region) -> bool:
        """Say whether every element of the region was written by somebody, or declared initialised."""
        written = self._known(region)
        if written is None or _full(written[region.index]):
            self._whole.add(region)
            return True
        return False

    def _mark(self, region: Region) -> None:
        written = self._known(region)
        if written is not None:
            written[region.index] = -1
        self._whole.add(region)


def _seen_as(array: Tile, region: Region) -> Tile:
    """Return an array as the window of a region sees it: itself, or another view of its first bytes."""
    return array if region.over is None else _view(array, region.over, region.dtype)


def _view(array: Tile, shape: tuple[int, ...], dtype: Any) -> Tile:  # noqa: ANN401 - numpy's dtype, or its name
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    seen: Tile = array.reshape(-1).view(np.int8)[:size].view(dtype).reshape(shape)
    return seen


def _mask(written: Tile, region: Region, whole: tuple[int, ...]) -> Tile:
    """Return bytes that were written as elements of a region's window; -1 in each is all ones."""
    return _view(written, whole if region.over is None else region.over, f"i{region.dtype.itemsize}")


def _full(written: Tile) -> bool:
    """Say whether every element was written, in all its bytes."""
    return bool(written.all() if written.dtype == bool else (written == -1).all())


def _box(array: Tile, region: Region) -> Tile:
    """Return the box of a region, a view with all dimensions; of a piece the box that it is a piece of."""
    view: Tile = array[tuple(slice(*dim) for dim in region.box)]
    return view


def _elements(array: Tile, region: Region) -> Tile:
    """Return the elements of a region, or of a piece, in row-major order."""
    start, stop = region.part or (0, None)
    return _box(array, region).reshape(-1)[start:stop]


def _deposit(array: Tile, access: Access, tile: Tile | Pending) -> None:
    """Store or add a tile, or one piece of it, to an array."""
    target = _box(array, access.region)
    if isinstance(tile, Pending):
        target.flat[0] = tile(int(target.flat[0]))
        return
    start, stop = access.region.part or (0, target.size)
    tile = tile.reshape(-1)
    if access.mode == ADD:
        with np.errstate(all="ignore"):
            tile = target.flat[start:stop] + tile
    target.flat[start:stop] = tile


def _mark(written: Tile, region: Region) -> None:
    target = _box(written, region)
    start, stop = region.part or (0, target.size)
    target.flat[start:stop] = -1
