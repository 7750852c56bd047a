"""All-gather: by push, each rank puts its row to everybody; by pull, each gets the rows of all.

Either way one barrier makes one call right, and leaves two calls wrong. By push the next put
overwrites what a slow peer has still to read back; by pull the next staging does.

Source: step 13 of PyPTO's distributed tutorial, and the lowering of ``pld.tensor.allgather``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import WAR, Kernel, Signal, Window, allgather, barrier, golden, kernel, settle
from kernels.rows import SIZE, Array, each_with_each, rows
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView


def memory(size: int = SIZE, dtype: Any = np.float32, *, pull: bool = False) -> list[Window | Signal]:  # noqa: ANN401
    """Declare what the rows are pushed to, or pulled from; and a cell a rank: the credits from it."""
    data = Window("data", (1, size), dtype) if pull else Window("gathered", ("P", size), dtype)
    return [data, Signal("signal", ("P", 1), self_cleaning=True)]


@kernel(memory=memory(), inputs=rows, golden=golden.allgather, same_on_all_ranks=True)
async def push(
    rank: Rank, x: Array, gathered: WindowView, signal: SignalView, *, entry_barrier: bool = True
) -> Array:
    """The composite with a barrier at its start: nobody puts again before the last has read back."""
    await allgather(rank, x, gathered, signal, safe=entry_barrier)
    with rank.phase("read back"):
        return await rank.load(gathered[...])


push_composite = push.variant(
    about="The composite as it is upstream: the next call puts over what slow peers have still to read back.",
    entry_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


@kernel(memory=memory(pull=True), inputs=rows, golden=golden.allgather, same_on_all_ranks=True)
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


def make(made: Kernel = push, *, size: int = SIZE, dtype: Any = np.float32) -> Kernel:  # noqa: ANN401
    """Return one of the kernels above for another size or dtype."""
    return made.variant(
        memory=memory(size, dtype, pull=made in (pull, pull_no_end_barrier)),
        inputs=partial(rows, size=size, dtype=dtype),
        finds=made.finds,
    )


if __name__ == "__main__":
    raise SystemExit(main(globals()))
