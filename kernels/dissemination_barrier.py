"""The dissemination barrier: ceil(log2 P) rounds, one notify and one wait each, for any P.

In round k each rank notifies the one 2**k further on, and waits for the one 2**k behind. After the
last round everybody has heard, at some remove, of everybody. A full barrier costs P - 1 of both. It is
shown here at work: around an all-gather by pull.

Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, Signal, Window, golden, kernel
from kernels.rows import SIZE, Array, each_with_each, rows
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView


def rounds(P: int) -> int:
    """Return ceil(log2 P)."""
    return (P - 1).bit_length()


data = Window("data", (1, SIZE), np.float32)
signal = Signal("signal", (rounds,), self_cleaning=True)  # a cell a round: one rank notifies in it


async def dissemination_barrier(rank: Rank, signal: SignalView, *, generation: int, unheard: int = 0) -> None:
    """Wait until every rank has come here; `generation` counts the barriers of this call.

    In the last `unheard` rounds it does not wait, which makes it no barrier.
    """
    for number in range(rounds(rank.size)):
        await rank.notify(signal.at((rank.id + (1 << number)) % rank.size)[number], 1)
        if number < rounds(rank.size) - unheard:
            await rank.wait(signal[number] >= generation)


@kernel(memory=[data, signal], inputs=rows, golden=golden.allgather, same_on_all_ranks=True)
async def all_rounds(  # noqa: PLR0913 - the last two are the mistakes
    rank: Rank,
    x: Array,
    data: WindowView,
    signal: SignalView,
    *,
    unheard: int = 0,
    end_barrier: bool = True,
) -> Array:
    """Stage, meet, read the rows of all, meet."""
    with rank.phase("stage"):
        await rank.store(data[0, : x.size], x)
    await dissemination_barrier(rank, signal, generation=1, unheard=unheard)  # ready: every row is staged
    with rank.phase("gather"):
        every = [await rank.load(data.at(peer)[0, : x.size]) for peer in range(rank.size)]
    if end_barrier:
        await dissemination_barrier(rank, signal, generation=2)  # read: the next call may stage
    for number in range(rounds(rank.size)):
        await rank.notify(signal[number], -1 - end_barrier)
    return np.stack(every)


no_end_barrier = all_rounds.variant(
    about="One barrier a call: the next call stages over what slow peers still read.",
    end_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
