"""F37: block 0 waits for the copies, and the other blocks go on without it.

Copy engines fill a slot a peer and signal. Of the blocks that read the slots only block 0 waits for
the signals; the meeting of the blocks after that had been dropped. The other blocks read slots that
may still be empty. The fix: all blocks meet when block 0 has waited.

Source: ROCm/rocm-systems#8936.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, StreamBarrier, WindowView
    from kernels.field.rows import Array

BLOCKS = 2
PART = SIZE // BLOCKS

# [half, p]: the row of rank p; two halves by turns: who has the rows of call c knows that c - 1 was read.
slots = Window("slots", (2, "P", SIZE), np.float32)
filled = Signal("filled", ("P",))  # [p]: how many rows have come from rank p


async def block(  # noqa: PLR0913, PLR0917 - the memory, and which block this is
    rank: Rank, number: int, meeting: StreamBarrier | None, x: Array, slots: WindowView, filled: SignalView
) -> Array:
    """Sum up a part of all rows."""
    if number == 0:
        for peer in rank.peers:
            await rank.wait(filled[peer] >= rank.call + 1)
    if meeting is not None:
        await rank.sync(meeting)
    part = slice(number * PART, (number + 1) * PART)
    acc = np.zeros(PART, np.float32)
    for peer in range(rank.size):
        acc += x[part] if peer == rank.id else await rank.load(slots[rank.call % 2, peer, part])
    return acc


@kernel(memory=[slots, filled], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, slots: WindowView, filled: SignalView, *, blocks_meet: bool = True) -> Array:
    """The blocks meet when the copies are known to be there."""
    for peer in rank.peers:  # the copy engine
        await rank.store(slots.at(peer)[rank.call % 2, rank.id], x)
        await rank.notify(filled.at(peer)[rank.id], 1)
    meeting = rank.stream_barrier(BLOCKS) if blocks_meet else None
    streams = [await rank.start(block, number, meeting, x, slots, filled) for number in range(BLOCKS)]
    return np.concatenate([await rank.join(stream) for stream in streams])


buggy = fixed.variant(
    about="Block 1 reads without having waited, and without having met block 0.",
    blocks_meet=False,
    finds=RAW("same call"),
)
