"""Kernels that notify and wait in a loop or in one await, as they are asked: for what the two have in common."""

from __future__ import annotations

import numpy as np

from asyncsim import Fifo, Signal, Window, kernel
from asyncsim.machine.simulate import simulate

ROW = Window("row", ("P",), np.int32)
CELL = Signal("cell", ("P", 2))
CREDIT = Signal("cell", ("P", 1))


# The loop and the one await stand in one line, so that their traces have the same places.


async def tell(rank, cells, value=1, *, several, **how):
    """Notify the cells."""
    _ = await rank.notify_all(cells, value, **how) if several else [await rank.notify(c, value, **how) for c in cells]


async def hear(rank, conditions, *, several, **how):
    """Wait for the conditions."""
    _ = await rank.wait_all(conditions, **how) if several else [await rank.wait(c, **how) for c in conditions]


def exchange(  # noqa: PLR0913 - each argument is one way to write it, or to get it wrong
    *, several, ready=True, read=True, consume=False, missing=False, early=False, give=True, order="release"
):
    """Make a kernel in which each rank reads a number of every other, between two barriers."""

    async def meet(rank, cell, column, generation):
        told = rank.peers[1:] if missing and rank.id == 0 else rank.peers
        await tell(rank, [cell.at(peer)[rank.id, column] for peer in told], several=several, order=order)
        await hear(rank, [cell[peer, column] >= generation for peer in rank.peers], several=several, consume=consume)

    async def program(rank, x, row, cell):
        await rank.store(row[rank.id], x[0])
        if ready:
            await meet(rank, cell, 0, 0 if early else 1)
        total = 0
        for peer in rank.peers:
            total += int(await rank.load(row.at(peer)[peer]))
        if read:
            await meet(rank, cell, 1, 1)
        if give and not consume:
            await tell(rank, [cell[peer, 0] for peer in rank.peers if ready], -1, several=several)
            await tell(rank, [cell[peer, 1] for peer in rank.peers if read], -1, several=several)
        return np.array(total)

    def inputs(P, call, rng):
        return [rng.integers(0, 1000, 1, np.int32) for _ in range(P)]

    def golden(xs):
        return [np.array(sum(int(x[0]) for x in xs) - int(own[0])) for own in xs]

    return kernel(memory=[ROW, CELL], inputs=inputs, golden=golden)(program)


WRITTEN = {
    "right": {},
    "right, consuming": {"consume": True},
    "relaxed": {"order": "relaxed"},
    "no first barrier": {"ready": False},
    "no second barrier": {"read": False},
    "no second barrier, consuming": {"read": False, "consume": True},
    "no barrier": {"ready": False, "read": False},
    "one forgets a peer": {"missing": True},
    "passes at once": {"early": True},
    "keeps the credits": {"give": False},
}


def fair(case, scheduler=None, engine="direct"):
    """Run a case in fair turn, and keep the trace."""
    return simulate(case, Fifo() if scheduler is None else scheduler, record="fifo", engine=engine)
