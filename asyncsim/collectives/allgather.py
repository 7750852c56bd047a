"""All-gather: every rank gets the chunks of all ranks.

Source: the lowering of ``pld.tensor.allgather`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.refusals import check_rows, check_signal
from asyncsim.trace.errors import RefusedError
from asyncsim.trace.region import Region
from asyncsim.trace.world import WindowView

if TYPE_CHECKING:
    from asyncsim.collectives.reduce import Tile
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView

NAME = "pld.tensor.allgather"


async def allgather(
    rank: Rank, local: Tile | Region | WindowView, target: WindowView, signal: SignalView, *, safe: bool = False
) -> None:
    """Put the own chunk into row `rank.id` of every rank's window, the own one included.

    Puts; barrier, after which all rows are there; epilogue. Nothing holds a fast rank until its peers
    have read what they got: it must not put to the same window again before another barrier.

    Args:
        rank: who takes part.
        local: the own chunk: an array, an own region, or all of an own window; of the shape (SIZE,) and
            dtype of a row.
        target: shape (P, SIZE); row p is rank p's chunk.
        signal: shape (P, 1) of int32, zero; zero again in the end.
        safe: with one more barrier at the *start*. What a rank got it reads after the call, so no
            barrier inside this call can wait for that; the first of the next call can.

    Raises:
        RefusedError: the arguments do not fit each other.
        TypeError: the target is no window.

    """
    check_rows(NAME, target, rank)
    if isinstance(local, WindowView):
        local = local[...]
    if isinstance(local, Region) and local.window == target.name:
        raise RefusedError(
            f"{NAME} input and target must be different buffers, but the same expression was passed for both"
        )
    check_signal(NAME, signal, rank)
    rank.collective("allgather", shape=target.shape, dtype=target.dtype)
    if safe:
        with rank.phase("free"):
            await barrier(rank, signal)  # everybody has read what the last call left here
    with rank.phase("put"):
        for peer in range(rank.size):
            await rank.put(target.at(peer)[rank.id], local)
    with rank.phase("ready"):
        await barrier(rank, signal, generation=1 + safe)
    with rank.phase("epilogue"):
        await settle(rank, signal, credits=1 + safe)
