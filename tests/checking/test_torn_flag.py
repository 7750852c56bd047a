"""A flag in the same tile as its data: proved where the tile lands whole, else explored without a false alarm."""

from __future__ import annotations

import numpy as np
import pytest

from asyncsim import Window, kernel
from asyncsim.checking.verdict.check import check

LINE = Window("line", (2,), np.float32, initialised=True)


def line_of(rank, x, line, *, returns_data):
    """Store data and flag to the peer in one tile; poll the own flag."""

    async def program():
        await rank.store(line.at(1 - rank.id)[:], np.array([x[0], 1], np.float32))
        tile = await rank.poll(line[:], lambda tile: tile[1] == 1)
        return tile[:1] if returns_data else x

    return program()


@kernel(memory=[LINE], inputs=lambda P, call, rng: [np.ones(1, np.float32) + r for r in range(P)], golden=lambda xs: xs)
async def keeps_its_own(rank, x, line):
    """Return the own input: no order can change that."""
    return await line_of(rank, x, line, returns_data=False)


@kernel(
    memory=[LINE],
    inputs=lambda P, call, rng: [np.ones(1, np.float32) + r for r in range(P)],
    golden=lambda xs: xs[::-1],
)
async def takes_the_peers(rank, x, line):
    """Return what the peer stored: right only if the tile lands whole."""
    return await line_of(rank, x, line, returns_data=True)


async def test_pieces_of_a_torn_tile_are_the_same_operations_in_every_execution():
    report = await check.aio(keeps_its_own, ranks=2, calls=1, memory="ldst:atom=1")
    assert (report.verdict, report.findings) == ("EXHAUSTED", [])


@pytest.mark.parametrize(("memory", "verdict"), [("ldst", "PROVED"), ("ldst:atom=1", "REFUTED")])
async def test_a_flag_in_the_tile_is_right_only_if_the_tile_is_not_torn(memory, verdict):
    report = await check.aio(takes_the_peers, ranks=2, calls=1, memory=memory)
    assert report.verdict == verdict
