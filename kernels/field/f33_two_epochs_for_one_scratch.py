"""F33: all-gather and all-reduce share a scratch of two banks, and each counts its own epochs.

A packet carries its flag, the epoch, beside its data; banks take turns by the epoch. That the bank of
epoch e is free follows from the packets of epoch e - 1, whoever sent them. Where each collective has
an epoch of its own, an all-reduce may take the bank that an all-gather has just filled: it overwrites
a packet that a slow peer waits for, or finds there an old flag that looks like its own. The fix is one
epoch for all that share the scratch.

Source: ROCm/rocm-systems#8945.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import WAW, Window, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, WindowView
    from kernels.field.rows import Array

FLAG = 1

# [bank, slot]: a packet, data and flag. An all-gather numbers the slots by the sender, an all-reduce by how far it is.
scratch = Window("scratch", (2, "P", 2), np.float32, initialised=True)


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a number for the all-gather and one for the all-reduce."""
    return [rng.standard_normal(2, np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: the first numbers of all ranks, and the sum of the second ones."""
    gathered = [x[0] for x in xs]
    return [np.array([*gathered, sum(x[1] for x in xs)])] * len(xs)


async def exchanged(rank: Rank, own: Any, scratch: WindowView, epoch: int, *, by_distance: bool = False) -> list[Any]:  # noqa: ANN401 - a number
    """Push a packet to every peer, and return the numbers of all ranks."""
    bank, flag = epoch % 2, np.float32(epoch)

    def arrived(packet: Any) -> bool:  # noqa: ANN401 - a tile of two numbers
        return bool(packet[FLAG] == flag)

    for peer in rank.peers:
        slot = (rank.id - peer) % rank.size if by_distance else rank.id
        await rank.store(scratch.at(peer)[bank, slot], np.array([own, flag]))
    numbers = [own] * rank.size
    for peer in rank.peers:
        slot = (peer - rank.id) % rank.size if by_distance else peer
        packet = await rank.poll(scratch[bank, slot], arrived)
        numbers[peer] = packet[0]
    return numbers


@kernel(memory=[scratch], inputs=inputs, golden=golden)
async def fixed(rank: Rank, x: Array, scratch: WindowView, *, one_epoch: bool = True) -> Array:
    """An all-gather and an all-reduce: the epoch counts both."""
    first, second = (2 * rank.call + 1, 2 * rank.call + 2) if one_epoch else (rank.call + 1, rank.call + 1)
    gathered = await exchanged(rank, x[0], scratch, first)
    numbers = await exchanged(rank, x[1], scratch, second, by_distance=True)
    return np.array([*gathered, sum(numbers)])


buggy = fixed.variant(
    about="Each collective counts for itself: the second takes the bank, and the flag, of the first.",
    one_epoch=False,
    finds=WAW("same call"),
)
