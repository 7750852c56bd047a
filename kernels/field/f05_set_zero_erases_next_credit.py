"""F05: the epilogue clears its cells with `Set 0`, and a fast peer's next credit with them.

A peer that has passed this barrier may already have come to the next one. What is to be given back
is the one credit that was taken, by adding -1; whatever else lies in the cell must stay.

Source: pypto#2279, pypto-lib#960.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim import Expected, Set, Signal, kernel, settle

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView

signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


@kernel(memory=[signal])
async def fixed(rank: Rank, signal: SignalView, *, subtracts: bool = True) -> None:
    """A barrier that gives back what it took."""
    for peer in rank.peers:
        await rank.notify(signal.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(signal[peer] >= 1)
    if subtracts:
        await settle(rank, signal, credits=1)
    else:
        for peer in rank.peers:
            await rank.notify(signal[peer], 0, op=Set)


buggy = fixed.variant(
    about="Set 0 erases the credit that a fast peer has sent for the next call.",
    subtracts=False,
    finds=Expected("signal-race"),
)
