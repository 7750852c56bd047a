"""F31: a ring reduce counts its chunks on one cell, and takes chunk n when the count is n.

Every chunk is a non-blocking put with a signal. Such a signal follows the data of its own put, and no
other: two chunks in flight may land in either order. The count of 1 may then be that of the second
chunk, and the receiver reads the first one before it has come. The fix is a cell a chunk.

Source: NVIDIA/nvshmem#84.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Signal, Window, barrier, kernel
from kernels.field.rows import SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

CHUNKS = 2

outbox = Window("outbox", (CHUNKS, SIZE), np.float32)  # what goes to the right
inbox = Window("inbox", (CHUNKS, SIZE), np.float32)  # what came from the left
full = Signal("full", (CHUNKS,))  # how often each chunk has come; on cell 0 alone, how many chunks have come
over = Signal("over", ("P", 1))  # of the barrier between calls


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a row a chunk."""
    return [rng.standard_normal((CHUNKS, SIZE), np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The last rank gets the sum, added from rank 0 up."""
    last = len(xs) - 1
    return [np.asarray(sum(xs)) if rank == last else None for rank in range(len(xs))]


@kernel(memory=[outbox, inbox, full, over], inputs=inputs, golden=golden)
async def fixed(  # noqa: PLR0913, PLR0917 - the last one is the mistake
    rank: Rank,
    x: Array,
    outbox: WindowView,
    inbox: WindowView,
    full: SignalView,
    over: SignalView,
    *,
    cell_a_chunk: bool = True,
) -> Array | None:
    """Each chunk has a cell of its own."""
    last = rank.size - 1
    out = x.copy()
    for n in range(CHUNKS):
        cell, come = (n, rank.call + 1) if cell_a_chunk else (0, rank.call * CHUNKS + n + 1)
        if rank.id > 0:
            await rank.wait(full[cell] >= come)
            out[n] += await rank.load(inbox[n])
        if rank.id < last:
            right = rank.id + 1
            await rank.store(outbox[n], out[n])
            await rank.put_signal(inbox.at(right)[n], outbox[n], full.at(right)[cell], nbi=True)
    await rank.quiet()  # the next call stages in the same place
    await barrier(rank, over, generation=rank.call + 1)
    return out if rank.id == last else None


buggy = fixed.variant(
    about="One counter for all chunks: the first signal may be that of the second chunk.",
    cell_a_chunk=False,
    finds=RAW("same call"),
)
