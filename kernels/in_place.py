"""Reduce-scatter in place, in both layouts: NCCL's result goes to the own slot, MPI's to the first one.

NCCL is in place if and only if ``recvbuff == sendbuff + rank * recvcount``. That slot is read by its rank alone, so
within one call the ready barrier is enough, and the next call's staging is what a second one holds back. With
``MPI_IN_PLACE`` the result goes to slot 0, which every peer whose row is 0 reads: without a second barrier that is a
race within the call.

Source: NCCL's page on in-place operations; MPI 4.1, MPI_REDUCE_SCATTER_BLOCK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, ReduceOp, Signal, Window, barrier, golden, kernel, settle
from kernels.rows import SIZE, Array, blocks, each_with_each
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim import Rank, SignalView, WindowView

buffer = Window("buffer", ("P", SIZE), np.float32)  # slot c: this rank's chunk c
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


def own(rank: int) -> int:
    """NCCL: sendbuff + rank * recvcount."""
    return rank


def first(rank: int) -> int:
    """MPI: the beginning of the buffer."""
    return 0


@kernel(memory=[buffer, signal], inputs=blocks, golden=golden.reduce_scatter)
async def nccl(  # noqa: PLR0913 - the layout, and the mistake
    rank: Rank,
    x: Array,
    buffer: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    slot: Callable[[int], int] = own,
    read_barrier: bool = True,
) -> Array:
    """NCCL's layout: the result goes to the own slot."""
    with rank.phase("stage"):
        await rank.store(buffer[...], x)
    await barrier(rank, signal)  # ready: every chunk is staged
    with rank.phase("reduce"):
        acc = op.reduce([await rank.load(buffer.at(peer)[rank.id]) for peer in (rank.id, *rank.peers)])
    if read_barrier:
        await barrier(rank, signal, generation=2)  # read: any slot may be overwritten
    at = slot(rank.id)
    await rank.store(buffer[at], acc)
    await settle(rank, signal, credits=1 + read_barrier)
    return await rank.load(buffer[at])


nccl_one_barrier = nccl.variant(
    about="NCCL's layout with a ready barrier alone: the next call stages over what slow peers read.",
    read_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)

mpi = nccl.variant(about="MPI's layout: the result goes to the first slot, when all have read.", slot=first)

mpi_one_barrier = nccl.variant(
    about="MPI's layout with a ready barrier alone: rank 0 may still be reading the first slot, in this very call.",
    slot=first,
    read_barrier=False,
    finds=[WAR("same call", pairs=lambda P: 2 * (P - 1)), WAR("next call", pairs=each_with_each)],
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
