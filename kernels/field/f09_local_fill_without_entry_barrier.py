"""F09: a rank fills its output with a default, over what a fast peer has already pushed there.

The fill is local, so it looks harmless. But a peer that is already in the kernel pushes its row
whenever it likes. An entry barrier after the fill makes the first push wait for the last fill.

Source: pytorch#196632.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAW, Signal, Window, barrier, kernel, settle
from kernels.field.rows import SIZE, everybodys, rows

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

out = Window("out", ("P", SIZE), np.float32)  # row p: what rank p pushed
signal = Signal("signal", ("P", 1), self_cleaning=True)


@kernel(memory=[out, signal], inputs=rows, golden=everybodys)
async def fixed(rank: Rank, x: Array, out: WindowView, signal: SignalView, *, entry_barrier: bool = True) -> Array:
    """Nobody pushes before everybody has filled."""
    await rank.store(out[:], np.full(out.shape, -1, np.float32))
    if entry_barrier:
        await barrier(rank, signal)
    for peer in range(rank.size):
        await rank.store(out.at(peer)[rank.id], x)
    await barrier(rank, signal, generation=1 + entry_barrier)
    await settle(rank, signal, credits=1 + entry_barrier)
    return await rank.load(out[:])


buggy = fixed.variant(
    about="No entry barrier: a late fill wipes out what a fast peer pushed.",
    entry_barrier=False,
    finds=WAW("same call", pairs=lambda P: P * (P - 1)),
)
