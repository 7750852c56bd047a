"""F38: all ranks meet on a pad that was laid out for a smaller team.

Block b's cells begin at b times the size of the team. If all the ranks meet there, and they are more,
the cells of block 0 run into those of block 1: a credit of one block is taken for one of the other.
Two ranks are as many as the team, and see nothing. The fix lays the pad out for those who meet on it.

Source: ROCm/rocm-systems#10388.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

BLOCKS = 2
PART = SIZE // BLOCKS
TEAM = 2
"""How many ranks the pad was meant for."""

data = Window("data", (2, SIZE), np.float32)  # two halves by turns: who waits for call c knows that c - 1 was read
pad = Signal("pad", (BLOCKS, "P"))  # the cell of block b and rank p: number b * stride + p, row by row


async def block(  # noqa: PLR0913, PLR0917 - the memory, and which block this is
    rank: Rank, number: int, stride: int, x: Array, data: WindowView, pad: SignalView
) -> Array:
    """Publish a part, meet the same block of all ranks, and sum up their parts."""
    half, part = rank.call % 2, slice(number * PART, (number + 1) * PART)
    await rank.store(data[half, part], x[part])
    for peer in rank.peers:
        await rank.notify(pad.at(peer)[divmod(number * stride + rank.id, rank.size)], 1)
    for peer in rank.peers:
        await rank.wait(pad[divmod(number * stride + peer, rank.size)] >= rank.call + 1)
    acc = np.zeros(PART, np.float32)
    for peer in range(rank.size):
        acc += await rank.load(data.at(peer)[half, part])
    return acc


@kernel(memory=[data, pad], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, pad: SignalView, *, for_all: bool = True) -> Array:
    """A pad with as many cells a block as there are ranks."""
    stride = rank.size if for_all else TEAM
    streams = [await rank.start(block, number, stride, x, data, pad) for number in range(BLOCKS)]
    return np.concatenate([await rank.join(stream) for stream in streams])


buggy = fixed.variant(
    about="A pad for two: with three ranks a cell of block 0 is one of block 1, too.",
    for_all=False,
    finds=RAW("same call"),
)
