"""All-reduce by recursive doubling, in place: in step k each rank adds the row of its partner at distance 2**k.

Two ranks that exchange in place must meet twice a step: when both rows are there to be read, and when
both were read and may be overwritten.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, ReduceOp, Signal, Window, kernel
from kernels.pairs import core_of, meet, part, tree
from kernels.rows import SIZE, Array, rows
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView

data = Window("data", (1, SIZE), np.float32)
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


def distances(P: int) -> list[int]:
    """Return the distances in the order of the steps: 1, 2, 4 and so on."""
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


@kernel(memory=[data, signal], inputs=rows, golden=golden, same_on_all_ranks=True)
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
    if rank.id < core:
        lenders = range(rank.id + core, rank.size, core)  # one, or none
        for partner in (*lenders, *(rank.id ^ distance for distance in distances(rank.size))):
            with rank.phase(f"with {partner}"):
                await meet(rank, signal, partner, met)  # ready: the partner's row is there
                theirs = await row_of(rank, data, partner, x.size)
                if read_sync:
                    await meet(rank, signal, partner, met)  # read: the own row may be overwritten
                acc = op.combine(acc, theirs)
                await keep(rank, data, acc)
        for lender in lenders:
            for _ in range(1 + read_sync):
                await meet(rank, signal, lender, met)  # the result is there; it was read
    else:
        borrower = rank.id - core
        for _ in range(2 + read_sync):
            await meet(rank, signal, borrower, met)  # the own row is there; it was read; the result is there
        acc = await row_of(rank, data, borrower, x.size)
        await keep(rank, data, acc)
        if read_sync:
            await meet(rank, signal, borrower, met)
    await part(rank, signal, met)
    return op.finish(acc, rank.size)


in_place_one_sync = two_syncs.variant(
    about="One sync a step: a fast rank overwrites the row that its partner still reads, in this call already.",
    read_sync=False,
    finds=[WAR("same call"), WAR("next call")],
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
