"""F49: who wins a compare-and-swap on the index of what is ready reads on without a fence.

The producer writes an item, then raises the index. A consumer claims the item by a relaxed compare-and-swap on that
index, over and over until it succeeds. That it won says nothing of the item: what it reads may be what was there
before. The fix: a fence behind the swap (or a swap that acquires).

Source: deepseek-ai/DeepEP#703.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Set, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, WindowView
    from kernels.field.rows import Array

FREE, READY, CLAIMED = 0, 1, 2

item = Window("item", (SIZE,), np.float32)  # [:]: from the left neighbour
index = Window("index", (1,), np.uint32, initialised=True)  # whether it is free, ready or claimed


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank gets the item of its left neighbour."""
    return [xs[rank - 1] for rank in range(len(xs))]


@kernel(memory=[item, index], inputs=rows, golden=golden)
async def fixed(rank: Rank, x: Array, item: WindowView, index: WindowView, *, fences: bool = True) -> Array:
    """A fence stands between the swap and the item."""
    right = (rank.id + 1) % rank.size
    await rank.wait(index.at(right).word[0] == FREE, order="acquire")
    await rank.store(item.at(right)[:], x)
    await rank.notify(index.at(right).word[0], READY, op=Set)
    await rank.wait(index.word[0] == READY, then=Set(CLAIMED), order="relaxed")  # until the swap succeeds
    if fences:
        await rank.fence(order="acquire")
    mine = await rank.load(item[:])
    await rank.notify(index.word[0], FREE, op=Set)
    return mine


buggy = fixed.variant(
    about="Nothing orders the relaxed swap and the read of what it claimed.",
    fences=False,
    finds=RAW("same call"),
)
