"""F10: two handles on one group alternate between two buffers, each by its own count.

One handle alone is right: it pushes into one buffer and clears the flags of the other, whose use is
known to be over. But the buffers belong to the group. Two handles that are used in turn both begin
with buffer 0: the second finds the first one's flags up, reads too early, and clears flags that a
peer has just raised. The fix counts once for the group, and writes the count into the flag, which
then need not be cleared at all.

Source: nccl#2303, DeepEP#513.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, WAR, Expected, Set, Signal, Window, kernel
from kernels.field.rows import SIZE, everybodys, rows

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

HANDLES = "ABABAABB"
"""Which handle each call goes through."""

data = Window("data", (2, "P", SIZE), np.float32)  # [b, p]: what rank p pushed into buffer b
flag = Signal("flag", (2, "P"))  # [b, p]: rank p has pushed into buffer b


async def push(rank: Rank, x: Array, data: WindowView, flag: SignalView, *, buffer: int, tag: int) -> Array:  # noqa: PLR0913
    """Push a row to everybody, wait for everybody's, and return them."""
    await rank.store(data[buffer, rank.id], x)
    for peer in rank.peers:
        await rank.store(data.at(peer)[buffer, rank.id], x)
        await rank.notify(flag.at(peer)[buffer, rank.id], tag, op=Set)
    for peer in rank.peers:
        await rank.wait(flag[buffer, peer] >= tag)
    return await rank.load(data[buffer])


@kernel(memory=[data, flag], inputs=rows, golden=everybodys)
async def fixed(rank: Rank, x: Array, data: WindowView, flag: SignalView) -> Array:
    """One count for the group, whatever handle is used; the flag carries it."""
    return await push(rank, x, data, flag, buffer=rank.call % 2, tag=rank.call + 1)


@kernel(
    memory=[data, flag],
    inputs=rows,
    golden=everybodys,
    finds=[Expected("signal-race"), RAW(), WAR("next call")],
)
async def buggy(rank: Rank, x: Array, data: WindowView, flag: SignalView) -> Array:
    """Each handle counts its own calls, and clears the flags of what it takes for the next buffer."""
    own_calls = HANDLES[: rank.call].count(HANDLES[rank.call])
    for peer in rank.peers:
        await rank.notify(flag[(own_calls + 1) % 2, peer], 0, op=Set)
    return await push(rank, x, data, flag, buffer=own_calls % 2, tag=1)
