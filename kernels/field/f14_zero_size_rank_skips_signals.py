"""F14: a rank that has nothing to send returns early, and its peers wait for its signal.

Nothing to send is not nothing to say. The fix takes part in every notify and wait, with no elements.

Source: uccl#993, DeepEP#374.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, barrier, kernel, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

COUNTS = (3, 0)
"""How many elements each rank has."""

data = Window("data", (max(COUNTS),), np.float32)
signal = Signal("signal", ("P", 1), self_cleaning=True)


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank as many elements as it has."""
    return [rng.standard_normal(count, np.float32) for count in COUNTS[:P]]


def golden(xs: Sequence[Array]) -> list[Array]:
    """All-gather: everybody gets all there is."""
    return [np.concatenate(xs)] * len(xs)


@kernel(memory=[data, signal], inputs=inputs, golden=golden)
async def fixed(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, early_return: bool = False) -> Array:
    """Everybody takes part, also with no elements."""
    if early_return and not x.size:
        return x
    await rank.store(data[: x.size], x)
    await barrier(rank, signal)  # staged
    parts = [await rank.load(data.at(peer)[: COUNTS[peer]]) for peer in range(rank.size)]
    await barrier(rank, signal, generation=2)  # read
    await settle(rank, signal, credits=2)
    return np.concatenate(parts)


buggy = fixed.variant(
    about="The empty rank returns, and its peers wait for ever.",
    early_return=True,
    finds=Expected("deadlock"),
)
