"""A kernel that is a test."""

import numpy as np
import pytest

from asyncsim import Signal, Window, kernel

box = Window("box", (1,), np.float32)
ready = Signal("ready", (1,), self_cleaning=True)


@pytest.mark.asyncsim(ranks=[2, 3])
@kernel(
    memory=[box, ready],
    inputs=lambda P, call, rng: rng.standard_normal((P, 1), np.float32),
    golden=lambda xs: np.roll(xs, 1, axis=0),
)
async def test_shift(rank, x, box, ready):
    """Pass one number to the right."""
    left, right = (rank.id - 1) % rank.size, (rank.id + 1) % rank.size
    await rank.store(box[:], x)
    await rank.notify(ready.at(right)[0], 1)
    await rank.wait(ready[0] >= 1)
    got = await rank.load(box.at(left)[:])
    await rank.notify(ready[0], -1)
    return got
