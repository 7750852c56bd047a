"""F23: a counter that is never reset leaves its signed range, and is compared as a number.

The cell has eight bits and starts at 124, as after many calls. Call c waits until it is greater
than 124 + c; in the fourth call 127 + 1 becomes -128, which is never greater. The usual fix compares
the signed distance, (int8)(cell - expected) >= 0, which is right across the wrap. Subtracting as one
goes is the same with the operations at hand: each call takes its credit back, so that the cell holds
its distance to what is expected, never more than two, and never wraps.

Source: rtp-llm#1418, tt-metal#9026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim import Expected, Signal, kernel

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView

START = 124

counter = Signal("counter", ("P",), np.int8, start=START, wrap=True)  # [p]: how often rank p came


@kernel(memory=[counter])
async def fixed(rank: Rank, counter: SignalView, *, keeps_distance: bool = True) -> None:
    """A barrier whose cells hold how far ahead each peer is."""
    seen = 0 if keeps_distance else rank.call
    for peer in rank.peers:
        await rank.notify(counter.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(counter[peer] > START + seen)
        if keeps_distance:
            await rank.notify(counter[peer], -1)


buggy = fixed.variant(
    about="The cell counts on, and wraps to where no comparison holds.",
    keeps_distance=False,
    finds=Expected("deadlock"),
)
