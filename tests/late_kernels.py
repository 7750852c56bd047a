"""Kernels whose writes land late, right under every memory model: what a check of late memory is measured with."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncsim import Kernel, Rank, Signal, Window, kernel

CHUNK = 4
"""Elements that go from a rank to another at once."""
SLOTS = 2

landed = Window("landed", (SLOTS, CHUNK), np.float32)
full = Signal("full", (SLOTS,), self_cleaning=True)
free = Signal("free", (SLOTS,), start=1)


@kernel(
    memory=[landed, full, free],
    inputs=lambda ranks, call, rng: rng.standard_normal((ranks, 2, CHUNK)).astype(np.float32),
    golden=lambda inputs: [np.stack(inputs)] * len(inputs),
)
async def ring(rank: Rank, x: Any, landed: Any, full: Any, free: Any) -> Any:
    """All-gather by two chunks a step: a put with signal to the right, when a credit says that its slot is free."""
    gathered = np.zeros((rank.size, *x.shape), np.float32)
    gathered[rank.id] = x
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    for step in range(rank.size - 1):
        sent, got = (rank.id - step) % rank.size, (left - step) % rank.size
        for slot in range(SLOTS):
            await rank.wait(free[slot] >= 1, consume=True)
            await rank.put_signal(landed.at(right)[slot], gathered[sent, slot], full.at(right)[slot])
            await rank.wait(full[slot] >= 1, consume=True)
            gathered[got, slot] = await rank.load(landed[slot])
            await rank.notify(free.at(left)[slot], 1)
    return gathered


received = Window("received", ("P", CHUNK), np.float32)
come = Signal("come", ("P",))
read = Signal("read", ("P",))


@kernel(
    memory=[received, come, read],
    inputs=lambda ranks, call, rng: rng.standard_normal((ranks, ranks, CHUNK)).astype(np.float32),
    golden=lambda inputs: list(np.stack(inputs, axis=1)),
)
async def exchange(  # noqa: PLR0913 - how the data are told of
    rank: Rank, x: Any, received: Any, come: Any, read: Any, *, how: str = "signal"
) -> Any:
    """All-to-all: to each peer a put with signal, or its elements one by one and, after a fence or a quiet, a flag."""
    taken = x.copy()
    for peer in rank.peers:
        if how == "signal":
            await rank.put_signal(received.at(peer)[rank.id], x[peer], come.at(peer)[rank.id])
        else:
            for element in range(CHUNK):
                await rank.put(received.at(peer)[rank.id, element], x[peer, element])
    if how != "signal":
        await getattr(rank, how)()
        for peer in rank.peers:
            await rank.notify(come.at(peer)[rank.id], order="relaxed")
    for peer in rank.peers:
        await rank.wait(come[peer] >= rank.call + 1)
        taken[peer] = await rank.load(received[peer])
    for peer in rank.peers:
        await rank.notify(read.at(peer)[rank.id])
    for peer in rank.peers:
        await rank.wait(read[peer] >= rank.call + 1)
    return taken


KERNELS: dict[str, Kernel] = {
    "ring, puts with signal": ring,
    "exchange, puts with signal": exchange,
    "exchange, puts and a fence": exchange.variant(how="fence"),
    "exchange, puts and a quiet": exchange.variant(how="quiet"),
}
