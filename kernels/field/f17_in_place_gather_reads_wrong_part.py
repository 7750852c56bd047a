"""F17: an all-gather in place takes its own block from the start of the buffer.

In place means that the caller has put its block where it belongs, at recv[rank]. Out of place the
block starts at send[0], and the offset was forgotten when the two became one: send = recv + rank
times count. Rank 0 is right, so one rank shows nothing.

Source: Aluminum#22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, barrier, kernel, settle
from kernels.field.rows import SIZE, everybodys, rows

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

recv = Window("recv", ("P", SIZE), np.float32, initialised=True)  # the caller's: it holds what it held before
signal = Signal("signal", ("P", 1), self_cleaning=True)


@kernel(memory=[recv, signal], inputs=rows, golden=everybodys)
async def fixed(rank: Rank, x: Array, recv: WindowView, signal: SignalView, *, offset: bool = True) -> Array:
    """The own block lies at its place."""
    await rank.store(recv[rank.id], x)  # the caller does this
    own = await rank.load(recv[rank.id if offset else 0])
    await barrier(rank, signal)  # everybody has what it sends
    for peer in range(rank.size):
        await rank.store(recv.at(peer)[rank.id], own)
    await barrier(rank, signal, generation=2)  # everybody has sent
    await settle(rank, signal, credits=2)
    return await rank.load(recv[:])


buggy = fixed.variant(
    about="The offset of the own block is missing: every rank but 0 sends something else.",
    offset=False,
    finds=Expected("wrong-result"),
)
