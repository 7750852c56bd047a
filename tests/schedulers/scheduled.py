"""Small kernels for schedulers to choose in, and what they choose."""

from __future__ import annotations

import numpy as np

from asyncsim import Case, Signal, Window, kernel, simulate

data = Window("data", ("P", 2), np.int32, initialised=True)
flag = Signal("flag", ("P",))


@kernel(memory=[data, flag])
async def free(rank, data, flag):
    """Three operations a rank, none of which waits."""
    for c in range(3):
        await rank.store(data[rank.id, 0], c)


@kernel(memory=[data, flag])
async def read_peer(rank, data, flag):
    """Rank 0 reads what every other rank stores twice."""
    if rank.id == 0:
        for peer in rank.peers:
            await rank.load(data.at(peer)[0])
    else:
        for c in range(2):
            await rank.store(data[0], np.full(2, 10 * rank.call + c + 1, np.int32))


@kernel(memory=[data, flag])
async def ping(rank, data, flag):
    """Rank 0 waits for rank 1."""
    if rank.id == 1:
        await rank.store(data[0, 0], 1)
        await rank.notify(flag.at(0)[1], 1)
    elif rank.id == 0:
        await rank.wait(flag[1] >= rank.call + 1)
        await rank.load(data[0, 0])


@kernel(memory=[data])
async def copies(rank, data):
    """Every operation that a script can name and the others do not have."""
    await rank.put(data.at(1 - rank.id)[0], data[1])
    await rank.get(data[1], data.at(1 - rank.id)[1])


def choices(program, scheduler, ranks=3, calls=1):
    run = simulate(Case(program, ranks, calls), scheduler)
    assert run.ending == "complete"
    return "".join(run.choices)


RULE = "hold rank 0 before its remote_load of data until rank 1 has stored to data"
