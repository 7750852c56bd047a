"""F52: a rank fills its flag with zero before it uses it, and a peer's signal may be there already.

The fill is local, and nothing orders it with the peers: a signal that came before it is gone, and the
rank waits for ever. The fix fills nothing: who has waited resets what was consumed.

Source: pytorch/pytorch#195761.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim import Expected, Set, Signal, kernel

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView

flag = Signal("flag", ("P",))  # [p]: rank p has come


@kernel(memory=[flag])
async def fixed(rank: Rank, flag: SignalView, *, waiter_resets: bool = True) -> None:
    """A barrier whose waits take back the credits that they waited for."""
    if not waiter_resets:
        for peer in rank.peers:
            await rank.notify(flag[peer], 0, op=Set)
    for peer in rank.peers:
        await rank.notify(flag.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(flag[peer] >= 1, consume=waiter_resets)


buggy = fixed.variant(
    about="The flags are filled with zero first: a fast peer's signal is wiped out.",
    waiter_resets=False,
    finds=Expected("signal-race"),
)
