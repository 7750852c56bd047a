"""The counting barrier of two-sided credits, and the epilogue that gives the credits back.

Source: the lowering of ``pld.tensor.barrier`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView


async def barrier(rank: Rank, signal: SignalView, *, generation: int = 1) -> None:
    """Wait until every rank has come here.

    Each rank adds 1 to its own cell at every peer, then waits until each peer has done so
    `generation` times.

    Args:
        rank: who comes.
        signal: shape (P, 1) of integers; cell [p, 0] counts the credits from rank p.
        generation: how many barriers on this signal, this one included, since the cells were zero.

    """
    rank.collective("barrier", signal=signal.name)
    for peer in rank.peers:
        await rank.notify(signal.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(signal[peer] >= generation)


async def settle(rank: Rank, signal: SignalView, *, credits: int) -> None:  # noqa: A002 - the field's word
    """Give back the credits that `credits` barriers left, so that the cells are zero again.

    An own subtraction, not ``Set 0``: a fast peer's next credit may already be there, and must stay.
    No barrier follows it.

    Args:
        rank: who settles.
        signal: the signal of the barriers.
        credits: how many credits each peer has sent in this call.

    """
    for peer in rank.peers:
        await rank.notify(signal[peer], -credits)
