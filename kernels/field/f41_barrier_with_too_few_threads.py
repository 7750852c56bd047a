"""F41: a barrier has a thread a peer, and is launched with fewer threads than there are peers.

Thread t signals one peer and waits for one. The peers beyond the last thread are neither signalled nor
waited for, and nothing says so: the barrier ends, and their rows are read before they are written.
The fix launches as many threads as there are peers.

Source: pytorch/pytorch#170785.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import RAW, WAR, Signal, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

THREADS = 2

data = Window("data", (SIZE,), np.float32)
signal = Signal("signal", ("P",))  # [p]: how often rank p has come


async def thread(rank: Rank, number: int, generation: int, signal: SignalView) -> None:
    """Signal a peer above, and wait for the one as far below."""
    above, below = (rank.id + 1 + number) % rank.size, (rank.id - 1 - number) % rank.size
    await rank.notify(signal.at(above)[rank.id], 1)
    await rank.wait(signal[below] >= generation)


async def meet(rank: Rank, signal: SignalView, generation: int, threads: int) -> None:
    """Let so many threads meet one peer each."""
    streams = [await rank.start(thread, number, generation, signal) for number in range(threads)]
    for stream in streams:
        await rank.join(stream)


@kernel(memory=[data, signal], inputs=rows, golden=sums)
async def fixed(rank: Rank, x: Array, data: WindowView, signal: SignalView, *, threads: int | None = None) -> Array:
    """As many threads as there are peers."""
    peers = len(rank.peers)
    threads = peers if threads is None else min(threads, peers)
    await rank.store(data[:], x)
    await meet(rank, signal, 2 * rank.call + 1, threads)  # staged
    out = np.zeros_like(x)
    for peer in range(rank.size):
        out += await rank.load(data.at(peer)[:])
    await meet(rank, signal, 2 * rank.call + 2, threads)  # read
    return out


buggy = fixed.variant(
    about="Two threads: from four ranks on, some peers are neither signalled nor waited for.",
    threads=THREADS,
    finds=[RAW("same call"), WAR("next call")],
)
