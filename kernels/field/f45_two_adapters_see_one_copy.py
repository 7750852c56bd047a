"""F45: data come through one adapter, their notice is seen, and another adapter forwards what was there before.

That a rank sees a notice says that the rank sees the data; not that another device does, whose way to that memory is
another one. The fix is a flush between: the adapter through which the data came completes them for all who look.

A landing of this machine is one event for all who look, so the second observer has a window of its own here: what the
second adapter sees of the inbox lands by itself, and a flush is a request that the sender's quiet answers.

Source: meta-pytorch/torchcomms#2373.
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

SENDER, FORWARDER = 0, 1

inbox = Window("inbox", (SIZE,), np.float32)  # the forwarder's, as it sees it itself
beyond = Window("beyond", (SIZE,), np.float32)  # the same memory, as its second adapter sees it
back = Window("back", (SIZE,), np.float32)  # the sender's: what was forwarded
come = Signal("come", (1,))  # the forwarder's: how many rows have come
flush = Signal("flush", (1,))  # the sender's: how often it was asked for a flush
flushed = Signal("flushed", (1,))  # the forwarder's: how often it was flushed
passed = Signal("passed", (1,))  # the sender's: how many rows were forwarded


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The sender gets its row back, the forwarder has seen it."""
    return [xs[SENDER] if rank in (SENDER, FORWARDER) else None for rank in range(len(xs))]


@kernel(memory=[inbox, beyond, back, come, flush, flushed, passed], inputs=rows, golden=golden)
async def fixed(  # noqa: PLR0913, PLR0917 - the memory, each by its name; the last one is the mistake
    rank: Rank, x: Array, inbox: WindowView, beyond: WindowView, back: WindowView,
    come: SignalView, flush: SignalView, flushed: SignalView, passed: SignalView, *, flushes: bool = True,
) -> Array | None:  # fmt: skip
    """The forwarder has what came flushed before its second adapter reads it."""
    if rank.id == SENDER:
        await rank.put(beyond.at(FORWARDER)[:], x)
        await rank.put_signal(inbox.at(FORWARDER)[:], x, come.at(FORWARDER)[0])
        if flushes:
            await rank.wait(flush[0] >= rank.call + 1)
            await rank.quiet()
            await rank.notify(flushed.at(FORWARDER)[0])
        await rank.wait(passed[0] >= rank.call + 1)
        return await rank.load(back[:])
    if rank.id == FORWARDER:
        await rank.wait(come[0] >= rank.call + 1)
        seen = await rank.load(inbox[:])
        if flushes:
            await rank.notify(flush.at(SENDER)[0])
            await rank.wait(flushed[0] >= rank.call + 1)
        await rank.put_signal(back.at(SENDER)[:], beyond[:], passed.at(SENDER)[0])  # through the second adapter
        return seen
    return None


buggy = fixed.variant(
    about="The notice says that the data are there for the rank, and the second adapter reads them at once.",
    flushes=False,
    finds=RAW("same call"),
)
