"""Queues on words: a ring of slots with sequence numbers, and a queue of work that all ranks draw from.

Each slot of the ring has a number that says whose turn it is: s when the producer may write item s, s + 1
when the consumer may read it, s + SLOTS when the slot is free for the next round. So producer and
consumer share no counter, and the queue bounds how far one runs ahead. Here a row goes down the chain of
ranks in pieces, through fewer slots than pieces.

In the queue of work the number of the next item is drawn by fetch-and-add. Which rank gets which item
depends on the schedule, so there are many right results: each item is done once, and none is left.

Source: Vyukov, "Bounded MPMC queue", 1024cores.net; the persistent tile schedulers of CUTLASS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from asyncsim import WAR, Expected, Set, Signal, Window, barrier, kernel
from kernels.rows import Array, draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView

PIECES = 5
SLOTS = 2
HOME = 0
"""The rank that has the queue of work."""


# ---- a ring of slots


def pieces(P: int, call: int, rng: np.random.Generator, *, size: int = PIECES, dtype: Any = np.float32) -> list[Array]:  # noqa: ANN401 - whatever numpy takes
    """Give each rank a row of so many pieces."""
    return [draw(rng, (size,), dtype) for _ in range(P)]


def from_rank_0(xs: Sequence[Array]) -> list[Array]:
    """Every rank gets rank 0's row."""
    return [xs[0]] * len(xs)


slot = Window("slot", (SLOTS,), np.float32)
turn = Window("turn", (SLOTS,), np.int32, initialised=True)  # [s]: the number of the slot, less s


@kernel(memory=[slot, turn], inputs=pieces, golden=from_rank_0)
async def by_sequence_number(  # noqa: PLR0913 - the last three are the mistakes
    rank: Rank,
    x: Array,
    slot: WindowView,
    turn: WindowView,
    *,
    ahead: int = 0,
    order: Literal["release", "relaxed"] = "release",
    free_first: bool = False,
) -> Array:
    """Take a piece from the left and hand it on to the right, one after the other; the numbers count on over calls."""
    left_most, right_most, got = rank.id == 0, rank.id == rank.size - 1, np.empty_like(x)
    for piece in range(x.size):
        item = rank.call * x.size + piece
        s = item % SLOTS
        empty = item - s
        full, free = empty + 1, empty + SLOTS
        if left_most:
            got[piece] = x[piece]
        else:
            await rank.wait(turn.word[s] == full)
            if free_first:
                await rank.notify(turn.word[s], free, op=Set)
            got[piece] = await rank.load(slot[s])
            if not free_first:
                await rank.notify(turn.word[s], free, op=Set)
        if not right_most:
            word = turn.at(rank.id + 1).word[s]
            await rank.wait(word >= empty - ahead * SLOTS, order="acquire")
            await rank.store(slot.at(rank.id + 1)[s], got[piece])
            await rank.notify(word, full, op=Set, order=order)
    return got


freed_too_early = by_sequence_number.variant(
    about="The slot is given back before it is read.",
    free_first=True,
    finds=WAR(),
)
one_round_ahead = by_sequence_number.variant(
    about="Off by one round: the producer takes a slot that the consumer has yet to read.",
    ahead=1,
    finds=Expected("signal-race"),
)
relaxed_number = by_sequence_number.variant(
    about="The number is set relaxed, and may be seen before the piece.",
    order="relaxed",
    finds=Expected("wrong-result"),
)


# ---- a queue of work

ITEMS = 2

work = Window("work", (ITEMS,), np.int64)
filled = Window("filled", (1,), np.uint32, initialised=True)  # how many items were put into the queue, over all calls
drawn = Window("drawn", (1,), np.uint32, initialised=True)  # how many were drawn, or found to be none
total = Window("total", (1,), np.int64, initialised=True)  # of what was done to the items
met = Signal("met", ("P", 1))  # of the barrier at the end


def items(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank as many numbers as there are items; those of the home are the items."""
    return [rng.integers(1, 100, (ITEMS,), np.int64) for _ in range(P)]


def squares(xs: Sequence[Array]) -> list[int | None]:
    """The home gets the sum of the squares of its items: each was done once."""
    return [int((xs[HOME] ** 2).sum()) if rank == HOME else None for rank in range(len(xs))]


@kernel(memory=[work, filled, drawn, total, met], inputs=items, golden=squares)
async def queue_of_work(  # noqa: PLR0913, PLR0917 - the memory, each by its name; the last one is the mistake
    rank: Rank, x: Array, work: WindowView, filled: WindowView, drawn: WindowView, total: WindowView, met: SignalView,
    *, atomic: bool = True,
) -> int | None:  # fmt: skip
    """Draw items until there are none: all but the one that draws the last draw a number too many."""
    number = drawn.at(HOME).word[0]
    if rank.id == HOME:
        await rank.store(total[:], np.zeros(1, np.int64))
        await rank.store(work[:], x)
        await rank.notify(filled.word[0], ITEMS)
    await rank.wait(filled.at(HOME).word[0] >= (rank.call + 1) * ITEMS)
    while True:
        if atomic:
            ticket = await rank.fetch_add(number)
        else:
            ticket = await rank.read(number)
            await rank.notify(number, ticket + 1, op=Set)
        item = ticket - rank.call * (ITEMS + rank.size - 1)
        if not 0 <= item < ITEMS:
            break
        value = await rank.load(work.at(HOME)[item])
        await rank.store(total.at(HOME)[:], np.asarray([value**2]), atomic="add")
        if item == ITEMS - 1:
            break
    await barrier(rank, met, generation=rank.call + 1)
    return int(await rank.load(total[0])) if rank.id == HOME else None


drawn_in_two_steps = queue_of_work.variant(
    about="The number is read, then set: two ranks draw the same item.",
    atomic=False,
    finds=Expected("wrong-result"),
)
