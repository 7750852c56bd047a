"""All-to-all: row d of rank s becomes row s of rank d; with equal rows, or with counts.

Source: the lowering of ``pld.tensor.all_to_all`` and ``all_to_all_v`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.refusals import check_counts, check_rows, check_signal
from asyncsim.trace.errors import RefusedError
from asyncsim.trace.world import WindowView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.collectives.reduce import Tile
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView

NAME = "pld.tensor.all_to_all"
NAME_V = "pld.tensor.all_to_all_v"


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


def _check(name: str, rank: Rank, source: object, target: WindowView, signal: SignalView) -> None:
    check_rows(name, target, rank)
    if not isinstance(source, WindowView | np.ndarray):
        raise TypeError(f"{name} expects an array or a window as input; got {type(source).__name__}")
    if tuple(source.shape) != target.shape:
        raise RefusedError(f"{name} input must have the shape of the target, {target.shape}, got {tuple(source.shape)}")
    check_signal(name, signal, rank)


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
