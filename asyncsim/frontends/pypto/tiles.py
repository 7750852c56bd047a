"""Arithmetic on tiles and scalars, as a table: names of the dialect, and numpy's functions for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.dtypes import DType, dtype_given
from asyncsim.frontends.pypto.places import integer, integers
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.values import Tile, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
"""Of two tiles, a tile and a scalar, or two scalars; of a tile and a scalar also called ``adds`` and so on."""
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "recip": lambda x: 1 / x, "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip
REDUCED: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min}
"""Along a row, ``row_sum``, or a column, ``col_sum``; the extent becomes 1."""
_SCALARS = np.generic | bool | int | float
_MATRIX = 2


class ValidTile(Tile):
    """A tile of which only a part is valid; what is computed from it has the same."""

    valid: tuple[int, ...] = ()

    def __array_finalize__(self, other: Any) -> None:  # noqa: ANN401 - numpy's protocol
        """Have the valid part of what it is made from, as long as that is in the same place."""
        known = getattr(other, "valid", ())
        self.valid = known if other is not None and other.shape == self.shape else ()


def with_valid(tile: Tile, shape: Sequence[int]) -> Tile:
    """Return a tile of this shape whose first elements, in every dimension, are valid; the others are zero.

    Args:
        tile: the valid part.
        shape: of the whole, in elements.

    """
    if list(tile.shape) == list(shape):
        return tile
    made = np.zeros(tuple(shape), tile.dtype).view(ValidTile)
    made.valid = tile.shape
    made[tuple(map(slice, tile.shape))] = tile
    return made


def valid_part(tile: Tile) -> Tile:
    """Return what is valid of a tile: what a store writes."""
    valid: tuple[int, ...] = getattr(tile, "valid", ())
    return np.asarray(tile[tuple(map(slice, valid))]) if valid else tile


def binary(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator of two operands, refused where they do not fit.

    Args:
        name: as authors write it, with its module.
        function: of numpy's.

    """

    def combine(a: Any, b: Any, *_: Any) -> Any:  # noqa: ANN401 - tiles and scalars
        for operand in (a, b):
            if not isinstance(operand, np.ndarray | _SCALARS) and not hasattr(operand, "__index__"):
                raise refused(f"{name} expects tiles or scalars; got {type_of(operand)}", TypeError)
        tiles = [operand for operand in (a, b) if isinstance(operand, np.ndarray)]
        if not tiles:
            return function(*(x if isinstance(x, _SCALARS) else int(x.__index__()) for x in (a, b))).item()
        if len(tiles) == _MATRIX and tiles[0].dtype != tiles[1].dtype:
            raise refused(f"{name} takes tiles of one dtype, got {tiles[0].dtype} and {tiles[1].dtype}; use pl.cast")
        if len(tiles) == _MATRIX and not _fit(tiles[0].shape, tiles[1].shape):
            raise refused(f"{name} takes tiles of one shape, got {list(tiles[0].shape)} and {list(tiles[1].shape)}")
        with np.errstate(all="ignore"):  # an overflow is a result here, as on the hardware
            a, b = (x if isinstance(x, np.ndarray) else np.asarray(x).astype(tiles[0].dtype) for x in (a, b))
            return function(a, b).astype(tiles[0].dtype, copy=False)

    return combine


def _fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Say whether two shapes are one, or differ by extents of 1."""
    return len(one) == len(other) and all(a == b or 1 in {a, b} for a, b in zip(one, other, strict=True))


def unary(name: str, function: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return an operator of one operand, likewise.

    Args:
        name: as for `binary`.
        function: of one array.

    """

    def apply(x: Any, *_: Any) -> Any:  # noqa: ANN401 - a tile or a scalar
        if not isinstance(x, np.ndarray | _SCALARS):
            raise refused(f"{name} expects a tile or a scalar; got {type_of(x)}", TypeError)
        with np.errstate(all="ignore"):
            made = function(x)
        return made.astype(x.dtype, copy=False) if isinstance(x, np.ndarray) else np.asarray(made).item()

    return apply


def reduced(name: str, function: Callable[..., Any], axis: int) -> Callable[..., Any]:
    """Return a reduction along an axis of a tile, which stays with extent 1; a scratch tile is taken, and not used.

    Args:
        name: as for `binary`.
        function: of numpy's.
        axis: of the tile.

    """

    def reduce(tile: Any, *_: Any, **__: Any) -> Tile:  # noqa: ANN401 - checked here
        made: Tile = function(_tile(name, tile), axis=axis, keepdims=True).astype(tile.dtype, copy=False)
        return made

    return reduce


def cast(x: Any, target_type: DType, mode: str = "round") -> Any:  # noqa: ANN401, ARG001 - upstream's signature
    """Return a tile, or a scalar, in another dtype; numpy rounds to the nearest, and truncates to integers.

    Args:
        x: a tile or a number.
        target_type: one of ``pl``'s dtypes.
        mode: as upstream's; not used.

    Raises:
        RefusedError: `x` is neither, or `target_type` is not a dtype.

    """
    dtype = dtype_given(target_type, "pl.cast").numpy
    if not isinstance(x, np.ndarray | _SCALARS):
        raise refused(f"pl.cast expects a tile or a scalar; got {type_of(x)}", TypeError)
    with np.errstate(all="ignore"):
        made = x.astype(dtype) if isinstance(x, np.ndarray) else np.asarray(x).astype(dtype)
    return made if isinstance(x, np.ndarray) else made.item()


def const(value: Any, dtype: DType) -> Any:  # noqa: ANN401 - a number
    """Return a number as a scalar of a dtype holds it.

    Args:
        value: a number.
        dtype: one of ``pl``'s.

    """
    return cast(value, dtype)


def full(shape: Sequence[int], dtype: DType, value: Any) -> Tile:  # noqa: ANN401 - a number
    """Return a tile of one value.

    Args:
        shape: in elements.
        dtype: one of ``pl``'s.
        value: of every element.

    """
    return np.full(tuple(integers("pl.full", "shape", shape)), value, dtype_given(dtype, "pl.full").numpy)


def create_tile(shape: Sequence[int], dtype: DType, target_memory: object = None) -> Tile:  # noqa: ARG001 - upstream's
    """Return a tile to be written, of zeros.

    Args:
        shape: in elements.
        dtype: one of ``pl``'s.
        target_memory: where it lies; means nothing here.

    """
    return full(shape, dtype, 0)


def reshape(tile: Any, shape: Sequence[int]) -> Tile:  # noqa: ANN401 - checked here
    """Return the same elements in another shape.

    Args:
        tile: a tile.
        shape: in elements, as many.

    Raises:
        RefusedError: it has another number of elements.

    """
    extents = integers("pl.reshape", "shape", shape)
    if int(np.prod(extents, dtype=int)) != _tile("pl.reshape", tile).size:
        raise refused(f"pl.reshape of {list(tile.shape)} to {extents}: they differ in the number of elements")
    return np.array(tile).reshape(extents)


def transpose(tile: Any, axis1: int, axis2: int) -> Tile:  # noqa: ANN401 - checked here
    """Return a tile with two dimensions exchanged.

    Args:
        tile: a tile.
        axis1: one of them.
        axis2: the other.

    Raises:
        RefusedError: the tile does not have such a dimension.

    """
    one, other = (integer("pl.transpose", "axis", axis) for axis in (axis1, axis2))
    try:
        return np.swapaxes(_tile("pl.transpose", tile), one, other).copy()
    except ValueError as error:
        raise refused(f"pl.transpose: {error}") from None


def matmul(a: Any, b: Any, **_: Any) -> Tile:  # noqa: ANN401 - checked here
    """Return a product of matrices, accumulated in FP32, of integers in INT32.

    Args:
        a: a tile of shape (M, K).
        b: a tile of shape (K, N), of the same dtype.

    Raises:
        RefusedError: they do not fit each other.

    """
    left, right = _tile("pl.matmul", a), _tile("pl.matmul", b)
    if left.dtype != right.dtype or left.ndim != _MATRIX or right.ndim != _MATRIX or left.shape[1] != right.shape[0]:
        raise refused(
            f"pl.matmul takes tiles [M, K] and [K, N] of one dtype, got {list(left.shape)} of {left.dtype} "
            f"and {list(right.shape)} of {right.dtype}"
        )
    wide = np.int32 if left.dtype.kind in "iu" else np.float32
    made: Tile = left.astype(wide) @ right.astype(wide)
    return made


def matmul_acc(acc: Any, a: Any, b: Any, **_: Any) -> Tile:  # noqa: ANN401 - checked here
    """Return the product of `a` and `b`, added to a tile that has its shape and dtype.

    Args:
        acc: what it is added to.
        a: as for `matmul`.
        b: as for `matmul`.

    """
    made: Tile = binary("pl.matmul_acc", np.add)(_tile("pl.matmul_acc", acc), matmul(a, b))
    return made


def move(tile: Any, *_: Any, **__: Any) -> Tile:  # noqa: ANN401 - checked here
    """Return a tile in another memory of its core, which is the same tile here."""
    return _tile("pl.move", tile)


def _tile(name: str, tile: Any) -> Tile:  # noqa: ANN401 - checked here
    if not isinstance(tile, np.ndarray):
        raise refused(f"{name} expects a tile; got {type_of(tile)}", TypeError)
    return tile


def tile_operators() -> dict[str, Callable[..., Any]]:
    """Return them all, by name."""
    two = {name: binary(f"pl.{name}", function) for name, function in BINARY.items()}
    expanded = {
        f"{along}_expand_{name}": binary(f"pl.{along}_expand_{name}", BINARY[name])
        for along in ("row", "col") for name in ("add", "sub", "mul", "div")
    }  # fmt: skip
    along = {
        f"{kind}_{name}": reduced(f"pl.{kind}_{name}", function, axis)
        for kind, axis in (("row", -1), ("col", -2)) for name, function in REDUCED.items()
    }  # fmt: skip
    others = (cast, const, full, create_tile, reshape, transpose, matmul, matmul_acc, move)
    return {
        **two,
        **{f"{name}s": binary(f"pl.{name}s", BINARY[name]) for name in ("add", "sub", "mul", "div")},
        **{name: unary(f"pl.{name}", function) for name, function in UNARY.items()},
        **expanded,
        **along,
        **{each.__name__: each for each in others},
    }
