"""All-reduce by a ring, by hand: handshakes with the two neighbours only, no barrier.

Each rank reads its left neighbour and tells its right one when there is something to read. That
suffices for one call, with nothing to spare: who writes a row again has heard of its reader once
around the ring. It does not suffice for two, because nobody hears of the last readers.

Source: step 10 of PyPTO's distributed tutorial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, ReduceOp, Signal, Window, golden, kernel
from kernels.rows import SIZE, Array, blocks
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView

data = Window("data", ("P", SIZE), np.float32)  # a row a segment
ready = Signal("ready", (1,), self_cleaning=True)  # how many rows the left neighbour has stored
read = Signal("read", (1,), self_cleaning=True)  # that the right neighbour has read the last


async def keep(rank: Rank, data: WindowView, row: int, tile: Array) -> None:
    """Store to an own row, which the right neighbour reads."""
    await rank.store(data[row, : tile.size], tile)


@kernel(memory=[data, ready, read], inputs=blocks, golden=golden.ring, same_on_all_ranks=True)
async def by_pull(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank,
    x: Array,
    data: WindowView,
    ready: SignalView,
    read: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    credit_back: bool = True,
) -> Array:
    """By pull; before it leaves, each rank hears that its right neighbour has read the last row."""
    left, right = (rank.id - 1) % rank.size, (rank.id + 1) % rank.size
    rounds, size = 2 * (rank.size - 1), x.shape[1]
    with rank.phase("stage"):
        for row in range(rank.size):
            await keep(rank, data, row, x[row])
    for number in range(rounds):
        row = (rank.id - 1 - number) % rank.size
        await rank.notify(ready.at(right)[0], 1)  # what the right one reads in this round is stored
        await rank.wait(ready[0] >= number + 1)
        tile = await rank.load(data.at(left)[row, :size])
        if number < rank.size - 1:
            tile = op.combine(await rank.load(data[row, :size]), tile)
        await keep(rank, data, row, tile)
    if credit_back:
        await rank.notify(read.at(left)[0], 1)
        await rank.wait(read[0] >= 1)
        await rank.notify(read[0], -1)
    await rank.notify(ready[0], -rounds)
    return op.finish(await rank.load(data[:, :size]), rank.size)


def unread(P: int) -> int:
    """Count the reads that a rank leaves behind, each with the write that may overtake it.

    When a rank is through, its right neighbour may not have begun to gather: P - 1 reads against the next
    staging. And while it has not, the rank can go on to store in P - 3 rounds of the next call.
    """
    return P * (P - 1 + max(P - 3, 0))


ready_only = by_pull.variant(
    about="Nobody hears of the last readers: the next call overwrites what the right neighbour still gathers.",
    credit_back=False,
    finds=WAR("next call", pairs=unread),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
