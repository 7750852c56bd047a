"""F35: each block of a receiver reads the signal for itself, to wait for one more than it read.

The root puts a row when block 0 of the receiver has said that it is ready. The other block reads the signal at
its own pace: if the row has come by then, it waits for a row more, which nobody sends. The fix: block 0 alone
reads and waits, and the other block meets it.

Source: ROCm/rocm-systems#11142, NVIDIA/nccl#1990.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, StreamBarrier, WindowView
    from kernels.field.rows import Array

BLOCKS = 2
PART = SIZE // BLOCKS
ROOT = 0

row = Window("row", (SIZE,), np.float32)
arrived = Window("arrived", (1,), np.uint64, initialised=True)  # how many rows have come, over all calls
ready = Signal("ready", ("P",))  # the root's, [p]: rank p's block 0 has its baseline


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank gets the root's row."""
    return [xs[ROOT]] * len(xs)


async def block(  # noqa: PLR0913, PLR0917 - the memory, which block this is, and the mistake
    rank: Rank, number: int, meeting: StreamBarrier, row: WindowView, arrived: WindowView, ready: SignalView,
    first_alone: bool,  # noqa: FBT001 - a stream's arguments have places
) -> Array:  # fmt: skip
    """Wait for the root's row, and return a part of it."""
    if number == 0 or not first_alone:
        baseline = await rank.read(arrived.word[0])
        if number == 0:
            await rank.notify(ready.at(ROOT)[rank.id], 1)
        await rank.wait(arrived.word[0] >= baseline + 1)
    await rank.sync(meeting)
    return await rank.load(row[number * PART : (number + 1) * PART])


@kernel(memory=[row, arrived, ready], inputs=rows, golden=golden)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, row: WindowView, arrived: WindowView, ready: SignalView, *, first_alone: bool = True
) -> Array:
    """Only block 0 reads the signal and waits."""
    if rank.id == ROOT:
        for peer in rank.peers:
            await rank.wait(ready[peer] >= rank.call + 1)
            await rank.store(row.at(peer)[:], x)
            await rank.notify(arrived.at(peer).word[0], 1)
        return x
    meeting = rank.stream_barrier(BLOCKS)
    blocks = [
        await rank.start(block, number, meeting, row, arrived, ready, first_alone, name=f"b{number}")
        for number in range(BLOCKS)
    ]
    return np.concatenate([await rank.join(stream) for stream in blocks])


buggy = fixed.variant(
    about="Each block reads its own baseline; the row may have come before.",
    first_alone=False,
    finds=Expected("deadlock"),
)
