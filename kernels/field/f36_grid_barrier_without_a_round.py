"""F36: a grid barrier has no state but its count, which the last block to come sets back to 0.

The others wait until the count is n. But it is n for a moment only: who did not look then sees 0, or
already the count of the next round, and sleeps for ever. The fix: the last one sets the count back and
then opens a gate that counts the rounds, and the others wait at the gate.

Source: tile-ai/tilelang#2319.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Set, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, WindowView
    from kernels.field.rows import Array

BLOCKS = 2
PART = SIZE // BLOCKS

parts = Window("parts", (BLOCKS,), np.float32)  # the sum of each block's part
count = Window("count", (1,), np.uint32, initialised=True)  # how many blocks have come
gate = Window("gate", (1,), np.uint32, initialised=True)  # how many rounds are over


def golden(xs: Sequence[Array]) -> list[Array]:
    """Each block gets the sum of its rank's row."""
    return [np.full(BLOCKS, sum(x[part : part + PART].sum() for part in range(0, SIZE, PART)), x.dtype) for x in xs]


async def grid_barrier(rank: Rank, count: WindowView, gate: WindowView, *, generation: int, counts: bool) -> None:
    """Wait until every block has come here for the `generation`-th time."""
    if await rank.arrive(count.word[0], of=BLOCKS):
        await rank.notify(count.word[0], 0, op=Set)
        await rank.notify(gate.word[0], 1)
    elif counts:
        await rank.wait(gate.word[0] >= generation)
    else:
        await rank.wait(count.word[0] == BLOCKS)


async def block(  # noqa: PLR0913, PLR0917 - the memory, which block this is, and the mistake
    rank: Rank, number: int, x: Array, parts: WindowView, count: WindowView, gate: WindowView,
    counts: bool,  # noqa: FBT001 - a stream's arguments have places
) -> Array:  # fmt: skip
    """Sum up a part, meet, add the sums of all parts, meet."""
    await rank.store(parts[number], x[number * PART : (number + 1) * PART].sum())
    await grid_barrier(rank, count, gate, generation=2 * rank.call + 1, counts=counts)
    total = (await rank.load(parts[:])).sum()
    await grid_barrier(rank, count, gate, generation=2 * rank.call + 2, counts=counts)
    return np.asarray(total)


@kernel(memory=[parts, count, gate], inputs=rows, golden=golden)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, parts: WindowView, count: WindowView, gate: WindowView, *, counts: bool = True
) -> Array:
    """The gate counts the rounds."""
    blocks = [
        await rank.start(block, number, x, parts, count, gate, counts, name=f"b{number}") for number in range(BLOCKS)
    ]
    totals = [await rank.join(stream) for stream in blocks]
    return np.stack(totals)


buggy = fixed.variant(
    about="The only sign that all have come is a count of n, which is gone at once.",
    counts=False,
    finds=Expected("signal-race"),
)
