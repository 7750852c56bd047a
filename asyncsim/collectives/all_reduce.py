"""All-reduce: every rank gets the reduction of all windows. By a mesh, by a ring, or in two phases.

Source: the lowering of ``pld.tensor.allreduce`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.collectives.allgather import allgather
from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.fold import fold
from asyncsim.collectives.reduce import ReduceOp
from asyncsim.collectives.reduce_scatter import reduce_scatter
from asyncsim.collectives.refusals import LOWERED, check_signal, check_target, shown_op
from asyncsim.collectives.ring import check_ring, ring
from asyncsim.collectives.tiles import tiles
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView, WindowView

NAME = "pld.tensor.allreduce"
_MATRIX = 2


async def all_reduce(  # noqa: PLR0913 - three operands, four choices
    rank: Rank,
    target: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    mode: str = "mesh",
    accumulate: Any = None,  # noqa: ANN401 - whatever `Window` takes
    widen: bool = False,
) -> None:
    """Reduce all windows into each of them, in place; every rank has staged its own before.

    A mesh: ready barrier; tile by tile (at most 16 KiB) reduce, the own one first, then the peers' ascending,
    post-reduce barrier, store; epilogue. So ranks may differ in the last bit. A ring: see `ring`.

    Args:
        rank: who takes part.
        target: shape (ROWS, SIZE).
        signal: of int32, zero; zero again in the end. Shape (P, 1) for a mesh, (2(P-1), P) for a ring.
        op: Sum, Max, Min or Prod.
        mode: "mesh" or "ring".
        accumulate: the dtype to accumulate in; None: the target's. Of a mesh only.
        widen: take every operator, not only those that upstream lowers.

    Raises:
        RefusedError: the arguments do not fit each other, or the operator is not lowered.
        TypeError: the target is no window.

    """
    check_target(NAME, target)
    if mode not in ("ring", "mesh"):
        raise RefusedError(f'{NAME} mode must be "ring" or "mesh", got "{mode}"')
    if op not in LOWERED and not (widen and op in tuple(ReduceOp)):
        raise RefusedError(f"{NAME} op must be ReduceOp.Sum, Max, Min, or Prod (got {shown_op(op)})")
    if len(target.shape) != _MATRIX:
        raise RefusedError(f"{NAME} target must be 2D [ROWS, SIZE], got {len(target.shape)} dims")
    op = ReduceOp(op)
    op.check(target.dtype)
    if mode == "ring":
        check_ring(NAME, rank, target, signal, accumulate)
    else:
        check_signal(NAME, signal, rank)
    rank.collective("all_reduce", mode=mode, op=op.name, shape=target.shape, dtype=target.dtype)
    if mode == "ring":
        await ring(rank, target, signal, op)
    else:
        await _mesh(rank, target, signal, op, accumulate)


async def _mesh(rank: Rank, target: WindowView, signal: SignalView, op: ReduceOp, accumulate: Any) -> None:  # noqa: ANN401
    rows, columns = target.shape
    meetings = 1
    with rank.phase("ready"):
        await barrier(rank, signal)
    for place in tiles(target, 0, rows * columns):
        with rank.phase("reduce"):
            acc = await fold(rank, target, place, op, accumulate=accumulate)
        meetings += 1
        with rank.phase("read"):
            await barrier(rank, signal, generation=meetings)
        with rank.phase("store"):
            await rank.store(target[place], acc)
    with rank.phase("epilogue"):
        await settle(rank, signal, credits=meetings)


async def two_phase_all_reduce(  # noqa: PLR0913 - four operands, three choices
    rank: Rank,
    target: WindowView,
    gathered: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    accumulate: Any = None,  # noqa: ANN401 - whatever `Window` takes
    widen: bool = False,
) -> None:
    """Reduce-scatter, then all-gather: the two composites, one after the other, on one signal.

    It needs no safe form. Who puts into `gathered` has met everybody in the same call before, so what
    the last call left there was read; and the barrier of the all-gather keeps the next staging away.
    Each element is reduced by one rank, so all ranks end with the same bits.

    Args:
        rank: who takes part.
        target: shape (P, SIZE); every rank has staged all its rows before.
        gathered: shape (P, SIZE), another window; row c is chunk c, reduced.
        signal: shape (P, 1) of int32, zero; zero again in the end.
        op: the operator. Upstream lowers the sum alone.
        accumulate: the dtype to accumulate in; None: the target's.
        widen: take every operator.

    Raises:
        RefusedError: the arguments do not fit each other, or the operator is not lowered.
        TypeError: a target is no window.

    """
    await reduce_scatter(rank, target, signal, op=op, accumulate=accumulate, widen=widen)
    await allgather(rank, target[rank.id], gathered, signal)
