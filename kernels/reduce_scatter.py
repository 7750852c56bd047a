"""Reduce-scatter on one window: stage all P chunks, then sum the own row over all ranks.

Within one call the ready barrier is all that is needed. Row r of rank r's window is read by rank r
alone, so a result that is stored there disturbs nobody. What the *next* call stages does: a fast
rank overwrites row p while its slow peer p still reads that row for this call.

Source: step 14 of PyPTO's distributed tutorial, and the lowering of ``pld.tensor.reduce_scatter``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import RAW, WAR, Expected, RefusedError, Signal, Window, barrier, kernel, settle
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from asyncsim import Rank, SignalView, WindowView

    Array = np.ndarray[Any, Any]
    Sum = Callable[[Rank, WindowView], Awaitable[Array]]

SIZE = 64
"""Elements in a chunk."""

data = Window("data", ("P", SIZE), np.float32)  # row c: this rank's chunk c
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank its P chunks in a row, new ones in every call: a stale read must show."""
    return [rng.standard_normal(P * SIZE, np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Rank r: everybody's chunk r, added in the order of upstream: the own one, then the peers' ascending."""
    ranks = range(len(xs))
    chunks = np.stack(xs).reshape(len(xs), len(xs), SIZE)
    return [sum((chunks[peer, r] for peer in ranks if peer != r), start=chunks[r, r]) for r in ranks]


def each_with_each(P: int) -> int:
    """Count the pairs of a fast rank and a slow peer."""
    return P * (P - 1)


# What the programs are made of.


async def stage(rank: Rank, x: Array, data: WindowView, *, stride: int = SIZE) -> None:
    """Put chunk c of the input into the own row c."""
    with rank.phase("stage"):
        for c in range(rank.size):
            await rank.store(data[c], x[c * stride : c * stride + SIZE])


async def own_row(rank: Rank, data: WindowView) -> Array:
    """Sum row r over all ranks: the own one first, then the peers' ascending."""
    with rank.phase("reduce"):
        acc = await rank.load(data[rank.id])
        for peer in rank.peers:
            acc += await rank.load(data.at(peer)[rank.id])
    return acc


# The two correct programs of the tutorial, by hand and as a composite.


@kernel(memory=[data, signal], inputs=inputs, golden=golden, finds=WAR("next call", pairs=each_with_each))
async def hand(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, epilogue: bool = True) -> Array:
    """By hand: the result stays outside the window. Right once; the next call stages over what slow peers read."""
    await stage(rank, x, data)
    await barrier(rank, signal)  # ready: every chunk is staged
    acc = await own_row(rank, data)
    if epilogue:
        await settle(rank, signal, credits=1)
    return acc


@kernel(memory=[data, signal], inputs=inputs, golden=golden)
async def builtin(  # noqa: PLR0913 - each but the first four is one way to get it wrong
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    op: str = "Sum",
    stride: int = SIZE,
    total: Sum = own_row,
    post_barrier: bool = True,
) -> Array:
    """The composite: a second barrier makes everybody wait for the slowest reader. Right in any number of calls."""
    refuse_other_than_sum(op)
    await stage(rank, x, data, stride=stride)
    await barrier(rank, signal)  # ready: every chunk is staged
    acc = await total(rank, data)
    if post_barrier:
        await barrier(rank, signal, generation=2)  # read: the next call may stage
    await rank.store(data[rank.id], acc)
    await settle(rank, signal, credits=1 + post_barrier)
    return await rank.load(data[rank.id])


# Another way to be right.


@kernel(memory=[Window("data", (2, "P", SIZE), np.float32), Signal("signal", ("P", 1))], inputs=inputs, golden=golden)
async def double_buffer(rank: Rank, x: Array, data: WindowView, signal: SignalView) -> Array:
    """Two halves by turns, one barrier a call: who waits for call c knows that call c - 1 was read."""
    half = rank.call % 2
    with rank.phase("stage"):
        for c in range(rank.size):
            await rank.store(data[half, c], x[c * SIZE : (c + 1) * SIZE])
    await barrier(rank, signal, generation=rank.call + 1)  # credits are never given back: they count the calls
    with rank.phase("reduce"):
        acc = await rank.load(data[half, rank.id])
        for peer in rank.peers:
            acc += await rank.load(data.at(peer)[half, rank.id])
    return acc


# Synchronisation that is wrong. The pairs are those of two calls back to back.

hand_no_epilogue = hand.variant(
    about="The tutorial's own listing: the credits stay, and satisfy the next call's wait at once.",
    memory=[data, Signal("signal", ("P", 1))],
    epilogue=False,
    finds=[WAR("next call", pairs=each_with_each), RAW("same call", pairs=each_with_each)],
)

no_post_barrier = builtin.variant(
    about="The composite without its second barrier: the next call stages over what slow peers read.",
    post_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


@kernel(
    memory=[data, signal],
    inputs=inputs,
    golden=golden,
    finds=[WAR("same call", pairs=lambda P: 2 * (P - 1)), WAR("next call", pairs=each_with_each)],
)
async def mpi_in_place(rank: Rank, x: Array, data: WindowView, signal: SignalView) -> Array:
    """MPI_IN_PLACE: the result goes into row 0, which rank 0 may still be reading."""
    await stage(rank, x, data)
    await barrier(rank, signal)
    acc = await own_row(rank, data)
    await rank.store(data[0], acc)
    await settle(rank, signal, credits=1)
    return await rank.load(data[0])


@kernel(
    memory=[data, signal],
    inputs=inputs,
    golden=golden,
    finds=[WAR("same call", pairs=lambda P: 2 * each_with_each(P)), WAR("next call", pairs=each_with_each)],
)
async def whole_window_in_place(rank: Rank, x: Array, data: WindowView, signal: SignalView) -> Array:
    """The result goes into every row, each of which some peer may still be reading."""
    await stage(rank, x, data)
    await barrier(rank, signal)
    acc = await own_row(rank, data)
    with rank.phase("result"):
        for c in range(rank.size):
            await rank.store(data[c], acc)
    await settle(rank, signal, credits=1)
    return await rank.load(data[rank.id])


@kernel(
    memory=[data, signal, Signal("done", (1,), self_cleaning=True)],  # done[0]: how many peers have read
    inputs=inputs,
    golden=golden,
    finds=WAR("next call", pairs=each_with_each),
)
async def post_barrier_off_by_one(
    rank: Rank, x: Array, data: WindowView, signal: SignalView, done: SignalView
) -> Array:
    """The second barrier counts its peers in one cell, and goes on when one of them is still missing."""
    await stage(rank, x, data)
    await barrier(rank, signal)
    acc = await own_row(rank, data)
    for peer in rank.peers:
        await rank.notify(done.at(peer)[0], 1)
    await rank.wait(done[0] >= len(rank.peers) - 1)  # off by one: any of them may be the one that still reads
    await rank.store(data[rank.id], acc)
    await settle(rank, signal, credits=1)
    await rank.notify(done[0], -len(rank.peers))  # all of them, the late one too: for a moment it is -1
    return await rank.load(data[rank.id])


# Arithmetic that is wrong: the tutorial's table of symptoms. No schedule matters here.


async def peers_only(rank: Rank, data: WindowView) -> Array:
    """Start from zeros, and never add the own row."""
    acc = np.zeros(SIZE, np.float32)
    for peer in rank.peers:
        acc += await rank.load(data.at(peer)[rank.id])
    return acc


async def row_0(rank: Rank, data: WindowView) -> Array:
    """Sum row 0, whoever asks."""
    acc = await rank.load(data[0])
    for peer in rank.peers:
        acc += await rank.load(data.at(peer)[0])
    return acc


async def peers_descending(rank: Rank, data: WindowView) -> Array:
    """Sum the same numbers in another order, which may change the last bit."""
    acc = await rank.load(data[rank.id])
    for peer in reversed(rank.peers):
        acc += await rank.load(data.at(peer)[rank.id])
    return acc


def refuse_other_than_sum(op: str) -> None:
    """Refuse what upstream does not lower, in its words."""
    number = ("Sum", "Max", "Min", "Prod").index(op)
    if number:
        raise RefusedError(
            f"pld.tensor.reduce_scatter op must be ReduceOp.Sum (got int {number}); "
            "Max / Min / Prod lowerings are not yet implemented"
        )


zero_seed = builtin.variant(
    about="The accumulator starts as zeros: the result is short of exactly the own chunk.",
    total=peers_only,
    finds=Expected("wrong-result"),
)

row_zero = builtin.variant(
    about="The row is fixed to 0: every rank gets the same chunk.",
    total=row_0,
    finds=Expected("wrong-result"),
)

chunk_offset = builtin.variant(
    about="The chunks are staged one element too close together: their boundaries are off.",
    stride=SIZE - 1,
    finds=Expected("wrong-result"),
)

other_order = builtin.variant(
    about="The peers' rows are added in descending order: right within tolerance, not bit for bit.",
    total=peers_descending,
)

wrong_op = builtin.variant(
    about="A maximum instead of a sum, which upstream refuses.",
    op="Max",
    finds=Expected("refused"),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
