"""F19: every rank adds the rows beginning with its own, so no two ranks round alike.

All are right within tolerance. But replicas that should be equal drift apart, and a branch on such
a number sends ranks different ways. The fix adds in one order, whoever asks.

Source: pytorch#129501, vllm#57042.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, kernel
from kernels.field.rows import SIZE, gathered, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.float32)
signal = Signal("signal", ("P", 1))


@kernel(memory=[data, signal], inputs=rows, golden=sums, same_on_all_ranks=True)
async def fixed(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, own_first: bool = False) -> Array:
    """Everybody adds from rank 0 up."""
    every = await gathered(rank, x, data, signal)
    first = rank.id if own_first else 0
    acc = np.zeros_like(x)
    for i in range(rank.size):
        acc += every[(first + i) % rank.size]
    return acc


buggy = fixed.variant(
    about="Everybody begins with its own row.",
    own_first=True,
    finds=Expected("ranks-differ"),
)
