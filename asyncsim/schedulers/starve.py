"""The slow rank: it runs only when nobody else can; the others take turns.

In most synchronisation bugs of collectives one rank is late and all others go on as far as they
get, often into the next call. This schedule makes a chosen rank the late one.
Source: the held actor of a frontier (see the analysis), made a schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked
from asyncsim.schedulers.turns import next_after
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Starve:
    """Everybody but one rank, as long as there is anybody.

    Args:
        rank: who has to wait, with all its actors.

    """

    __slots__ = ("_last", "_rank")

    def __init__(self, rank: int) -> None:
        self._rank = checked("starve", "rank", rank)
        self._last = -1

    def __str__(self) -> str:
        return f"starve:rank={self._rank}"

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run."""
        if all(actor.rank != self._rank for actor in actors):
            last = max(actor.rank for actor in actors)
            raise MisuseError(f"starve: there is no rank {self._rank}; the ranks are 0 to {last}")
        self._last = -1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the next operation of another rank, if there is one."""
        others = [op for op in ready if op.actor.rank != self._rank]
        op = next_after(others or ready, self._last)
        self._last = op.actor.order
        return op
