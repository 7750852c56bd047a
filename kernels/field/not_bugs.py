"""What looks like a mistake and is none: a checker that reports these cries wolf.

The one real race among them, `identical_bytes`, is shown as benign: both orders leave the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAW, Signal, Window, barrier, kernel, settle
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

ROOT = 0

data = Window("data", (SIZE,), np.float32)
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


def from_root(xs: Sequence[Array]) -> list[Array]:
    """Broadcast: everybody gets the root's row."""
    return [xs[ROOT]] * len(xs)


@kernel(memory=[data, signal], inputs=rows, golden=from_root)
async def root_copies_onto_itself(rank: Rank, x: Array, data: WindowView, signal: SignalView) -> Array:
    """A broadcast where the root too gets its own row: the same elements onto themselves, which only reads them."""
    if rank.id == ROOT:
        await rank.store(data[:], x)
    await barrier(rank, signal)  # staged
    await rank.get(data[:], data.at(ROOT)[:])
    await barrier(rank, signal, generation=2)  # read
    await settle(rank, signal, credits=2)
    return await rank.load(data[:])


def lengths(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Tell each rank the length of this call, the same on all."""
    return [np.array([16 + call], np.int32) for _ in range(P)]


@kernel(
    memory=[Window("length", (1,), np.int32), signal],
    inputs=lengths,
    golden=from_root,
    finds=WAW("same call"),
)
async def identical_bytes(rank: Rank, x: Array, length: WindowView, signal: SignalView) -> Array:
    """Everybody writes the same length into the root's header: a race, and nobody can tell who won."""
    await rank.store(length.at(ROOT)[:], x)
    await barrier(rank, signal)  # written
    got = await rank.load(length.at(ROOT)[:])
    await barrier(rank, signal, generation=2)  # read
    await settle(rank, signal, credits=2)
    return got


def chunks(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank P chunks of one number."""
    return [rng.standard_normal(P, np.float32) for _ in range(P)]


@kernel(
    memory=[
        Window("data", ("P",), np.float32),  # element c: chunk c
        Signal("ready", (1,), self_cleaning=True),  # how many steps the left neighbour has taken
        Signal("done", (1,), self_cleaning=True),  # the right neighbour has read all
    ],
    inputs=chunks,
    golden=sums,
)
async def ring_all_reduce(rank: Rank, x: Array, data: WindowView, ready: SignalView, done: SignalView) -> Array:
    """A ring by pull with handshakes between neighbours only: not one of its waits could be weaker.

    Chunk c is overwritten with its sum when it was read for the last time as a part. That its reader,
    the right neighbour, was so far is known from the left one, once around the ring.
    """
    left, right = (rank.id - 1) % rank.size, (rank.id + 1) % rank.size
    hops = rank.size - 1
    await rank.store(data[:], x)
    await rank.notify(ready.at(right)[0], 1)
    for hop in range(2 * hops):
        await rank.wait(ready[0] >= hop + 1)
        c = (rank.id - 1 - hop) % rank.size  # once around to add up, and once more to hand out the sums
        got = await rank.load(data.at(left)[c])
        if hop < hops:
            got += await rank.load(data[c])
        await rank.store(data[c], got)
        await rank.notify(ready.at(right)[0], 1)
    await rank.notify(ready[0], -1 - 2 * hops)
    await rank.notify(done.at(left)[0], 1)
    await rank.wait(done[0] >= 1, consume=True)
    return await rank.load(data[:])


@kernel(memory=[data, Signal("count", (1,), self_cleaning=True)], inputs=rows, golden=sums)
async def counting_barrier(rank: Rank, x: Array, data: WindowView, count: SignalView) -> Array:
    """One cell to which all peers add: who is through first has had one credit from each of them."""

    async def meet(generation: int) -> None:
        for peer in rank.peers:
            await rank.notify(count.at(peer)[0], 1)
        await rank.wait(count[0] >= generation * len(rank.peers))

    await rank.store(data[:], x)
    await meet(1)  # staged
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[:])
    await meet(2)  # read
    await rank.notify(count[0], -2 * len(rank.peers))
    return out
