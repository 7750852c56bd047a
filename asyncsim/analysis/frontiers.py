"""Frontiers: how far everybody else can get while one actor is held.

Hold actor a just before its i-th operation and let all others run as far as they can. Because
guards are monotone the result does not depend on the order: it is the greatest reachable position
vector with a held there. All frontiers of one actor come out of one pass in which it moves only
when nobody else can; a pass moves positions and counts credits, no more.

A landing that is held keeps from happening what needs it, and nothing else. So landings that the same operations need
share a frontier, and the first of these operations says where to begin: at the frontier of the task that issues it,
held there. From there the pass makes an excursion, with the landing held and everybody running.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from asyncsim.analysis.passes import Pass
from asyncsim.analysis.symmetry import is_rotation
from asyncsim.analysis.syncs import dependants_of, synchronising

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.passes import Cut, Held
    from asyncsim.analysis.streams import Place, Streams


class Frontiers:
    """All frontiers of a run.

    Memory: one vector, with a position for each task, for each operation that can enable another one, and for each
    set of operations that need a landing.
    """

    def __init__(self, streams: Streams, guards: Guards, edges: Edges, *, endless: bool = False) -> None:
        """Make one pass a task; `endless`: whoever comes to the end of its stream goes on adding without limit."""
        self.streams = streams
        self.edges = edges
        self._endless = endless
        self._dependants = dependants_of(streams, edges)
        self._syncs = synchronising(streams, guards, edges, self._dependants)
        self.rotated = is_rotation(streams, self._syncs)
        """Whether the ranks are rotations of one another: then the passes of the first speak for all."""
        self._starts: list[list[int]] = []
        self._vectors: list[list[list[int]]] = []
        for actor in range(1 if self.rotated else len(self._syncs)):
            starts, vectors = self._pass(actor).run()
            self._starts.append(starts)
            self._vectors.append(vectors)
        self._cuts: dict[Held, Cut] = {}
        self._signals = {sync.signal for own in self._syncs for sync in own}
        self._landings: list[list[Place]] = [[] for _ in self._syncs]
        """By task, the steps of what it issues that lands."""
        for wire in range(streams.tasks, len(streams.events)):
            task, _ = streams.issue((wire, 0))
            self._landings[task] += [(wire, step) for step in range(len(streams.events[wire]))]

    def reach(self, actor: int, index: int, other: int) -> int:
        """Return how far `other` can get, as a position in its stream, with `actor` held before `index`.

        Args:
            actor: the number of the actor that is held: of a task, or of a wire.
            index: of the operation that it is held before, in its stream.
            other: the number of another actor, or of the same.

        """
        if other == actor:
            return index
        tasks = len(self._syncs)
        if other >= tasks:
            return self._reach_of_wire(actor, index, other)
        if actor >= tasks:
            return self._cut((actor, index))[0][other]
        if self.rotated:
            actor, other = 0, (other - actor) % tasks
        at = bisect_right(self._starts[actor], index) - 1
        return self._vectors[actor][at][other]

    def _pass(self, held: int) -> Pass:
        return Pass(self.streams, self._syncs, self._dependants, held, endless=self._endless)

    def _reach_of_wire(self, actor: int, index: int, wire: int) -> int:
        """Return how far a wire gets: to its end once it is issued, unless it needs the landing that is held."""
        issuer, issue = self.streams.issue((wire, 0))
        if self.reach(actor, index, issuer) <= issue:
            return 0
        steps = len(self.streams.events[wire])
        if actor < len(self._syncs):
            return steps
        _, missing = self._cut((actor, index))
        return next((step for step in range(steps) if (wire, step) in missing), steps)

    def prepare(self, landings: Iterable[Place]) -> None:
        """Make the cuts of landings that are going to be held: those of one task in one pass."""
        begins: dict[int, dict[Held, int]] = defaultdict(dict)
        for place in landings:
            held = self._held_with(place)
            if held not in self._cuts:
                task, _ = self.streams.issue(place)
                begin = self._begin(place, held)
                begins[task][held] = min(begin, begins[task].get(held, begin))
        for task, of_task in begins.items():
            self._cuts |= self._pass(task).cuts(of_task)

    def _cut(self, place: Place) -> Cut:
        """Return the cut of a landing that is held; the first time, make those of all like it of the same task."""
        held = self._held_with(place)
        if held not in self._cuts:
            task, _ = self.streams.issue(place)
            is_signal = place in self._signals
            alike = (other for other in self._landings[task] if (other in self._signals) == is_signal)
            self.prepare((place, *alike))  # it may be what comes after the end of a wire
        return self._cuts[held]

    def _held_with(self, place: Place) -> Held:
        """Return what does not happen while a landing is held: itself if it changes a cell, else what needs it."""
        return (place,) if place in self._signals else tuple(self._dependants.get(place, ()))

    def _begin(self, landing: Place, held: Held) -> int:
        """Return before which operation of its task an excursion can begin: nothing that is held was issued by then."""
        task, index = self.streams.issue(landing)
        issues = [self.streams.issue(place) for place in held]
        if any(issuer != task for issuer, _ in issues):
            return index
        return min((at for _, at in issues), default=len(self.streams.events[task]))
