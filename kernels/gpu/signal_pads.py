"""torch's signal pads: a word a peer, raised by compare-exchange where it is 0, taken back where it is 1.

``put_signal`` spins until the peer's word for this rank is 0, and makes it 1; ``wait_signal`` spins until
the own word for that peer is 1, and makes it 0. Seen and taken back in one step, a signal leaves nothing
behind: no call needs a number of its own, and a pad may be shared by all collectives that a rank runs one
after the other. Each puts to all, then waits for all: that is the barrier. One-shot and two-shot all-reduce
stand on it.

Source: PyTorch, ``torch/csrc/distributed/c10d/symm_mem``: CUDASymmetricMemory-inl.h, CUDASymmetricMemoryOps.cu.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from asyncsim import RAW, WAR, ReduceOp, Set, Window, kernel
from kernels.rows import SIZE, Array, rows
from kernels.script import main
from kernels.two_shot import chunk, golden

if TYPE_CHECKING:
    from asyncsim import Rank, WindowView

    Scope = Literal["block", "rank", "world"]

data = Window("data", (SIZE,), np.float32)
pad = Window("pad", ("P",), np.uint32, initialised=True)  # [p]: the signal from rank p


async def put_signal(
    rank: Rank, pad: WindowView, peer: int, *, order: Literal["release", "relaxed"] = "release", scope: Scope = "world"
) -> None:
    """Raise the peer's word for this rank, as soon as the peer has taken the last signal."""
    await rank.wait(pad.at(peer).word[rank.id] == 0, then=Set(1), order=order, scope=scope)


async def wait_signal(rank: Rank, pad: WindowView, peer: int, *, scope: Scope = "world") -> None:
    """Wait until the peer has raised its word here, and take it back in the same step."""
    await rank.wait(pad.word[peer] == 1, then=Set(0), order="acquire", scope=scope)


async def meet(
    rank: Rank, pad: WindowView, *, order: Literal["release", "relaxed"] = "release", scope: Scope = "world"
) -> None:
    """Put a signal to each peer, then wait for one from each."""
    for peer in rank.peers:
        await put_signal(rank, pad, peer, order=order, scope=scope)
    for peer in rank.peers:
        await wait_signal(rank, pad, peer, scope=scope)


@kernel(memory=[data, pad], inputs=rows, golden=golden, same_on_all_ranks=True)
async def one_shot(  # noqa: PLR0913 - the last three are the mistakes
    rank: Rank,
    x: Array,
    data: WindowView,
    pad: WindowView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    end_barrier: bool = True,
    order: Literal["release", "relaxed"] = "release",
    scope: Scope = "world",
) -> Array:
    """Stage, meet, reduce the rows of all, meet."""
    with rank.phase("stage"):
        await rank.store(data[: x.size], x)
    await meet(rank, pad, order=order, scope=scope)  # every row is staged
    with rank.phase("reduce"):
        acc = op.reduce([await rank.load(data.at(peer)[: x.size]) for peer in range(rank.size)])
    if end_barrier:
        await meet(rank, pad)  # read: the next call may stage
    return acc


@kernel(memory=[data, pad], inputs=rows, golden=golden, same_on_all_ranks=True)
async def two_shot(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank,
    x: Array,
    data: WindowView,
    pad: WindowView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    end_barrier: bool = True,
) -> Array:
    """Each rank reduces its own chunk in place, then reads the chunks of all."""
    mine = chunk(rank.id, x.size, rank.size)
    with rank.phase("stage"):
        await rank.store(data[: x.size], x)
    await meet(rank, pad)  # every row is staged
    with rank.phase("reduce"):
        acc = op.reduce([await rank.load(data.at(peer)[mine]) for peer in range(rank.size)])
        await rank.store(data[mine], acc)  # no peer reads this chunk of this row until all have met
    await meet(rank, pad)  # every chunk is reduced
    with rank.phase("gather"):
        parts = [await rank.load(data.at(peer)[chunk(peer, x.size, rank.size)]) for peer in range(rank.size)]
    if end_barrier:
        await meet(rank, pad)  # gathered: the next call may stage
    return np.concatenate(parts)


one_shot_no_end_barrier = one_shot.variant(
    about="One barrier a call: the next call stages over what slow peers still read.",
    end_barrier=False,
    finds=WAR("next call"),
)
one_shot_relaxed = one_shot.variant(
    about="The signal is raised by a relaxed compare-exchange, so it says nothing of the row.",
    order="relaxed",
    finds=RAW("same call"),
)
one_shot_of_one_gpu = one_shot.variant(
    about="The signal is raised and taken in the scope of one GPU, and orders nothing between two.",
    scope="rank",
    finds=RAW(),
)
two_shot_no_end_barrier = two_shot.variant(
    about="Two barriers a call: the next call stages over the chunk that slow peers still gather.",
    end_barrier=False,
    finds=WAR("next call"),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
