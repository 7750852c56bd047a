"""The reduction of one region over all ranks: the own tile first, then the peers' ascending.

So each rank adds in another order, and floating results may differ in the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncsim.collectives.reduce import ReduceOp, Tile
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import WindowView


async def fold(rank: Rank, window: WindowView, index: Any, op: ReduceOp, *, accumulate: Any = None) -> Tile:  # noqa: ANN401
    """Return ``window[index]`` reduced over all ranks.

    Args:
        rank: who reduces.
        window: whose peers are read.
        index: what to index it with; the same at every rank.
        op: the operator.
        accumulate: the dtype to accumulate in; None: the window's.

    Returns:
        A tile of the region's shape, in the window's dtype.

    """
    acc = op.start(await rank.load(window[index]), accumulate)
    for peer in rank.peers:
        acc = op.combine(acc, await rank.load(window.at(peer)[index]))
    return op.finish(acc, rank.size, window.dtype)
