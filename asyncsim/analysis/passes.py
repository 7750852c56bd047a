"""A pass: all frontiers of one task at once, and from them those of what it issues that lands.

Everybody runs as far as possible, and the held task moves only when nobody else can. A landing that is held is an
excursion from there: the task is let go, and what needs the landing is held instead, for ever.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from asyncsim.trace.cells import APPLY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.guards import Goal
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.analysis.syncs import Dependants, Sync

_WITHOUT_LIMIT = 1 << 80
"""More than any cell can hold, or any wait compare with."""

NOBODY = -1

Held = tuple["Place", ...]
"""What does not happen while some landing is held, or what keeps it from happening: its own, or what needs it."""

Cut = tuple[list[int], set["Place"]]
"""How far the tasks get while a landing is held, and what then does not land, or is not done, though it is issued."""


class Pass:
    """One pass: everybody runs as far as possible, and the held task moves only when nobody else can."""

    def __init__(
        self, streams: Streams, syncs: list[list[Sync]], dependants: Dependants, held: int, *, endless: bool = False
    ) -> None:
        """Let nobody move yet.

        Args:
            streams: the run.
            syncs: by task, what can be blocked or let others go on.
            dependants: of each landing, what needs it.
            held: the task that moves only when nobody else can.
            endless: whoever comes to the end of its stream goes on adding without limit.

        """
        self._held = held
        self._syncs = syncs
        self._dependants = dependants
        self._lengths = [len(stream) for stream in streams.events[: streams.tasks]]
        self._at = [0] * len(self._syncs)
        epochs = sum(len(history.epochs) for history in streams.histories.values())
        self._credits = [0] * epochs
        self._debits = [0] * epochs
        """What has been taken away, for waits that are read downwards."""
        self._values = [0] * epochs
        """What a cell has come to where its updates are no sums."""
        self._own: dict[tuple[int, int, bool], int] = defaultdict(int)
        self._open = [False] * epochs
        for history in streams.histories.values():
            self._open[history.epochs[0].number] = True
            for epoch in history.epochs:
                self._values[epoch.number] = epoch.base
        self._parked: dict[int, list[int]] = {}
        self._following: dict[int, list[int]] = {}
        self._forwarded = streams.model.late and streams.model.forwarding
        self._endless = endless

    def run(self) -> tuple[list[int], list[list[int]]]:
        """Return from which position of the held task on each vector holds, and the vectors."""
        starts, vectors = [], []
        for since, _, moved in self._walk():
            if moved:
                starts.append(since)
                vectors.append(self._positions())
        return starts, vectors

    def cuts(self, begins: dict[Held, int]) -> dict[Held, Cut]:
        """Return the cuts of landings that the held task issues, by where their excursions begin."""
        found: dict[Held, Cut] = {}
        left = sorted(begins, key=begins.__getitem__, reverse=True)
        for _, until, _ in self._walk():
            while left and begins[left[-1]] <= until:
                held = left.pop()
                found[held] = Excursion(self, held).cut()
        return found

    def _walk(self) -> Iterator[tuple[int, int, bool]]:
        """Hold the task before each operation in turn; yield from where to where that is alike, and if others moved."""
        held = self._held
        self._let_run([actor for actor in range(len(self._syncs)) if actor != held])
        since, moved = 0, True
        for sync in self._syncs[held]:
            if sync.stops and not self._may_pass(sync):
                break
            yield since, sync.place[1], moved
            self._at[held] += 1
            woken = self._following.pop(held, [])
            if sync.changes:
                woken += self._apply(sync)
            since, moved = sync.place[1] + 1, bool(woken)
            self._let_run(woken)
        yield since, self._lengths[held], moved

    def _let_run(self, work: list[int]) -> None:
        while work:
            actor = work.pop()
            if actor == self._held:
                continue
            own = self._syncs[actor]
            before = at = self._at[actor]
            while at < len(own):
                sync = own[at]
                if sync.stops and not self._may_pass(sync):
                    self._park(actor, sync)
                    break
                at += 1
                if sync.changes:
                    work += self._apply(sync)
            self._at[actor] = at
            if at > before and actor in self._following:
                work += self._following.pop(actor)
            if self._endless and at == len(own):
                work += self._add_without_limit(own)

    def _add_without_limit(self, own: list[Sync]) -> list[int]:
        """Give every cell that these operations add to more credits than anybody can wait for."""
        woken: list[int] = []
        for sync in own:
            come = self._credits if sync.credits > 0 else self._debits
            if sync.credits and come[sync.epoch] < _WITHOUT_LIMIT:
                come[sync.epoch] += _WITHOUT_LIMIT
                woken += self._parked.pop(sync.slot, [])
        return woken

    def _may_pass(self, sync: Sync) -> bool:
        for actor, index in sync.needs:
            if self._position(actor) <= index:
                return False
        if sync.guard is None:
            return True
        return any(self.is_met(epoch, goal) for epoch, goal in sync.guard)

    def is_met(self, epoch: int, goal: Goal) -> bool:
        """Say whether a goal of a wait has come about by now.

        Args:
            epoch: the number of the epoch that it is a goal in.
            goal: what lets the wait pass there.

        """
        come = self._debits[epoch] if goal.down else self._credits[epoch]
        if goal.without is not None:
            come -= self._own[goal.without, epoch, goal.down]
        is_there = come >= goal.credits and (goal.is_open or self._open[epoch])
        return is_there and (goal.reached is None or goal.reached.holds(self._values[epoch]))

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
        if sync.combine:
            self._values[sync.epoch] = APPLY[sync.combine](self._values[sync.epoch], sync.credits)
        elif sync.credits:
            down = sync.credits < 0
            come = self._debits if down else self._credits
            come[sync.epoch] += abs(sync.credits)
            if self._forwarded and not sync.queued:
                self._own[sync.place[0], sync.epoch, down] += abs(sync.credits)
        elif not sync.opens:
            return []
        return self._parked.pop(sync.slot, [])

    def _position(self, actor: int) -> int:
        own, at = self._syncs[actor], self._at[actor]
        return own[at].place[1] if at < len(own) else self._lengths[actor]

    def _positions(self) -> list[int]:
        return [self._position(actor) for actor in range(len(self._syncs))]


class Excursion(Pass):
    """What a pass becomes when its actor is let go and something else is held for ever: landings, or what needs one."""

    def __init__(self, start: Pass, held: Held) -> None:
        """Begin where the pass is; it stays there."""
        vars(self).update(vars(start))
        self._released, self._held = self._held, NOBODY
        self._at, self._open = self._at.copy(), self._open.copy()
        self._credits, self._debits, self._own = self._credits.copy(), self._debits.copy(), self._own.copy()
        self._values = self._values.copy()
        self._parked = {slot: actors.copy() for slot, actors in self._parked.items()}
        self._following = {actor: actors.copy() for actor, actors in self._following.items()}
        self._missing = set(held)

    def cut(self) -> Cut:
        """Return how far all get, and what is missing then."""
        self._let_run([self._released])
        return self._positions(), self._missing

    def _may_pass(self, sync: Sync) -> bool:
        return sync.place not in self._missing and super()._may_pass(sync)

    def _apply(self, sync: Sync) -> list[int]:
        for step in sync.landings:
            if step in self._missing:
                self._missing.update(self._dependants[step])
        return [] if sync.signal in self._missing else super()._apply(sync)
