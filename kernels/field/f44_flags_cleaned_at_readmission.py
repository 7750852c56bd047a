"""F44: the flags of a masked rank are cleaned, the rank is admitted again, and its old signal comes then.

A rank that was too slow is masked: the others go on without it. Before it is admitted again its flag
is cleaned, so that nothing old is left. But what it sent before it was masked may still be on its way:
come after the cleaning, it is taken for the first signal of the new epoch. The fix: the flag carries
the epoch, and nothing is cleaned.

Source: flashinfer-ai/flashinfer#4183.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Set, Signal, Window, kernel
from kernels.field.rows import SIZE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim import Rank, SignalView, WindowView
    from kernels.field.rows import Array

LEADER, MASKED = 0, 1

data = Window("data", (SIZE,), np.float32)  # the masked rank's row, in the leader's memory
flag = Signal("flag", (1,))  # the leader's: the masked rank's signal
admitted = Signal("admitted", (1,))  # the masked rank's: admitted again; its row was read


def golden(xs: Sequence[Array]) -> list[Array | None]:
    """The leader gets the row of the new epoch."""
    return [xs[MASKED] if rank == LEADER and len(xs) > 1 else None for rank in range(len(xs))]


@kernel(memory=[data, flag, admitted], inputs=rows, golden=golden)
async def fixed(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Array, data: WindowView, flag: SignalView, admitted: SignalView, *, carries_epoch: bool = True
) -> Array | None:
    """The flag is the number of the epoch."""
    old, new = 2 * rank.call + 1, 2 * rank.call + 2
    if rank.id == MASKED:
        await rank.notify(flag.at(LEADER)[0], old if carries_epoch else 1, op=Set)  # nobody waits for it any more
        await rank.wait(admitted[0] >= old)
        for n, number in enumerate(x):
            await rank.store(data.at(LEADER)[n], number)
        await rank.notify(flag.at(LEADER)[0], new if carries_epoch else 1, op=Set)
        await rank.wait(admitted[0] >= new)
    elif rank.id == LEADER and rank.size > 1:
        await rank.store(data[:], np.zeros_like(x))  # the old epoch ends without the masked rank's row
        if not carries_epoch:
            await rank.notify(flag[0], 0, op=Set)
        await rank.notify(admitted.at(MASKED)[0], 1)
        await rank.wait(flag[0] >= (new if carries_epoch else 1))
        row = await rank.load(data[:])
        await rank.notify(admitted.at(MASKED)[0], 1)
        return row
    return None


buggy = fixed.variant(
    about="The flag is cleaned before the rank is admitted again: its old signal may come after that.",
    carries_epoch=False,
    finds=Expected("signal-race"),
)
