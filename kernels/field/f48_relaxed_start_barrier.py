"""F48: the start barrier of an all-reduce is relaxed on both sides, and has the scope of one GPU.

Each rank writes its flag at each peer, and waits for the flags of the peers: a relaxed store and a relaxed load, as
if the flags were all that matters. What is said by them, that the rows are there, needs a release and an acquire in
the scope of the system. Without them a peer's row may be read before it is there.

Source: vllm-project/vllm#57059, ROCm/aiter#4812.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from asyncsim import RAW, Set, Window, kernel
from kernels.field.rows import SIZE, rows, sums

if TYPE_CHECKING:
    from asyncsim import Rank, WindowView
    from kernels.field.rows import Array

data = Window("data", (SIZE,), np.float32)
begun = Window("begun", ("P",), np.uint32, initialised=True)  # [p]: in how many calls rank p has begun
ended = Window("ended", ("P",), np.uint32, initialised=True)  # [p]: in how many calls rank p has read


@kernel(memory=[data, begun, ended], inputs=rows, golden=sums)
async def fixed(  # noqa: PLR0913 - the last two are the mistake
    rank: Rank, x: Array, data: WindowView, begun: WindowView, ended: WindowView,
    *, relaxed: bool = False, scope: Literal["rank", "world"] = "world",
) -> Array:  # fmt: skip
    """The start barrier releases and acquires in the scope of the system."""
    number = rank.call + 1
    await rank.store(data[:], x)
    for peer in rank.peers:
        await rank.notify(
            begun.at(peer).word[rank.id], number, op=Set, order="relaxed" if relaxed else "release", scope=scope
        )
    for peer in rank.peers:
        await rank.wait(begun.word[peer] >= number, order="relaxed" if relaxed else "acquire", scope=scope)
    total = np.zeros(SIZE, np.float32)
    for peer in range(rank.size):
        total += await rank.load(data.at(peer)[:])
    for peer in rank.peers:
        await rank.notify(ended.at(peer).word[rank.id], number, op=Set)
    for peer in rank.peers:
        await rank.wait(ended.word[peer] >= number)
    return total


buggy = fixed.variant(
    about="The flags of the start barrier are relaxed, and of the scope of one GPU.",
    relaxed=True,
    scope="rank",
    finds=RAW("same call"),
)
