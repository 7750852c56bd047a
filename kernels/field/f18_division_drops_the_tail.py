"""F18: the elements are shared out by `N // P`, and the rest of the division belongs to nobody.

Seven elements on three ranks are two for each, and the last is never reduced. The fix rounds up and
cuts the last share where the elements end.

Source: pypto#1942, iris#524.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, Window, barrier, kernel, settle
from kernels.field.rows import sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

N = 7

data = Window("data", (N,), np.float32)
out = Window("out", (N,), np.float32, initialised=True)  # the caller's: it holds what it held before
signal = Signal("signal", ("P", 1), self_cleaning=True)


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank all N elements."""
    return [rng.standard_normal(N, np.float32) for _ in range(P)]


@kernel(memory=[data, out, signal], inputs=inputs, golden=sums)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, data: WindowView, out: WindowView, signal: SignalView, *, round_up: bool = True
) -> Array:
    """Each rank reduces its share and pushes it to everybody; the shares cover all elements."""
    share = -(-N // rank.size) if round_up else N // rank.size
    start, stop = min(rank.id * share, N), min((rank.id + 1) * share, N)
    await rank.store(data[:], x)
    await barrier(rank, signal)  # staged
    part = np.zeros(stop - start, np.float32)
    for peer in range(rank.size):
        part += await rank.load(data.at(peer)[start:stop])
    for peer in range(rank.size):
        await rank.store(out.at(peer)[start:stop], part)
    await barrier(rank, signal, generation=2)  # pushed
    await settle(rank, signal, credits=2)
    return await rank.load(out[:])


buggy = fixed.variant(
    about="The shares leave out the tail.",
    round_up=False,
    finds=Expected("wrong-result"),
)
