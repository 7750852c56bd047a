"""Broadcast: the root stages, everybody gets.

The composite has one barrier, before the gets. It keeps the readers from coming too early; nothing
keeps the root from staging the next call while a slow rank still reads.

Source: step 12 of PyPTO's distributed tutorial, and the lowering of ``pld.tensor.broadcast``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import WAR, Signal, Window, broadcast, golden, kernel
from kernels.rows import SIZE, Array, rows
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView

data = Window("data", (1, SIZE), np.float32)
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


@kernel(memory=[data, signal], inputs=rows, golden=golden.broadcast, same_on_all_ranks=True)
async def safe(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, data: WindowView, signal: SignalView, *, root: int = 0, end_barrier: bool = True
) -> Array:
    """The composite with a barrier at its end: nobody stages again before the last has read."""
    if rank.id == root:
        with rank.phase("stage"):
            await rank.store(data[0, : x.size], x)
    await broadcast(rank, data, signal, root=root, safe=end_barrier)
    return await rank.load(data[0, : x.size])


composite = safe.variant(
    about="The composite as it is upstream: the root stages the next call over what slow ranks still get.",
    end_barrier=False,
    finds=WAR("next call", pairs=lambda P: P - 1),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
