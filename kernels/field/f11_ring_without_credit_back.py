"""F11: a ring passes rows on through two slots, and nobody says that a slot was read.

Each rank waits for its left neighbour only. That the right one has read a slot before it is written
again follows from nothing: the dependence runs once around the ring, and at four ranks that is too
far. The fix sends a credit back to the left, and waits for the right one's before it writes.

Source: the Pallas guide to remote DMA, simpler#972.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, Signal, Window, kernel
from kernels.field.rows import SIZE, everybodys, rows

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

SLOTS = 2

inbox = Window("inbox", (SLOTS, SIZE), np.float32)  # from the left
full = Signal("full", (1,))  # how many rows came from the left
free = Signal("free", (1,))  # how many rows the right one has read


@kernel(memory=[inbox, full, free], inputs=rows, golden=everybodys)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, inbox: WindowView, full: SignalView, free: SignalView, *, credit_back: bool = True
) -> Array:
    """All-gather by a ring: a slot is written again when its reader has said so."""
    left, right = (rank.id - 1) % rank.size, (rank.id + 1) % rank.size
    out = np.zeros((rank.size, SIZE), np.float32)
    out[rank.id] = row = x
    for hop in range(1, rank.size):
        passed = rank.call * (rank.size - 1) + hop - 1  # rows that went this way before
        slot = passed % SLOTS
        if credit_back:
            await rank.wait(free[0] >= passed - SLOTS + 1)
        await rank.store(inbox.at(right)[slot], row)
        await rank.notify(full.at(right)[0], 1)
        await rank.wait(full[0] >= passed + 1)
        out[(rank.id - hop) % rank.size] = row = await rank.load(inbox[slot])
        if credit_back:
            await rank.notify(free.at(left)[0], 1)
    return out


buggy = fixed.variant(
    about="No credit comes back: a slot is written again while its reader is still to come.",
    credit_back=False,
    finds=WAR("same call"),
)
