"""All-to-all: row d of rank s becomes row s of rank d; with equal rows, or with counts.

Source: the lowering of ``pld.tensor.all_to_all`` and ``all_to_all_v`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.refusals import check_counts, check_rows, check_signal, check_target
from asyncsim.trace.cells import SET
from asyncsim.trace.errors import RefusedError
from asyncsim.trace.world import WindowView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.collectives.reduce import Tile
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView

NAME = "pld.tensor.all_to_all"
NAME_V = "pld.tensor.all_to_all_v"
_MATRIX = 2


async def all_to_all(
    rank: Rank, source: Tile | WindowView, target: WindowView, signal: SignalView, *, safe: bool = False
) -> None:
    """Put row d of the source into row `rank.id` of rank d's window, for every d, the own one included.

    Puts; barrier, after which all rows are there; epilogue. As in an all-gather, nothing holds a fast
    rank until its peers have read what they got.

    Args:
        rank: who takes part.
        source: an array, or an own window; shape (P, SIZE) and the dtype of the target.
        target: shape (P, SIZE).
        signal: shape (P, 1) of int32, zero; zero again in the end.
        safe: with one more barrier at the start: everybody has read what the last call left.

    Raises:
        RefusedError: the arguments do not fit each other.
        TypeError: the target is no window, or the source neither a window nor an array.

    """
    _check(NAME, rank, source, target, signal)
    rank.collective("all_to_all", shape=target.shape, dtype=target.dtype)
    await _exchange(rank, source, target, signal, [target.shape[1]] * rank.size, safe=safe)


async def all_to_all_v(  # noqa: PLR0913, PLR0917 - upstream's operands, in its order
    rank: Rank,
    source: Tile | WindowView,
    target: WindowView,
    signal: SignalView,
    send_counts: Sequence[int],
    recv_counts: Sequence[int],
    *,
    safe: bool = False,
) -> None:
    """Do the same with the first `send_counts[d]` elements of row d only.

    Args:
        rank: who takes part.
        source: as for `all_to_all`.
        target: shape (P, SIZE); of row s only the first `recv_counts[s]` elements are written.
        signal: as for `all_to_all`.
        send_counts: one number a rank, 0 to SIZE.
        recv_counts: what each rank sends here, likewise; must be what it says itself.
        safe: as for `all_to_all`.

    Raises:
        RefusedError: the arguments do not fit each other.
        TypeError: the target is no window, or the source neither a window nor an array.

    """
    _check(NAME_V, rank, source, target, signal)
    check_counts(NAME_V, send_counts, "send_counts", target.shape[1], rank)
    check_counts(NAME_V, recv_counts, "recv_counts", target.shape[1], rank)
    if send_counts[rank.id] != recv_counts[rank.id]:
        raise RefusedError(
            f"{NAME_V} send_counts[{rank.id}] and recv_counts[{rank.id}] are both what rank {rank.id} sends "
            f"to itself, got {send_counts[rank.id]} and {recv_counts[rank.id]}"
        )
    rank.collective("all_to_all_v", shape=target.shape, dtype=target.dtype)
    await _exchange(rank, source, target, signal, send_counts, safe=safe)


async def all_to_all_blocks(  # noqa: PLR0913, PLR0917 - upstream's operands, in its order
    rank: Rank,
    source: Tile | WindowView,
    target: WindowView,
    signal: SignalView,
    send_counts: Sequence[int],
    recv_counts: SignalView,
) -> None:
    """Put block d of the source into block `rank.id` of rank d's window, whole, and set there how many rows count.

    So no rank needs to know beforehand what comes; the counts are there when the barrier has passed.

    Args:
        rank: who takes part.
        source: an array, or an own window; shape (P·MOST, SIZE), blocks of MOST rows, and the dtype of the target.
        target: shape (P·MOST, SIZE).
        signal: shape (P, 1) of int32, zero; zero again in the end.
        send_counts: the rows of each block that count, one number a rank, 0 to MOST.
        recv_counts: shape (P, 1) of int32; cell s is set to what rank s sends here.

    Raises:
        RefusedError: the arguments do not fit each other.
        TypeError: the target is no window, or the source neither a window nor an array.

    """
    check_target(NAME_V, target)
    if len(target.shape) != _MATRIX or target.shape[0] % rank.size:
        shape = list(target.shape)
        raise RefusedError(f"{NAME_V} target must be 2D [NR*MAX_RECV, SIZE] for NR = {rank.size}, got {shape}")
    _check_source(NAME_V, source, target)
    check_signal(NAME_V, signal, rank)
    check_signal(f"{NAME_V} recv_counts:", recv_counts, rank)
    if recv_counts.name == signal.name:
        raise RefusedError(f"{NAME_V} signal and recv_counts must be different buffers")
    most = target.shape[0] // rank.size
    check_counts(NAME_V, send_counts, "send_counts", most, rank)
    rank.collective("all_to_all_v", shape=target.shape, dtype=target.dtype)
    own = slice(rank.id * most, (rank.id + 1) * most)
    with rank.phase("put"):
        for peer, count in enumerate(send_counts):
            await rank.put(target.at(peer)[own], source[peer * most : (peer + 1) * most])
            await rank.notify(recv_counts.at(peer)[rank.id, 0], count, SET)
    with rank.phase("ready"):
        await barrier(rank, signal)
    with rank.phase("epilogue"):
        await settle(rank, signal, credits=1)


def _check(name: str, rank: Rank, source: object, target: WindowView, signal: SignalView) -> None:
    check_rows(name, target, rank)
    _check_source(name, source, target)
    check_signal(name, signal, rank)


def _check_source(name: str, source: object, target: WindowView) -> None:
    if not isinstance(source, WindowView | np.ndarray):
        raise TypeError(f"{name} expects an array or a window as input; got {type(source).__name__}")
    if tuple(source.shape) != target.shape:
        raise RefusedError(f"{name} input must have the shape of the target, {target.shape}, got {tuple(source.shape)}")


async def _exchange(  # noqa: PLR0913 - what both have in common
    rank: Rank,
    source: Tile | WindowView,
    target: WindowView,
    signal: SignalView,
    counts: Sequence[int],
    *,
    safe: bool,
) -> None:
    if safe:
        with rank.phase("free"):
            await barrier(rank, signal)
    with rank.phase("put"):
        for peer, count in enumerate(counts):
            await rank.put(target.at(peer)[rank.id, :count], source[peer, :count])
    with rank.phase("ready"):
        await barrier(rank, signal, generation=1 + safe)
    with rank.phase("epilogue"):
        await settle(rank, signal, credits=1 + safe)
