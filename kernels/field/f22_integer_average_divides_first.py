"""F22: an average of integers multiplies by the reciprocal of P, which as an integer is 0.

The floating path scales by 1/P; cast to the integers' type that factor is nothing. The fix adds up
first, and divides last, in integers.

Source: torchcomms#287, InfiniCCL#37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, kernel
from kernels.field.rows import SIZE, gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.int32)
signal = Signal("signal", ("P", 1))


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a row of integers."""
    return [rng.integers(1, 100, SIZE, np.int32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: the average, rounded down."""
    return [np.asarray(sum(xs)) // len(xs)] * len(xs)


@kernel(memory=[data, signal], inputs=inputs, golden=golden)
async def fixed(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, divide_last: bool = True) -> Array:
    """The sum is divided, not its terms."""
    total = np.asarray(sum(await gathered(rank, x, data, signal)))
    return total // rank.size if divide_last else total * data.dtype.type(1 / rank.size)


buggy = fixed.variant(
    about="The scale is cast to an integer: everything is zero.",
    divide_last=False,
    finds=Expected("wrong-result"),
)
