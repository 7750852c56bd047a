"""F39: two ranks send a window each, then receive; the window is larger than the ring.

A sender may be as many chunks ahead as the ring has slots; then it waits until one was read. Each
rank sends all of its window before it reads anything. A window that does not fit into the ring leaves
both waiting for the other to read. The fix is a window of at most the size of the ring.

Source: meta-pytorch/torchcomms#3016.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

CHUNKS = 4
SLOTS = 2

ring = Window("ring", (SLOTS,), np.float32)  # chunks that have come
full = Signal("full", (1,))  # how many chunks have come
free = Signal("free", (1,))  # how many of the own chunks the peer has read


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a number a chunk."""
    return [rng.standard_normal(CHUNKS, np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Each rank gets its left neighbour's chunks."""
    return [xs[rank - 1] for rank in range(len(xs))]


@kernel(memory=[ring, full, free], inputs=inputs, golden=golden)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, ring: WindowView, full: SignalView, free: SignalView, *, window: int = SLOTS
) -> Array:
    """As many chunks in flight as the ring holds."""
    left, right = (rank.id - 1) % rank.size, (rank.id + 1) % rank.size
    before = rank.call * CHUNKS
    out = np.zeros_like(x)
    for start in range(0, CHUNKS, window):
        chunks = range(start, start + window)
        for n in chunks:
            await rank.wait(free[0] >= before + n - SLOTS + 1)
            await rank.store(ring.at(right)[n % SLOTS], x[n])
            await rank.notify(full.at(right)[0], 1)
        for n in chunks:
            await rank.wait(full[0] >= before + n + 1)
            out[n] = await rank.load(ring[n % SLOTS])
            await rank.notify(free.at(left)[0], 1)
    return out


buggy = fixed.variant(
    about="All four chunks before the first is read, over a ring of two: both wait for the other.",
    window=CHUNKS,
    finds=Expected("deadlock"),
)
