"""The ring all-reduce: P - 1 rounds of reduce-scatter, then P - 1 rounds of all-gather.

In every round each rank reads one segment of its left neighbour: the one that the neighbour wrote in
the round before. In the first half it adds its own contribution; in the second it copies what is
finished. A round has a row of the signal to itself.

Source: the lowering of ``pld.tensor.allreduce(mode="ring")`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.collectives.refusals import check_signal_dtype, check_signal_shape
from asyncsim.collectives.tiles import segments
from asyncsim.trace.declare import dtype_of
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from asyncsim.collectives.reduce import ReduceOp, Tile
    from asyncsim.collectives.tiles import Place
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView, WindowView


def check_ring(name: str, rank: Rank, target: WindowView, signal: SignalView, accumulate: Any) -> None:  # noqa: ANN401
    """Refuse a signal of another shape than (2(P-1), P), and an accumulator that the window does not hold.

    Args:
        name: of the collective, for the message.
        rank: the caller; its `size` is P.
        target: the window that is reduced into.
        signal: for the barriers of all rounds; INT32. Of one rank alone nothing is notified, and its dtype does not
            matter.
        accumulate: the dtype that was asked for; None: that of the window.

    Raises:
        TypeError: it is no signal.
        RefusedError: the signal has another shape or dtype, or `accumulate` is another dtype than the window's.

    """
    check_signal_shape(name, signal, "[2*(NR-1), NR]")
    rows, columns = signal.shape
    rounds = 2 * (rank.size - 1)
    if rows != rounds:
        raise RefusedError(
            f"{name} mode=ring signal shape[0] ({rows}) must equal 2*(NR-1) = {rounds} for NR = {rank.size}"
        )
    if columns != rank.size:
        raise RefusedError(f"{name} mode=ring signal shape[1] ({columns}) must equal NR = {rank.size}")
    if rounds:
        check_signal_dtype(name, signal)
    if accumulate is not None and dtype_of(accumulate, "accumulate") != target.dtype:
        raise RefusedError(
            f"{name} mode=ring keeps its partial results in the target, so it accumulates in {target.dtype}; "
            "use a wider target, or mode=mesh"
        )


async def ring(rank: Rank, target: WindowView, signal: SignalView, op: ReduceOp) -> None:
    """Reduce all windows into each of them; arguments as for `all_reduce`, checked by `check_ring`.

    Each round, tile by tile: ready barrier, read the left neighbour, read-complete barrier, store.
    Each element is reduced along the ring, from the rank of its segment's number on, by one partial
    result: all ranks end with the same bits.

    Args:
        rank: the caller.
        target: two-dimensional; holds the rank's input before, the result after.
        signal: of shape (2(P-1), P), INT32; zero before and after.
        op: the reduction, done in the window's dtype.

    """
    parts = segments(target, rank.size)
    for number in range(2 * (rank.size - 1)):
        with rank.phase(f"round {number}"):
            for turn, place in enumerate(parts[(rank.id - 1 - number) % rank.size]):
                with rank.phase("ready"):
                    await _meet(rank, signal, number, generation=2 * turn + 1)
                with rank.phase("reduce" if number < rank.size - 1 else "gather"):
                    tile = await _next(rank, target, place, op, number)
                with rank.phase("read"):
                    await _meet(rank, signal, number, generation=2 * turn + 2)
                with rank.phase("store"):
                    await rank.store(target[place], tile)
    with rank.phase("epilogue"):
        for number in range(2 * (rank.size - 1)):
            for peer in rank.peers:
                await rank.notify(signal[number, peer], -2 * len(parts[0]))


async def _next(rank: Rank, target: WindowView, place: Place, op: ReduceOp, number: int) -> Tile:
    """Return what this rank stores in a round: a further partial result, or a finished tile."""
    last = rank.size - 2  # the round that finishes the reduction
    left = target.at((rank.id - 1) % rank.size)[place]
    if number > last:
        return await rank.load(left)
    acc = op.combine(await rank.load(target[place]), await rank.load(left))
    return op.finish(acc, rank.size) if number == last else acc


async def _meet(rank: Rank, signal: SignalView, row: int, *, generation: int) -> None:
    """Do as `barrier` does, on one row of the signal."""
    for peer in rank.peers:
        await rank.notify(signal.at(peer)[row, rank.id], 1)
    for peer in rank.peers:
        await rank.wait(signal[row, peer] >= generation)
