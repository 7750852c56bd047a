"""All-gather: by push, each rank puts its row to everybody; by pull, each gets the rows of all.

Either way one barrier makes one call right, and leaves two calls wrong. By push the next put
overwrites what a slow peer has still to read back; by pull the next staging does.

Source: step 13 of PyPTO's distributed tutorial, and the lowering of ``pld.tensor.allgather``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, Signal, Window, allgather, barrier, golden, kernel, settle
from kernels.rows import SIZE, Array, each_with_each, rows
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView

data = Window("data", (1, SIZE), np.float32)  # to be pulled from
gathered = Window("gathered", ("P", SIZE), np.float32)  # to be pushed to
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


@kernel(memory=[gathered, signal], inputs=rows, golden=golden.allgather, same_on_all_ranks=True)
async def push(rank: Rank, x: Array, gathered: WindowView, signal: SignalView, *, entry_barrier: bool = True) -> Array:
    """The composite with a barrier at its start: nobody puts again before the last has read back."""
    await allgather(rank, x, gathered, signal, safe=entry_barrier)
    with rank.phase("read back"):
        return await rank.load(gathered[...])


push_composite = push.variant(
    about="The composite as it is upstream: the next call puts over what slow peers have still to read back.",
    entry_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


@kernel(memory=[data, signal], inputs=rows, golden=golden.allgather, same_on_all_ranks=True)
async def pull(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, end_barrier: bool = True) -> Array:
    """Stage, ready barrier, read the rows of all; and a barrier after which the next call may stage."""
    with rank.phase("stage"):
        await rank.store(data[0, : x.size], x)
    await barrier(rank, signal)  # ready: every row is staged
    with rank.phase("gather"):
        every = [await rank.load(data.at(peer)[0, : x.size]) for peer in range(rank.size)]
    if end_barrier:
        await barrier(rank, signal, generation=2)  # read: the next call may stage
    await settle(rank, signal, credits=1 + end_barrier)
    return np.stack(every)


pull_no_end_barrier = pull.variant(
    about="By pull with one barrier: the next call stages over what slow peers still read.",
    end_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
