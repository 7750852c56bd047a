"""Runs in which some updates are held for ever, and everybody else gets as far as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.passes import NOBODY, Excursion, Pass
from asyncsim.analysis.syncs import dependants_of, synchronising

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.analysis.frontiers import Frontiers
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.passes import Held
    from asyncsim.analysis.streams import Place, Streams


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

    def without(self, updates: Iterable[Place]) -> HeldRun:
        """Return the run in which these are held: an update that may land late does not land, any other is not done.

        Args:
            updates: operations of tasks.

        """
        held = frozenset(self._landings.get(update, update) for update in updates)
        if held not in self._made:
            if len(self._made) == MOST_KEPT:
                self._made.clear()
            self._made[held] = HeldRun(self._start, tuple(held), self._landings)
        return self._made[held]


class HeldRun(Excursion):
    """A run from the start in which some updates are held."""

    def __init__(self, start: Pass, held: Held, landings: dict[Place, Place]) -> None:
        """Let everybody run."""
        super().__init__(start, held)
        self._late = landings
        self._let_run(list(range(len(self._at))))

    def is_open(self, epoch: int) -> bool:
        """Say whether an epoch has begun."""
        return self._open[epoch]

    def has_done(self, place: Place) -> bool:
        """Say whether a task has done an operation."""
        return self._position(place[0]) > place[1]

    def has_landed(self, update: Place) -> bool:
        """Say whether an update of a task has taken effect."""
        return self.has_done(update) and self._late.get(update) not in self._missing
