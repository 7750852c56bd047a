"""Reduction operators: what is done with two tiles, and with the last one.

A reduction combines tiles one after another, in the order in which it gets them. It does so in the
dtype of the tiles, as the hardware does, unless a wider accumulator is asked for: a sum of many
16-bit numbers loses small terms one by one, and a sum of int8 wraps.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.declare import dtype_of
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

Tile = np.ndarray[Any, Any]


class ReduceOp(IntEnum):
    """What a reduction does with its tiles. The first four have upstream's integers.

    Sum, Prod: integers wrap; of booleans they are *or* and *and*. Max, Min: a NaN on either side
    stays, so all ranks agree. Avg: the sum, then one division by the number of tiles; of integers
    it is rounded down. BAND, BOR, BXOR: integers and booleans only.
    """

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3
    Avg = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    def check(self, dtype: Any) -> None:  # noqa: ANN401 - whatever `dtype_of` takes
        """Refuse a dtype that this operator has no meaning for.

        Raises:
            RefusedError: it has none.

        """
        found = dtype_of(dtype)
        if self in _BITWISE and found.kind not in "biu":
            raise RefusedError(f"Cannot use ReduceOp.{self.name} with non-integral dtype")
        if self in (ReduceOp.Max, ReduceOp.Min) and found.kind == "c":
            raise RefusedError(f"ReduceOp.{self.name} of {found}: complex numbers have no order")
        if self is ReduceOp.Avg and found.kind == "b":
            raise RefusedError("ReduceOp.Avg of bool: booleans cannot be divided; use BAND or BOR")

    def start(self, tile: Tile, accumulate: Any = None) -> Tile:  # noqa: ANN401 - whatever `dtype_of` takes
        """Return the accumulator that begins with `tile`.

        Args:
            tile: the first tile, of any shape.
            accumulate: the dtype to accumulate in; None: the tile's own.

        Raises:
            RefusedError: the operator has no meaning for the tile, or the accumulator is narrower than it.

        """
        self.check(tile.dtype)
        if accumulate is None:
            return tile
        wide = dtype_of(accumulate, "accumulate")
        if not np.can_cast(tile.dtype, wide, "safe"):
            raise RefusedError(f"accumulate={wide} does not hold every {tile.dtype}; accumulate in a wider dtype")
        return tile.astype(wide)

    def combine(self, acc: Tile, tile: Tile) -> Tile:
        """Return what `acc` becomes with one more tile, in the dtype of `acc`.

        Args:
            acc: the accumulator, as `start` makes it.
            tile: of the same shape; it is cast to the dtype of `acc`.

        """
        with np.errstate(all="ignore"):  # an overflow to inf and a NaN are results here, no accidents
            combined: Tile = _UFUNCS[self](acc, tile.astype(acc.dtype, copy=False))
        return combined

    def finish(self, acc: Tile, terms: int, dtype: Any = None) -> Tile:  # noqa: ANN401 - whatever `dtype_of` takes
        """Return the result of a reduction.

        Args:
            acc: all tiles combined.
            terms: how many tiles that were.
            dtype: of the result; None: that of `acc`.

        """
        with np.errstate(all="ignore"):
            result = _divided(acc, terms) if self is ReduceOp.Avg else acc
            return result if dtype is None else result.astype(dtype, copy=False)

    def reduce(self, tiles: Sequence[Tile], *, accumulate: Any = None) -> Tile:  # noqa: ANN401 - whatever `dtype_of` takes
        """Reduce tiles of one shape and dtype, in the order given, to one of the same shape and dtype.

        Args:
            tiles: at least one.
            accumulate: the dtype to reduce in; None: that of the tiles.

        """
        acc = self.start(tiles[0], accumulate)
        for tile in tiles[1:]:
            acc = self.combine(acc, tile)
        return self.finish(acc, len(tiles), tiles[0].dtype)


def _divided(acc: Tile, terms: int) -> Tile:
    """Return `acc` divided by a count, in its own dtype."""
    if acc.dtype.kind not in "iu":
        return np.asarray(acc / np.array(terms, acc.dtype))
    wide = np.int64 if acc.dtype.kind == "i" else np.uint64  # int8 does not hold every count of ranks
    return (acc.astype(wide) // terms).astype(acc.dtype)


_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)

_UFUNCS: dict[ReduceOp, np.ufunc] = {
    ReduceOp.Sum: np.add,
    ReduceOp.Max: np.maximum,
    ReduceOp.Min: np.minimum,
    ReduceOp.Prod: np.multiply,
    ReduceOp.Avg: np.add,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}
