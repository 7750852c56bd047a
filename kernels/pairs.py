"""What algorithms by exchange in pairs are made of: who is whose partner, and how two ranks meet.

They need a power of two. Where P is none, the ranks beyond the largest power of two in it are
*lenders*: each lends its row to one of the others before, and borrows the result afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from asyncsim import Rank, ReduceOp, SignalView
    from kernels.rows import Array


def core_of(P: int) -> int:
    """Return the largest power of two that is at most P: so many ranks exchange in pairs."""
    return 1 << (P.bit_length() - 1)


async def meet(rank: Rank, signal: SignalView, partner: int, met: Counter[int]) -> None:
    """Wait for one other rank to come here; `met` counts how often that was in this call."""
    met[partner] += 1
    await rank.notify(signal.at(partner)[rank.id], 1)
    await rank.wait(signal[partner] >= met[partner])


async def part(rank: Rank, signal: SignalView, met: Counter[int]) -> None:
    """Give back the credits of all meetings."""
    for partner, times in sorted(met.items()):
        await rank.notify(signal[partner], -times)


def tree(xs: Sequence[Array], distances: Sequence[int], op: ReduceOp) -> list[Array]:
    """Every rank: all inputs reduced, pair by pair at these distances, the lenders' first of all."""
    core = core_of(len(xs))
    sums = [op.combine(xs[r], xs[r + core]) if r + core < len(xs) else xs[r] for r in range(core)]
    for distance in distances:
        sums = [op.combine(sums[r], sums[r ^ distance]) for r in range(core)]
    return [op.finish(sums[0], len(xs))] * len(xs)  # all the same, to the bit: a + b is b + a
