"""F15: each rank loops over its own number of blocks, and meets its peers in each.

The rank with more blocks waits in the last one for a peer that has left the loop. The fix gives all
ranks the same number of trips.

Source: vllm#43616, flashinfer#3408.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim import Expected, Signal, kernel

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView

BLOCKS = (3, 2)
"""How many blocks each rank has."""

done = Signal("done", (max(BLOCKS), "P"))  # [b, p]: rank p has come to block b, so many times


@kernel(memory=[done])
async def fixed(rank: Rank, done: SignalView, *, same_trips: bool = True) -> None:
    """As many trips as the rank with the most blocks needs."""
    for block in range(max(BLOCKS) if same_trips else BLOCKS[rank.id]):
        for peer in rank.peers:
            await rank.notify(done.at(peer)[block, rank.id], 1)
        for peer in rank.peers:
            await rank.wait(done[block, peer] >= rank.call + 1)


buggy = fixed.variant(
    about="As many trips as the rank has blocks: the longer loop waits for ever.",
    same_trips=False,
    finds=Expected("deadlock"),
)
