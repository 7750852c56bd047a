"""F30: the flag half of a line becomes visible before its data half.

Data and flag share a line and are stored by one instruction, so that the receiver, who polls the
flag, needs no other order. That holds only where a line arrives whole. Where it lands in two parts,
the flag may come first. The fix orders the halves: data, fence, flag.

Source: nccl#2053.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import RAW, Window, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, WindowView
    from kernels.field.rows import Array

DATA, FLAG = 0, 1

# [half, p]: the line that rank p stores, data and flag; two halves by turns: who has call c's line from p knows that
# p has read call c - 1's.
line = Window("line", (2, "P", 2), np.float32, initialised=True)


def inputs(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank a number."""
    return [rng.standard_normal((), np.float32) for _ in range(P)]


def golden(xs: Sequence[Array]) -> list[Array]:
    """Every rank: the numbers of all ranks."""
    return [np.stack(xs)] * len(xs)


@kernel(memory=[line], inputs=inputs, golden=golden)
async def fixed(rank: Rank, x: Array, line: WindowView, *, ordered: bool = True) -> Array:
    """An all-gather whose flags follow their data."""
    half, flag = rank.call % 2, np.float32(rank.call + 1)

    def arrived(seen: Any) -> bool:  # noqa: ANN401 - a tile of one number
        return bool(seen == flag)

    for peer in rank.peers:
        theirs = line.at(peer)
        if ordered:
            await rank.store(theirs[half, rank.id, DATA], x)
            await rank.fence()
            await rank.store(theirs[half, rank.id, FLAG], flag)
        else:
            await rank.store(theirs[half, rank.id], np.array([x, flag]))
    out = np.full(rank.size, x)
    for peer in rank.peers:
        await rank.poll(line[half, peer, FLAG], arrived)
        out[peer] = await rank.load(line[half, peer, DATA])
    return out


buggy = fixed.variant(
    about="One store of the whole line: it lands in two parts, in any order.",
    ordered=False,
    finds=RAW("same call"),
)
