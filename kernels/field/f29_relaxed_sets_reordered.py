"""F29: two relaxed Sets of one cell land in the other order, and the smaller number stays.

A network adapter promises no order between two writes, not even to one place. The progress of a
producer goes from 1 to 2, and its consumer may see 2, then 1; or, looking a moment later, 1 for
ever. Adds come to the same sum in any order: the fix adds 1 twice.

Source: pypto-lib#499.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim import Expected, Set, Signal, kernel

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView

STEPS = 2
PRODUCER, CONSUMER = 0, 1

progress = Signal("progress", (1,))  # the consumer's: how many steps the producer has made


@kernel(memory=[progress])
async def fixed(rank: Rank, progress: SignalView, *, counts: bool = True) -> None:
    """Each step of the producer adds 1."""
    made = STEPS * rank.call
    if rank.id == CONSUMER:
        await rank.wait(progress[0] >= made + STEPS)
    elif rank.id == PRODUCER:
        for step in range(1, STEPS + 1):
            if counts:
                await rank.notify(progress.at(CONSUMER)[0], 1, order="relaxed")
            else:
                await rank.notify(progress.at(CONSUMER)[0], made + step, op=Set, order="relaxed")


buggy = fixed.variant(
    about="Each step sets the number of steps: the last to land wins, whichever it is.",
    counts=False,
    finds=Expected("signal-race"),
)
