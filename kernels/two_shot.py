"""Two-shot all-reduce: each rank reduces its own chunk in place, then reads everybody's; two halves by turns.

Two barriers a call, and none at the end: a rank that stages the half of call c again, in call c + 2,
has met everybody in call c + 1, after they read that half. The credits are never given back: they
count the barriers. Each chunk is reduced by one rank, so all end with the same bits.

Source: the two-stage custom all-reduce of vLLM, and that of TensorRT-LLM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, ReduceOp, Signal, Window, barrier, kernel
from kernels.rows import SIZE, Array, each_with_each, rows
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView

data = Window("data", (2, SIZE), np.float32)
signal = Signal("signal", ("P", 1))  # cell [p, 0]: how many barriers rank p has come to


def golden(xs: Sequence[Array], *, op: ReduceOp = ReduceOp.Sum) -> list[Array]:
    """Every rank: all rows reduced, from rank 0 up."""
    return [op.reduce(xs)] * len(xs)


def chunk(owner: int, size: int, P: int) -> slice:
    """Return the part of a row of `size` elements that a rank reduces; the last ones may have less, or nothing."""
    length = -(-size // P)
    return slice(min(owner * length, size), min((owner + 1) * length, size))


@kernel(memory=[data, signal], inputs=rows, golden=golden, same_on_all_ranks=True)
async def double_buffer(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, data: WindowView, signal: SignalView, *, op: ReduceOp = ReduceOp.Sum, halves: int = 2
) -> Array:
    """Two halves by turns: while slow ranks gather from one, fast ones stage the other."""
    half = rank.call % halves
    mine = chunk(rank.id, x.size, rank.size)
    with rank.phase("stage"):
        await rank.store(data[half, : x.size], x)
    await barrier(rank, signal, generation=2 * rank.call + 1)  # ready: every row is staged
    with rank.phase("reduce"):
        acc = op.reduce([await rank.load(data.at(peer)[half, mine]) for peer in range(rank.size)])
        await rank.store(data[half, mine], acc)  # nobody else reads this chunk of this row until all have met
    await barrier(rank, signal, generation=2 * rank.call + 2)  # reduced: every chunk is there
    with rank.phase("gather"):
        parts = [await rank.load(data.at(peer)[half, chunk(peer, x.size, rank.size)]) for peer in range(rank.size)]
    return np.concatenate(parts)


single_buffer = double_buffer.variant(
    about="One half for all calls: the next call stages over the chunk that slow peers still gather.",
    halves=1,
    finds=WAR("next call", pairs=each_with_each),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
