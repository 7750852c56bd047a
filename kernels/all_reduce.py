"""All-reduce in place: by a mesh, by a ring, and in two phases.

A mesh reads every row at every rank, so a result may overwrite a row only when all have read it: its
second barrier guards this very call. A ring and the two phases write what nobody reads just then;
there the next call's staging is what a barrier must hold back.

Source: steps 8 to 11 of PyPTO's distributed tutorial, and the lowering of ``pld.tensor.allreduce``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import (
    WAR, Kernel, ReduceOp, Signal, Window, all_reduce, barrier, golden, kernel, settle, two_phase_all_reduce,
)  # fmt: skip
from kernels.rows import SIZE, Array, blocks, each_with_each, rows
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView

Memory = list[Window | Signal]


def rounds(P: int) -> int:
    """Count the rounds of a ring: once around to reduce, once around to gather."""
    return 2 * (P - 1)


# One row a rank: shape (1, SIZE).


def row_memory(size: int = SIZE, dtype: Any = np.float32) -> Memory:  # noqa: ANN401 - whatever numpy takes
    """Declare the row, and a cell a rank: the credits from it."""
    return [Window("data", (1, size), dtype), Signal("signal", ("P", 1), self_cleaning=True)]


def ring_memory(size: int = SIZE, dtype: Any = np.float32) -> Memory:  # noqa: ANN401
    """Declare the row, and a cell a round and rank: the credits from it."""
    return [Window("data", (1, size), dtype), Signal("signal", (rounds, "P"), self_cleaning=True)]


@kernel(memory=row_memory(), inputs=rows, golden=golden.all_reduce)
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


@kernel(memory=row_memory(), inputs=rows, golden=golden.all_reduce)
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


ring = builtin.variant(
    about="The composite, by a ring: each round its own row of the signal.",
    memory=ring_memory(),
    golden=golden.ring,
    same_on_all_ranks=True,
    mode="ring",
)


# One row a segment: shape (P, SIZE).


def segment_memory(size: int = SIZE, dtype: Any = np.float32) -> Memory:  # noqa: ANN401
    """Declare a row a segment, and a cell a round and rank: the credits from it."""
    return [Window("data", ("P", size), dtype), Signal("signal", (rounds, "P"), self_cleaning=True)]


def gather_memory(size: int = SIZE, dtype: Any = np.float32) -> Memory:  # noqa: ANN401
    """Declare a row a chunk, the same for the results, and a cell a rank: the credits from it."""
    return [
        Window("data", ("P", size), dtype),
        Window("gathered", ("P", size), dtype),
        Signal("signal", ("P", 1), self_cleaning=True),
    ]


def chunk_memory(size: int = SIZE, dtype: Any = np.float32) -> Memory:  # noqa: ANN401
    """Declare a row a chunk, and a cell a rank: the credits from it."""
    return [Window("data", ("P", size), dtype), Signal("signal", ("P", 1), self_cleaning=True)]


async def meet(rank: Rank, signal: SignalView, row: int, *, generation: int) -> None:
    """Wait until every rank has come here, counted in one row of the signal."""
    for peer in rank.peers:
        await rank.notify(signal.at(peer)[row, rank.id], 1)
    for peer in rank.peers:
        await rank.wait(signal[row, peer] >= generation)


@kernel(memory=segment_memory(), inputs=blocks, golden=golden.ring, same_on_all_ranks=True)
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
    with rank.phase("stage"):
        await rank.store(data[...], x)
    for number in range(rounds(rank.size)):
        segment = (rank.id - 1 - number) % rank.size
        await meet(rank, signal, number, generation=1)  # ready: the left neighbour has stored it
        tile = await rank.load(left[segment])
        if number < rank.size - 1:
            tile = op.combine(await rank.load(data[segment]), tile)
        if number == rank.size - 2:
            tile = op.finish(tile, rank.size)
        if read_barriers:
            await meet(rank, signal, number, generation=2)  # read: the right neighbour has it
        await rank.store(data[segment], tile)
    for number in range(rounds(rank.size)):
        for peer in rank.peers:
            await rank.notify(signal[number, peer], -1 - read_barriers)
    return await rank.load(data[...])


ring_without_read_barriers = ring_by_hand.variant(
    about="One barrier a round: the next call stages over what the right neighbour reads in the last round.",
    read_barriers=False,
    finds=WAR("next call", pairs=lambda P: P),
)


@kernel(memory=gather_memory(), inputs=blocks, golden=golden.two_phase, same_on_all_ranks=True)
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
        await rank.store(data[...], x)
    await two_phase_all_reduce(rank, data, gathered, signal, op=op, widen=True)
    return await rank.load(gathered[...])


@kernel(memory=chunk_memory(), inputs=blocks, golden=golden.two_phase, same_on_all_ranks=True)
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
    with rank.phase("stage"):
        await rank.store(data[...], x)
    await barrier(rank, signal)  # ready: every chunk is staged
    with rank.phase("reduce"):
        acc = await rank.load(data[rank.id])
        for peer in rank.peers:
            acc = op.combine(acc, await rank.load(data.at(peer)[rank.id]))
    await rank.store(data[rank.id], op.finish(acc, rank.size))  # nobody else reads this row until all have met
    await barrier(rank, signal, generation=2)  # reduced: every chunk is there
    with rank.phase("gather"):
        out = np.stack([await rank.load(data.at(peer)[peer]) for peer in range(rank.size)])
    if end_barrier:
        await barrier(rank, signal, generation=3)  # read: the next call may stage
    await settle(rank, signal, credits=2 + end_barrier)
    return out


two_phase_no_end_barrier = two_phase_pull.variant(
    about="Without its end barrier: the next call stages over the chunk that slow peers still gather.",
    end_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


def make(
    made: Kernel = builtin, *, size: int = SIZE, dtype: Any = np.float32, op: ReduceOp = ReduceOp.Sum  # noqa: ANN401
) -> Kernel:  # fmt: skip
    """Return one of the kernels above for another size (of a row), dtype or operator."""
    declared = {
        ring: ring_memory,
        ring_by_hand: segment_memory,
        ring_without_read_barriers: segment_memory,
        two_phase: gather_memory,
        two_phase_pull: chunk_memory,
        two_phase_no_end_barrier: chunk_memory,
    }
    memory = declared.get(made, row_memory)
    drawn = rows if memory in (row_memory, ring_memory) else blocks
    assert made.golden is not None  # noqa: S101 - for the type checker: all of them have one
    return made.variant(
        memory=memory(size, dtype),
        inputs=partial(drawn, size=size, dtype=dtype),
        golden=partial(made.golden, op=op),
        op=op,
        finds=made.finds,
    )


if __name__ == "__main__":
    raise SystemExit(main(globals()))
