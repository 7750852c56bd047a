"""A spin lock on a word of rank 0, and what it guards: a counter that every rank counts up.

Taking the lock is a spin on compare-exchange, 0 to 1; giving it back a Set to 0, a release. Which rank
has it when depends on the schedule, so one run does not decide; the right results are those in which
each rank has seen another number. The mistakes: the lock is given back by a relaxed Set, in the scope of
one GPU, or before the counter is written.

Source: Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
multiprocessors", 1991; the spin locks of ROCm/iris and ROCm/tritonBLAS.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from asyncsim import RAW, Expected, Predicate, Set, Signal, Window, barrier, kernel
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.rows import Array

    Scope = Literal["block", "rank", "world"]

HOME = 0
"""The rank that has the lock and the counter."""

lock = Window("lock", (1,), np.uint32, initialised=True)  # 1: some rank has it
counter = Window("counter", (1,), np.int64, initialised=True)
met = Signal("met", ("P", 1))  # of the barrier at the end


def amounts(P: int, call: int, rng: np.random.Generator) -> list[Array]:
    """Give each rank what it counts on."""
    return [rng.integers(1, 100, (), np.int64) for _ in range(P)]


def one_after_the_other(xs: Sequence[Array], ys: Sequence[int]) -> bool:
    """In some order of the ranks, each has found what those before it had counted."""
    found = sorted(zip(ys, xs, strict=True))
    return all(after == before + amount for (before, amount), (after, _) in pairwise(found))


@kernel(memory=[lock, counter, met], inputs=amounts, golden=Predicate(one_after_the_other))
async def spin_lock(  # noqa: PLR0913 - the last three are the mistakes
    rank: Rank,
    x: Array,
    lock: WindowView,
    counter: WindowView,
    met: SignalView,
    *,
    order: Literal["release", "relaxed"] = "release",
    scope: Scope = "world",
    unlock_first: bool = False,
) -> int:
    """Take the lock, count, give the lock back."""
    word, place = lock.at(HOME).word[0], counter.at(HOME)[0]
    await rank.wait(word == 0, then=Set(1), order="acquire", scope=scope)
    found = await rank.load(place)
    if unlock_first:
        await rank.notify(word, 0, op=Set)
    await rank.store(place, found + x)
    if not unlock_first:
        await rank.notify(word, 0, op=Set, order=order, scope=scope)
    await barrier(rank, met, generation=rank.call + 1)
    return int(found)


relaxed_unlock = spin_lock.variant(
    about="The lock is given back by a relaxed Set: the next one may find the counter as it was.",
    order="relaxed",
    finds=Expected("wrong-result"),
)
lock_of_one_gpu = spin_lock.variant(
    about="The lock has the scope of one GPU, and guards nothing between two.",
    scope="rank",
    finds=RAW("same call"),
)
unlocked_too_early = spin_lock.variant(
    about="The lock is given back before the counter is written.",
    unlock_first=True,
    finds=RAW("same call"),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
