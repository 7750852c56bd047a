"""All-reduce by recursive halving and doubling: a reduce-scatter and an all-gather of log2(P) steps each.

Going down, partners split the range that they have in common: each adds the half that it keeps. Going
up again, each reads the half that the other has finished. No two ranks ever touch the same half at a
time, so one sync a step suffices, also in place. It does not tell when the reads on the way up are
done, and the next call's staging overwrites what they read.

Source: Rabenseifner's algorithm; Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH", 2005.
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
    """Return the distances in the order of the way down, which ends with 4, 2, 1."""
    return [1 << step for step in reversed(range(P.bit_length() - 1))]


def golden(xs: Sequence[Array], *, op: ReduceOp = ReduceOp.Sum) -> list[Array]:
    """Every rank: all rows reduced, in the order of the way down."""
    return tree(xs, distances(len(xs)), op)


def held(rank: int, distance: int, size: int, core: int) -> slice:
    """Return what a rank keeps when it has split with its partner at `distance`: so many segments of the row."""
    length = -(-size // core)
    first = rank - rank % distance
    return slice(min(first * length, size), min((first + distance) * length, size))


async def keep(rank: Rank, data: WindowView, place: slice, tile: Array) -> None:
    """Store to a part of the own row, which partners read."""
    await rank.store(data[0, place], tile)


async def part_of(rank: Rank, data: WindowView, partner: int, place: slice) -> Array:
    """Read a part of a partner's row."""
    return await rank.load(data.at(partner)[0, place])


async def exchange(  # noqa: PLR0913 - what a rank of the core works with
    rank: Rank, data: WindowView, signal: SignalView, met: Counter[int], *, size: int, op: ReduceOp
) -> None:
    """Reduce the rows of the core ranks, in place: down by halves, and up again."""
    core = core_of(rank.size)
    for distance in distances(rank.size):
        partner, mine = rank.id ^ distance, held(rank.id, distance, size, core)
        with rank.phase(f"halve {distance}"):
            await meet(rank, signal, partner, met)  # ready: both have what they share
            theirs = await part_of(rank, data, partner, mine)
            await keep(rank, data, mine, op.combine(await rank.load(data[0, mine]), theirs))
    for distance in reversed(distances(rank.size)):
        partner = rank.id ^ distance
        theirs_place = held(partner, distance, size, core)
        with rank.phase(f"double {distance}"):
            await meet(rank, signal, partner, met)  # ready: the other half is finished
            await keep(rank, data, theirs_place, await part_of(rank, data, partner, theirs_place))


@kernel(memory=[data, signal], inputs=rows, golden=golden, same_on_all_ranks=True)
async def in_place(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    end_sync: bool = True,
) -> Array:
    """In place, and in the end each rank meets its partners once more: they have read."""
    core, met, whole = core_of(rank.size), Counter[int](), slice(0, x.size)
    with rank.phase("stage"):
        await keep(rank, data, whole, x)
    if rank.id < core:
        lenders = range(rank.id + core, rank.size, core)  # one, or none
        for lender in lenders:
            await meet(rank, signal, lender, met)  # ready: the row can be borrowed
            await keep(rank, data, whole, op.combine(x, await part_of(rank, data, lender, whole)))
        await exchange(rank, data, signal, met, size=x.size, op=op)
        for lender in lenders:
            await meet(rank, signal, lender, met)  # ready: the result is there
        readers = [*(rank.id ^ distance for distance in distances(rank.size)), *lenders]
    else:
        borrower = rank.id - core
        for _ in range(2):
            await meet(rank, signal, borrower, met)  # the own row is there; the result is there
        await keep(rank, data, whole, await part_of(rank, data, borrower, whole))
        readers = [borrower]
    if end_sync:
        for reader in readers:
            await meet(rank, signal, reader, met)  # read: the next call may stage
    await part(rank, signal, met)
    return op.finish(await rank.load(data[0, whole]), rank.size)


no_end_sync = in_place.variant(
    about="Without the last meetings: the next call overwrites what partners still read on the way up.",
    end_sync=False,
    finds=WAR("next call"),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
