"""F13: two groups use one signal pad, each with its own numbering of ranks.

Rank 2 is member 1 of the group (0, 2), and rank 1 is member 1 of the world: both knock at cell 1 of
rank 0. Rank 0, waiting for rank 2 in the small group, takes the credit with which rank 1 came to
the world's barrier, and reads what rank 2 has not written. The fix is a pad a group.

Source: pytorch#192581, SOS#1225.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, Signal, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

GROUP = (0, 2)

data = Window("data", (SIZE,), np.float32)
pads = Signal("pads", (2, "P"))  # [pad, member]: the credits from that member


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """Each member of the group gets the members' rows."""
    every = np.stack([xs[member] for member in GROUP])
    return [every if rank in GROUP else None for rank in range(len(xs))]


async def meet(rank: Rank, members: Sequence[int], pads: SignalView, pad: int) -> None:
    """Wait for all members, and take the credits with which they came."""
    me = members.index(rank.id)
    others = [member for member in members if member != rank.id]
    for other in others:
        await rank.notify(pads.at(other)[pad, me], 1)
    for other in others:
        await rank.wait(pads[pad, members.index(other)] >= 1, consume=True)


@kernel(memory=[data, pads], inputs=rows, golden=golden)
async def fixed(rank: Rank, x: Array, data: WindowView, pads: SignalView, *, groups_pad: int = 1) -> Array | None:
    """The group exchanges its rows on a pad of its own; then the world meets on pad 0."""
    every = None
    if rank.id in GROUP:
        await rank.store(data[:], x)
        await meet(rank, GROUP, pads, groups_pad)
        every = np.stack([await rank.load(data.at(member)[:]) for member in GROUP])
    await meet(rank, range(rank.size), pads, 0)
    return every


buggy = fixed.variant(
    about="The group uses the world's pad: a credit of the one is taken for one of the other.",
    groups_pad=0,
    finds=RAW("same call"),
)
