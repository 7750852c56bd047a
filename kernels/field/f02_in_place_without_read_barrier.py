"""F02: a mesh all-reduce in place overwrites its row while peers still read it.

Each rank reads the rows of all ranks and stores the sum over its own. Without a barrier between
the two, a fast rank's sum is what its slow peer adds up. Here one call is enough.

Source: pypto#1798.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, Signal, Window, barrier, kernel, settle
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.float32)
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


@kernel(memory=[data, signal], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, read_barrier: bool = True) -> Array:
    """A second barrier says that every row was read, and may be overwritten."""
    await rank.store(data[:], x)
    await barrier(rank, signal)  # staged
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[:])
    if read_barrier:
        await barrier(rank, signal, generation=2)  # read
    await rank.store(data[:], out)
    await settle(rank, signal, credits=1 + read_barrier)
    return await rank.load(data[:])


buggy = fixed.variant(
    about="No barrier before the store: the sum lands in a row that slow peers read.",
    read_barrier=False,
    finds=WAR("same call"),
)
