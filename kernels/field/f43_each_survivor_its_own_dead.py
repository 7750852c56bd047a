"""F43: each survivor makes its own list of the dead, by time-outs, and reduces without them.

Whom a rank gives up depends on how long it looked, so two ranks may give up different ones: each of their
sums is right for its own list, and they differ. The fix: the ranks exchange their lists and take the union.
Then a row is added only if every rank has seen it, and a rank that is on the list steps aside.

Which ranks survive is up to the schedule, so there are several right results: a predicate says what makes
one, and only the survivors promise the same bits. A rank that is given up is slow here, not gone: a
time-out cannot tell the two apart.

Source: vllm-project/vllm#46370.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Predicate, Signal, Window, barrier, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

    Survivor = tuple[Array, Array] | None
    """Whom the rank takes for dead, and the sum without them; None: it is one of them itself."""

data = Window("data", (SIZE,), np.float32)
lists = Window("lists", ("P", "P"), np.bool_)  # [p, q]: rank p takes rank q for dead
here = Signal("here", ("P",))  # [p]: rank p's row is there
signal = Signal("signal", ("P", 1))  # of the barriers


def survivors(ys: Sequence[Survivor]) -> list[int]:
    """Return the ranks that reduced."""
    return [rank for rank, y in enumerate(ys) if y is not None]


def sums_fit_lists(xs: Sequence[Array], ys: Sequence[Survivor]) -> bool:
    """Each survivor has the sum of the rows of all whom it does not take for dead; itself is one of these."""
    return all(
        not y[0][rank] and np.allclose(y[1], sum(x for x, dead in zip(xs, y[0], strict=True) if not dead))
        for rank, y in enumerate(ys)
        if y is not None
    )


@kernel(
    memory=[data, lists, here, signal],
    inputs=rows, golden=Predicate(sums_fit_lists), same_on_all_ranks=survivors,
)  # fmt: skip
async def fixed(  # noqa: PLR0913, PLR0917 - the memory, each by its name
    rank: Rank, x: Array, data: WindowView, lists: WindowView, here: SignalView, signal: SignalView,
    *, exchange: bool = True,
) -> Survivor:  # fmt: skip
    """The dead are those whom any rank takes for dead."""
    barriers = (1 + exchange) * rank.call
    await rank.store(data[:], x)
    dead = np.zeros(rank.size, np.bool_)
    for peer in rank.peers:
        await rank.notify(here.at(peer)[rank.id], 1)
    for peer in rank.peers:
        dead[peer] = not await rank.test(here[peer] >= rank.call + 1)  # one look, then the time is up
    if exchange:
        await rank.store(lists[rank.id], dead)
        await barrier(rank, signal, generation=barriers + 1)
        for peer in rank.peers:
            dead |= await rank.load(lists.at(peer)[peer])
    survivor = None
    if not dead[rank.id]:
        total = np.zeros(SIZE, np.float32)
        for peer in np.flatnonzero(~dead):
            total += await rank.load(data.at(int(peer))[:])
        survivor = dead, total
    await barrier(rank, signal, generation=barriers + 1 + exchange)
    return survivor


buggy = fixed.variant(
    about="Each rank's list of the dead is its own.",
    exchange=False,
    finds=Expected("ranks-differ"),
)
