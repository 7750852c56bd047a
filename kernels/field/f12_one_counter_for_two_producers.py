"""F12: one counter adds up the credits of two producers, and cannot tell whose they are.

The consumer waits for two credits a call. A fast producer that is one call ahead gives both of
them, and the consumer reads what the slow one has not written. The fix is a cell a producer.

A detector that joins the clocks of all credits it saw takes them for an order that other schedules do
not have, and finds nothing in a friendly run.

Source: pypto-lib#1019.
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

CALLS = 3
"""Each call has rows of its own, so that the counter alone is to blame."""

CONSUMER = 0

data = Window("data", (CALLS, "P", SIZE), np.float32)  # [call, p]: what producer p wrote in that call
ready = Signal("ready", ("P",))


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The consumer gets the rows of all producers."""
    return [np.stack(xs[1:]), *(None for _ in xs[1:])]


@kernel(memory=[data, ready], inputs=rows, golden=golden)
async def fixed(
    rank: Rank, x: Array, data: WindowView, ready: SignalView, *, cell_a_producer: bool = True
) -> Array | None:
    """A credit counts for the producer that it came from."""
    if rank.id != CONSUMER:
        await rank.store(data.at(CONSUMER)[rank.call, rank.id], x)
        await rank.notify(ready.at(CONSUMER)[rank.id if cell_a_producer else 0], 1)
        return None
    if cell_a_producer:
        for producer in rank.peers:
            await rank.wait(ready[producer] >= rank.call + 1)
    else:
        await rank.wait(ready[0] >= len(rank.peers) * (rank.call + 1))
    return await rank.load(data[rank.call, 1:])


buggy = fixed.variant(
    about="One counter for all: the credits of a fast producer stand in for those of a slow one.",
    cell_a_producer=False,
    finds=RAW("same call"),
)
