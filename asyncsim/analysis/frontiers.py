"""Frontiers: how far everybody else can get while one actor is held.

Hold actor a just before its i-th operation and let all others run as far as they can. Because
guards are monotone the result does not depend on the order: it is the greatest reachable position
vector with a held there. All frontiers of one actor come out of one pass in which it moves only
when nobody else can; a pass moves positions and counts credits, no more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from asyncsim.analysis.symmetry import is_rotation
from asyncsim.analysis.syncs import synchronising

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.streams import Streams
    from asyncsim.analysis.syncs import Sync


_WITHOUT_LIMIT = 1 << 80
"""More than any cell can hold, or any wait compare with."""


class Frontiers:
    """All frontiers of a run.

    Memory: one vector, with a position for each actor, for each operation that can enable another one.
    """

    def __init__(self, streams: Streams, guards: Guards, edges: Edges, *, endless: bool = False) -> None:
        """Make one pass an actor; `endless`: whoever comes to the end of its stream goes on adding without limit."""
        self.streams = streams
        self.endless = endless
        self.lengths = [len(stream) for stream in streams.events]
        self.syncs = synchronising(streams, guards, edges)
        self.rotated = is_rotation(streams, self.syncs)
        """Whether the ranks are rotations of one another: then the passes of the first speak for all."""
        self._starts: list[list[int]] = []
        self._vectors: list[list[list[int]]] = []
        for actor in range(1 if self.rotated else len(self.syncs)):
            starts, vectors = _Pass(self, actor).run()
            self._starts.append(starts)
            self._vectors.append(vectors)

    def reach(self, actor: int, index: int, other: int) -> int:
        """Return how far `other` can get, as a position in its stream, with `actor` held before `index`."""
        if other == actor:
            return index
        if self.rotated:
            actor, other = 0, (other - actor) % len(self.syncs)
        at = bisect_right(self._starts[actor], index) - 1
        return self._vectors[actor][at][other]


class _Pass:
    """One pass: everybody runs as far as possible, and the held actor moves only when nobody else can."""

    def __init__(self, frontiers: Frontiers, held: int) -> None:
        streams = frontiers.streams
        self._held = held
        self._syncs = frontiers.syncs
        self._lengths = frontiers.lengths
        self._at = [0] * len(self._syncs)
        epochs = sum(len(history.epochs) for history in streams.histories.values())
        self._credits = [0] * epochs
        self._own: dict[tuple[int, int], int] = defaultdict(int)
        self._open = [False] * epochs
        for history in streams.histories.values():
            self._open[history.epochs[0].number] = True
        self._parked: dict[int, list[int]] = {}
        self._following: dict[int, list[int]] = {}
        self._late = streams.model.late
        self._endless = frontiers.endless

    def run(self) -> tuple[list[int], list[list[int]]]:
        """Return from which position of the held actor on each vector holds, and the vectors."""
        held = self._held
        self._let_run([actor for actor in range(len(self._syncs)) if actor != held])
        starts, vectors = [0], [self._positions()]
        for sync in self._syncs[held]:
            if not self._may_pass(sync):
                break
            self._at[held] += 1
            woken = self._apply(sync) + self._following.pop(held, [])
            if sync.guard is None or woken:
                self._let_run(woken)
                starts.append(sync.index + 1)
                vectors.append(self._positions())
        return starts, vectors

    def _let_run(self, work: list[int]) -> None:
        syncs, at, held = self._syncs, self._at, self._held
        while work:
            actor = work.pop()
            if actor == held:
                continue
            own = syncs[actor]
            before = at[actor]
            while at[actor] < len(own):
                sync = own[at[actor]]
                if not self._may_pass(sync):
                    self._park(actor, sync)
                    break
                at[actor] += 1
                work += self._apply(sync)
            if at[actor] > before and actor in self._following:
                work += self._following.pop(actor)
            if self._endless and at[actor] == len(own):
                work += self._add_without_limit(own)

    def _add_without_limit(self, own: list[Sync]) -> list[int]:
        """Give every cell that these operations add to more credits than anybody can wait for."""
        woken: list[int] = []
        for sync in own:
            if sync.credits and self._credits[sync.epoch] < _WITHOUT_LIMIT:
                self._credits[sync.epoch] += _WITHOUT_LIMIT
                woken += self._parked.pop(sync.slot, [])
        return woken

    def _may_pass(self, sync: Sync) -> bool:
        for actor, index in sync.needs:
            if self._position(actor) <= index:
                return False
        if sync.guard is None:
            return True
        for epoch, goal in sync.guard:
            come = self._credits[epoch] - (0 if goal.without is None else self._own[goal.without, epoch])
            if (goal.is_open or self._open[epoch]) and come >= goal.credits:
                return True
        return False

    def _park(self, actor: int, sync: Sync) -> None:
        """Look again when what is missing may have come."""
        for other, index in sync.needs:
            if self._position(other) <= index:
                self._following.setdefault(other, []).append(actor)
                return
        self._parked.setdefault(sync.slot, []).append(actor)

    def _apply(self, sync: Sync) -> list[int]:
        """Let an operation take effect; return who may be able to go on by it."""
        if sync.opens:
            self._open[sync.epoch] = True
        elif sync.credits:
            self._credits[sync.epoch] += sync.credits
            if self._late:
                self._own[sync.owner, sync.epoch] += sync.credits
        else:
            return []
        return self._parked.pop(sync.slot, [])

    def _position(self, actor: int) -> int:
        own, at = self._syncs[actor], self._at[actor]
        return own[at].index if at < len(own) else self._lengths[actor]

    def _positions(self) -> list[int]:
        return [self._position(actor) for actor in range(len(self._syncs))]
