"""The operations of ``pl``: loads and stores of a kernel's tensors, and arithmetic on tiles.

A tensor of the kernel's own is private memory: nothing is scheduled there. On a window, a load or store is one
operation of the rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.dtypes import DType, dtype_given
from asyncsim.frontends.pypto.operation import awaited
from asyncsim.frontends.pypto.places import box, cell, integer, region, tile_of
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.values import LocalTensor, Tile, UnknownValueError, WindowTensor, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = LocalTensor | WindowTensor


def tensor_of(name: str, tensor: object) -> Tensor:
    """Return an operand that must be a tensor, the kernel's own or a window.

    Args:
        name: of the operation, for the message.
        tensor: what was given.

    Raises:
        RefusedError: it is something else; a TypeError, too.

    """
    if not isinstance(tensor, LocalTensor | WindowTensor):
        raise refused(f"{name} expects a Tensor or a DistributedTensor; got {type_of(tensor)}", TypeError)
    return tensor


async def load(tensor: Tensor, offsets: Sequence[int], shape: Sequence[int]) -> Tile:
    """Return a private copy of a box.

    Args:
        tensor: the kernel's own, or a window.
        offsets: where the box begins, in elements, one a dimension.
        shape: of the box, in elements.

    """
    slices = box("pl.load", tensor_of("pl.load", tensor), offsets, shape)
    if isinstance(tensor, LocalTensor):
        return tensor.array[slices].copy()
    return await awaited(tensor.rank.load(region("pl.load", tensor, slices)))  # type: ignore[no-any-return]


async def store(tile: Tile, offsets: Sequence[int], tensor: Tensor) -> Tensor:
    """Store a tile at these offsets, and return the tensor.

    Args:
        tile: of the tensor's dtype and number of dimensions.
        offsets: in elements, one a dimension.
        tensor: the kernel's own, or a window.

    """
    tile = tile_of("pl.store", tile, tensor_of("pl.store", tensor))
    slices = box("pl.store", tensor, offsets, tile.shape)
    if isinstance(tensor, LocalTensor):
        tensor.note_written()
        tensor.array[slices] = tile
    else:
        await awaited(tensor.rank.store(region("pl.store", tensor, slices), tile))
    return tensor


async def read(tensor: Tensor, offsets: Sequence[int]) -> Any:  # noqa: ANN401 - a Python number
    """Return one element as a number.

    Args:
        tensor: the kernel's own, or a window.
        offsets: in elements, one a dimension.

    """
    at = cell("pl.read", tensor_of("pl.read", tensor), offsets)
    if isinstance(tensor, LocalTensor):
        tensor.note_read(at)
        if tensor.unknown:
            raise UnknownValueError
        return tensor.array[at].item()
    slices = tuple(slice(start, start + 1) for start in at)
    return (await awaited(tensor.rank.load(region("pl.read", tensor, slices)))).item()


async def write(tensor: Tensor, offsets: Sequence[int], value: Any) -> Tensor:  # noqa: ANN401 - a Python number
    """Write one element, and return the tensor.

    Args:
        tensor: the kernel's own, or a window.
        offsets: in elements, one a dimension.
        value: a number, cast to the tensor's dtype.

    Raises:
        RefusedError: the value is no number, or the offsets leave the tensor.

    """
    at = cell("pl.write", tensor_of("pl.write", tensor), offsets)
    if not isinstance(value, bool | int | float | np.generic):
        raise refused(f"pl.write expects a scalar value; got {type_of(value)}", TypeError)
    made = np.full((1,) * len(at), value, tensor.dtype.numpy)
    if isinstance(tensor, LocalTensor):
        tensor.note_written()
        tensor.array[at] = made.reshape(())[()]
    else:
        slices = tuple(slice(start, start + 1) for start in at)
        await awaited(tensor.rank.store(region("pl.write", tensor, slices), made))
    return tensor


def count(*bounds: Any) -> range:  # noqa: ANN401 - checked here
    """Return the numbers from a start to a stop: ``pl.range``."""
    if not 1 <= len(bounds) <= 3:  # noqa: PLR2004 - stop; start, stop; start, stop, step
        raise refused(f"pl.range takes a stop, a start and a stop, or these and a step; got {len(bounds)} numbers")
    return range(*(integer("pl.range", "bound", bound) for bound in bounds))


def _combine(name: str, ufunc: np.ufunc, a: Any, b: Any) -> Any:  # noqa: ANN401 - tiles and scalars
    for operand in (a, b):
        if not isinstance(operand, np.ndarray | np.generic | bool | int | float):
            raise refused(f"{name} expects tiles or scalars; got {type_of(operand)}", TypeError)
    tiles = [operand for operand in (a, b) if isinstance(operand, np.ndarray)]
    if not tiles:
        return ufunc(a, b).item()
    if len(tiles) == 2 and tiles[0].dtype != tiles[1].dtype:  # noqa: PLR2004 - both
        raise refused(f"{name} takes tiles of one dtype, got {tiles[0].dtype} and {tiles[1].dtype}; use pl.cast")
    with np.errstate(all="ignore"):  # an overflow is a result here, as on the hardware
        a, b = (x if isinstance(x, np.ndarray) else np.asarray(x).astype(tiles[0].dtype) for x in (a, b))
        return ufunc(a, b)


def add(a: Any, b: Any) -> Any:  # noqa: ANN401 - tiles and scalars
    """Return the sum of two tiles, a tile and a scalar, or two scalars.

    Args:
        a: a tile or a number.
        b: the same; of one dtype with `a`, if both are tiles.

    """
    return _combine("pl.add", np.add, a, b)


def sub(a: Any, b: Any) -> Any:  # noqa: ANN401 - as above
    """Return the difference, likewise.

    Args:
        a: what is taken from.
        b: what is taken.

    """
    return _combine("pl.sub", np.subtract, a, b)


def mul(a: Any, b: Any) -> Any:  # noqa: ANN401 - as above
    """Return the product, likewise.

    Args:
        a: as for `add`.
        b: as for `add`.

    """
    return _combine("pl.mul", np.multiply, a, b)


def cast(x: Any, target_type: DType, mode: str = "round") -> Any:  # noqa: ANN401, ARG001 - upstream's signature
    """Return a tile, or a scalar, in another dtype; numpy rounds to the nearest, and truncates to integers.

    Args:
        x: a tile or a number.
        target_type: one of ``pl``'s dtypes.
        mode: as upstream's; not used.

    Raises:
        RefusedError: `x` is neither, or `target_type` is no dtype.

    """
    dtype = dtype_given(target_type, "pl.cast").numpy
    if not isinstance(x, np.ndarray | np.generic | bool | int | float):
        raise refused(f"pl.cast expects a tile or a scalar; got {type_of(x)}", TypeError)
    with np.errstate(all="ignore"):
        made = np.asarray(x).astype(dtype)
    return made if isinstance(x, np.ndarray) else made.item()
