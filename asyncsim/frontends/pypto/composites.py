"""The composites of ``pld.tensor``: asyncsim's own collectives, behind upstream's signatures and refusals.

They return the rebound window. Each ends with the epilogue that gives its credits back.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asyncsim.collectives.all_reduce import all_reduce
from asyncsim.collectives.all_to_all import all_to_all as exchange
from asyncsim.collectives.all_to_all import all_to_all_blocks as exchange_blocks
from asyncsim.collectives.allgather import allgather as gather
from asyncsim.collectives.barrier import barrier as meet
from asyncsim.collectives.barrier import settle
from asyncsim.collectives.broadcast import broadcast as spread
from asyncsim.collectives.reduce import ReduceOp as Reduction
from asyncsim.collectives.reduce_scatter import reduce_scatter as scatter
from asyncsim.collectives.refusals import check_signal
from asyncsim.frontends.pypto.core import tensor_of
from asyncsim.frontends.pypto.dtypes import DTYPES, ReduceOp
from asyncsim.frontends.pypto.places import integer, integers
from asyncsim.frontends.pypto.primitives import shown_number
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.values import LocalTensor, UnknownValueError, WindowTensor, window_of
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from asyncsim.frontends.pypto.core import Tensor
    from asyncsim.frontends.pypto.values import Tile
    from asyncsim.trace.region import Region
    from asyncsim.trace.world import SignalView, WindowView

_MATRIX = 2
_REDUCED = ("FP16", "FP32")


@contextmanager
def _as_upstream() -> Iterator[None]:
    """Let a composite's refusal be a ValueError, as upstream's is."""
    try:
        yield
    except RefusedError as error:
        raise (error if isinstance(error, ValueError | TypeError) else refused(str(error))) from None


def _target(name: str, target: object, *, flat: bool = False) -> WindowView:
    tensor = _whole(name, window_of(name, target))
    window = tensor.row() if flat else tensor.data()
    if tensor.kept:
        raise refused(
            f"{name} target holds the cells of a signal, in the first {tensor.kept} bytes of the buffer allocated at "
            f"{tensor.view.buffer.place}; give the signal a buffer of its own"
        )
    return window


def _whole(name: str, tensor: WindowTensor) -> WindowTensor:
    if tensor.key is not None:
        raise refused(f"{name} takes whole windows, and got a part of one; make a window of its shape with pld.window")
    return tensor


def _signal(name: str, signal: object, shape: str = "[NR, 1]") -> SignalView:
    tensor = _whole(name, window_of(name, signal, " signal"))
    if len(tensor.shape) != _MATRIX:
        raise refused(f"{name} signal must be 2D {shape}, got rank {len(tensor.shape)}")
    if tensor.dtype is not DTYPES["INT32"]:
        raise refused(f"{name} signal must have INT32 element type, got dtype {tensor.dtype}")
    return tensor.cells()


def _reduction(name: str, op: Any, allowed: str) -> Reduction:  # noqa: ANN401 - checked here
    if isinstance(op, bool) or op not in tuple(ReduceOp):
        raise refused(f"{name} op must be {allowed}".replace("{}", shown_number(op)))
    return Reduction(int(op))


async def barrier(signal: WindowTensor) -> WindowTensor:
    """Wait until every rank has come here; return the signal."""
    name = "pld.tensor.barrier"
    cells = _signal(name, signal)
    with _as_upstream():
        check_signal(name, cells, signal.rank)
        await meet(signal.rank, cells)
        with signal.rank.phase("epilogue"):
            await settle(signal.rank, cells, credits=1)
    return signal


async def broadcast(target: WindowTensor, signal: WindowTensor, *, root: int) -> WindowTensor:
    """Copy the root's window into every rank's; return the window.

    Args:
        target: a window of two dimensions.
        signal: a window of shape (P, 1) and INT32.
        root: a rank.

    Raises:
        RefusedError: a shape or a dtype does not fit, or the root is no rank.

    """
    name = "pld.tensor.broadcast"
    window = _target(name, target)
    number = integer(name, "root rank", root)
    if number < 0:
        raise refused(f"{name} root rank must be non-negative, got {number}")
    with _as_upstream():
        await spread(target.rank, window, _signal(name, signal), root=number)
    return target


def reduce_scatter_of(*, widen: bool) -> Callable[..., Coroutine[Any, Any, WindowTensor]]:
    """Return ``pld.tensor.reduce_scatter``; `widen`: with all four operators, as upstream lowers them later."""

    async def reduce_scatter(
        target: WindowTensor, signal: WindowTensor, *, op: ReduceOp = ReduceOp.Sum
    ) -> WindowTensor:
        """Reduce row r of all windows into row r of rank r's; return the window."""
        name = "pld.tensor.reduce_scatter"
        window = _target(name, target)
        rest = "ReduceOp.Sum (got {}); Max / Min / Prod lowerings are not yet implemented"
        reduction = _reduction(name, op, rest)
        if len(target.shape) != _MATRIX:
            raise refused(f"{name} target must be 2D [NR, SIZE], got {len(target.shape)} dims")
        with _as_upstream():
            await scatter(target.rank, window, _signal(name, signal), op=reduction, widen=widen)
        return target

    return reduce_scatter


async def allgather(local: Tensor, target: WindowTensor, signal: WindowTensor) -> WindowTensor:
    """Put the own chunk into row r of every rank's window; return the window.

    Args:
        local: the own chunk, of as many elements as a row.
        target: a window of shape (P, size).
        signal: a window of shape (P, 1) and INT32.

    Raises:
        RefusedError: a shape or a dtype does not fit, or the chunk is in the window's own buffer.

    """
    name = "pld.tensor.allgather"
    tensor_of(name, local)
    window = _target(name, target)
    _other_buffer(name, local, target)
    chunk = _chunk(name, local, target)
    with _as_upstream():
        await gather(target.rank, chunk, window, _signal(name, signal))
    return target


def _chunk(name: str, local: Tensor, target: WindowTensor) -> Tile | Region:
    """Return a chunk as a row of the target: [SIZE], or [1, SIZE] and the like."""
    size = target.shape[-1] if target.shape else 0
    if local.shape[-1:] != (size,) or any(extent != 1 for extent in local.shape[:-1]) or local.dtype != target.dtype:
        raise refused(
            f"{name} input must be one row of the target, [1, {size}] of {target.dtype}, "
            f"got {list(local.shape)} of {local.dtype}"
        )
    if isinstance(local, LocalTensor):
        return local.array.reshape(size).copy()
    return _target(name, local)[(0,) * (len(local.shape) - 1)] if len(local.shape) > 1 else _target(name, local)[...]


def _source(name: str, source: Tensor) -> Tile | WindowView:
    tensor_of(name, source)
    return source.array.copy() if isinstance(source, LocalTensor) else _target(name, source)


async def all_to_all(input: Tensor, target: WindowTensor, signal: WindowTensor) -> WindowTensor:  # noqa: A002 - upstream's
    """Put row d of the input into row r of rank d's window; return the window.

    Args:
        input: of shape (P, size), of the window's dtype; not in its buffer.
        target: a window of shape (P, size).
        signal: a window of shape (P, 1) and INT32.

    """
    name = "pld.tensor.all_to_all"
    _other_buffer(name, input, target)
    window, source = _target(name, target), _source(name, input)
    with _as_upstream():
        await exchange(target.rank, source, window, _signal(name, signal))
    return target


async def all_to_all_v(
    input: Tensor,  # noqa: A002 - upstream's
    target: WindowTensor,
    signal: WindowTensor,
    send_counts: Tensor | Sequence[int],
    recv_counts: WindowTensor,
) -> WindowTensor:
    """Put block d of the input into block r of rank d's window, whole, and tell it how many rows of it count.

    Args:
        input: of shape (P·MAX_RECV, SIZE), of the window's dtype; not in its buffer.
        target: a window of the same shape.
        signal: a window of shape (P, 1) and INT32.
        send_counts: rows of each block that count, one a rank, 0 to MAX_RECV.
        recv_counts: a window of shape (P, 1) and INT32, another one than `signal`; row s is set to what rank s sends.

    """
    name = "pld.tensor.all_to_all_v"
    _other_buffer(name, input, target)
    window, source = _target(name, target), _source(name, input)
    sent = _counts(name, "send_counts", send_counts)
    window_of(name, recv_counts, " recv_counts")
    with _as_upstream():
        cells, counts = _signal(name, signal), _signal(name, recv_counts)
        await exchange_blocks(target.rank, source, window, cells, sent, counts)
    return target


def _counts(name: str, what: str, counts: object) -> list[int]:
    """Return the counts, which a tensor of the kernel's own may hold."""
    if not isinstance(counts, LocalTensor):
        return integers(name, what, counts)
    if counts.array.dtype.kind not in "iu":
        raise refused(f"{name} {what} must have an integer element type, got dtype {counts.dtype}", TypeError)
    counts.note_read(...)
    if counts.unknown:
        raise UnknownValueError
    return [int(value) for value in counts.array.reshape(-1)]


def _other_buffer(name: str, given: object, target: WindowTensor) -> None:
    if given is target or (isinstance(given, WindowTensor) and given.view.buffer is target.view.buffer):
        raise refused(f"{name} input and target must be different buffers, but the same expression was passed for both")


async def allreduce(
    target: WindowTensor, signal: WindowTensor, *, op: ReduceOp = ReduceOp.Sum, mode: str = "mesh"
) -> WindowTensor:
    """Reduce all windows into each of them; return the window.

    Args:
        target: a window of FP32 or FP16; of any shape, since it is reduced as one row.
        signal: a window of INT32, of shape (P, 1); for a ring (2(P-1), P).
        op: the reduction: Sum, Max, Min or Prod.
        mode: "mesh", in which all read all, or "ring".

    Raises:
        RefusedError: a shape or a dtype does not fit, or there is no such mode or reduction.

    """
    name = "pld.tensor.allreduce"
    window_of(name, target)
    if target.dtype.name not in _REDUCED:
        raise refused(f"{name} target dtype must be FP16 or FP32, got {target.dtype}", TypeError)
    window = _target(name, target, flat=True)
    if mode not in ("ring", "mesh"):
        raise refused(f'{name} mode must be "ring" or "mesh", got "{mode}"')
    reduction = _reduction(name, op, "ReduceOp.Sum, Max, Min, or Prod (got {})")
    cells = _signal(name, signal, "[2*(NR-1), NR]" if mode == "ring" else "[NR, 1]")
    if mode == "mesh" and signal.shape[1] != 1:
        raise refused(
            f"{name} mode=mesh signal shape[1] ({signal.shape[1]}) must be 1: [NR, 1] = [{signal.rank.size}, 1]; this "
            f'one, {list(signal.shape)}, is shaped for a ring: mode="ring" takes [2*(NR-1), NR]'
        )
    with _as_upstream():
        await all_reduce(target.rank, window, cells, op=reduction, mode=mode)
    return target
