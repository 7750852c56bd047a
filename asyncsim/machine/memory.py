"""The values of a run: every window of every rank, every cell, and what was ever written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.region import ADD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.region import Access, Region
    from asyncsim.trace.world import World

Tile = np.ndarray[Any, Any]


class Memory:
    """The arrays and counters of one run. Indexed by the slots that the world numbered.

    Args:
        world: what there is.
        seed: draws the content of windows declared ``dirty="random"``.

    """

    def __init__(self, world: World, seed: int) -> None:
        """Make every window zero, or as declared, and every cell its start value."""
        self.arrays: list[Tile] = []
        self._written: list[Tile | None] = []
        # A region that was once seen written stays so: the second look costs one set lookup.
        self._whole: set[Region] = set()
        self.unwritten: list[Region] = []
        for number, window in enumerate(world.windows):
            rng = np.random.default_rng(np.random.SeedSequence([seed, 1, number])) if window.dirty == "random" else None
            for _ in range(world.ranks):
                array = np.zeros(window.shape, window.dtype)
                if rng is not None:
                    array[...] = (rng.standard_normal(window.shape) * 64).astype(window.dtype)
                elif window.dirty is not None:
                    array[...] = window.dirty
                self.arrays.append(array)
                self._written.append(None if window.initialised else np.zeros(window.shape, bool))
        self.cells: list[int] = []
        for signal in world.signals:
            self.cells += [signal.start] * (signal.cells_a_rank * world.ranks)

    def read(self, region: Region) -> Tile:
        """Return a private copy of the region; note it if nobody wrote some element of it."""
        if region not in self._whole and not self._is_written(region):
            self.unwritten.append(region)
        tile: Tile = self.arrays[region.slot][region.index].copy()
        return tile

    def peek(self, region: Region) -> Tile:
        """Return the region itself, for a look that is no load."""
        tile: Tile = self.arrays[region.slot][region.index]
        return tile

    def write(self, region: Region, tile: Tile) -> None:
        """Store the tile."""
        self.arrays[region.slot][region.index] = tile
        if region not in self._whole:
            self._mark(region)

    def add(self, region: Region, tile: Tile) -> None:
        """Add the tile, element by element, in the window's dtype (integers wrap, as in hardware)."""
        array = self.arrays[region.slot]
        box = tuple(slice(*dim) for dim in region.box)
        with np.errstate(all="ignore"):
            array[box] += tile.reshape(array[box].shape)
        if region not in self._whole:
            self._mark(region)

    def deposit(self, access: Access, tile: Tile, piece: tuple[int, int] | None) -> None:
        """Let data land: store or add a tile, or one piece of it."""
        _deposit(self.arrays[access.region.slot], access, tile, piece)
        written = self._written[access.region.slot]
        if written is not None:
            _mark(written, access.region, piece)

    def read_over(self, region: Region, deposits: Sequence[tuple[Access, Tile, tuple[int, int] | None]]) -> Tile:
        """Return a private copy of the region as it would be if these had landed already, in this order."""
        array = self.arrays[region.slot].copy()
        written = self._written[region.slot]
        known = None if written is None else written.copy()
        for access, tile, piece in deposits:
            _deposit(array, access, tile, piece)
            if known is not None:
                _mark(known, access.region, piece)
        if known is not None and not known[region.index].all():
            self.unwritten.append(region)
        seen: Tile = array[region.index].copy()
        return seen

    def _is_written(self, region: Region) -> bool:
        """Say whether every element of the region was written by somebody, or declared initialised."""
        written = self._written[region.slot]
        if written is None or bool(written[region.index].all()):
            self._whole.add(region)
            return True
        return False

    def _mark(self, region: Region) -> None:
        written = self._written[region.slot]
        if written is not None:
            written[region.index] = True
        self._whole.add(region)


def _deposit(array: Tile, access: Access, tile: Tile, piece: tuple[int, int] | None) -> None:
    """Store or add a tile, or one piece of it, to an array."""
    box = tuple(slice(*dim) for dim in access.region.box)
    target = array[box]
    if piece is None:
        if access.mode == ADD:
            with np.errstate(all="ignore"):
                target += tile.reshape(target.shape)
        else:
            target[...] = tile.reshape(target.shape)
        return
    start, stop = piece
    if access.mode == ADD:
        with np.errstate(all="ignore"):
            tile = target.flat[start:stop] + tile
    target.flat[start:stop] = tile


def _mark(written: Tile, region: Region, piece: tuple[int, int] | None) -> None:
    target = written[tuple(slice(*dim) for dim in region.box)]
    if piece is None:
        target[...] = True
    else:
        target.flat[piece[0] : piece[1]] = True
