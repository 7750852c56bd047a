"""F07: the epoch of a launch is a host number, and a captured graph replays it for ever.

Every launch should wait for a colour of its own. Captured into a graph, the colour is a constant:
from the second replay on the flag of the replay before satisfies the wait, and the kernel reads
what has not arrived. The fix counts on the device.

Source: aiter#3928, vllm#46913.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Set, Signal, Window, barrier, kernel
from kernels.field.rows import SIZE, everybodys, rows

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

CAPTURED = 5
"""The colour at the time of the capture."""

data = Window("data", (2, "P", SIZE), np.float32)  # two halves in turn; row p: what rank p pushed
arrived = Signal("arrived", ("P",))
done = Signal("done", ("P", 1))


@kernel(memory=[data, arrived, done], inputs=rows, golden=everybodys)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, data: WindowView, arrived: SignalView, done: SignalView, *, baked: bool = False
) -> Array:
    """Each replay has a colour of its own."""
    colour = CAPTURED if baked else CAPTURED + rank.call
    half = rank.call % 2
    await rank.store(data[half, rank.id], x)
    for peer in rank.peers:
        await rank.store(data.at(peer)[half, rank.id], x)
        await rank.notify(arrived.at(peer)[rank.id], colour, op=Set)
    for peer in rank.peers:
        await rank.wait(arrived[peer] == colour)
    out = await rank.load(data[half])
    await barrier(rank, done, generation=rank.call + 1)
    return out


buggy = fixed.variant(
    about="The captured colour is there already when the graph is replayed.",
    baked=True,
    finds=RAW("same call"),
)
