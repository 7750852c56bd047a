"""F50: an array of locks is zeroed, and polled before that is known to have happened.

Each block of a GPU leaves its part of a sum, and raises its lock; the last block polls the locks and adds the parts. A
launch begins with zeroing the locks, but nothing orders that with the polls: a lock that is still up from the last
launch is taken for this one's, and the old part is added. The fix: zeroed locks, then a fence and a meeting of
the blocks; or no zeroing, and locks that have the number of their launch.

Source: ROCm/tritonBLAS#61.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Set, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, StreamBarrier, WindowView
    from kernels.field.rows import Array

BLOCKS = 2
LAST = BLOCKS - 1
PART = SIZE // BLOCKS

parts = Window("parts", (BLOCKS,), np.float32)  # the sum of each block's part of the row
lock = Window("lock", (BLOCKS,), np.uint32, initialised=True)  # [b]: not 0: the part of block b is there


def golden(xs: Sequence[Array]) -> list[Array]:
    """Each rank gets the sum of its row, part by part."""
    return [np.asarray(sum(x[part : part + PART].sum() for part in range(0, SIZE, PART)), x.dtype) for x in xs]


async def block(  # noqa: PLR0913, PLR0917 - the memory, which block this is, and how the locks are used
    rank: Rank, number: int, meeting: StreamBarrier | None, x: Array, parts: WindowView, lock: WindowView,
    versions: bool,  # noqa: FBT001 - a stream's arguments have places
) -> Array:  # fmt: skip
    """Leave a part; the last block adds all of them."""
    mine = x[number * PART : (number + 1) * PART].sum()
    up = rank.call + 1 if versions else 1
    if number != LAST:
        if not versions:
            await rank.store(lock[number], 0)
        if meeting is not None:
            await rank.sync(meeting)
        await rank.store(parts[number], mine)
        await rank.notify(lock.word[number], up, op=Set, scope="rank")
        return np.asarray(mine)
    if meeting is not None:
        await rank.sync(meeting)
    total = np.zeros_like(mine)
    for other in range(LAST):
        await rank.wait(lock.word[other] == up, scope="rank")
        total += await rank.load(parts[other])
    return np.asarray(total + mine)


@kernel(memory=[parts, lock], inputs=rows, golden=golden)
async def fixed(  # noqa: PLR0913 - the last two are the mistake and another repair
    rank: Rank, x: Array, parts: WindowView, lock: WindowView, *, versions: bool = True, meets: bool = False
) -> Array:
    """A lock that is up has the number of its launch."""
    meeting = rank.stream_barrier(BLOCKS) if meets else None
    blocks = [
        await rank.start(block, number, meeting, x, parts, lock, versions, name=f"b{number}")
        for number in range(BLOCKS)
    ]
    return [await rank.join(stream) for stream in blocks][LAST]


fixed_by_a_meeting = fixed.variant(
    about="All locks are zeroed, then the blocks meet, then they are polled.",
    versions=False,
    meets=True,
)

buggy = fixed.variant(
    about="A lock may be polled before it is zeroed.",
    versions=False,
    finds=RAW("same call"),
)
