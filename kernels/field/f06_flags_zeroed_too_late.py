"""F06: a rank zeroes its own flags when its peers may already have raised theirs.

The memory of the flags is not clean at the start, so each rank zeroes its own. It does so after the
exchange of addresses, and from then on every peer may signal: a zero that comes late wipes out a
signal that came early. Zero first, then exchange.

Source: tvm#16797, pytorch#196546.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim import Expected, Set, Signal, barrier, kernel

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView

exchange = Signal("exchange", ("P", 1))  # stands for the exchange of addresses on the host, which is a barrier
flag = Signal("flag", ("P",), start=7)  # 7: what its memory happened to hold


async def zero(rank: Rank, flag: SignalView) -> None:
    """Zero the own flags."""
    for peer in rank.peers:
        await rank.notify(flag[peer], 0, op=Set)


@kernel(memory=[exchange, flag])
async def fixed(rank: Rank, exchange: SignalView, flag: SignalView, *, zero_first: bool = True) -> None:
    """Whoever has passed the exchange finds everybody's flags at zero."""
    if zero_first:
        await zero(rank, flag)
    await barrier(rank, exchange, generation=rank.call + 1)
    if not zero_first:
        await zero(rank, flag)
    for peer in rank.peers:
        await rank.notify(flag.at(peer)[rank.id], 1, op=Set)
    for peer in rank.peers:
        await rank.wait(flag[peer] == 1)


buggy = fixed.variant(
    about="Zeroed after the exchange: a fast peer's signal is wiped out.",
    zero_first=False,
    finds=Expected("signal-race"),
)
