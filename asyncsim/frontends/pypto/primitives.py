"""The primitives of ``pld``: notify and wait, loads and stores at peers, get and put.

What upstream's type rules refuse is refused in their words; what they leave unchecked, in ours.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.core import tensor_of, valid_of
from asyncsim.frontends.pypto.dtypes import DTYPES, AtomicType, NotifyOp, WaitCmp
from asyncsim.frontends.pypto.operation import awaited
from asyncsim.frontends.pypto.places import box, cell, integer, integers, peer_of, region, tile_of
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.tiles import valid_part, with_valid
from asyncsim.frontends.pypto.values import CommCtx, LocalTensor, WindowTensor, type_of, window_of
from asyncsim.trace.cells import ATOMIC_ADD, SET
from asyncsim.trace.region import Cell, Condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.frontends.pypto.core import Tensor
    from asyncsim.frontends.pypto.places import Slices
    from asyncsim.frontends.pypto.values import Tile

_ADD: Any = "add"
_NOTIFY_OPS, _WAIT_CMPS, _ATOMIC_TYPES = tuple(NotifyOp), tuple(WaitCmp), tuple(AtomicType)


def shown_number(value: object) -> str:
    """Write what was given for an enumeration as upstream does: ``int 7``."""
    return f"int {int(value)}" if isinstance(value, int) else repr(value)


def get_comm_ctx(tensor: object) -> CommCtx:
    """Return who takes part, by a window."""
    if not isinstance(tensor, WindowTensor):  # upstream writes a comma here, where its other rules have a semicolon
        raise refused(
            f"pld.system.get_comm_ctx expects a DistributedTensor (window-bound), got {type_of(tensor)}", TypeError
        )
    return CommCtx(tensor.rank)


def _context(name: str, ctx: object) -> CommCtx:
    if not isinstance(ctx, CommCtx):
        raise refused(f"{name} expects a CommCtx, which pld.get_comm_ctx returns; got {type_of(ctx)}", TypeError)
    return ctx


def rank(ctx: object) -> int:
    """Return the number of this rank."""
    return _context("pld.rank", ctx).rank.id


def nranks(ctx: object) -> int:
    """Return the number of ranks."""
    return _context("pld.nranks", ctx).rank.size


def _cell(name: str, target: WindowTensor, peer: int | None, offsets: Sequence[int]) -> Cell:
    at = cell(name, target, offsets)
    if target.dtype is not DTYPES["INT32"]:
        raise refused(f"{name} target must have INT32 element type, got dtype {target.dtype}", TypeError)
    cells = target.cells()
    return (cells if peer is None else cells.at(peer))[target.index(at)]


async def notify(target: WindowTensor, peer: int, offsets: Sequence[int], value: int, *, op: NotifyOp) -> WindowTensor:
    """Add to the peer's cell, or set it; return the window.

    Args:
        target: a window of INT32.
        peer: a rank; may be the caller itself.
        offsets: of the cell, one a dimension.
        value: what is added or set.
        op: AtomicAdd or Set.

    Raises:
        RefusedError: one of them does not fit.

    """
    name = "pld.system.notify"
    window_of(name, target)
    if isinstance(op, bool) or op not in _NOTIFY_OPS:
        raise refused(f"{name} op must be NotifyOp.AtomicAdd or NotifyOp.Set (got {shown_number(op)})")
    place = _cell(name, target, peer_of(name, target, peer), offsets)
    how = ATOMIC_ADD if op == NotifyOp.AtomicAdd else SET
    await awaited(target.rank.notify(place, integer(name, "value", value), how))
    return target


async def wait(signal: WindowTensor, offsets: Sequence[int], expected: int, *, cmp: WaitCmp) -> WindowTensor:
    """Park until the own cell compares true; return the window.

    Args:
        signal: a window of INT32.
        offsets: of the own cell, one a dimension.
        expected: what the cell is compared with.
        cmp: Eq or Ge.

    Raises:
        RefusedError: one of them does not fit.

    """
    name = "pld.system.wait"
    window_of(name, signal, " signal")
    if isinstance(cmp, bool) or cmp not in _WAIT_CMPS:
        raise refused(f"{name} cmp must be WaitCmp.Eq or WaitCmp.Ge (got {shown_number(cmp)})")
    place = _cell(name, signal, None, offsets)
    awaits = Condition(place, "Eq" if cmp == WaitCmp.Eq else "Ge", integer(name, "expected", expected))
    await awaited(signal.rank.wait(awaits))
    return signal


async def remote_load(
    target: WindowTensor,
    peer: int,
    offsets: Sequence[int],
    shape: Sequence[int],
    valid_shape: Sequence[int] | None = None,
) -> Tile:
    """Return a private copy of a box of the peer's window.

    Args:
        target: a window.
        peer: a rank.
        offsets: where the box begins, in elements, one a dimension.
        shape: of the tile, in elements.
        valid_shape: of its valid part, which is loaded; None: all of it.

    """
    name = "pld.tile.remote_load"
    slices = box(name, window_of(name, target), offsets, valid_of(name, shape, valid_shape))
    place = region(name, target, slices, peer_of(name, target, peer))
    return with_valid(await awaited(target.rank.load(place)), shape)


ADDED = ("FP32", "FP16", "BF16", "INT32", "INT16", "INT8")
"""What the hardware adds to memory atomically."""


def _atomic(name: str, atomic: object, target: WindowTensor) -> Any:  # noqa: ANN401 - "add" or None, as `Rank.store` takes it
    if isinstance(atomic, bool) or atomic not in _ATOMIC_TYPES:
        raise refused(f"{name} atomic must be AtomicType.None_ or AtomicType.Add (got {shown_number(atomic)})")
    if atomic == AtomicType.Add and target.dtype.name not in ADDED:
        right = ", ".join(ADDED[:-1])
        raise refused(f"{name} atomic add takes {right} or {ADDED[-1]}; got {target.dtype}", TypeError)
    return _ADD if atomic == AtomicType.Add else None


async def remote_store(
    tile: Tile, target: WindowTensor, peer: int, offsets: Sequence[int], *, atomic: AtomicType = AtomicType.None_
) -> WindowTensor:
    """Store a tile to the peer's window, or add it there; return the window.

    Args:
        tile: of the window's dtype and number of dimensions.
        target: a window.
        peer: a rank.
        offsets: in elements, one a dimension.
        atomic: Add adds element by element.

    """
    name = "pld.tile.remote_store"
    window_of(name, target)
    how = _atomic(name, atomic, target)
    tile = valid_part(tile_of(name, tile, target))
    place = region(name, target, box(name, target, offsets, tile.shape), peer_of(name, target, peer))
    await awaited(target.rank.store(place, tile, atomic=how))
    return target


def _boxes(  # noqa: PLR0913, PLR0917 - two tensors and the three region arguments
    name: str,
    dst: Tensor,
    src: Tensor,
    dst_offsets: Sequence[int] | None,
    src_offsets: Sequence[int] | None,
    shape: Sequence[int] | None,
) -> tuple[Slices, Slices]:
    """Return what is copied where: the whole, or a box of it."""
    given = (dst_offsets, src_offsets, shape)
    if None in given and any(part is not None for part in given):
        raise refused(f"{name} takes dst_offsets, src_offsets and shape together, or none of them")
    if shape is None:
        if dst.shape != src.shape:
            raise refused(
                f"{name} of whole tensors takes equal shapes, got dst {list(dst.shape)}, src {list(src.shape)}"
            )
        dst_offsets, src_offsets, shape = [0] * len(dst.shape), [0] * len(src.shape), list(dst.shape)
    if dst.dtype != src.dtype:
        raise refused(f"{name} dst and src must have one dtype, got {dst.dtype} and {src.dtype}", TypeError)
    extents = integers(name, "shape", shape)
    return box(name, dst, dst_offsets, extents), box(name, src, src_offsets, extents)


async def put(  # noqa: PLR0913, PLR0917 - upstream's signature
    dst: WindowTensor,
    peer: int,
    src: Tensor,
    dst_offsets: Sequence[int] | None = None,
    src_offsets: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
    *,
    atomic: AtomicType = AtomicType.None_,
    chunk_rows: int | None = None,
    chunk_cols: int | None = None,
    pipeline: bool = False,  # noqa: ARG001 - how many chunks are under way inside the core
) -> WindowTensor:
    """Copy the own window, or a tensor of the kernel's own, to the peer's window; return the window.

    Args:
        dst: a window.
        peer: the rank whose part of it is written.
        src: the own window, or a tensor of the kernel's own; of one dtype with `dst`.
        dst_offsets: in elements; None, with the two below: the whole tensors.
        src_offsets: in elements.
        shape: in elements.
        atomic: Add adds element by element.
        chunk_rows: rows that are copied at a time, in order; None: all.
        chunk_cols: columns that are copied at a time, likewise.
        pipeline: means nothing here.

    """
    name = "pld.tensor.put"
    window_of(name, dst, " dst")
    how = _atomic(name, atomic, dst)
    there, here = _boxes(name, dst, tensor_of(name, src), dst_offsets, src_offsets, shape)
    number = peer_of(name, dst, peer)
    for to, of in _chunks(name, there, here, chunk_rows, chunk_cols):
        source = src.array[of].copy() if isinstance(src, LocalTensor) else region(name, src, of)
        await awaited(dst.rank.put(region(name, dst, to, number), source, atomic=how))
    return dst


async def get(  # noqa: PLR0913, PLR0917 - upstream's signature
    dst: Tensor,
    peer: int,
    src: WindowTensor,
    dst_offsets: Sequence[int] | None = None,
    src_offsets: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
    *,
    chunk_rows: int | None = None,
    chunk_cols: int | None = None,
    pipeline: bool = False,  # noqa: ARG001 - as for `put`
) -> Tensor:
    """Copy the peer's window to the own one, or to a tensor of the kernel's own; return the destination.

    Args:
        dst: the own window, or a tensor of the kernel's own.
        peer: the rank whose part of `src` is read.
        src: a window of the same dtype.
        dst_offsets: in elements; None, with the two below: the whole tensors.
        src_offsets: in elements.
        shape: in elements.
        chunk_rows: as for `put`.
        chunk_cols: as for `put`.
        pipeline: as for `put`.

    """
    name = "pld.tensor.get"
    window_of(name, src, " src")
    here, there = _boxes(name, tensor_of(name, dst), src, dst_offsets, src_offsets, shape)
    number = peer_of(name, src, peer)
    for to, of in _chunks(name, here, there, chunk_rows, chunk_cols):
        source = region(name, src, of, number)
        if isinstance(dst, LocalTensor):
            dst.note_written()
            dst.array[to] = np.asarray(await awaited(src.rank.load(source)))
        else:
            await awaited(src.rank.get(region(name, dst, to), source))
    return dst


def _chunks(
    name: str, to: Slices, of: Slices, rows: int | None, columns: int | None
) -> Iterator[tuple[Slices, Slices]]:
    """Cut a transfer into chunks of so many rows and columns, in row-major order."""
    if rows is None and columns is None:
        yield to, of
        return
    sizes = [each.stop - each.start for each in to]
    steps = [1] * max(len(sizes) - 2, 0) + [rows or sizes[-2], columns or sizes[-1]][-len(sizes) :]
    steps = [max(integer(name, "chunk", step), 1) for step in steps]
    for at in product(*(range(0, size, step) for size, step in zip(sizes, steps, strict=True))):
        ends = [min(start + step, size) for start, step, size in zip(at, steps, sizes, strict=True)]
        yield _chunk(to, at, ends), _chunk(of, at, ends)


def _chunk(box: Slices, starts: Sequence[int], ends: Sequence[int]) -> Slices:
    parts = zip(box, starts, ends, strict=True)
    return tuple(slice(whole.start + start, whole.start + end) for whole, start, end in parts)
