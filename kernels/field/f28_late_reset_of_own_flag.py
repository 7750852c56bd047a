"""F28: a rank's reset of its own flag lands after its peer has raised that flag again.

Two sets of flags are used in turn. Each call first resets the set of the next one, then signals in
its own. The reset is a write to memory too: a peer that has seen the signal goes on to the next
call, and if the signal overtook the reset, so may the peer's next signal. The fix makes the signal a
release.

Source: vllm#8404.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from asyncsim import Expected, Set, Signal, kernel

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView

flag = Signal("flag", (2, "P"))  # [set, p]: rank p has come


@kernel(memory=[flag])
async def fixed(rank: Rank, flag: SignalView, *, order: Literal["release", "relaxed"] = "release") -> None:
    """A barrier on two sets of flags: the signal lands after the reset."""
    now = rank.call % 2
    for peer in rank.peers:
        await rank.notify(flag[1 - now, peer], 0, op=Set, order="relaxed")
    for peer in rank.peers:
        await rank.notify(flag.at(peer)[now, rank.id], 1, op=Set, order=order)
    for peer in rank.peers:
        await rank.wait(flag[now, peer] == 1)


buggy = fixed.variant(
    about="The signal is relaxed: the reset may still be under way when the peer signals again.",
    order="relaxed",
    finds=Expected("signal-race"),
)
