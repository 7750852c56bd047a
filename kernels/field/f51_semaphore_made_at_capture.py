"""F51: a barrier's semaphore is made when a trace is captured, and a replay does not make it anew.

The captured barrier waits for P - 1 credits on a semaphore that starts at zero. In the replay it
still holds those of the first run, so nobody waits for anybody. The fix counts the replays (taking
the credits back would do as well).

Source: tenstorrent/tt-metal#48469.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

CALLS = 3
"""Each call has a row of its own, so that the barrier alone is to blame."""

data = Window("data", (CALLS, SIZE), np.float32)
semaphore = Signal("semaphore", (1,))  # how often a peer has come, since the capture


@kernel(memory=[data, semaphore], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, semaphore: SignalView, *, counts: bool = True) -> Array:
    """Each replay waits for more."""
    replays = rank.call + 1 if counts else 1
    await rank.store(data[rank.call], x)
    for peer in rank.peers:
        await rank.notify(semaphore.at(peer)[0], 1)
    await rank.wait(semaphore[0] >= replays * len(rank.peers))
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[rank.call])
    return out


buggy = fixed.variant(
    about="Every replay waits for the credits of the first run.",
    counts=False,
    finds=RAW("same call"),
)
