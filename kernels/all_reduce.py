"""All-reduce by a mesh, in place: everybody reads everybody's row, and stores the sum over its own.

Here the second barrier is needed within one call already: the row that a fast rank overwrites is
the one that all its slow peers still read.

Source: the lowering of ``pld.tensor.allreduce`` with ``mode="mesh"`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import WAR, Signal, Window, barrier, kernel, settle
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView

    Array = np.ndarray[Any, Any]

SIZE = 64
"""Elements in a row."""

data = Window("data", (1, SIZE), np.float32)
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank its row, a new one in every call: a stale read must show."""
    return [rng.standard_normal(SIZE, np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: the sum of all rows, the own one first. So ranks may differ in the last bit."""
    ranks = range(len(xs))
    return [sum((xs[peer] for peer in ranks if peer != r), start=xs[r]) for r in ranks]


def each_with_each(P: int) -> int:
    """Count the pairs of a fast rank and a slow peer."""
    return P * (P - 1)


@kernel(memory=[data, signal], inputs=inputs, golden=golden)
async def mesh(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, post_barrier: bool = True) -> Array:
    """The composite: stage, ready barrier, reduce, post-reduce barrier, store over the own row."""
    with rank.phase("stage"):
        await rank.store(data[0], x)
    await barrier(rank, signal)  # ready: every row is staged
    with rank.phase("reduce"):
        acc = await rank.load(data[0])
        for peer in rank.peers:
            acc += await rank.load(data.at(peer)[0])
    if post_barrier:
        await barrier(rank, signal, generation=2)  # read: the rows may be overwritten
    await rank.store(data[0], acc)
    await settle(rank, signal, credits=1 + post_barrier)
    return await rank.load(data[0])


no_post_barrier = mesh.variant(
    about="Without its second barrier: a fast rank overwrites the row that its slow peers read.",
    post_barrier=False,
    finds=[WAR("same call", pairs=lambda P: 2 * each_with_each(P)), WAR("next call", pairs=each_with_each)],
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
