"""Reduce-scatter: rank r gets everybody's row r, reduced.

Source: the lowering of ``pld.tensor.reduce_scatter`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.fold import fold
from asyncsim.collectives.reduce import ReduceOp
from asyncsim.collectives.refusals import check_rows, check_signal, shown_op
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView, WindowView

NAME = "pld.tensor.reduce_scatter"


async def reduce_scatter(  # noqa: PLR0913 - three operands, three choices
    rank: Rank,
    target: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    accumulate: Any = None,  # noqa: ANN401 - whatever `Window` takes
    widen: bool = False,
) -> None:
    """Reduce row `rank.id` of all windows into the own one; every rank has staged all its rows before.

    Ready barrier; reduce, the own row first, then the peers' ascending; post-reduce barrier, after which
    the next call may stage; store to the own row; epilogue.

    Args:
        rank: who takes part.
        target: shape (P, SIZE); row c is this rank's chunk for rank c.
        signal: shape (P, 1) of int32, zero; zero again in the end.
        op: the operator. Upstream lowers the sum alone.
        accumulate: the dtype to accumulate in; None: the target's.
        widen: take every operator.

    Raises:
        RefusedError: the arguments do not fit each other, or the operator is not lowered.
        TypeError: the target is no window.

    """
    check_rows(NAME, target, rank)
    if op != ReduceOp.Sum and not (widen and op in tuple(ReduceOp)):
        raise RefusedError(
            f"{NAME} op must be ReduceOp.Sum (got {shown_op(op)}); Max / Min / Prod lowerings are not yet implemented"
        )
    check_signal(NAME, signal, rank)
    op = ReduceOp(op)
    op.check(target.dtype)
    rank.collective("reduce_scatter", op=op.name, shape=target.shape, dtype=target.dtype)
    with rank.phase("ready"):
        await barrier(rank, signal)
    with rank.phase("reduce"):
        acc = await fold(rank, target, rank.id, op, accumulate=accumulate)
    with rank.phase("read"):
        await barrier(rank, signal, generation=2)
    with rank.phase("store"):
        await rank.store(target[rank.id], acc)
    with rank.phase("epilogue"):
        await settle(rank, signal, credits=2)
