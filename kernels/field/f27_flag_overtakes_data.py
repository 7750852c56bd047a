"""F27: the flag is raised by a relaxed notify, and lands before the data that it announces.

A remote store and a notify go to the same rank, but on their own: only a release lands after what
its rank wrote before. The fix is that release. A fence between the two does as well.

Source: PTOAS#711, aiter#4856.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from asyncsim import RAW, Signal, Window, barrier, kernel
from kernels.field.rows import SIZE, everybodys, rows

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", ("P", SIZE), np.float32)  # row p: what rank p pushed
pushed = Signal("pushed", ("P",))  # [p]: how often rank p has pushed
taken = Signal("taken", ("P", 1))


@kernel(memory=[data, pushed, taken], inputs=rows, golden=everybodys)
async def fixed(  # noqa: PLR0913 - the last two are what there is to choose
    rank: Rank,
    x: Array,
    data: WindowView,
    pushed: SignalView,
    taken: SignalView,
    *,
    order: Literal["release", "relaxed"] = "release",
    fence: bool = False,
) -> Array:
    """An all-gather by push: the notify lands after the row."""
    await rank.store(data[rank.id], x)
    for peer in rank.peers:
        await rank.store(data.at(peer)[rank.id], x)
        if fence:
            await rank.fence()
        await rank.notify(pushed.at(peer)[rank.id], 1, order=order)
    for peer in rank.peers:
        await rank.wait(pushed[peer] >= rank.call + 1)
    out = await rank.load(data[:])
    await barrier(rank, taken, generation=rank.call + 1)  # the next call may push
    return out


fixed_by_fence = fixed.variant(
    about="A fence orders the row before the relaxed notify to the same peer.",
    order="relaxed",
    fence=True,
)

buggy = fixed.variant(
    about="The notify is relaxed: the flag can be up while the row is under way.",
    order="relaxed",
    finds=RAW("same call"),
)
