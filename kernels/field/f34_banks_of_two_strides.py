"""F34: two packet formats share an epoch and a scratch, and their banks have other strides.

The banks take turns by the epoch, whichever format a collective uses. A short line has half the size
of a long one, and the short banks lie close together: both inside bank 0 of the long lines. So a
short packet of an odd epoch falls on long packets of the even epoch before it, which a slow peer has
still to take. The fix gives the banks of both formats the larger stride.

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

LONG, SHORT = 4, 2
"""Elements of a line, its flag included."""

long = Window("long", (2, "P", LONG), np.float32, initialised=True)  # [bank, p]: rank p's long packet
short = Window("short", (4, "P", SHORT), np.float32, over="long")  # [half of a bank, p]: rank p's short packet


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank three numbers for a long packet and one for a short one."""
    return [rng.standard_normal(LONG, np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: the sums over the ranks."""
    return [np.asarray(sum(xs))] * len(xs)


async def all_reduce(rank: Rank, own: Array, lines: WindowView, bank: int, epoch: int) -> Array:
    """Push a packet to every peer, and add up theirs from rank 0 up."""

    def arrived(packet: Any) -> bool:  # noqa: ANN401 - a tile of one line
        return bool(packet[-1] == epoch)

    for peer in rank.peers:
        await rank.store(lines.at(peer)[bank, rank.id], np.array([*own, epoch], np.float32))
    acc = np.zeros_like(own)
    for peer in range(rank.size):
        acc += own if peer == rank.id else (await rank.poll(lines[bank, peer], arrived))[:-1]
    return acc


@kernel(memory=[long, short], inputs=inputs, golden=golden)
async def fixed(rank: Rank, x: Array, long: WindowView, short: WindowView, *, larger_stride: bool = True) -> Array:
    """A long all-reduce, then a short one, whose banks start where the long ones do."""
    epoch = 2 * (rank.call + 1)
    three = await all_reduce(rank, x[:-1], long, epoch % 2, epoch)
    epoch += 1
    one = await all_reduce(rank, x[-1:], short, epoch % 2 * (2 if larger_stride else 1), epoch)
    return np.array([*three, *one])


buggy = fixed.variant(
    about="Short banks close together: bank 1 of the short lines lies in bank 0 of the long ones.",
    larger_stride=False,
    finds=WAW("same call"),
)
