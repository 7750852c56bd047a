"""F08: each dispatch counts its items from 1, and the counters go on from the dispatch before.

A producer fills a ring of slots, a consumer empties it: `full` counts what was put in, `free` what
was taken out. In the second dispatch both find last time's credits, and neither waits: the consumer
reads slots that are not filled, the producer fills slots that are not read. The fix retires the
credits of a dispatch at its end, each side on its own counter.

Source: pypto-lib#960.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, WAR, Signal, Window, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

SLOTS = 2
ITEMS = 4
PRODUCER, CONSUMER = 0, 1

ring = Window("ring", (SLOTS,), np.float32)  # the consumer's
free = Signal("free", (1,))  # the producer's: how many items were taken out
full = Signal("full", (1,))  # the consumer's: how many items were put in


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give the items of a dispatch to the producer; the other inputs are not looked at."""
    return [rng.standard_normal(ITEMS, np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The consumer gets the producer's items."""
    return [xs[PRODUCER] if rank == CONSUMER else None for rank in range(len(xs))]


async def produce(  # noqa: PLR0913 - the memory, and the mistake
    rank: Rank, x: Array, ring: WindowView, free: SignalView, full: SignalView, *, retire: bool
) -> None:
    """Put every item into its slot, as soon as that is free."""
    for number, item in enumerate(x, 1):
        await rank.wait(free[0] >= number - SLOTS)
        await rank.store(ring.at(CONSUMER)[number % SLOTS], item)
        await rank.notify(full.at(CONSUMER)[0], 1)
    if retire:
        await rank.notify(free[0], -ITEMS)  # some of them may still be under way: for a moment it is negative


async def consume(rank: Rank, ring: WindowView, free: SignalView, full: SignalView, *, retire: bool) -> Array:
    """Take every item out of its slot, as soon as that is full."""
    items = []
    for number in range(1, ITEMS + 1):
        await rank.wait(full[0] >= number)
        items.append(await rank.load(ring[number % SLOTS]))
        await rank.notify(free.at(PRODUCER)[0], 1)
    if retire:
        await rank.notify(full[0], -ITEMS)
    return np.stack(items)


@kernel(memory=[ring, free, full], inputs=inputs, golden=golden)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, ring: WindowView, free: SignalView, full: SignalView, *, retire: bool = True
) -> Array | None:
    """A dispatch leaves the counters as it found them."""
    if rank.id == PRODUCER:
        await produce(rank, x, ring, free, full, retire=retire)
    elif rank.id == CONSUMER:
        return await consume(rank, ring, free, full, retire=retire)
    return None


buggy = fixed.variant(
    about="Nothing is retired: the second dispatch starts with the credits of the first.",
    retire=False,
    finds=[RAW("same call"), WAR("same call"), WAR("next call")],
)
