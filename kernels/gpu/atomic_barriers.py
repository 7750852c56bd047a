"""Barriers on one counter at rank 0, as kernels write them with atomics whose result matters.

All ranks add 1 to the same word, and only the last to come is told so. The *ticket* barrier never resets
its counter: the last of round r finds r * P - 1 there, and opens a gate that counts the rounds. In the
*sense-reversing* barrier the last one sets the counter to 0 and turns the sense over; a rank waits for
the sense that it does not remember. Which rank comes last depends on the schedule. They are shown here
at work: around an all-reduce by pull.

Source: Hensgen, Finkel and Manber, 1988; Mellor-Crummey and Scott, "Algorithms for scalable
synchronization on shared-memory multiprocessors", 1991.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from asyncsim import RAW, WAR, Expected, ReduceOp, Set, Window, kernel
from kernels.one_shot import golden
from kernels.rows import SIZE, Array, rows
from kernels.script import main

if TYPE_CHECKING:
    from asyncsim import Rank, WindowView

    Scope = Literal["block", "rank", "world"]

HOME = 0
"""The rank whose words count."""

data = Window("data", (SIZE,), np.float32)
count = Window("count", (1,), np.uint32, initialised=True)  # how many have come
gate = Window("gate", (1,), np.uint32, initialised=True)  # how many rounds are over, or the sense


async def ticket_barrier(rank: Rank, count: WindowView, gate: WindowView, *, generation: int, missing: int = 0) -> None:
    """Wait until every rank has come here for the `generation`-th time; without the last `missing` ones."""
    if await rank.arrive(count.at(HOME).word[0], of=generation * rank.size - min(missing, len(rank.peers))):
        await rank.notify(gate.at(HOME).word[0], 1)
    await rank.wait(gate.at(HOME).word[0] >= generation)


async def sense_barrier(  # noqa: PLR0913 - the last two are the mistakes
    rank: Rank, count: WindowView, gate: WindowView, *, sense: int, reset_first: bool = True, scope: Scope = "world"
) -> None:
    """Wait until every rank has come here; `sense` is 1 and 0 by turns.

    The last one resets the counter first, then opens the gate: the next round counts from 0.
    """
    if await rank.arrive(count.at(HOME).word[0], of=rank.size, scope=scope):
        if reset_first:
            await rank.notify(count.at(HOME).word[0], 0, op=Set, scope=scope)
        await rank.notify(gate.at(HOME).word[0], sense, op=Set, scope=scope)
        if not reset_first:
            await rank.notify(count.at(HOME).word[0], 0, op=Set, scope=scope)
    await rank.wait(gate.at(HOME).word[0] == sense, scope=scope)


@kernel(memory=[data, count, gate], inputs=rows, golden=golden, same_on_all_ranks=True)
async def ticket(  # noqa: PLR0913 - the last two are the mistakes
    rank: Rank,
    x: Array,
    data: WindowView,
    count: WindowView,
    gate: WindowView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    end_barrier: bool = True,
    missing: int = 0,
) -> Array:
    """Stage, meet, reduce the rows of all, meet."""
    barriers = (1 + end_barrier) * rank.call
    await rank.store(data[: x.size], x)
    await ticket_barrier(rank, count, gate, generation=barriers + 1, missing=missing)
    acc = op.reduce([await rank.load(data.at(peer)[: x.size]) for peer in range(rank.size)])
    if end_barrier:
        await ticket_barrier(rank, count, gate, generation=barriers + 2, missing=missing)
    return acc


@kernel(memory=[data, count, gate], inputs=rows, golden=golden, same_on_all_ranks=True)
async def sense_reversing(  # noqa: PLR0913 - the last two are the mistakes
    rank: Rank,
    x: Array,
    data: WindowView,
    count: WindowView,
    gate: WindowView,
    *,
    op: ReduceOp = ReduceOp.Sum,
    reset_first: bool = True,
    scope: Scope = "world",
) -> Array:
    """Stage, meet, reduce the rows of all, meet."""
    await rank.store(data[: x.size], x)
    await sense_barrier(rank, count, gate, sense=1, reset_first=reset_first, scope=scope)
    acc = op.reduce([await rank.load(data.at(peer)[: x.size]) for peer in range(rank.size)])
    await sense_barrier(rank, count, gate, sense=0, reset_first=reset_first, scope=scope)
    return acc


ticket_no_end_barrier = ticket.variant(
    about="One barrier a call: the next call stages over what slow peers still read.",
    end_barrier=False,
    finds=WAR("next call"),
)
ticket_off_by_one = ticket.variant(
    about="The last but one opens the gate.",
    missing=1,
    finds=(RAW("same call"), WAR("next call")),
)
reset_too_late = sense_reversing.variant(
    about="The gate is open before the counter is reset: who comes to the next round meanwhile is not counted.",
    reset_first=False,
    finds=Expected("signal-race"),
)
sense_of_one_gpu = sense_reversing.variant(
    about="The barrier has the scope of one GPU, and orders nothing between two.",
    scope="rank",
    finds=RAW(),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
