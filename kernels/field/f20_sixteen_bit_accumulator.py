"""F20: a sum is accumulated in the 16 bits of its terms.

In float16 the neighbours of 2048 are two apart, so 2048 + 1 is 2048, and so it stays however many
ones follow. The fix accumulates in float32, where 2048 + 1 + 1 + 1 is 2051.

Source: TensorRT-LLM#16753.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import Expected, Signal, Window, kernel
from kernels.field.rows import SIZE, gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.float16)
signal = Signal("signal", ("P", 1))


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give rank 0 one large number (another in every call), and the others ones."""
    return [np.full(SIZE, 2048 + 4 * call if rank == 0 else 1, np.float16) for rank in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: the sum, which float32 holds exactly."""
    return [np.asarray(np.sum(xs, axis=0, dtype=np.float32))] * len(xs)


@kernel(memory=[data, signal], inputs=inputs, golden=golden)
async def fixed(
    rank: Rank, x: Array, data: WindowView, signal: SignalView, *, accumulator: type[np.floating[Any]] = np.float32
) -> Array:
    """The accumulator is wider than its terms."""
    acc = np.zeros(SIZE, accumulator)
    for row in await gathered(rank, x, data, signal):
        acc += row
    return acc.astype(np.float32)


buggy = fixed.variant(
    about="The accumulator is as narrow as its terms: small ones are lost one by one.",
    accumulator=np.float16,
    finds=Expected("wrong-result"),
)
