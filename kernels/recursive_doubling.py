"""All-reduce by recursive doubling, in place: in step k each rank adds the row of its partner at distance 2**k.

Two ranks that exchange in place must meet twice a step: when both rows are there to be read, and when
both were read and may be overwritten.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import WAR, Kernel, ReduceOp, Signal, Window, kernel
from kernels.pairs import core_of, meet, part, tree
from kernels.rows import SIZE, Array, rows
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView


def memory(size: int = SIZE, dtype: Any = np.float32) -> list[Window | Signal]:  # noqa: ANN401 - whatever numpy takes
    """Declare the row, and a cell a rank: the credits from it."""
    return [Window("data", (1, size), dtype), Signal("signal", ("P", 1), self_cleaning=True)]


def distances(P: int) -> list[int]:
    """Return the distances in the order of the steps: 1, 2, 4, …"""
    return [1 << step for step in range(P.bit_length() - 1)]


def golden(xs: Sequence[Array], *, op: ReduceOp = ReduceOp.Sum) -> list[Array]:
    """Every rank: all rows reduced, in the order of the steps."""
    return tree(xs, distances(len(xs)), op)


async def keep(rank: Rank, data: WindowView, acc: Array) -> None:
    """Store over the own row, which partners read."""
    await rank.store(data[0, : acc.size], acc)


async def row_of(rank: Rank, data: WindowView, partner: int, size: int) -> Array:
    """Read a partner's row."""
    return await rank.load(data.at(partner)[0, :size])


@kernel(memory=memory(), inputs=rows, golden=golden, same_on_all_ranks=True)
async def two_syncs(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    read_sync: bool = True,
) -> Array:
    """Two syncs a step: one before the partner's row is read, one before the own row is overwritten."""
    core, met, acc = core_of(rank.size), Counter[int](), x
    with rank.phase("stage"):
        await keep(rank, data, acc)
    lender = rank.id + core
    if rank.id >= core:
        await meet(rank, signal, rank.id - core, met)  # ready: the row can be borrowed
    elif lender < rank.size:
        await meet(rank, signal, lender, met)
        acc = op.combine(acc, await row_of(rank, data, lender, x.size))
        await keep(rank, data, acc)
    for distance in distances(rank.size) if rank.id < core else ():
        partner = rank.id ^ distance
        last = 2 * distance == core
        with rank.phase(f"distance {distance}"):
            await meet(rank, signal, partner, met)  # ready: both rows are there
            theirs = await row_of(rank, data, partner, x.size)
            if read_sync:
                await meet(rank, signal, partner, met)  # read: both rows may be overwritten
            acc = op.combine(acc, theirs)
            await keep(rank, data, op.finish(acc, rank.size) if last else acc)
    other = lender if rank.id < core else rank.id - core
    if other < rank.size:
        await meet(rank, signal, other, met)  # ready: the result is there
        if rank.id >= core:
            acc = await row_of(rank, data, other, x.size)
            await keep(rank, data, acc)
        if read_sync:
            await meet(rank, signal, other, met)  # read: the next call may stage
    await part(rank, signal, met)
    return acc


in_place_one_sync = two_syncs.variant(
    about="One sync a step: a fast rank overwrites the row that its partner still reads, in this call already.",
    read_sync=False,
    finds=[WAR("same call"), WAR("next call")],
)


def make(
    made: Kernel = two_syncs, *, size: int = SIZE, dtype: Any = np.float32, op: ReduceOp = ReduceOp.Sum  # noqa: ANN401
) -> Kernel:  # fmt: skip
    """Return one of the kernels above for another size, dtype or operator."""
    return made.variant(
        memory=memory(size, dtype),
        inputs=partial(rows, size=size, dtype=dtype),
        golden=partial(golden, op=op),
        op=op,
        finds=made.finds,
    )


if __name__ == "__main__":
    raise SystemExit(main(globals()))
