"""The analysis of a long run from its columns, where vector clocks decide: in numpy, some 0.1 µs a step and pair.

It says what the analysis of events says (a law), or nothing: of runs that are not plain enough, or that
show something by themselves, the events must tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.analysis.beyond import first_beyond
from asyncsim.analysis.classes import COUNTED_DOWN, MONOTONE, ONLY_TAKEN, SELF_CLEANING, CellClass
from asyncsim.analysis.exact import sums_are_exact
from asyncsim.analysis.group import EXAMPLES
from asyncsim.analysis.pairs import raced, touches_of
from asyncsim.analysis.races import hazard_of, why_unordered
from asyncsim.analysis.segments import Located, located, required_steps, segments_of
from asyncsim.analysis.streams import Streams
from asyncsim.trace.cells import ADDING, FALLING, UNSTABLE
from asyncsim.trace.columns import SEEN, Columns, among, done_as
from asyncsim.trace.event import COMPLETE, Trace
from asyncsim.trace.finding import NEXT_CALL, SAME_CALL, Finding, Side
from asyncsim.trace.kinds import CARRYING, COPYING, EXCHANGING, LOADING, NOTIFYING, STORING, WAITING
from asyncsim.trace.late import model_of
from asyncsim.trace.region import ADD, READ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.pairs import Raced, Touches
    from asyncsim.analysis.segments import Segments
    from asyncsim.trace.columns import Numbers, Steps
    from asyncsim.trace.region import Access

_PLAIN = among((LOADING | STORING | COPYING | NOTIFYING | WAITING) - CARRYING - EXCHANGING)


@dataclass(frozen=True, slots=True)
class Compact:
    """What the columns of one run say of all schedules.

    Args:
        findings: its races, grouped.
        cells: the classes of its cells.
        races: the steps of the two sides, one row a race.
        place: where the steps stand.
        names: of the actors, by their numbers.

    """

    findings: list[Finding]
    cells: list[CellClass]
    races: Numbers
    place: Located
    names: list[str]

    def race_pairs(self) -> set[frozenset[tuple[str, int]]]:
        """Return every race, as the (actor, index in its stream) of its two operations."""
        actors, indexes = self.place.actor[self.races].tolist(), self.place.index[self.races].tolist()
        return {
            frozenset((self.names[number], index) for number, index in zip(*pair, strict=True))
            for pair in zip(actors, indexes, strict=True)
        }


def analyse_columns(trace: Trace, fair: Trace) -> Compact | None:
    """Analyse a run that was recorded in columns; None where its events must be looked at.

    Args:
        trace: the run.
        fair: the run under round robin, by which races are named; it may be `trace` itself.

    """
    columns, order = trace.events, clocks_of(trace)
    if not isinstance(columns, Columns) or not isinstance(fair.events, Columns) or order is None:
        return None
    steps, place = columns.steps, order.place
    touches = touches_of(steps.place, columns.places)
    found = raced(touches, steps.actor, order)
    if not _distinct(found, len(columns)):
        return None
    findings = list(_findings(trace, fair, place, touches, found))
    names = [actor.name for actor in columns.actors]
    classes = _Cells(trace, columns, steps).classes()
    return Compact(findings, classes, np.stack([found.x, found.y], axis=1), place, names)


def clocks_of(trace: Trace) -> Segments | None:
    """Return must-happen-before of a run in columns; None where clocks do not decide, or the run shows a finding."""
    columns = trace.events
    if not isinstance(columns, Columns) or not _is_plain(trace, columns):
        return None
    steps = columns.steps
    place = located(steps.actor, len(columns.actors))
    cells = _Cells(trace, columns, steps)
    needed = None if cells.irregular else required_steps(steps, place, cells.start, cells.owner)
    return None if needed is None else segments_of(place, len(columns.actors), *needed)


def _is_plain(trace: Trace, columns: Columns) -> bool:
    """Say whether the run is complete, of plain operations and small numbers, reads all written, adds integers only."""
    if trace.footer is None or trace.footer.ending != COMPLETE or model_of(trace.header.memory).late:
        return False
    steps = columns.steps
    atomics = (access for place in columns.places for access in place if access.atomic)
    if not len(columns) or any(a.mode != ADD or a.region.dtype.kind not in "biu" for a in atomics):
        return False
    if not sums_are_exact(trace.header.world, steps):
        return False
    waits, adds = among(WAITING)[steps.kind], among(NOTIFYING)[steps.kind]
    return bool(
        _PLAIN[steps.kind].all()
        and (steps.flags & ~SEEN == 0).all()
        and not done_as(UNSTABLE)[steps.how[waits]].any()
        and done_as(ADDING)[steps.how[adds]].all()
        and first_beyond(columns) is None
    )


class _Cells:
    """The cells of the run: starts, owners, and what was added to each."""

    def __init__(self, trace: Trace, columns: Columns, steps: Steps) -> None:
        world = trace.header.world
        self._columns = columns
        number = {actor.rank: n for n, actor in enumerate(columns.actors)}
        self.start = np.zeros(world.cells, np.int64)
        self.owner = np.full(world.cells, -1, np.int64)
        low, high = np.zeros(world.cells, np.int64), np.zeros(world.cells, np.int64)
        cleaning = np.zeros(world.cells, bool)
        for signal in world.signals:
            bounds = np.iinfo(signal.dtype)
            every = slice(signal.first_slot, signal.first_slot + signal.cells_a_rank * world.ranks)
            self.start[every], low[every], high[every] = signal.start, bounds.min, bounds.max
            cleaning[every] = signal.self_cleaning
            owners = [number.get(rank, -1) for rank in range(world.ranks)]
            self.owner[every] = np.repeat(owners, signal.cells_a_rank)
        adds = among(NOTIFYING)[steps.kind]
        slots, amounts = steps.cell[adds], steps.amount[adds]
        gains = np.bincount(slots, np.maximum(amounts, 0), world.cells)
        losses = np.bincount(slots, np.minimum(amounts, 0), world.cells)
        self._taken, self._added = losses < 0, gains > 0
        self._down = np.zeros(world.cells, bool)
        self._down[steps.cell[among(WAITING)[steps.kind] & done_as(FALLING)[steps.how]]] = True
        self._used = np.zeros(world.cells, bool)
        self._used[steps.cell[steps.cell >= 0]] = True
        outside = (self.start + losses < low) | (self.start + gains > high)
        self.irregular = bool(outside.any() or (cleaning & (gains + losses != 0)).any())
        """Some cell may leave its range, or is left with a credit: findings that the events must tell."""

    def classes(self) -> list[CellClass]:
        """Return the classes of the cells, signal by signal: what goes against a wait is its own actor's."""
        counts: dict[tuple[str, str], int] = {}
        for slot in np.flatnonzero(self._used).tolist():
            name = MONOTONE
            if self._taken[slot]:
                both = COUNTED_DOWN if self._down[slot] else SELF_CLEANING
                name = both if self._added[slot] else ONLY_TAKEN
            key = self._columns.cells[slot].signal, name
            counts[key] = counts.get(key, 0) + 1
        return [CellClass(signal, cells, name) for (signal, name), cells in counts.items()]


def _distinct(found: Raced, steps: int) -> bool:
    """Say whether each pair of steps races in one place: else the events say which speaks for it."""
    low, high = np.minimum(found.x, found.y), np.maximum(found.x, found.y)
    keys = low.astype(np.int64) * steps + high
    return len(np.unique(keys)) == len(keys)


def _findings(trace: Trace, fair: Trace, place: Located, touches: Touches, found: Raced) -> Iterator[Finding]:
    """Yield one finding for all races that differ only in rank or element; its first one speaks for all."""
    columns = trace.events
    if not isinstance(columns, Columns) or not len(found.x):
        return
    steps = columns.steps
    order = _fair_steps(trace, fair, place)
    swapped = order[found.x] > order[found.y]
    x, y = np.where(swapped, found.y, found.x), np.where(swapped, found.x, found.y)
    first = np.where(swapped, found.second, found.first)
    second = np.where(swapped, found.first, found.second)
    writes = np.array([access.mode != READ for access in touches.accesses], bool)
    windows: dict[str, int] = {}
    memory_of = trace.header.world.memory_of
    window = np.array([windows.setdefault(memory_of(a.region.window), len(windows)) for a in touches.accesses])
    lines: dict[tuple[str, ...], int] = {}
    line = np.array([lines.setdefault(at, len(lines)) for _, at in columns.wheres])
    keys = np.stack(
        [writes[first], writes[second], steps.call[x] == steps.call[y], window[first],
         line[steps.where[x]], line[steps.where[y]]], axis=1,
    ).astype(np.int64)  # fmt: skip
    _, group, sizes = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    by_time = np.lexsort((order[y], order[x], group.reshape(-1)))
    ends = np.cumsum(sizes)
    firsts = by_time[ends - sizes]
    for n in np.lexsort((order[y[firsts]], order[x[firsts]])).tolist():
        members = by_time[ends[n] - sizes[n] : ends[n]]
        examples = [
            (_Side(int(x[m]), touches.accesses[first[m]]), _Side(int(y[m]), touches.accesses[second[m]]))
            for m in members[:EXAMPLES].tolist()
        ]
        yield _finding(trace, place, examples, int(sizes[n]))


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a race: its step, and what it touches."""

    step: int
    access: Access


def _finding(trace: Trace, place: Located, examples: list[tuple[_Side, _Side]], pairs: int) -> Finding:
    """Make the finding that its first example speaks for, from the events of the two actors in it."""

    def described(side: _Side) -> Side:
        return Side.of(trace.events[side.step], int(place.index[side.step]), str(side.access.region))

    def why(sides: tuple[_Side, _Side]) -> str:
        actors = [int(place.actor[side.step]) for side in sides]
        own = np.sort(np.concatenate([place.by_actor[place.starts[a] : place.starts[a + 1]] for a in actors]))
        streams = Streams(Trace(trace.header, [trace.events[step] for step in own.tolist()], trace.footer))
        first, second = (
            (streams.number[trace.events[side.step].op.actor.order], int(place.index[side.step])) for side in sides
        )
        return why_unordered(streams, (first, second))

    first, second = examples[0]
    calls = {trace.events[side.step].call for side in examples[0]}
    whys = tuple(map(why, examples))
    return Finding(
        "race",
        whys[0],
        hazard=hazard_of(first.access, second.access),
        scope=SAME_CALL if len(calls) == 1 else NEXT_CALL,
        window=trace.header.world.memory_of(first.access.region.window),
        pairs=pairs,
        sides=(described(first), described(second)),
        examples=tuple(tuple(map(described, example)) for example in examples),
        whys=whys,
    )


def _fair_steps(trace: Trace, fair: Trace, place: Located) -> Numbers:
    """Return for each step of the run the step of the same operation in the fair one."""
    columns, fairly = trace.events, fair.events
    if fairly is columns or not isinstance(columns, Columns) or not isinstance(fairly, Columns):
        return np.arange(len(trace.events))
    there = located(fairly.steps.actor, len(fairly.actors))
    number = {actor.order: n for n, actor in enumerate(fairly.actors)}
    found = np.full(len(columns), len(fairly))
    for n, actor in enumerate(columns.actors):
        m = number.get(actor.order)
        if m is not None:
            own = place.by_actor[place.starts[n] : place.starts[n + 1]]
            theirs = there.by_actor[there.starts[m] : there.starts[m + 1]]
            common = min(len(own), len(theirs))
            found[own[:common]] = theirs[:common]
    return found
