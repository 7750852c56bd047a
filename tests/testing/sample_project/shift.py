"""The kernels of a project: one that is right, and what becomes of it without its second wait."""

import numpy as np

from asyncsim import Signal, Window, kernel

box = Window("box", (1,), np.float32)
seen = Signal("seen", (2,), self_cleaning=True)  # [0]: my left neighbour has stored; [1]: my right one has read


@kernel(
    memory=[box, seen],
    inputs=lambda P, call, rng: rng.standard_normal((P, 1), np.float32),
    golden=lambda xs: np.roll(xs, 1, axis=0),
)
async def shift(rank, x, box, seen, *, careful=True):
    """Pass one number to the right, and wait until it was read."""
    left, right = (rank.id - 1) % rank.size, (rank.id + 1) % rank.size
    await rank.store(box[:], x)
    await rank.notify(seen.at(right)[0], 1)
    await rank.wait(seen[0] >= 1)
    got = await rank.load(box.at(left)[:])
    await rank.notify(seen[0], -1)
    if careful:
        await rank.notify(seen.at(left)[1], 1)
        await rank.wait(seen[1] >= 1)
        await rank.notify(seen[1], -1)
    return got


careless = shift.variant(about="It stores the next number over one that may still be read.", careful=False)
