"""F24: a block waits for the flag of its own number, and reads what other blocks have published.

Blocks share the work of a rank. Block b publishes the elements b, b + B, ... and raises flag b; then
it sums up a contiguous part, which every block of the peer has a share in. That flag b is up says
nothing of the other blocks. The fix waits for the flags of all blocks (reading the elements that
block b has published would do as well).

Source: vllm#2760.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

BLOCKS = 2
PART = SIZE // BLOCKS

data = Window("data", (2, SIZE), np.float32)  # two halves by turns: who waits for call c knows that c - 1 was read
flag = Signal("flag", ("P", BLOCKS))  # [p, b]: how often block b of rank p has published


async def block(  # noqa: PLR0913, PLR0917 - the memory, and which block this is
    rank: Rank, number: int, awaited: Sequence[int], x: Array, data: WindowView, flag: SignalView
) -> Array:
    """Publish every B-th element, and return the sums of a contiguous part."""
    half = rank.call % 2
    await rank.store(data[half, number::BLOCKS], x[number::BLOCKS])
    for peer in rank.peers:
        await rank.notify(flag.at(peer)[rank.id, number], 1)
    for peer in rank.peers:
        for other in awaited:
            await rank.wait(flag[peer, other] >= rank.call + 1)
    part = slice(number * PART, (number + 1) * PART)
    acc = x[part].copy()
    for peer in rank.peers:
        acc += await rank.load(data.at(peer)[half, part])
    return acc


@kernel(memory=[data, flag], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, flag: SignalView, *, all_blocks: bool = True) -> Array:
    """Every block waits for all blocks of the peer."""
    blocks = range(BLOCKS)
    streams = [await rank.start(block, b, blocks if all_blocks else [b], x, data, flag) for b in blocks]
    return np.concatenate([await rank.join(stream) for stream in streams])


buggy = fixed.variant(
    about="Every block waits for its namesake alone: half of what it reads comes from others.",
    all_blocks=False,
    finds=RAW("same call"),
)
