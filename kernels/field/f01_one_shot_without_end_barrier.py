"""F01: a one-shot all-reduce returns before its peers have read.

Each rank stages its row, meets the others once, and adds up all rows. A fast rank then stages the
row of its next call over the one that a slow peer has still to read. One more barrier at the end
keeps everybody until the last has read.

Source: pytorch#137257, aiter#3515.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, Signal, Window, barrier, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.float32)
signal = Signal("signal", ("P", 1))  # cell [p, 0]: the barriers that rank p came to, over all calls


@kernel(memory=[data, signal], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, end_barrier: bool = True) -> Array:
    """Nobody leaves before the last has read."""
    before = rank.call * (1 + end_barrier)
    await rank.store(data[:], x)
    await barrier(rank, signal, generation=before + 1)  # staged
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[:])
    if end_barrier:
        await barrier(rank, signal, generation=before + 2)  # read
    return out


buggy = fixed.variant(
    about="No end barrier: the next call stages over what slow peers read.",
    end_barrier=False,
    finds=WAR("next call", pairs=lambda P: P * (P - 1)),
)
