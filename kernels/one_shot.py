"""One-shot all-reduce: every rank reads all rows, with two halves by turns and one barrier a call.

Who comes to the barrier of call c has read what call c - 1 staged, in the other half; so the half of
call c - 1 may be staged again in call c + 1. The credits are never given back: they count the calls.
All ranks add in the same order, so all end with the same bits.

Source: the one-stage custom all-reduce of vLLM, and that of TensorRT-LLM.
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


@kernel(memory=[data, signal], inputs=rows, golden=golden, same_on_all_ranks=True)
async def double_buffer(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, data: WindowView, signal: SignalView, *, op: ReduceOp = ReduceOp.Sum, halves: int = 2
) -> Array:
    """Two halves by turns: while slow ranks read one, fast ones stage the other."""
    place = (rank.call % halves, slice(x.size))
    with rank.phase("stage"):
        await rank.store(data[place], x)
    await barrier(rank, signal, generation=rank.call + 1)
    with rank.phase("reduce"):
        return op.reduce([await rank.load(data.at(peer)[place]) for peer in range(rank.size)])


single_buffer = double_buffer.variant(
    about="One half for all calls: the next call stages over what slow peers still read.",
    halves=1,
    finds=WAR("next call", pairs=each_with_each),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
