"""F16: the index of a peer within its pair is used as its rank in the world.

The pairs are (0, 1) and (2, 3). The first pair cannot tell the difference, so two ranks show
nothing; the second pair talks to the first, and waits for ever.

Source: pypto-lib#1021, SOS#1150.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

CALLS = 3
"""Each call has a row of its own, so that one credit a call is all that is needed."""

data = Window("data", (CALLS, SIZE), np.float32)  # what the other one pushed
ready = Signal("ready", (1,))


def golden(xs: Sequence[Array]) -> list[Array]:
    """Everybody gets the row of the other one in its pair."""
    return [xs[rank ^ 1] for rank in range(len(xs))]


@kernel(memory=[data, ready], inputs=rows, golden=golden)
async def fixed(rank: Rank, x: Array, data: WindowView, ready: SignalView, *, translated: bool = True) -> Array:
    """The index is translated into a rank."""
    base = rank.id // 2 * 2
    other = 1 - (rank.id - base)
    peer = base + other if translated else other
    await rank.store(data.at(peer)[rank.call], x)
    await rank.notify(ready.at(peer)[0], 1)
    await rank.wait(ready[0] >= rank.call + 1)
    return await rank.load(data[rank.call])


buggy = fixed.variant(
    about="The index is taken for a rank: the second pair talks to the first.",
    translated=False,
    finds=Expected("deadlock"),
)
