"""Frontiers: how far everybody else can get while one actor is held.

Hold actor a just before its i-th operation and let all others run as far as they can. Because
guards are monotone the result does not depend on the order: it is the greatest reachable position
vector with a held there. All frontiers of one actor come out of one pass in which it moves only
when nobody else can; a pass moves positions and counts credits, no more.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from asyncsim.trace.op import NOTIFY, SET, WAIT

if TYPE_CHECKING:
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.streams import Streams

_Guard = tuple[tuple[int, int], ...]
_Sync = tuple[int, int, _Guard | None, int, int]
"""(index, slot, guard of a wait or None, epoch, credits); a Set has -1 credits: it opens its epoch."""


class Frontiers:
    """All frontiers of a run.

    Memory: one vector of P integers for each operation of an actor that can enable another one.
    """

    def __init__(self, streams: Streams, guards: Guards) -> None:
        """Make one pass an actor."""
        self._streams = streams
        self._lengths = [len(stream) for stream in streams.events]
        self._epochs = sum(len(history.epochs) for history in streams.histories.values())
        self._open_at_start = [
            history.epochs[0].number for history in streams.histories.values()
        ]
        self._syncs = self._synchronising(guards)
        self._starts: list[list[int]] = []
        self._vectors: list[list[list[int]]] = []
        for actor in range(len(self._syncs)):
            starts, vectors = self._starve(actor)
            self._starts.append(starts)
            self._vectors.append(vectors)

    def reach(self, actor: int, index: int, other: int) -> int:
        """Return how far `other` can get, as a position in its stream, with `actor` held before `index`."""
        if other == actor:
            return index
        at = bisect_right(self._starts[actor], index) - 1
        return self._vectors[actor][at][other]

    def _synchronising(self, guards: Guards) -> list[list[_Sync]]:
        """Return of each actor what can block it or enable others; everything else never stops."""
        epoch_of = {
            place: epoch for history in self._streams.histories.values() for place, _, epoch in history.adds
        }
        opened = {
            epoch.opener: epoch.number
            for history in self._streams.histories.values()
            for epoch in history.epochs
            if epoch.opener is not None
        }
        syncs: list[list[_Sync]] = []
        for actor, stream in enumerate(self._streams.events):
            own: list[_Sync] = []
            for index, event in enumerate(stream):
                op = event.op
                if op.cell is None:
                    continue
                slot = op.cell.slot
                if op.kind == WAIT:
                    own.append((index, slot, tuple(guards.goals[actor, index].items()), -1, 0))
                elif op.kind == NOTIFY and op.how == SET:
                    own.append((index, slot, None, opened[actor, index], -1))
                elif op.kind == NOTIFY and op.amount > 0:
                    own.append((index, slot, None, epoch_of[actor, index], op.amount))
            syncs.append(own)
        return syncs

    def _starve(self, held: int) -> tuple[list[int], list[list[int]]]:
        syncs = self._syncs
        credits = [0] * self._epochs
        is_open = [False] * self._epochs
        for epoch in self._open_at_start:
            is_open[epoch] = True
        at = [0] * len(syncs)
        parked: dict[int, list[int]] = {}

        def can_pass(guard: _Guard) -> bool:
            return any(is_open[epoch] and credits[epoch] >= goal for epoch, goal in guard)

        def apply(slot: int, epoch: int, amount: int) -> list[int]:
            if amount < 0:
                is_open[epoch] = True
            else:
                credits[epoch] += amount
            return parked.pop(slot, [])

        def run(work: list[int]) -> None:
            while work:
                actor = work.pop()
                own = syncs[actor]
                while at[actor] < len(own):
                    _, slot, guard, epoch, amount = own[at[actor]]
                    if guard is None:
                        work += apply(slot, epoch, amount)
                    elif not can_pass(guard):
                        parked.setdefault(slot, []).append(actor)
                        break
                    at[actor] += 1

        def positions() -> list[int]:
            return [
                own[at[actor]][0] if at[actor] < len(own) else self._lengths[actor]
                for actor, own in enumerate(syncs)
            ]

        run([actor for actor in range(len(syncs)) if actor != held])
        starts, vectors = [0], [positions()]
        for index, slot, guard, epoch, amount in syncs[held]:
            if guard is not None:
                if not can_pass(guard):
                    break
                continue
            run(apply(slot, epoch, amount))
            starts.append(index + 1)
            vectors.append(positions())
        return starts, vectors
