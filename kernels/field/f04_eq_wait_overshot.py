"""F04: two barriers share a cell, and wait for exactly their own number.

A fast rank meets at the start of the call, does its part, and announces the end before its slow
peer has looked: the peer waits for 1, the cell says 2, and never 1 again. Two cells in turn cannot
be overshot, because who announces the next start has seen its peer at the end. Or wait for `>=`.

Source: vllm#8558.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Set, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.float32)
flag = Signal("flag", (2, "P"))  # cell [turn, p]: the last barrier that rank p came to


@kernel(memory=[data, flag], inputs=rows, golden=sums)
async def fixed(  # noqa: PLR0913 - the last two are the two ways out
    rank: Rank,
    x: Array,
    data: WindowView,
    flag: SignalView,
    *,
    cells: int = 2,
    reached: Callable[..., bool] = operator.eq,
) -> Array:
    """The start and the end of a call are announced in two cells, in turn."""

    async def meet(number: int) -> None:
        for peer in rank.peers:
            await rank.notify(flag.at(peer)[number % cells, rank.id], number, op=Set)
        for peer in rank.peers:
            await rank.wait(reached(flag[number % cells, peer], number))  # type: ignore[arg-type]

    await rank.store(data[:], x)
    await meet(2 * rank.call + 1)
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[:])
    await meet(2 * rank.call + 2)
    return out


fixed_by_at_least = fixed.variant(
    about="One cell for both, and a wait that a later number satisfies too.",
    cells=1,
    reached=operator.ge,
)

buggy = fixed.variant(
    about="One cell for both: the number that a slow rank waits for is overwritten by the next.",
    cells=1,
    finds=Expected("unstable-wait"),
)
