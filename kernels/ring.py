"""All-reduce by a ring, by hand: handshakes with the two neighbours only, no barrier.

Each rank reads its left neighbour and tells its right one when there is something to read. That
suffices for one call, with nothing to spare: who writes a row again has heard of its reader once
around the ring. It does not suffice for two, because nobody hears of the last readers.

Source: step 10 of PyPTO's distributed tutorial.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import WAR, Kernel, ReduceOp, Signal, Window, golden, kernel
from kernels.rows import SIZE, Array, blocks
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView


def memory(size: int = SIZE, dtype: Any = np.float32) -> list[Window | Signal]:  # noqa: ANN401 - whatever numpy takes
    """Declare a row a segment; rows that the left neighbour has stored; and that the right one is through."""
    return [
        Window("data", ("P", size), dtype),
        Signal("ready", (1,), self_cleaning=True),
        Signal("read", (1,), self_cleaning=True),
    ]


async def keep(rank: Rank, data: WindowView, row: int, tile: Array) -> None:
    """Store to an own row, which the right neighbour reads."""
    await rank.store(data[row], tile)


@kernel(memory=memory(), inputs=blocks, golden=golden.ring, same_on_all_ranks=True)
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
    rounds = 2 * (rank.size - 1)
    with rank.phase("stage"):
        for row in range(rank.size):
            await keep(rank, data, row, x[row])
    for number in range(rounds):
        row = (rank.id - 1 - number) % rank.size
        await rank.notify(ready.at(right)[0], 1)  # what the right one reads in this round is stored
        await rank.wait(ready[0] >= number + 1)
        tile = await rank.load(data.at(left)[row])
        if number < rank.size - 1:
            tile = op.combine(await rank.load(data[row]), tile)
        if number == rank.size - 2:
            tile = op.finish(tile, rank.size)
        await keep(rank, data, row, tile)
    if credit_back:
        await rank.notify(read.at(left)[0], 1)
        await rank.wait(read[0] >= 1)
        await rank.notify(read[0], -1)
    await rank.notify(ready[0], -rounds)
    return await rank.load(data[...])


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


def make(
    made: Kernel = by_pull, *, size: int = SIZE, dtype: Any = np.float32, op: ReduceOp = ReduceOp.Sum  # noqa: ANN401
) -> Kernel:  # fmt: skip
    """Return one of the kernels above for another size (of a row), dtype or operator."""
    return made.variant(
        memory=memory(size, dtype),
        inputs=partial(blocks, size=size, dtype=dtype),
        golden=partial(golden.ring, op=op),
        op=op,
        finds=made.finds,
    )


if __name__ == "__main__":
    raise SystemExit(main(globals()))
