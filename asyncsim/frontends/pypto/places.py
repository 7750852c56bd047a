"""Offsets and shapes, as operations of the dialect give them, checked and made into places."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.annotations import Dynamic
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.values import LocalTensor, Tile, WindowTensor, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.region import Region

Slices = tuple[slice, ...]
Shaped = LocalTensor | WindowTensor | Tile
_PLAIN = {int}


def integer(name: str, what: str, value: Any) -> int:  # noqa: ANN401 - refused if it is no integer
    """Return a number that must be an integer."""
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise refused(f"{name} {what} must be an integer, got {value!r}", TypeError)
    return int(value.__index__())


def integers(name: str, what: str, values: Any) -> list[int]:  # noqa: ANN401 - refused if it is no list
    """Return a list that must be one of integers."""
    if values.__class__ in (list, tuple) and {*map(type, values)} == _PLAIN:
        return values if values.__class__ is list else [*values]  # as a rule; this runs for every operation
    if not isinstance(values, list | tuple):
        raise refused(f"{name} {what} must be a list of integers, such as [0, 0]; got {values!r}", TypeError)
    for value in values:
        if isinstance(value, Dynamic) and value.known() is None:
            raise refused(
                f"{name} {what} holds {value!r}, which only annotations know; use pld.nranks(ctx) in a kernel, "
                "pld.world_size() in the host function",
                TypeError,
            )
    return [integer(name, f"{what}[{number}]", value) for number, value in enumerate(values)]


def box(name: str, target: Shaped, offsets: Any, shape: Any) -> Slices:  # noqa: ANN401 - checked here
    """Return the box at these offsets, of this shape, as slices of the target.

    Raises:
        RefusedError: the numbers are not one a dimension, or the box leaves the target.

    """
    at = offsets_of(name, target, offsets)
    extents = integers(name, "shape", shape)
    if len(extents) != len(target.shape):
        raise refused(f"{name} shape rank ({len(extents)}) must match target tensor rank ({len(target.shape)})")
    found = _slices(tuple(at), tuple(extents), target.shape)
    if isinstance(found, int):
        raise refused(
            f"{name} offsets {at} and shape {extents} leave dimension {found} of the target, whose shape is "
            f"{list(target.shape)}"
        )
    return found


@lru_cache(maxsize=4096)
def _slices(at: tuple[int, ...], extents: tuple[int, ...], sizes: tuple[int, ...]) -> Slices | int:
    """Return a box as slices; or the dimension that it leaves."""
    for dim, (start, extent, size) in enumerate(zip(at, extents, sizes, strict=True)):
        if start < 0 or extent < 0 or start + extent > size:
            return dim
    return tuple(slice(start, start + extent) for start, extent in zip(at, extents, strict=True))


def offsets_of(name: str, target: Shaped, offsets: Any) -> list[int]:  # noqa: ANN401 - checked here
    """Return offsets that must be one a dimension."""
    at = integers(name, "offsets", offsets)
    if len(at) != len(target.shape):
        raise refused(f"{name} offsets rank ({len(at)}) must match target tensor rank ({len(target.shape)})")
    return at


def cell(name: str, target: Shaped, offsets: Any) -> tuple[int, ...]:  # noqa: ANN401 - checked here
    """Return the place of one element.

    Raises:
        RefusedError: the offsets are not one a dimension, or leave the target.

    """
    at = offsets_of(name, target, offsets)
    for dim, (start, size) in enumerate(zip(at, target.shape, strict=True)):
        if not 0 <= start < size:
            raise refused(
                f"{name} offsets {at} leave dimension {dim} of the target, whose shape is {list(target.shape)}"
            )
    return tuple(at)


def peer_of(name: str, target: WindowTensor, peer: Any) -> int:  # noqa: ANN401 - checked here
    """Return the peer, which must be a rank."""
    number = peer if peer.__class__ is int else integer(name, "peer", peer)
    if not 0 <= number < target.rank.size:
        raise refused(f"{name} peer must be a rank, 0 to {target.rank.size - 1}, got {number}")
    return number


def region(name: str, target: WindowTensor, slices: Slices, peer: int | None = None) -> Region:
    """Return a region of a window: the own one, or a peer's."""
    window = target.data()
    found = (window if peer is None else window.at(peer))[target.index(slices)]
    if target.kept and found.spans and found.spans[0][0] < target.kept:
        raise refused(
            f"{name} touches bytes that are cells of a signal: the first {target.kept} of the buffer allocated at "
            f"{target.view.buffer.place}; use pld.system.wait and pld.system.notify for cells; data of the same "
            "buffer begins behind them"
        )
    return found


def tile_of(name: str, tile: Any, target: LocalTensor | WindowTensor) -> np.ndarray[Any, Any]:  # noqa: ANN401 - checked here
    """Return a tile that must be one, of the target's element type and its number of dimensions."""
    if not isinstance(tile, np.ndarray):
        raise refused(f"{name} expects a tile; got {type_of(tile)}", TypeError)
    if len(tile.shape) != len(target.shape):
        raise refused(f"{name} tile rank ({len(tile.shape)}) must match target tensor rank ({len(target.shape)})")
    if tile.dtype != target.dtype.numpy:
        raise refused(f"{name} tile has dtype {tile.dtype}, the target {target.dtype}; use pl.cast", TypeError)
    return tile


def extents(values: Sequence[int]) -> str:
    """Write a shape as upstream does."""
    return f"[{', '.join(map(str, values))}]"
