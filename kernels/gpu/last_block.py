"""A reduction whose last block adds up what all blocks have left: one launch, and no barrier.

Each block sums up its part, leaves the sum, fences, and takes a ticket by an atomic whose result says
whether it is the last. Only the last one goes on: it fences, adds the sums of all, and sets the counter
back for the next launch. Which block is last depends on the schedule, the total does not.

Source: NVIDIA, CUDA samples, "threadFenceReduction"; CUDA C++ Programming Guide, memory fence functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from asyncsim import Expected, Set, Window, kernel
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, WindowView
    from kernels.rows import Array

BLOCKS = 2
PART = 2

sums = Window("sums", (BLOCKS,), np.int64)  # [b]: the sum of block b's part
total = Window("total", (1,), np.int64)
count = Window("count", (1,), np.uint32, initialised=True)  # how many blocks have left their sum


def parts(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a part a block."""
    return [rng.integers(1, 100, (BLOCKS, PART), np.int64) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[int]:
    """Each rank gets the sum of its own numbers."""
    return [int(x.sum()) for x in xs]


async def block(  # noqa: PLR0913, PLR0917 - the memory, which block this is, and the mistakes
    rank: Rank, number: int, x: Array, sums: WindowView, total: WindowView, count: WindowView,
    fences: bool, scope: Literal["block", "rank"], resets: bool,  # noqa: FBT001 - a stream's have places
) -> None:  # fmt: skip
    """Leave the sum of a part; the last block adds all of them."""
    await rank.store(sums[number], int(x[number].sum()))
    if fences:
        await rank.fence(scope=scope)
    if await rank.arrive(count.word[0], of=BLOCKS, order="relaxed", scope="rank"):
        if fences:
            await rank.fence(scope=scope)
        await rank.store(total[0], int((await rank.load(sums[:])).sum()))
        if resets:
            await rank.notify(count.word[0], 0, op=Set, order="relaxed", scope="rank")


@kernel(memory=[sums, total, count], inputs=parts, golden=golden)
async def last_block_reduces(  # noqa: PLR0913 - the last three are the mistakes
    rank: Rank, x: Array, sums: WindowView, total: WindowView, count: WindowView,
    *, fences: bool = True, scope: Literal["block", "rank"] = "rank", resets: bool = True,
) -> int:  # fmt: skip
    """Launch the blocks, and return the total when they are done."""
    blocks = [
        await rank.start(block, number, x, sums, total, count, fences, scope, resets, name=f"b{number}")
        for number in range(BLOCKS)
    ]
    for each in blocks:
        await rank.join(each)
    return int(await rank.load(total[0]))


no_fences = last_block_reduces.variant(
    about="Nothing orders a block's sum and its ticket: the last block may read a sum that is not there yet.",
    fences=False,
    finds=Expected("wrong-result"),
)
fences_of_a_block = last_block_reduces.variant(
    about="The fences have the scope of one block, and order nothing between two.",
    scope="block",
    finds=Expected("wrong-result"),
)
counter_not_set_back = last_block_reduces.variant(
    about="The counter stays where it is: in the next launch no block is the last.",
    resets=False,
    finds=Expected("wrong-result"),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
