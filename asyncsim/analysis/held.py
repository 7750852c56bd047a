"""Runs in which some updates are held for ever, and everybody else gets as far as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.passes import NOBODY, Excursion, Pass
from asyncsim.analysis.syncs import dependants_of, synchronising

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from asyncsim.analysis.frontiers import Frontiers
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.analysis.syncs import Sync


MOST_KEPT = 256
"""So many runs are kept, each as large as a few numbers an operation."""


class HeldRuns:
    """The runs of one program; those that were asked for lately are not made again.

    Args:
        streams: with late updates.
        order: of all schedules of these.
        guards: that it rests on.

    """

    def __init__(self, streams: Streams, order: Frontiers, guards: Guards) -> None:
        """Make no run yet."""
        dependants = dependants_of(streams, order.edges)
        syncs = synchronising(streams, guards, order.edges, dependants)
        self._landings = {streams.issue((wire, 0)): (wire, 0) for wire in range(streams.tasks, len(streams.events))}
        for own in syncs:
            for sync in own:
                sync.stops = sync.stops or sync.place not in self._landings  # any of them may be held
        self._start = Pass(streams, syncs, dependants, NOBODY)
        self._made: dict[frozenset[Place], HeldRun] = {}
        self._going: dict[Hashable, HeldRun] = {}

    def without(self, updates: Iterable[Place]) -> HeldRun:
        """Return the run in which these are held: an update that may land late does not land, any other is not done.

        Args:
            updates: operations of tasks.

        """
        held = frozenset(self._steps(updates))
        if held not in self._made:
            if len(self._made) == MOST_KEPT:
                self._made.clear()
            self._made[held] = HeldRun(self._start, held, self._landings)
        return self._made[held]

    def going_on(self, purpose: Hashable, updates: Iterable[Place]) -> HeldRun:
        """Return a run in which these are held: where it can be, the last one for this purpose goes on.

        Args:
            purpose: what it is for; runs for one purpose mostly have fewer updates to hold, one after the other.
            updates: operations of tasks.

        """
        held = frozenset(self._steps(updates))
        if not held:
            return self.without(())
        run = self._going.pop(purpose, None)
        if run is None or not held <= run.held:
            run = HeldRun(self._start, held, self._landings)
        elif held != run.held:
            run.hold_only(held)
        if len(self._going) == MOST_KEPT:
            del self._going[next(iter(self._going))]
        self._going[purpose] = run
        return run

    def _steps(self, updates: Iterable[Place]) -> Iterator[Place]:
        return (self._landings.get(update, update) for update in updates)


class HeldRun(Excursion):
    """A run from the start in which some updates are held."""

    def __init__(self, start: Pass, held: frozenset[Place], landings: dict[Place, Place]) -> None:
        """Let everybody run."""
        super().__init__(start, tuple(held))
        self.held = held
        self._late = landings
        self._unlanded: list[Sync] = []
        """What was issued, and has an update that is held or needs one that is."""
        self._let_run(list(range(len(self._at))))

    def hold_only(self, held: frozenset[Place]) -> None:
        """Hold no more than these, some of those that are held, and let everybody go on.

        The run is then as if only these had been held from the start, since what can happen stays possible whatever
        else happens: so one run serves all sources of an actor, each of which has fewer updates to hold.

        Args:
            held: steps.

        """
        self.held = held
        before, self._missing = self._missing, set(held)
        issued, self._unlanded = self._unlanded, []
        work = [actor for sync in issued for actor in self._apply(sync)]
        for actor, (own, at) in enumerate(zip(self._syncs, self._at, strict=True)):
            if at < len(own) and own[at].place in before and own[at].place not in self._missing:
                work.append(actor)
        self._let_run(work)

    def _apply(self, sync: Sync) -> list[int]:
        if sync.signal in self._missing:
            self._unlanded.append(sync)
        return super()._apply(sync)

    def is_open(self, epoch: int) -> bool:
        """Say whether an epoch has begun."""
        return self._open[epoch]

    def has_done(self, place: Place) -> bool:
        """Say whether a task has done an operation."""
        return self._position(place[0]) > place[1]

    def has_landed(self, update: Place) -> bool:
        """Say whether an update of a task has taken effect."""
        return self.has_done(update) and self._late.get(update) not in self._missing
