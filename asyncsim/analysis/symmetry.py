"""Symmetry: where every rank does what its left neighbour does, one rank's frontiers are everybody's.

A ring, or a kernel that takes its peers as ``(rank.id + k) % rank.size``, does not change when all ranks
are renumbered by one. Then to hold rank a + 1 lets rank b + 1 come exactly as far as to hold a lets b, and
one pass does for all. It is looked for only in what a pass sees: the operations that can block or be
blocked, with their cells and their guards; and it must fit operation by operation, cell by cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.analysis.streams import Streams
    from asyncsim.analysis.syncs import Sync

_Renaming = dict[int, int]


def is_rotation(streams: Streams, syncs: Sequence[Sequence[Sync]]) -> bool:
    """Say whether renumbering each actor a as a + 1, the last one as the first, changes nothing.

    Args:
        streams: the run; its actors must be ranks.
        syncs: of each actor, the operations that a pass looks at.

    """
    actors = len(syncs)
    if actors < 2 or any(actor.wire or actor.depth for actor in streams.actors):  # noqa: PLR2004 - one has no neighbour
        return False
    if any(sync.combine for own in syncs for sync in own):
        return False  # what their cells begin with would have to be alike, too
    slots: _Renaming = {}
    epochs: _Renaming = {}
    for actor, own in enumerate(syncs):
        follower = (actor + 1) % actors
        if len(streams.events[actor]) != len(streams.events[follower]) or len(own) != len(syncs[follower]):
            return False
        if not all(
            _alike(sync, other, actors, (slots, epochs)) for sync, other in zip(own, syncs[follower], strict=True)
        ):
            return False
    first = {history.epochs[0].number for history in streams.histories.values()}
    opens_alike = all((epoch in first) == (other in first) for epoch, other in epochs.items())
    return opens_alike and all(len(set(renamed.values())) == len(renamed) for renamed in (slots, epochs))


def _alike(sync: Sync, other: Sync, actors: int, renamings: tuple[_Renaming, _Renaming]) -> bool:
    """Say whether two operations are the same but for names, and those fit the names met so far."""
    slots, epochs = renamings
    plain = (sync.place[1], sync.credits, sync.opens, sync.guard is None)
    if plain != (other.place[1], other.credits, other.opens, other.guard is None):
        return False
    if [((actor + 1) % actors, index) for actor, index in sync.needs] != list(other.needs):
        return False
    same = slots.setdefault(sync.slot, other.slot) == other.slot
    return same and all(epochs.setdefault(a, b) == b for a, b in _paired_epochs(sync, other))


def _paired_epochs(sync: Sync, other: Sync) -> Iterator[tuple[int, int]]:
    """Yield the epochs of two operations, side by side; a pair that cannot fit where their goals differ."""
    yield sync.epoch, other.epoch
    goals, others = sync.guard or (), other.guard or ()
    alike = [goal for _, goal in goals] == [goal for _, goal in others]
    yield from zip((epoch for epoch, _ in goals), (epoch for epoch, _ in others), strict=True) if alike else [(-1, -2)]
