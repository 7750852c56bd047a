"""What is surely known under ``gpu``: which operations happen before which in every execution.

Happens-before is the order of each actor, and from a release to an acquire that sees what it wrote, or what updates
that read made of it, where the scopes of both include each other. An operation x is *surely known* from that acquire
of another actor on which cannot do without: if all updates that would tell of x are held, it still waits.

Places of an actor are counted in half steps: operation i at 2i, its release at 2i + 1, and at 2i - 1 what starting,
joining and meeting make known before it. For a source x let u[b] be the first place from which b surely knows x, at
first b's first acquire. An acquire is *clean* of x if what it sees can come about while all those updates of its
cell are held that are released at or after u of their actors; then u[b] is the next one. The least fixpoint is what
is reported; no order that it gives is missing in any execution.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING

from asyncsim.analysis.held import HeldRuns
from asyncsim.analysis.late_updates import PURE, RELEASING
from asyncsim.analysis.precede import may_be_current
from asyncsim.analysis.streams import ALWAYS
from asyncsim.trace.cells import SET
from asyncsim.trace.kinds import ACQ_REL, ACQUIRE, FENCING, LINKING, SC
from asyncsim.trace.op import change_by, include, order_of, scope_of

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.frontiers import Frontiers
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.held import HeldRun
    from asyncsim.analysis.streams import Epoch, History, Place, Streams, Wait

ACQUIRING = (ACQUIRE, ACQ_REL, SC)
Spot = tuple[float, str]
"""A release: its place in half steps, and its scope."""


@dataclass(frozen=True, slots=True)
class Acquire:
    """Where an actor may come to know what others did.

    Args:
        at: in half steps.
        scope: of the operation or fence that acquires.
        seen: the operation that sees a cell; None: it starts, joins or meets others.
        sources: whose operations it then comes after, whatever they see.

    """

    at: float
    scope: str = ""
    seen: Wait | None = None
    sources: tuple[Place, ...] = ()


class Known:
    """What is surely known of each operation, where.

    Args:
        streams: of the run, with late updates.
        order: of all schedules of these.
        guards: that it rests on.

    """

    def __init__(self, streams: Streams, order: Frontiers, guards: Guards) -> None:
        """Find the releases and acquires; nothing is held yet."""
        self._streams = streams
        self._order = order
        self._runs = HeldRuns(streams, order, guards)
        self._goals = guards.goals
        tasks = range(streams.tasks)
        self._releases: dict[Place, list[Spot]] = {}
        """Of each update, where what it tells was released."""
        self._acquires: list[list[Acquire]] = [[] for _ in tasks]
        self._told: list[list[float]] = [[] for _ in tasks]
        """Of each actor, all places at which it may tell others what it knows, in order."""
        sources = [source for place, needs in order.edges.items() if place[0] < streams.tasks for source in needs]
        for task in tasks:
            self._find_spots(task)
        for actor, index in sources:
            if actor < streams.tasks:
                self._told[actor].append(2 * index + 1)
        self._told = [sorted(set(places)) for places in self._told]
        self._epochs: dict[int, tuple[History, int]] = {
            epoch.number: (history, n)
            for history in streams.histories.values()
            for n, epoch in enumerate(history.epochs)
        }
        self._chains: dict[int, list[Place]] = {}
        self._broken: dict[tuple[Place, int], bool] = {}
        self._last_told = {update: max(at for at, _ in spots) for update, spots in self._releases.items() if spots}
        self._known: list[dict[int, tuple[list[float], list[int]]]] = [{} for _ in tasks]
        """Of each actor, by how many of its places to tell come before a source."""
        self._needed: dict[Place, tuple[Place | None, list[Wait]]] = {}

    @property
    def edges(self) -> Edges:
        """What operations need beside program order and credits."""
        return self._order.edges

    def reach(self, actor: int, index: int, other: int) -> int:
        """Return how far `other` can be, as a position in its stream, without knowing of an operation of `actor`.

        With this the order is one as those of `precede`: what it says to be first happens before, in every execution.

        Args:
            actor: the number of a task.
            index: of the operation, in its stream.
            other: the number of another task, or of the same.

        """
        if other == actor:
            return index
        first = self._first_known((actor, index))[other]
        return len(self._streams.events[other]) if first == inf else ceil(first / 2)

    def precedes_reaching(self, x: Place, y: Place) -> bool:
        """Say whether x happens before all that y can see, in every execution; what y acquires does not count.

        Args:
            x: an operation of a task.
            y: another one.

        """
        return x[1] < y[1] if x[0] == y[0] else 2 * y[1] > self._first_known(x)[y[0]]

    def needs(self, wait: Wait, update: Place) -> bool:
        """Say whether a wait can pass in no state without an update.

        Args:
            wait: of a cell.
            update: of the same cell, as the operation of a task.

        """
        run = self._runs.without([update])
        return not any(run.is_met(epoch, goal) for epoch, goal in self._goals[wait.place].items())

    def releases(self, update: Place) -> list[Spot]:
        """Return where what an update tells was released: at itself, and at release fences before it."""
        return self._releases.get(update, [])

    def acquires(self, actor: int) -> list[Acquire]:
        """Return where an actor may come to know something, in its order."""
        return self._acquires[actor]

    # Where actors release and acquire.

    def _find_spots(self, task: int) -> None:
        fences: list[Spot] = []
        unfenced: list[Wait] = []
        waits = self._waits_of(task)
        found = self._acquires[task]
        for index, event in enumerate(self._streams.events[task]):
            op, place = event.op, (task, index)
            order, scope = order_of(op), scope_of(op)
            if needs := self._linked(place):
                found.append(Acquire(2 * index - 1, sources=needs))
            if op.kind in FENCING:
                if order in ACQUIRING:
                    found += (Acquire(2 * index, scope, seen) for seen in unfenced)
                if order in RELEASING:
                    fences.append((2 * index + 1, scope))
            elif op.cell is not None:
                if (seen := waits.get(index)) is not None:
                    if order in ACQUIRING:
                        found.append(Acquire(2 * index, scope, seen))
                    unfenced.append(seen)
                if change_by(op) is not None:
                    own: list[Spot] = [(2 * index + 1, scope)] if order in RELEASING else []
                    self._releases[place] = fences + own
                    self._told[task] += (at for at, _ in self._releases[place])

    def _waits_of(self, task: int) -> dict[int, Wait]:
        return {
            wait.place[1]: wait
            for history in self._streams.histories.values()
            for wait in (*history.waits, *history.tests)
            if wait.place[0] == task
        }

    def _linked(self, place: Place) -> tuple[Place, ...]:
        """Return whose operations come before one that starts, joins or meets; or before the first of a stream."""
        if place[1] and self._streams.event(place).op.kind not in LINKING:
            return ()
        needs = self._order.edges.get(place, ())
        return tuple(source for source in needs if source[0] < self._streams.tasks and source != place)

    # What is known of one source.

    def _first_known(self, x: Place) -> list[float]:
        actor, index = x
        segment = bisect_right(self._told[actor], 2 * index)
        known = self._known[actor]
        if segment not in known:
            # What is clean of an operation is clean of all later ones of its actor: begin there.
            begin = max((each for each in known if each < segment), default=None)
            passed = [0] * len(self._acquires) if begin is None else known[begin][1]
            known[segment] = self._fixpoint(actor, 2 * index, list(passed))
        return known[segment][0]

    def _fixpoint(self, source: int, at: float, passed: list[int]) -> tuple[list[float], list[int]]:
        """Return from where on each actor surely knows a source, and how many acquires it passes without.

        Args:
            source: the actor of what is to be known.
            at: its place, in half steps.
            passed: the acquires that are known to be passed without.

        """
        acquires = self._acquires
        u = [own[n].at if n < len(own) else inf for n, own in zip(passed, acquires, strict=True)]
        u[source] = at
        behind = [b for b, own in enumerate(acquires) if own and b != source]

        def go_on(run: HeldRun | None) -> bool:
            moved = False
            for b in behind:
                own = acquires[b]
                while passed[b] < len(own) and self._is_clean(source, own[passed[b]], u, run):
                    passed[b] += 1
                    u[b] = own[passed[b]].at if passed[b] < len(own) else inf
                    moved = True
            return moved

        # With more held than need be, one run passes many; what it does not is tried by itself.
        while go_on(self._runs.going_on(source, self._telling(u))) or go_on(None):
            pass
        return u, passed

    def _telling(self, u: list[float]) -> list[Place]:
        return [update for update, last in self._last_told.items() if last > u[update[0]]]

    def _is_clean(self, source: int, acquire: Acquire, u: list[float], run: HeldRun | None) -> bool:
        """Say whether an actor can be past an acquire and not know the source.

        Args:
            source: the actor of what is to be known.
            acquire: of another actor than the source's.
            u: what is known by now.
            run: with more held than is asked for; None: a run with just that.

        """
        if acquire.seen is None:
            return all(2 * index + 1 <= u[actor] for actor, index in acquire.sources)
        wait = acquire.seen
        for number in self._possible(wait):
            told = () if run else self._would_tell(acquire, wait, number, u)
            state = run or self._runs.going_on((source, wait.place[0], number), told)
            if self._comes_about(wait, number, state):
                return True
        return False

    def _possible(self, wait: Wait) -> list[int]:
        """Return the epochs in which an operation may see its cell."""
        if wait.place in self._goals and wait.way != ALWAYS:
            return list(self._goals[wait.place])
        epochs = self._streams.histories[wait.slot].epochs
        return [epoch.number for epoch in epochs if may_be_current(self._streams, self._order, wait, epoch)]

    def _comes_about(self, wait: Wait, number: int, run: HeldRun) -> bool:
        """Say whether in a run what an operation sees of an epoch has come about, so that it may see it."""
        goal = self._goals[wait.place].get(number) if wait.place in self._goals and wait.way != ALWAYS else None
        if not (run.is_met(number, goal) if goal is not None else run.is_open(number)):
            return False
        if change_by(wait.event.op) is not None and not run.has_done(wait.place):
            return False
        update, earlier = self._own_before(wait)
        return (update is None or run.has_landed(update)) and all(
            any(run.is_met(epoch, reached) for epoch, reached in self._goals[each.place].items()) for each in earlier
        )

    def _own_before(self, wait: Wait) -> tuple[Place | None, list[Wait]]:
        """Return what the actor of a wait has done at its cell before: the last update, and what waits ask more."""
        if wait.place not in self._needed:
            actor, index = wait.place
            history = self._streams.histories[wait.slot]
            own = (place for place in map(self._streams.issue, _changes_of(history)) if place[0] == actor)
            earlier = [each for each in history.waits if each.place[0] == actor and each.place[1] < index]
            self._needed[wait.place] = (
                max((place for place in own if place[1] < index), default=None),
                [each for each in earlier if not self._implies(wait, each)],
            )
        return self._needed[wait.place]

    def _implies(self, wait: Wait, other: Wait) -> bool:
        """Say whether a wait's guard holds only where that of another one does: it asks for as much, or more."""
        goals, others = (self._goals.get(each.place, {}) for each in (wait, other))
        return wait.way != ALWAYS and all(
            number in others and replace(goal, credits=0) == replace(others[number], credits=0)
            and goal.credits >= others[number].credits and goal.reached is None
            for number, goal in goals.items()
        ) and bool(goals)  # fmt: skip

    def _would_tell(self, acquire: Acquire, wait: Wait, number: int, u: list[float]) -> list[Place]:
        """Return the updates that tell of the source whoever sees an epoch after them."""
        me = self._streams.actors[wait.place[0]]
        if self._is_broken(wait, number):
            return []
        return [
            update
            for update in self._chain(number)
            if update[0] != wait.place[0]
            and any(
                at > u[update[0]] and include(me, acquire.scope, self._streams.actors[update[0]], scope)
                for at, scope in self._releases[update]
            )
        ]

    def _chain(self, number: int) -> list[Place]:
        """Return the updates of which one that sees an epoch may see the releases: back to a Set that does not read."""
        if number not in self._chains:
            history, at = self._epochs[number]
            found: list[Place] = []
            for epoch in reversed(history.epochs[: at + 1]):
                found += self._updates_in(epoch)
                if not epoch.by_kind and any(self._cuts(opener) for opener in epoch.openers):
                    break
            self._chains[number] = list(dict.fromkeys(found))
        return self._chains[number]

    def _updates_in(self, epoch: Epoch) -> list[Place]:
        tallies = ((who, at) for who, tally in epoch.tallies.items() for at in tally.indexes)
        return [self._streams.issue(place) for place in (*tallies, *epoch.openers)]

    def _cuts(self, opener: Place) -> bool:
        op = self._streams.event(self._streams.issue(opener)).op
        return op.kind in PURE and op.how == SET

    def _is_broken(self, wait: Wait, number: int) -> bool:
        """Say whether some two updates of a chain, or one and what sees it, have scopes that do not include both."""
        key = (wait.place, number)
        if key not in self._broken:
            members = [wait.place, *self._chain(number)]
            ends = {(self._streams.actors[place[0]], scope_of(self._streams.event(place).op)) for place in members}
            self._broken[key] = not all(include(a, one, b, other) for a, one in ends for b, other in ends)
        return self._broken[key]


def _changes_of(history: History) -> list[Place]:
    return history.sets + [place for place, _, _ in history.updates]
