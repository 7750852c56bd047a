"""Vector clocks of a whole run at once: what must precede, as one vector a segment.

A *segment* is a stretch of an actor's stream in which it waits for nothing new. A barrier of P ranks
is P-1 waits in a row and makes one segment, so that the vectors of a collective on P ranks take
P² numbers a barrier, not P³. The way is that of `asyncsim.analysis.clocks`, and both must agree: a law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.cells import FALLING, STRICT
from asyncsim.trace.columns import among, done_as
from asyncsim.trace.kinds import NOTIFYING, WAITING

if TYPE_CHECKING:
    from asyncsim.trace.columns import Numbers, Steps

MOST_NUMBERS = 1 << 29
"""Vectors may take so many numbers, of four bytes; a kernel with more has no segments to speak of."""

"""Comparisons that what is taken away makes true."""

MOST_KEY = 1 << 62
"""A cell and what has come to it are searched for as one number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where each step stands: the number of its actor, and its index in that actor's stream."""

    actor: Numbers
    index: Numbers
    starts: Numbers
    by_actor: Numbers
    """The steps in the order of actors, each actor's in its own; `starts` says where each begins."""

    def step(self, actor: Numbers | int, index: Numbers | int) -> Any:  # noqa: ANN401 - one or many
        """Return the step of the index-th operation of an actor.

        Args:
            actor: the number of the actor, or an array of numbers.
            index: from 0, or an array as long.

        """
        return self.by_actor[self.starts[actor] + index]


def located(actor: Numbers, actors: int) -> Located:
    """Number each actor's operations; `actors` is how many there are.

    Args:
        actor: the number of the actor of each step, in the order of the run: integers.
        actors: how many actors there are.

    """
    by_actor = np.argsort(actor, kind="stable")
    starts = np.searchsorted(actor[by_actor], np.arange(actors + 1))
    index = np.empty(len(actor), np.int32)
    index[by_actor] = np.arange(len(actor)) - np.repeat(starts[:-1], np.diff(starts))
    return Located(actor, index, starts, by_actor)


def required_steps(
    steps: Steps, place: Located, start_of: Numbers, owner_of: Numbers
) -> tuple[Numbers, Numbers] | None:
    """Return the waits that need somebody, and for each the one notify that it cannot pass without.

    Args:
        steps: the run, of nothing but loads, stores, copies, notifies that add, and waits but for Eq and Ne; its
            sums are exact.
        place: where its steps stand.
        start_of: the start value of each cell, by slot.
        owner_of: the number of the actor that owns it.

    Returns:
        Two arrays of steps; None where some awaited cell has several remote producers, or foreign
        changes against its waits: counting decides there, not clocks. None also for too large numbers.

    """
    on_cell = np.flatnonzero(steps.cell >= 0)
    if not len(on_cell):
        return on_cell, on_cell
    by_cell = on_cell[np.argsort(steps.cell[on_cell], kind="stable")]
    slot, actor = steps.cell[by_cell], place.actor[by_cell]
    waits, adds = among(WAITING)[steps.kind[by_cell]], among(NOTIFYING)[steps.kind[by_cell]]
    how = steps.how[by_cell]
    falling = waits & done_as(FALLING)[how]
    down = np.zeros(len(start_of), bool)
    down[slot[falling]] = True
    if (down[slot[waits]] != falling[waits]).any():
        return None  # a cell with waits for more and for less
    sign = np.where(down, -1, 1)
    # Kept in 32 bits, one more than the largest would wrap. A cell that is counted down is turned upside down.
    amount = steps.amount[by_cell].astype(np.int64) * sign[slot]
    own = actor == owner_of[slot]
    awaited = np.zeros(len(start_of), bool)
    awaited[slot[waits]] = True
    foreign = adds & ~own & awaited[slot]
    if (waits & ~own).any() or (amount[foreign] < 0).any() or _several(slot[foreign], actor[foreign]):
        return None
    # Runs of one cell lie together, in the order of the run: within them running sums say what has come.
    first = np.searchsorted(slot, slot)
    sure = _running(np.where(adds & own, amount, 0), first)
    come = _running(np.where(foreign, amount, 0), first)
    strict = done_as(STRICT)[how[waits]]
    need = amount[waits] + strict - (sign * start_of)[slot[waits]] - sure[waits]
    needing = need > 0
    need, cells = need[needing], slot[waits][needing]
    # The first foreign notify of the cell with which so many credits have come.
    counted = come + np.where(foreign, amount, 0)
    ceiling = int(counted.max(initial=0)) + 1
    if ceiling * len(start_of) > MOST_KEY:
        return None
    keys = slot[foreign].astype(np.int64) * ceiling + counted[foreign]
    possible = need < ceiling
    found = np.searchsorted(keys, cells.astype(np.int64) * ceiling + np.minimum(need, ceiling - 1))
    sources = by_cell[foreign]
    hit = possible & (found < len(sources))
    hit[hit] &= steps.cell[sources[found[hit]]] == cells[hit]
    if not hit.all():
        return None  # a wait that nobody lets pass, in a run that has ended: not this road's
    return by_cell[waits][needing], sources[found]


def _several(slots: Numbers, actors: Numbers) -> bool:
    """Say whether a slot has adds of more than one of these actors; slots come in ascending order."""
    return bool(((slots[1:] == slots[:-1]) & (actors[1:] != actors[:-1])).any())


def _running(amounts: Numbers, first: Numbers) -> Numbers:
    """Return what the amounts before each one add up to, beginning anew at the index `first`."""
    before = np.cumsum(amounts) - amounts
    since: Numbers = before - before[first]
    return since


def segments_of(place: Located, actors: int, waits: Numbers, sources: Numbers) -> Segments | None:
    """Return the segments of a run; None where their vectors would take more than `MOST_NUMBERS` numbers.

    Args:
        place: where the steps stand.
        actors: how many there are.
        waits: those that need somebody, as steps.
        sources: for each, the notify that it cannot pass without.

    """
    at = np.empty(len(place.actor), np.int64)
    at[place.by_actor] = np.arange(len(place.actor))
    order = np.argsort(at[waits])
    waits, sources = waits[order], sources[order]
    # Waits in a row make one block: nothing stands between them that could see the half of it.
    new = (np.diff(at[waits], prepend=-2) > 1) | (np.diff(place.actor[waits], prepend=-1) != 0)
    begins = np.flatnonzero(new)
    if (actors + len(begins)) * actors > MOST_NUMBERS:
        return None
    return Segments(place, at, actors, (waits, sources, begins))


class Segments:
    """The vectors: the first ``vectors[s][a]`` operations of actor a precede segment s in every schedule."""

    def __init__(self, place: Located, at: Numbers, actors: int, blocks: tuple[Numbers, Numbers, Numbers]) -> None:
        """Join, block by block of waits, the vectors of what they need.

        Args:
            place: where the steps stand.
            at: where each stands in `place.by_actor`.
            actors: how many there are.
            blocks: waits and sources in that order, and where each block begins.

        """
        waits, sources, begins = blocks
        ends = np.append(begins[1:], len(waits))
        self.place = place
        self.vectors = np.zeros((actors + len(begins), actors), np.int32)
        self.of = place.actor.astype(np.int64)
        if not len(begins):
            return
        theirs = place.actor[waits[begins]]
        latest = np.searchsorted(at[waits[begins]], at, side="right") - 1
        begun = (latest >= 0) & (theirs[latest] == place.actor)
        self.of[begun] = actors + latest[begun]
        # A block is whole with its last wait. What it needs was done before that, in a segment that began earlier.
        for block in np.argsort(waits[ends - 1]).tolist():
            needed = sources[begins[block] : ends[block]]
            actor = int(theirs[block])
            before = actors + block - 1 if block and theirs[block - 1] == actor else actor
            vector = self.vectors[self.of[needed]].max(axis=0)
            np.maximum(vector, self.vectors[before], out=vector)
            np.maximum.at(vector, place.actor[needed], place.index[needed] + 1)
            self.vectors[actors + block] = vector

    def runs_away(self, held: Numbers) -> bool:
        """Say whether, with some actor held before its ``held[a]``-th operation, another gets to its end."""
        place, actors = self.place, len(self.place.starts) - 1
        last = self.vectors[self.of[place.by_actor[place.starts[1:] - 1]]]
        return bool((last <= held)[~np.eye(actors, dtype=bool)].any())

    def ordered(self, x: Numbers, y: Numbers) -> Numbers:
        """Say of each pair of steps, of different actors, whether one precedes the other in every schedule.

        Args:
            x: steps of the run: integers.
            y: as many, each of another actor than the one of `x` beside it.

        """
        place = self.place
        before = self.vectors[self.of[y], place.actor[x]] > place.index[x]
        return np.asarray(before | (self.vectors[self.of[x], place.actor[y]] > place.index[y]))
