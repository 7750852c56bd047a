"""F32: a butterfly barrier leaves out the partners that do not exist.

In step k rank r meets rank r XOR 2**k. Where P is no power of two some partners are missing; to leave
them out ends the barrier before everybody has come. With four ranks nothing is wrong, with three
rank 2 goes on without rank 1. The fix is a dissemination barrier: in step k a rank signals the one
2**k above it, modulo P, and waits for the one as far below.

Source: meta-pytorch/torchcomms#3213.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, WAR, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

STEPS = 10
"""Enough for 1024 ranks."""

data = Window("data", (SIZE,), np.float32)
met = Signal("met", (STEPS,))  # [k]: how often the partner of step k has come


async def meet(rank: Rank, met: SignalView, generation: int, *, any_size: bool) -> None:
    """Wait until all have come, if the barrier is right for P."""
    for step in range((rank.size - 1).bit_length()):
        distance = 1 << step
        partner = (rank.id + distance) % rank.size if any_size else rank.id ^ distance
        if partner < rank.size:
            await rank.notify(met.at(partner)[step], 1)
            await rank.wait(met[step] >= generation)


@kernel(memory=[data, met], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, met: SignalView, *, any_size: bool = True) -> Array:
    """A one-shot all-reduce between two dissemination barriers."""
    await rank.store(data[:], x)
    await meet(rank, met, 2 * rank.call + 1, any_size=any_size)  # staged
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[:])
    await meet(rank, met, 2 * rank.call + 2, any_size=any_size)  # read
    return out


buggy = fixed.variant(
    about="A butterfly that leaves out missing partners: right for powers of two alone.",
    any_size=False,
    finds=[RAW("same call"), WAR("next call")],
)
