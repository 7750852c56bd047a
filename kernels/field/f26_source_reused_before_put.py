"""F26: the source of a non-blocking put is overwritten before the put has read it.

A put that does not block returns at once; its source is read some time up to the next quiet. The
loop stages the next row in the same place. The fix completes the put first.

Source: b12x#329, openshmem-spec#241.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, Signal, Window, kernel
from kernels.field.rows import SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

ROWS = 2
PRODUCER, CONSUMER = 0, 1

source = Window("source", (SIZE,), np.float32)  # the producer's: where each row is staged
data = Window("data", (ROWS, SIZE), np.float32)  # the consumer's
full = Signal("full", (1,))  # the consumer's: how many rows have come
taken = Signal("taken", (1,))  # the producer's: how often the consumer has read


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give the rows of a call to the producer; the other inputs are not looked at."""
    return [rng.standard_normal((ROWS, SIZE), np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The consumer gets the producer's rows."""
    return [xs[PRODUCER] if rank == CONSUMER else None for rank in range(len(xs))]


@kernel(memory=[source, data, full, taken], inputs=inputs, golden=golden)
async def fixed(  # noqa: PLR0913, PLR0917 - the last one is the mistake
    rank: Rank,
    x: Array,
    source: WindowView,
    data: WindowView,
    full: SignalView,
    taken: SignalView,
    *,
    completes: bool = True,
) -> Array | None:
    """Each put is complete before its source is used again."""
    if rank.id == PRODUCER:
        for number, row in enumerate(x):
            await rank.store(source[:], row)
            await rank.put_signal(data.at(CONSUMER)[number], source[:], full.at(CONSUMER)[0], nbi=True)
            if completes:
                await rank.quiet()
        await rank.wait(taken[0] >= rank.call + 1)
    elif rank.id == CONSUMER:
        await rank.wait(full[0] >= ROWS * (rank.call + 1))
        rows = await rank.load(data[:])
        await rank.notify(taken.at(PRODUCER)[0], 1)
        return rows
    return None


buggy = fixed.variant(
    about="The next row is staged while the last one may still have to be read.",
    completes=False,
    finds=WAR("same call"),
)
