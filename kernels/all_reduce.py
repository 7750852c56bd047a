"""All-reduce in place: by a mesh, by a ring, and in two phases.

A mesh reads every row at every rank, so a result may overwrite a row only when all have read it: its
second barrier guards this very call. A ring and the two phases write what nobody reads just then;
there the next call's staging is what a barrier must hold back.

Source: steps 8 to 11 of PyPTO's distributed tutorial, and the lowering of ``pld.tensor.allreduce``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import (
    WAR,
    ReduceOp,
    Signal,
    Window,
    all_reduce,
    barrier,
    golden,
    kernel,
    settle,
    two_phase_all_reduce,
)
from kernels.rows import SIZE, Array, blocks, each_with_each, rows
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView


def rounds(P: int) -> int:
    """Count the rounds of a ring: once around to reduce, once around to gather."""
    return 2 * (P - 1)


row = Window("data", (1, SIZE), np.float32)
chunks = Window("data", ("P", SIZE), np.float32)  # a row a chunk
gathered = Window("gathered", ("P", SIZE), np.float32)
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p
by_round = Signal("signal", (rounds, "P"), self_cleaning=True)  # cell [n, p]: those from rank p in round n


# By a mesh.


@kernel(memory=[row, signal], inputs=rows, golden=golden.all_reduce)
async def mesh(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    post_barrier: bool = True,
) -> Array:
    """By hand: stage, ready barrier, reduce, post-reduce barrier, store over the own row."""
    place = (0, slice(x.size))
    with rank.phase("stage"):
        await rank.store(data[place], x)
    await barrier(rank, signal)  # ready: every row is staged
    with rank.phase("reduce"):
        acc = await rank.load(data[place])
        for peer in rank.peers:
            acc = op.combine(acc, await rank.load(data.at(peer)[place]))
    if post_barrier:
        await barrier(rank, signal, generation=2)  # read: the rows may be overwritten
    await rank.store(data[place], op.finish(acc, rank.size))
    await settle(rank, signal, credits=1 + post_barrier)
    return await rank.load(data[place])


no_post_barrier = mesh.variant(
    about="Without its second barrier: a fast rank overwrites the row that its slow peers read.",
    post_barrier=False,
    finds=[WAR("same call", pairs=lambda P: 2 * each_with_each(P)), WAR("next call", pairs=each_with_each)],
)


@kernel(memory=[row, signal], inputs=rows, golden=golden.all_reduce)
async def builtin(  # noqa: PLR0913 - how it is lowered, and what is reduced
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    mode: str = "mesh",
) -> Array:
    """The composite, by a mesh."""
    with rank.phase("stage"):
        await rank.store(data[0, : x.size], x)
    await all_reduce(rank, data, signal, op=op, mode=mode, widen=True)
    return await rank.load(data[0, : x.size])


# By a ring.


ring = builtin.variant(
    about="The composite, by a ring: each round its own row of the signal.",
    memory=[row, by_round],
    golden=golden.ring,
    same_on_all_ranks=True,
    mode="ring",
)


async def meet(rank: Rank, signal: SignalView, row: int, *, generation: int) -> None:
    """Wait until every rank has come here, counted in one row of the signal."""
    for peer in rank.peers:
        await rank.notify(signal.at(peer)[row, rank.id], 1)
    for peer in rank.peers:
        await rank.wait(signal[row, peer] >= generation)


@kernel(memory=[chunks, by_round], inputs=blocks, golden=golden.ring, same_on_all_ranks=True)
async def ring_by_hand(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    read_barriers: bool = True,
) -> Array:
    """The ring with a row a segment: in each round read the left neighbour, then store."""
    left = data.at((rank.id - 1) % rank.size)
    size = x.shape[1]
    with rank.phase("stage"):
        await rank.store(data[:, :size], x)
    for number in range(rounds(rank.size)):
        segment = (rank.id - 1 - number) % rank.size
        await meet(rank, signal, number, generation=1)  # ready: the left neighbour has stored it
        tile = await rank.load(left[segment, :size])
        if number < rank.size - 1:
            tile = op.combine(await rank.load(data[segment, :size]), tile)
        if read_barriers:
            await meet(rank, signal, number, generation=2)  # read: the right neighbour has it
        await rank.store(data[segment, :size], tile)
    for number in range(rounds(rank.size)):
        for peer in rank.peers:
            await rank.notify(signal[number, peer], -1 - read_barriers)
    return op.finish(await rank.load(data[:, :size]), rank.size)


ring_without_read_barriers = ring_by_hand.variant(
    about="One barrier a round: the next call stages over what the right neighbour reads in the last round.",
    read_barriers=False,
    finds=WAR("next call", pairs=lambda P: P),
)


# In two phases.


@kernel(memory=[chunks, gathered, signal], inputs=blocks, golden=golden.two_phase, same_on_all_ranks=True)
async def two_phase(  # noqa: PLR0913 - three operands, and what is reduced
    rank: Rank,
    x: Array,
    data: WindowView,
    gathered: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
) -> Array:
    """The two composites on one signal: a reduce-scatter, then an all-gather into another window."""
    with rank.phase("stage"):
        await rank.store(data[:, : x.shape[1]], x)
    await two_phase_all_reduce(rank, data, gathered, signal, op=op, widen=True)
    return await rank.load(gathered[:, : x.shape[1]])


@kernel(memory=[chunks, signal], inputs=blocks, golden=golden.two_phase, same_on_all_ranks=True)
async def two_phase_pull(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    end_barrier: bool = True,
) -> Array:
    """By hand on one window: each reduces its own row in place, then all read each other's."""
    size = x.shape[1]
    with rank.phase("stage"):
        await rank.store(data[:, :size], x)
    await barrier(rank, signal)  # ready: every chunk is staged
    with rank.phase("reduce"):
        acc = await rank.load(data[rank.id, :size])
        for peer in rank.peers:
            acc = op.combine(acc, await rank.load(data.at(peer)[rank.id, :size]))
    await rank.store(data[rank.id, :size], op.finish(acc, rank.size))  # nobody else reads this row until all have met
    await barrier(rank, signal, generation=2)  # reduced: every chunk is there
    with rank.phase("gather"):
        out = np.stack([await rank.load(data.at(peer)[peer, :size]) for peer in range(rank.size)])
    if end_barrier:
        await barrier(rank, signal, generation=3)  # read: the next call may stage
    await settle(rank, signal, credits=2 + end_barrier)
    return out


two_phase_no_end_barrier = two_phase_pull.variant(
    about="Without its end barrier: the next call stages over the chunk that slow peers still gather.",
    end_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
