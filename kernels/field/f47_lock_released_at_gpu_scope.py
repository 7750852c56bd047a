"""F47: a lock is released in the scope of one GPU, and another GPU polls it.

Who works on a tile holds its lock; the peer that wants the tile polls the lock from another GPU. A release
of that scope need not ever be seen there, and orders nothing for who sees it. The fix: the scope of the system.

Source: ROCm/iris#462.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from asyncsim import RAW, Set, Signal, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

tile = Window("tile", (SIZE,), np.float32)
lock = Window("lock", (1,), np.uint32, initialised=True)  # in how many calls the tile was released
taken = Signal("taken", (1,))  # in how many calls the right neighbour has read the tile


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank gets the tile of its left neighbour."""
    return [xs[rank - 1] for rank in range(len(xs))]


@kernel(memory=[tile, lock, taken], inputs=rows, golden=golden)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, tile: WindowView, lock: WindowView, taken: SignalView,
    *, scope: Literal["rank", "world"] = "world",
) -> Array:  # fmt: skip
    """The lock is released, and polled, in the scope of the system."""
    left = (rank.id - 1) % rank.size
    await rank.wait(taken[0] >= rank.call)
    await rank.store(tile[:], x)
    await rank.notify(lock.word[0], rank.call + 1, op=Set, scope=scope)
    await rank.wait(lock.at(left).word[0] >= rank.call + 1, order="acquire", scope="world")
    theirs = await rank.load(tile.at(left)[:])
    await rank.notify(taken.at(left)[0])
    return theirs


buggy = fixed.variant(
    about="The release has the scope of one GPU, the poll comes from another.",
    scope="rank",
    finds=RAW("same call"),
)
