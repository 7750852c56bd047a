"""F46: a loop stages rows in two buffers in turn, and leaves one copy too many pending.

Each row is staged, then older copies are awaited, then the row's own copy is made. When a row is staged again in the
first buffer, of the copies made since the one before last was awaited two may be under way: the copy out of this very
buffer is one of them. The fix leaves none pending; as well there may be a third buffer.

Source: DeepEP#657.
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

ROWS, BUFFERS = 4, 2
PRODUCER, CONSUMER = 0, 1

staged = Window("staged", (BUFFERS + 1, SIZE), np.float32)  # the producer's: the last buffer is for one repair alone
data = Window("data", (ROWS, SIZE), np.float32)  # the consumer's
full = Signal("full", (1,))  # the consumer's: how many rows have come
taken = Signal("taken", (1,))  # the producer's: how often the consumer has read


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give the rows of a call to the producer; the other inputs are not looked at."""
    return [rng.standard_normal((ROWS, SIZE), np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The consumer gets the producer's rows."""
    return [xs[PRODUCER] if rank == CONSUMER else None for rank in range(len(xs))]


@kernel(memory=[staged, data, full, taken], inputs=inputs, golden=golden)
async def fixed(  # noqa: PLR0913, PLR0917 - the last ones are the mistake and another repair
    rank: Rank,
    x: Array,
    staged: WindowView,
    data: WindowView,
    full: SignalView,
    taken: SignalView,
    *,
    pending: int = BUFFERS - 2,
    buffers: int = BUFFERS,
) -> Array | None:
    """Before a copy is made, all but the last `pending` ones are awaited: two fewer than there are buffers."""
    if rank.id == PRODUCER:
        for number, row in enumerate(x):
            buffer = staged[number % buffers]
            await rank.store(buffer, row)
            await rank.quiet(pending=pending)
            await rank.put_signal(data.at(CONSUMER)[number], buffer, full.at(CONSUMER)[0], nbi=True)
        await rank.quiet()
        await rank.wait(taken[0] >= rank.call + 1)
    elif rank.id == CONSUMER:
        await rank.wait(full[0] >= ROWS * (rank.call + 1))
        rows = await rank.load(data[:])
        await rank.notify(taken.at(PRODUCER)[0], 1)
        return rows
    return None


fixed_by_a_buffer = fixed.variant(
    about="One copy more may be pending, as there is one buffer more.",
    pending=BUFFERS - 1,
    buffers=BUFFERS + 1,
)

buggy = fixed.variant(
    about="A row is staged where the copy before last may still have to read.",
    pending=BUFFERS - 1,
    finds=WAR("same call"),
)
