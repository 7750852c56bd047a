"""Broadcast: every rank gets the root's window.

Source: the lowering of ``pld.tensor.broadcast`` in PyPTO's distributed dialect.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.refusals import check_signal, check_target
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView, WindowView

NAME = "pld.tensor.broadcast"


async def broadcast(rank: Rank, target: WindowView, signal: SignalView, *, root: int, safe: bool = False) -> None:
    """Copy the root's window into every rank's; the root has staged its own before.

    Ready barrier; every rank gets from the root (the root from itself, which is a read); epilogue.
    Nothing holds the root until the last has read: it must not stage again on the same window before
    another barrier.

    Args:
        rank: who takes part.
        target: of any shape and dtype.
        signal: shape (P, 1) of int32, zero; zero again in the end.
        root: the rank that is read.
        safe: with one more barrier at the end, after which everybody has read.

    Raises:
        RefusedError: the arguments do not fit each other.
        TypeError: the target is no window.

    """
    check_target(NAME, target)
    check_signal(NAME, signal, rank)
    root = operator.index(root)
    if root < 0:
        raise RefusedError(f"{NAME} root rank must be non-negative, got {root}")
    if root >= rank.size:
        raise RefusedError(f"{NAME} root rank must be less than NR = {rank.size}, got {root}")
    rank.collective("broadcast", root=root, shape=target.shape, dtype=target.dtype)
    with rank.phase("ready"):
        await barrier(rank, signal)
    with rank.phase("get"):
        await rank.get(target[...], target.at(root)[...])
    if safe:
        with rank.phase("read"):
            await barrier(rank, signal, generation=2)
    with rank.phase("epilogue"):
        await settle(rank, signal, credits=1 + safe)
