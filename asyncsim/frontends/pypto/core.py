"""The operations of ``pl`` on tensors: loads, stores, slices, subscripts.

A tensor of the kernel's own is private memory: nothing is scheduled there. On a window, a load or store is one
operation of the rank; of a signal's cells, one operation a cell.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.dtypes import DType, dtype_given
from asyncsim.frontends.pypto.operation import Operation, awaited
from asyncsim.frontends.pypto.places import box, cell, integer, integers, region, tile_of
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.tiles import valid_part, with_valid
from asyncsim.frontends.pypto.values import LocalTensor, Tile, UnknownValueError, WindowTensor, type_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator, Sequence

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


async def load(
    tensor: Tensor,
    offsets: Sequence[int],
    shape: Sequence[int],
    valid_shape: Sequence[int] | None = None,
    *,
    target_memory: object = None,  # noqa: ARG001 - where the tile lies in its core
) -> Tile:
    """Return a private copy of a box.

    Args:
        tensor: the kernel's own, or a window; of a signal, the values that its own cells have now.
        offsets: where the box begins, in elements, one a dimension.
        shape: of the tile, in elements.
        valid_shape: of its valid part, which is loaded; None: all of it.
        target_memory: means nothing here.

    """
    valid = valid_of("pl.load", shape, valid_shape)
    slices = box("pl.load", tensor_of("pl.load", tensor), offsets, valid)
    if isinstance(tensor, LocalTensor):
        tile = tensor.array[slices].copy()
    elif (cells := tensor.cells_read()) is not None:
        tile = np.zeros(tuple(part.stop - part.start for part in slices), np.int32)
        for at in np.ndindex(tile.shape):  # each is an operation by itself
            place = tuple(part.start + offset for part, offset in zip(slices, at, strict=True))
            tile[at] = await awaited(tensor.rank.read(cells[tensor.index(place)]))
    else:
        tile = await awaited(tensor.rank.load(region("pl.load", tensor, slices)))
    return with_valid(tile, shape)


def valid_of(name: str, shape: Sequence[int], valid: Sequence[int] | None) -> Sequence[int]:
    """Return the shape of the valid part of a tile.

    Args:
        name: of the operation, for the message.
        shape: of the tile, in elements.
        valid: of the valid part, if it is said.

    Raises:
        RefusedError: it does not fit the tile.

    """
    if valid is None:
        return shape
    whole, part = integers(name, "shape", shape), integers(name, "valid_shape", valid)
    if len(whole) != len(part) or any(not 0 <= some <= most for some, most in zip(part, whole, strict=True)):
        raise refused(f"{name} valid_shape {part} must be within the shape {whole}")
    return part


async def store(tile: Tile, offsets: Sequence[int], tensor: Tensor) -> Tensor:
    """Store a tile, or what is valid of it, at these offsets, and return the tensor.

    Args:
        tile: of the tensor's dtype and number of dimensions.
        offsets: in elements, one a dimension.
        tensor: the kernel's own, or a window.

    """
    tile = valid_part(tile_of("pl.store", tile, tensor_of("pl.store", tensor)))
    await _storing("pl.store", tensor, box("pl.store", tensor, offsets, tile.shape), tile)
    return tensor


def _storing(name: str, tensor: Tensor, slices: tuple[slice, ...], tile: Tile) -> Awaitable[Any]:
    """Return the store of a tile as one operation; of a tensor of the kernel's own it is done, and is none."""
    if isinstance(tensor, LocalTensor):
        tensor.note_written()
        tensor.array[slices] = tile
        return _nothing()
    return awaited(tensor.rank.store(region(name, tensor, slices), tile))


@types.coroutine
def _nothing() -> Generator[Any, Any, None]:
    yield from ()


async def read(tensor: Tensor | Tile, offsets: Sequence[int]) -> Any:  # noqa: ANN401 - a Python number
    """Return one element as a number.

    Args:
        tensor: the kernel's own, a window, or a tile; of a signal, the value that its own cell has now. It does not
            wait.
        offsets: in elements, one a dimension.

    """
    if isinstance(tensor, np.ndarray):
        return tensor[cell("pl.read", tensor, offsets)].item()
    at = cell("pl.read", tensor_of("pl.read", tensor), offsets)
    if isinstance(tensor, LocalTensor):
        tensor.note_read(at)
        if tensor.unknown:
            raise UnknownValueError
        return tensor.array[at].item()
    if (cells := tensor.cells_read()) is not None:
        return await awaited(tensor.rank.read(cells[tensor.index(at)]))
    slices = tuple(slice(start, start + 1) for start in at)
    return (await awaited(tensor.rank.load(region("pl.read", tensor, slices)))).item()


async def write(tensor: Tensor | Tile, offsets: Sequence[int], value: Any) -> Tensor | Tile:  # noqa: ANN401 - a Python number
    """Write one element, and return the tensor.

    Args:
        tensor: the kernel's own, a window, or a tile.
        offsets: in elements, one a dimension.
        value: a number, cast to the tensor's dtype.

    Raises:
        RefusedError: the value is not a number, or the offsets leave the tensor.

    """
    if not isinstance(value, bool | int | float | np.generic):
        raise refused(f"pl.write expects a scalar value; got {type_of(value)}", TypeError)
    if isinstance(tensor, np.ndarray):
        tensor[cell("pl.write", tensor, offsets)] = value
        return tensor
    at = cell("pl.write", tensor_of("pl.write", tensor), offsets)
    made = np.full((1,) * len(at), value, tensor.dtype.numpy)
    await _storing("pl.write", tensor, tuple(slice(start, start + 1) for start in at), made)
    return tensor


async def assemble(target: Tensor | Tile, source: Tensor | Tile, offset: Sequence[int]) -> Tensor | Tile:
    """Put a tile, or what a tensor holds, into a tensor or a tile at an offset; return the target.

    Args:
        target: the kernel's own tensor, a window, or a tile, of which a copy is changed.
        source: of the target's dtype and number of dimensions.
        offset: in elements, one a dimension.

    """
    name = "pl.assemble"
    if isinstance(source, LocalTensor | WindowTensor):
        source = await load(source, [0] * len(source.shape), list(source.shape))
    if isinstance(target, np.ndarray):
        made = target.copy()
        tile = valid_part(tile_of(name, source, LocalTensor(made)))
        made[box(name, made, offset, tile.shape)] = tile
        return made
    tile = valid_part(tile_of(name, source, tensor_of(name, target)))
    await _storing(name, target, box(name, target, offset, tile.shape), tile)
    return target


def part_of(tensor: Any, shape: Sequence[int], offset: Sequence[int], valid_shape: Sequence[int] | None = None) -> Any:  # noqa: ANN401
    """Return a part of a tensor, which it is a view of, or of a tile, which it is a copy of: ``pl.slice``.

    Args:
        tensor: the kernel's own, a window, or a tile.
        shape: of the part, in elements.
        offset: where it begins, in elements, one a dimension.
        valid_shape: of its valid part; None: all of it.

    """
    slices = box("pl.slice", tensor if isinstance(tensor, np.ndarray) else tensor_of("pl.slice", tensor), offset,
                 valid_of("pl.slice", shape, valid_shape))  # fmt: skip
    if not isinstance(tensor, np.ndarray):
        return tensor.part(slices)
    return with_valid(tensor[slices].copy(), shape)


def create_tensor(shape: Sequence[int], dtype: DType, **_: object) -> LocalTensor:
    """Return a tensor of the kernel's own, of zeros.

    Args:
        shape: in elements.
        dtype: one of ``pl``'s.

    """
    name = "pl.create_tensor"
    return LocalTensor(np.zeros(tuple(integers(name, "shape", shape)), dtype_given(dtype, name).numpy))


def _key(tensor: Tensor, index: Any) -> tuple[int | slice, ...]:  # noqa: ANN401 - whatever stands between the brackets
    """Return what stands between the brackets behind a tensor: an offset or a slice for every dimension."""
    shown = index if isinstance(index, tuple) else (index,)
    sizes = tensor.shape
    if len(shown) > len(sizes):
        raise refused(f"a tensor of shape {list(sizes)} takes at most {len(sizes)} subscripts, got {len(shown)}")
    found: list[int | slice] = []
    for number, size in enumerate(sizes):
        each = shown[number] if number < len(shown) else slice(None)
        if isinstance(each, slice):
            if each.step not in (None, 1):
                raise refused(f"a tensor takes slices without a step, got {each.step}")
            bounds = (each.start, 0), (each.stop, size)
            low, high = (default if b is None else integer("a slice of a tensor", "bound", b) for b, default in bounds)
        else:
            low = integer("a tensor", "subscript", each)
            high = low + 1
        if not 0 <= low < high <= size:
            raise refused(f"subscripts leave dimension {number} of a tensor of shape {list(sizes)}: {low} to {high}")
        found.append(slice(low, high) if isinstance(each, slice) else low)
    return tuple(found)


def _subscript(tensor: Tensor, index: Any) -> Any:  # noqa: ANN401 - as above
    """Return an element, ``t[0, 1]``, or a part of a tensor, ``t[0]``, ``t[0:2, :]``."""
    key = _key(tensor, index)
    whole = any(isinstance(each, slice) for each in key)
    return tensor.part(key) if whole else Operation("a subscript", read)(tensor, list(key))


def _subscript_set(tensor: Tensor, index: Any, value: Any) -> None:  # noqa: ANN401 - as above
    """Write an element, or store a tile to a part."""
    key = _key(tensor, index)
    if not any(isinstance(each, slice) for each in key):
        Operation("a subscript", write)(tensor, list(key), value)
    elif value is not tensor:
        part = tensor.part(key)
        Operation("a subscript", assemble)(part, value, [0] * len(part.shape))


for _kind in (LocalTensor, WindowTensor):
    setattr(_kind, "__getitem__", _subscript)  # noqa: B010 - they are operations, which values know nothing of
    setattr(_kind, "__setitem__", _subscript_set)  # noqa: B010 - as above
