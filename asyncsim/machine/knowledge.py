"""What happens before what in a run under ``gpu``, and what an actor therefore knows.

Happens-before is the order of each actor, and synchronisation: from a release to an acquire that reads what it wrote,
or what a chain of updates made of it, where the scopes of both include each other; starts, joins and meetings of
streams; and fences that are sequentially consistent, in the order of the run. An actor also knows what it has read of a
word as an atomic (PTX ISA, "Memory consistency model": observation and causality order).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asyncsim.trace.kinds import ACQ_REL, ACQUIRE, FENCING, JOINING, MEETING, RELEASE, SC, STARTING
from asyncsim.trace.op import include, order_of, scope_of
from asyncsim.trace.region import ADD, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from asyncsim.machine.memory import Tile
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access
    from asyncsim.trace.world import Actor

Clock = dict[int, int]
"""How many operations of each actor, by its order, happen before."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an actor releases, with what happens before there, and which versions it has observed besides."""

    actor: Actor
    scope: str
    clock: Clock
    observed: frozenset[Version]


@dataclass(slots=True, eq=False)
class Version:
    """What one operation wrote to a place.

    Args:
        actor: who wrote it; None: it was there at the start.
        at: the operation's number within its actor, from 1.
        scope: of an atomic; empty: a plain store, with which nothing synchronises.
        spots: the releases that are seen by reading it.
        clock: what happens before it.
        value: of a cell, what it holds from then on.
        access: of a region, which elements were written.
        before: what they held before.

    """

    actor: Actor | None
    at: int
    scope: str = ""
    spots: list[Spot] = field(default_factory=list)
    clock: Clock = field(default_factory=dict)
    value: int = 0
    access: Access | None = None
    before: Tile | None = None


class HappensBefore:
    """What happens before what, kept while a run goes on: a vector clock an actor, and the releases it may acquire."""

    def __init__(self) -> None:
        self._clocks: dict[int, Clock] = defaultdict(dict)
        self._observed: dict[int, set[Version]] = defaultdict(set)
        """The versions that an actor, or what it has acquired of others, has read as atomics."""
        self._started: dict[str, int] = {}
        self._released: dict[int, list[Spot]] = defaultdict(list)
        """The release fences of each actor."""
        self._unfenced: dict[int, list[Spot]] = defaultdict(list)
        """The releases that each actor has seen by relaxed reads, for an acquire fence to take up."""
        self._fenced: list[Spot] = []
        """The fences that are sequentially consistent, in the order of the run."""
        self._met: dict[str, tuple[Clock, set[Version]]] = {}

    def count(self, actor: Actor) -> int:
        """Return how many operations an actor has done."""
        return self._clocks[actor.order].get(actor.order, 0)

    def arrive(self, op: Op) -> None:
        """Note that an actor has come to a meeting: what it did happens before what comes after that, for all."""
        clock, observed = self._met.setdefault(op.link, ({}, set()))
        _join(clock, self._clocks[op.actor.order])
        observed |= self._observed[op.actor.order]

    def before(self, op: Op) -> None:
        """Take up what an operation orders by its kind: a start, a join, a meeting, a fence."""
        kind, order = op.kind, op.actor.order
        clock = self._clocks[order]
        if kind in STARTING:
            child = self._started[op.link] = op.payload.actor.order
            self._clocks[child] = {**clock, order: clock.get(order, 0) + 1}
            self._observed[child] = set(self._observed[order])
        elif kind in JOINING:
            _join(clock, self._clocks[self._started[op.link]])
            self._observed[order] |= self._observed[self._started[op.link]]
        elif kind in MEETING:
            _join(clock, self._met[op.link][0])
            self._observed[order] |= self._met[op.link][1]
        elif kind in FENCING:
            self._fence(op)

    def after(self, op: Op) -> None:
        """Count an operation that was done."""
        self._clocks[op.actor.order][op.actor.order] = self.count(op.actor) + 1

    def version(self, op: Op) -> Version:
        """Return a version that an operation writes, which is not kept here."""
        at = self.count(op.actor) + 1
        return Version(op.actor, at, clock={**self._clocks[op.actor.order], op.actor.order: at})

    def releases(self, op: Op, last: Version, *, reads: bool) -> list[Spot]:
        """Return what an acquire takes up that reads what an update writes: its own releases, and those handed on.

        Args:
            op: the update.
            last: the version that it changes.
            reads: it reads what it changes, and so hands on what that released; a Set does not.

        """
        scope = scope_of(op)
        spots = list(self._released[op.actor.order])
        if order_of(op) in _RELEASING:
            spots.append(self._spot(op.actor, scope, itself=1))
        if reads and _include(op.actor, scope, last.actor, last.scope):
            spots += last.spots
        return spots

    def acquire(self, op: Op, version: Version) -> None:
        """Take up what the version that was read releases: now, or at a later fence.

        Args:
            op: the operation that read it.
            version: what it read.

        """
        actor, scope = op.actor, scope_of(op)
        if not _include(actor, scope, version.actor, version.scope):
            return
        self._observed[actor.order].add(version)
        if order_of(op) in _ACQUIRING:
            self._take_up(actor, scope, version.spots)
        else:
            self._unfenced[actor.order] += version.spots

    def readable(self, actor: Actor, found: Sequence[Version]) -> list[int]:
        """Return the versions of a place that an actor may read, as how many back they are, the newest first.

        Args:
            actor: who reads.
            found: the versions, the oldest first.

        """
        clock, observed = self._clocks[actor.order], self._observed[actor.order]
        may_be_read = [0]
        for back in range(1, len(found)):
            newer, older = found[len(found) - back :], found[: len(found) - back]
            known = (
                each
                for each in newer
                if each.actor is None or clock.get(each.actor.order, 0) >= each.at or each in observed
            )
            if all(_may_be_passed_over(each, older) for each in known):
                may_be_read.append(back)
        return may_be_read

    def _fence(self, op: Op) -> None:
        actor, scope, order = op.actor, scope_of(op), order_of(op)
        if order in _ACQUIRING or order == SC:
            self._take_up(actor, scope, self._unfenced[actor.order])
        if order == SC:
            self._take_up(actor, scope, self._fenced)
        if order in _RELEASING or order == SC:
            spot = self._spot(actor, scope)
            self._released[actor.order].append(spot)
            if order == SC:
                self._fenced.append(spot)

    def _spot(self, actor: Actor, scope: str, *, itself: int = 0) -> Spot:
        """Return a release of what its actor did so far; of an operation that writes, `itself` is 1."""
        clock = {**self._clocks[actor.order], actor.order: self.count(actor) + itself}
        return Spot(actor, scope, clock, frozenset(self._observed[actor.order]))

    def _take_up(self, actor: Actor, scope: str, spots: Iterable[Spot]) -> None:
        for spot in spots:
            if _include(actor, scope, spot.actor, spot.scope):
                _join(self._clocks[actor.order], spot.clock)
                self._observed[actor.order] |= spot.observed


_RELEASING, _ACQUIRING = (RELEASE, ACQ_REL), (ACQUIRE, ACQ_REL)


def _may_be_passed_over(version: Version, older: Sequence[Version]) -> bool:
    """Return whether an actor that knows a version may read an older one in its place: one that races with it.

    What was added atomically is on top of what was there, whoever wrote that.

    Args:
        version: the known one.
        older: those of the same place that are older, the oldest first.

    """
    if version.access is not None and version.access.mode == ADD and version.access.atomic:
        return False
    instead = next((each for each in reversed(older) if _overlap(each, version)), None)
    return instead is not None and _same_elements(instead, version) and not _supersedes(version, instead)


def _overlap(a: Version, b: Version) -> bool:
    if a.access is None or b.access is None:
        return True
    return spans_overlap(a.access.region.spans, b.access.region.spans)


def _same_elements(a: Version, b: Version) -> bool:
    if a.access is None or b.access is None:
        return True
    return a.access.region.spans == b.access.region.spans


def _supersedes(newer: Version, version: Version) -> bool:
    """Return whether a version came after another in all eyes: if it happened after it, or as atomics in scope do.

    Of two other writes either may be the last: they race.
    """
    if newer.actor is None or version.actor is None:
        return True
    ordered = newer.clock.get(version.actor.order, 0) >= version.at
    return ordered or (bool(version.scope) and _include(newer.actor, newer.scope, version.actor, version.scope))


def _include(a: Actor, scope: str, b: Actor | None, other: str) -> bool:
    """Return whether the scopes of two operations include each other; with a plain access nothing synchronises."""
    return b is not None and bool(other) and include(a, scope, b, other)


def _join(clock: Clock, other: Mapping[int, int]) -> None:
    for order, count in other.items():
        if count > clock.get(order, 0):
            clock[order] = count
