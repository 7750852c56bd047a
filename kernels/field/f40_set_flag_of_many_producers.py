"""F40: every producer *sets* the flag to 1, and the consumer takes the first 1 for all.

With one producer the flag says all there is to say. With two it says that one of them is there. The
fix counts: each producer adds 1, the consumer waits for as many as there are, and takes them back.

Source: ROCm/iris#266.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Set, Signal, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

CONSUMER = 0

tile = Window("tile", ("P", SIZE), np.float32)  # the consumer's: row p, rank p's part
ready = Signal("ready", (1,))  # the consumer's: how many parts are there
taken = Signal("taken", (1,))  # a producer's: how often the consumer has read


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The consumer gets the sum of all rows."""
    return [np.asarray(sum(xs)) if rank == CONSUMER else None for rank in range(len(xs))]


@kernel(memory=[tile, ready, taken], inputs=rows, golden=golden)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, tile: WindowView, ready: SignalView, taken: SignalView, *, counts: bool = True
) -> Array | None:
    """The flag counts the producers."""
    if rank.id != CONSUMER:
        await rank.store(tile.at(CONSUMER)[rank.id], x)
        if counts:
            await rank.notify(ready.at(CONSUMER)[0], 1)
        else:
            await rank.notify(ready.at(CONSUMER)[0], 1, op=Set)
        await rank.wait(taken[0] >= rank.call + 1)
        return None
    if counts:
        await rank.wait(ready[0] >= rank.size - 1, consume=True)
    elif rank.peers:
        await rank.wait(ready[0] >= 1)
        await rank.notify(ready[0], 0, op=Set)
    acc = x.copy()
    for peer in rank.peers:
        acc += await rank.load(tile[peer])
    for peer in rank.peers:
        await rank.notify(taken.at(peer)[0], 1)
    return acc


buggy = fixed.variant(
    about="Each producer sets the flag: the first one's 1 is taken for all.",
    counts=False,
    finds=RAW("same call"),
)
