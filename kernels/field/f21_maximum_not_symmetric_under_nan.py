"""F21: a maximum is written as a comparison, and a comparison with NaN is false.

``v if acc < v else acc`` keeps the accumulator whenever either of the two is NaN: a NaN that comes
first stays, one that comes later is dropped. Each rank begins with its own row, so ranks differ.
The fix is numpy's `maximum`, where a NaN on either side wins.

Source: mlx#4072.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, kernel
from kernels.field.rows import SIZE, gathered, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.float32)
signal = Signal("signal", ("P", 1))


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a row; the first number of rank 0 is none."""
    every = rows(P, call, rng)
    every[0][0] = np.nan
    return every


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: the maximum of all rows, NaN where any of them is."""
    return [reduce(np.maximum, xs)] * len(xs)


def by_comparison(acc: Array, v: Array) -> Array:
    """Return the larger one, if there is one."""
    return np.where(acc < v, v, acc)


@kernel(memory=[data, signal], inputs=inputs, golden=golden, same_on_all_ranks=True)
async def fixed(
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    larger: Callable[[Array, Array], Array] = np.maximum,
) -> Array:
    """A NaN on either side wins."""
    every = await gathered(rank, x, data, signal)
    return reduce(larger, (every[peer] for peer in rank.peers), x)


buggy = fixed.variant(
    about="A comparison keeps the left side when there is a NaN.",
    larger=by_comparison,
    finds=[Expected("ranks-differ"), Expected("wrong-result")],
)
