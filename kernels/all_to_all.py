"""All-to-all by push: each rank puts row d of its input into its own row at rank d.

As in an all-gather by push, one barrier says that the rows are there; that they were read back before
the next call puts takes one more.

Source: step 15 of PyPTO's distributed tutorial, and the lowering of ``pld.tensor.all_to_all(_v)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import WAR, Signal, Window, all_to_all, all_to_all_v, golden, kernel
from kernels.rows import SIZE, Array, blocks, each_with_each
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView

received = Window("received", ("P", SIZE), np.float32)  # row s: from rank s
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


@kernel(memory=[received, signal], inputs=blocks, golden=golden.all_to_all)
async def safe(rank: Rank, x: Array, received: WindowView, signal: SignalView, *, entry_barrier: bool = True) -> Array:
    """The composite with a barrier at its start: nobody puts again before the last has read back."""
    await all_to_all(rank, x, received, signal, safe=entry_barrier)
    with rank.phase("read back"):
        return await rank.load(received[...])


composite = safe.variant(
    about="The composite as it is upstream: the next call puts over what slow peers have still to read back.",
    entry_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


# The same with counts.

Counted = tuple[Array, Array]
"""A rank's input, shape (P, size), and how many elements of it go from rank s to rank d: shape (P, P)."""


def counted_blocks(
    P: int, call: int, rng: np.random.Generator, *, size: int = SIZE, dtype: Any = np.float32  # noqa: ANN401
) -> list[Counted]:  # fmt: skip
    """Give each rank one row a rank, and all ranks the same counts: 1 to `size`, others in every call."""
    counts = rng.integers(min(1, size), size + 1, (P, P))
    return [(block, counts) for block in blocks(P, call, rng, size=size, dtype=dtype)]


def counted_golden(xs: Sequence[Counted]) -> list[Array]:
    """Rank r: what everybody sends it, one after another."""
    return golden.all_to_all_v([block for block, _ in xs], xs[0][1].tolist())


@kernel(memory=[received, signal], inputs=counted_blocks, golden=counted_golden)
async def v_safe(
    rank: Rank, x: Counted, received: WindowView, signal: SignalView, *, entry_barrier: bool = True
) -> Array:
    """The composite with counts, and a barrier at its start."""
    block, counts = x
    send, recv = counts[rank.id].tolist(), counts[:, rank.id].tolist()
    await all_to_all_v(rank, block, received, signal, send, recv, safe=entry_barrier)
    with rank.phase("read back"):
        return np.concatenate([await rank.load(received[peer, :count]) for peer, count in enumerate(recv)])


v_composite = v_safe.variant(
    about="The composite with counts as it is upstream: the next call puts over what slow peers have still to read.",
    entry_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
