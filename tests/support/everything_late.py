"""A kernel that does each kind of operation of streams and of late memory, for the tests of their traces."""

from __future__ import annotations

import numpy as np

from asyncsim import SET, Signal, Window, kernel

MEMORY = [
    Window("data", (3, 3, 4), np.float32),
    Window("flag", (2,), np.int32, initialised=True),
    Signal("ready", ("P",)),
    Signal("done", (4,), np.int8),
]


@kernel(memory=MEMORY)
async def late(rank, data, flag, ready, done):
    """Talk to the other rank with a stream beside it that has a stream of its own."""
    peer = (rank.id + 1) % rank.size
    meeting = rank.stream_barrier(2)
    with rank.phase("outer"):
        side = await rank.start(_side, data, flag, done, meeting)
    tile = np.arange(12, dtype=np.float32).reshape(3, 4)
    await rank.store(data[0], tile)
    await rank.put(data.at(peer)[1], data[0], nbi=True)
    await rank.fence()
    await rank.put(data.at(peer)[2, 0:3, 0:4:2], tile[:, 0:4:2])
    await rank.put_signal(data.at(peer)[2, 0:2, 1], tile[0:2, 1], ready.at(peer)[rank.id])
    await rank.put_signal(data.at(peer)[2, 0, 3], data[0, 0, 3], ready.at(peer)[rank.id], 7, SET, nbi=True)
    await rank.put(data.at(rank.id)[0], data[0], nbi=True)
    await rank.store(data.at(peer)[0, 1], tile[1], atomic="add")
    await rank.notify(done.at(peer)[1], 1, order="relaxed")
    await rank.notify(done.at(peer)[1], 1)
    await rank.quiet()
    await rank.sync(meeting)
    await rank.wait(done[1] >= 2, consume=True)
    await rank.get(data[1, 0], data.at(peer)[0, 2], nbi=True)
    await rank.get(data[1, 1], data.at(peer)[0, 2])
    await rank.test(ready[peer] >= 7)
    await rank.put_signal(data.at(rank.id)[2, 2], data[2, 1], done[2], nbi=True)
    await rank.notify(done.at(peer)[3], order="stores")
    await rank.put(data.at(rank.id)[0, 2], tile[2])
    await rank.wait(done[2] >= 1)
    await rank.quiet(scope="rank")
    return await rank.join(side)


async def _side(rank, data, flag, done, meeting):
    peer = (rank.id + 1) % rank.size
    inner = await rank.start(_inner, flag, peer)
    await rank.notify(done[0], 3)
    await rank.wait(done[0] >= 2)
    await rank.sync(meeting)
    await rank.poll(flag[:], lambda tile: tile[0] == 5)
    return await rank.join(inner)


async def _inner(rank, flag, peer):
    await rank.store(flag.at(peer)[0], 5)
    await rank.store(flag[1], rank.id)
    return int(await rank.load(flag[1]))
