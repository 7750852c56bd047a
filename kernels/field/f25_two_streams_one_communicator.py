"""F25: two streams of a rank run one communicator, whose epoch is read and written in two steps.

The communicator is a Lamport one: the epoch says which half of the slots is in use, a slot that is
not empty has arrived, and whoever has taken it empties it for the call after the next. Two streams
that come at the same time take the same epoch and push into the same slots; or each takes an epoch
that its partner on the other rank did not take. One of them gets the other's number, or waits for
one that is gone. The fix gives each stream a communicator of its own.

Source: sglang#31117.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import RAW, WAR, Window, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, WindowView
    from kernels.field.rows import Array

STREAMS = 2
EMPTY = 0

epoch = Window("epoch", (STREAMS,), np.int32, initialised=True)  # [k]: the calls of communicator k
slots = Window("slots", (STREAMS, 2, "P"), np.float32, initialised=True)  # [k, half, p]: what rank p pushed


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each stream of each rank a number, and never the one that means an empty slot."""
    return [rng.uniform(1, 2, STREAMS).astype(np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: for each of its streams the sum over the ranks."""
    return [np.asarray(sum(xs))] * len(xs)


def arrived(slot: Any) -> bool:  # noqa: ANN401 - a tile of one number
    """Say whether a slot was filled."""
    return bool(slot != EMPTY)


async def all_reduce(rank: Rank, own: Any, epoch: WindowView, slots: WindowView, communicator: int) -> Any:  # noqa: ANN401 - a number
    """Push a number to all peers, and add up theirs."""
    count = await rank.load(epoch[communicator])
    await rank.store(epoch[communicator], count + 1)
    half = int(count) % 2
    for peer in rank.peers:
        await rank.store(slots.at(peer)[communicator, half, rank.id], own)
    acc = own
    for peer in rank.peers:
        slot = slots[communicator, half, peer]
        acc += await rank.poll(slot, arrived)
        await rank.store(slot, EMPTY)
    return acc


@kernel(memory=[epoch, slots], inputs=inputs, golden=golden)
async def fixed(rank: Rank, x: Array, epoch: WindowView, slots: WindowView, *, own_communicators: bool = True) -> Array:
    """A communicator a stream."""
    streams = [
        await rank.start(all_reduce, x[number], epoch, slots, number if own_communicators else 0)
        for number in range(STREAMS)
    ]
    return np.array([await rank.join(stream) for stream in streams])


buggy = fixed.variant(
    about="One communicator for both streams: they take the same epoch, or each another than its partner.",
    own_communicators=False,
    finds=[WAR("same call"), RAW("same call")],
)
