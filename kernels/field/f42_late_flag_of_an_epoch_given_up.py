"""F42: a receive times out, the epoch goes on, and the late flag is taken for that of the new epoch.

The receiver looks for the flag a while, then gives the sender up for this epoch. The flag comes all
the same, later, and stands there when the receiver looks for the next one; what it then reads is of
another epoch than it believes. The fix: the flag says which epoch it is of, and an old one is no flag.

What a receiver misses depends on time, so the result here is what must never be: how many rows were
taken for those of another epoch.

Source: local-inference-lab/b12x#295, local-inference-lab/b12x#313.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Set, Signal, Window, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

EPOCHS = 2
RECEIVER = 0

inbox = Window("inbox", (EPOCHS, "P"), np.int32, initialised=True)  # [e, p]: what rank p sent in epoch e
flag = Signal("flag", ("P",))  # [p]: rank p's flag


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a number an epoch, never 0."""
    return [rng.integers(1, 100, EPOCHS, np.int32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[int]:
    """No row is taken for another."""
    return [0] * len(xs)


@kernel(memory=[inbox, flag], inputs=inputs, golden=golden)
async def fixed(rank: Rank, x: Array, inbox: WindowView, flag: SignalView, *, says_epoch: bool = True) -> int:
    """The flag is the number of its epoch."""
    mistaken = 0
    for epoch in range(EPOCHS):
        number = rank.call * EPOCHS + epoch + 1 if says_epoch else 1
        if rank.id != RECEIVER:
            await rank.store(inbox.at(RECEIVER)[epoch, rank.id], x[epoch])
            await rank.notify(flag.at(RECEIVER)[rank.id], number, op=Set)
            continue
        for peer in rank.peers:
            if await rank.test(flag[peer] >= number):  # else it is given up
                if not says_epoch:
                    await rank.notify(flag[peer], 0, op=Set)
                mistaken += int(await rank.load(inbox[epoch, peer])) == 0
    return mistaken


buggy = fixed.variant(
    about="A flag is a flag: that of an epoch which was given up is taken for the next one.",
    says_epoch=False,
    finds=RAW("same call"),
)
