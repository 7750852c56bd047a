"""A collective that all its members have called, as the machine runs it.

The library that is played here keeps a workspace: windows that serve every collective of a group and
dtype whose pieces have about the same size, one after the other, and one signal a group. Pieces are
padded to a power of two, so that calls of different sizes meet in the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from asyncsim.collectives.all_reduce import two_phase_all_reduce
from asyncsim.collectives.all_to_all import all_to_all
from asyncsim.collectives.allgather import allgather
from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.broadcast import broadcast
from asyncsim.collectives.reduce_scatter import reduce_scatter
from asyncsim.frontends.torch_dist.call import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BARRIER, BROADCAST, REDUCE_SCATTER
from asyncsim.trace.declare import Signal, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.frontends.torch_dist.call import Call
    from asyncsim.frontends.torch_dist.team import Team
    from asyncsim.frontends.torch_dist.tensors import Array
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.declare import Declaration, Group
    from asyncsim.trace.world import SignalView, WindowView


class Workspace(NamedTuple):
    """The memory of one collective: where pieces are staged, where an all-reduce gathers them, who meets whom."""

    staged: WindowView
    gathered: WindowView
    signal: SignalView


@dataclass(slots=True, eq=False)
class Step:
    """One collective.

    Args:
        team: whose.
        calls: what each member called, by rank.

    """

    team: Team
    calls: Mapping[int, Call]
    results: dict[int, Array] = field(default_factory=dict)
    """What each member got, by rank; filled in when it was run."""

    @property
    def first(self) -> Call:
        """What one of the members called; in what the machine must know they all agree."""
        return next(iter(self.calls.values()))

    @property
    def size(self) -> int:
        """How long a piece in the windows is: the longest, made a power of two."""
        longest = max((piece.size for call in self.calls.values() for piece in call.sent), default=0)
        return 1 << (longest - 1).bit_length() if longest else 0

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of its two windows, and of its signal."""
        stem = f"{self.team.name}_{self.first.dtype.name}_{self.size}"
        return stem, f"{stem}_gathered", f"{self.team.name}_ready"

    def memory(self, group: Group | None) -> list[Declaration]:
        """Return the declarations of its memory, as a group's or the world's own."""
        staged, gathered, signal = self.names
        dtype = self.first.dtype
        return [
            Window(staged, ("P", self.size), dtype, group=group),
            Window(gathered, ("P", self.size), dtype, group=group),
            Signal(signal, ("P", 1), self_cleaning=True, group=group),
        ]

    def tile(self, rank: int) -> Array:
        """Return what a rank brings: shape (pieces, size), padded with zeros."""
        call = self.calls[rank]
        tile = np.zeros((len(call.sent), self.size), call.dtype)
        for row, piece in zip(tile, call.sent, strict=True):
            row[: piece.size] = piece
        return tile

    def received(self, rank: int, tile: Array) -> Array:
        """Return the pieces that a rank gets out of what the machine gave it, one after the other, unpadded.

        Args:
            rank: the member's number.
            tile: a row a piece, each padded to the longest.

        """
        lengths = self.calls[rank].lengths
        rows = [row[:length] for row, length in zip(tile, lengths, strict=True)]
        return np.concatenate(rows) if rows else tile.reshape(-1)[:0]


async def perform(rank: Rank, step: Step, tile: Array, memory: Workspace) -> Array:
    """Run one rank's part of a step.

    Args:
        rank: a member, with the numbers of its group.
        step: the collective.
        tile: what the rank brings, see `Step.tile`.
        memory: the workspace.

    Returns:
        What it gets, of shape (pieces, size).

    """
    got: Array = await _PERFORM[step.first.kind](rank, step.first, tile, memory)
    return got


async def _barrier(rank: Rank, call: Call, tile: Array, memory: Workspace) -> Array:  # noqa: ARG001 - all have this form
    await barrier(rank, memory.signal)
    await settle(rank, memory.signal, credits=1)
    return tile


async def _broadcast(rank: Rank, call: Call, tile: Array, memory: Workspace) -> Array:
    if rank.id == call.root:
        await rank.store(memory.staged[...], tile)
    await broadcast(rank, memory.staged, memory.signal, root=call.root, safe=True)
    return await rank.load(memory.staged[...])


async def _reduce_scatter(rank: Rank, call: Call, tile: Array, memory: Workspace) -> Array:
    await rank.store(memory.staged[...], tile)
    await reduce_scatter(rank, memory.staged, memory.signal, op=call.op, widen=True)
    return await rank.load(memory.staged[rank.id : rank.id + 1])


async def _all_reduce(rank: Rank, call: Call, tile: Array, memory: Workspace) -> Array:
    """In two phases: each element is reduced by one rank, so that all get the same bits."""
    await rank.store(memory.staged[...], tile)
    await two_phase_all_reduce(rank, memory.staged, memory.gathered, memory.signal, op=call.op, widen=True)
    return await rank.load(memory.gathered[...])


async def _all_gather(rank: Rank, call: Call, tile: Array, memory: Workspace) -> Array:  # noqa: ARG001 - as above
    await allgather(rank, tile[0], memory.staged, memory.signal, safe=True)
    return await rank.load(memory.staged[...])


async def _all_to_all(rank: Rank, call: Call, tile: Array, memory: Workspace) -> Array:  # noqa: ARG001 - as above
    await all_to_all(rank, tile, memory.staged, memory.signal, safe=True)
    return await rank.load(memory.staged[...])


_PERFORM: dict[str, Any] = {
    BARRIER: _barrier,
    BROADCAST: _broadcast,
    REDUCE_SCATTER: _reduce_scatter,
    ALL_REDUCE: _all_reduce,
    ALL_GATHER: _all_gather,
    ALL_TO_ALL: _all_to_all,
}
