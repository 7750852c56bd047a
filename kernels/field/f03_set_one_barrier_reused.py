"""F03: a barrier of `Set 1` and `wait >= 1` is used twice.

The flag of the first call is never taken down, so it satisfies every later wait at once: from the
second call on, nobody waits for anybody. The fix counts: call c sets c + 1 and waits for it.

Source: pypto#1829, iris#465, flux#17.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Set, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

CALLS = 3
"""Each call has a row of its own, so that the barrier alone is to blame."""

data = Window("data", (CALLS, SIZE), np.float32)
flag = Signal("flag", ("P",))


@kernel(memory=[data, flag], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, flag: SignalView, *, counts: bool = True) -> Array:
    """The flag says which call it is of."""
    epoch = rank.call + 1 if counts else 1
    await rank.store(data[rank.call], x)
    for peer in rank.peers:
        await rank.notify(flag.at(peer)[rank.id], epoch, op=Set)
    for peer in rank.peers:
        await rank.wait(flag[peer] >= epoch)
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[rank.call])
    return out


buggy = fixed.variant(
    about="The flag of the first call satisfies the waits of all later ones.",
    counts=False,
    finds=RAW("same call"),
)
