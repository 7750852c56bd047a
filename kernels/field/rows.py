"""What most cases work on: a row of numbers a rank, new ones in every call, so that a stale read shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import barrier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView

Array = np.ndarray[Any, Any]

SIZE = 4
"""Elements in a row: enough to see one, few enough to print."""


def rows(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a row."""
    return [rng.standard_normal(SIZE, np.float32) for _ in range(P)]


def sums(xs: Sequence[Array]) -> list[Array]:
    """All-reduce: every rank gets the sum of all rows, added from rank 0 up."""
    return [np.asarray(sum(xs))] * len(xs)


def everybodys(xs: Sequence[Array]) -> list[Array]:
    """All-gather: every rank gets the rows of all ranks."""
    return [np.stack(xs)] * len(xs)


async def gathered(rank: Rank, x: Array, data: WindowView, signal: SignalView) -> list[Array]:
    """Return the rows of all ranks. Synchronised as it should be, for cases where only the arithmetic is wrong."""
    await rank.store(data[:], x)
    await barrier(rank, signal, generation=2 * rank.call + 1)
    every = [await rank.load(data.at(peer)[:]) for peer in range(rank.size)]
    await barrier(rank, signal, generation=2 * rank.call + 2)
    return every
