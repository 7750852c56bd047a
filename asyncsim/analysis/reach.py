"""Reach: for how many calls no cell leaves its range, where the same calls come again and again.

A cell that grows by as much each period gets to the end of its range some day. What it may hold at most
is known call by call from the recorded ones; later ones add whole periods to it. A cell that only gains
holds its most at the end, so for it the number of calls is exact; for one that also loses, or is set, it
may be a few calls short, never too large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.analysis.beyond import first_beyond
from asyncsim.analysis.updates import change_in
from asyncsim.trace.cells import ADDING, APPLY, RISING, UPDATES
from asyncsim.trace.columns import CONSUME, DEFERRED, among, done_as
from asyncsim.trace.kinds import COMPARING, LANDING, SIGNALLING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from asyncsim.analysis.streams import History, Streams
    from asyncsim.trace.columns import Columns, Numbers, Steps
    from asyncsim.trace.world import World

LEAST = -(1 << 62)
"""Less than any value, and than any with a few periods added."""


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes of cells, in the order of a run call by call; an amount is what is added, or set.

    What neither adds nor sets is taken for a Set to what it leaves: in all schedules a cell holds the same between
    updates of one kind and those of another, and what is made of bits, or one of two, stays in the range meanwhile.
    """

    cell: Numbers
    amount: Numbers
    sets: Numbers
    call: Numbers


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run, call by call, whose sums are exact, and which of its calls come again and again.

    Args:
        world: of the run.
        steps: of the run.
        changes: of its cells.
        calls: how many there are.
        first: the call from which on everything repeats.
        second: the call that is like it.

    """

    world: World
    steps: Steps
    changes: Changes
    calls: int
    first: int
    second: int


def values_of(world: World, changes: Changes, calls: int) -> list[Numbers]:
    """Return the value of every cell before each call, and after the last one; one more is for steps without a cell.

    Args:
        world: of the run; its cells begin with the starts of their signals.
        changes: of its cells, in the order of the run, call by call.
        calls: how many calls the run has.

    """
    now = _starts(world)
    values = [now.copy()]
    for call in range(calls):
        low, high = np.searchsorted(changes.call, (call, call + 1))
        last = int(low)
        for at in [*(low + np.flatnonzero(changes.sets[low:high])).tolist(), int(high)]:
            np.add.at(now, changes.cell[last:at], changes.amount[last:at])
            if at < high:
                now[changes.cell[at]] = changes.amount[at]
            last = at + 1
        values.append(now.copy())
    return values


def limit_of(run: Recorded, guarded: Collection[int] | None = None) -> int | None:
    """Return for how many calls no cell leaves its range, at least those recorded; None: none ever does.

    Args:
        run: in which no cell leaves its range, whatever the schedule.
        guarded: None: nobody runs away from another. Else who can may add for ever before anybody takes it away
            again, and takes away for ever but from these cells, by slot.

    """
    changes = run.changes
    values = values_of(run.world, changes, run.calls)
    limits: list[int] = []
    for signal in run.world.signals:
        own = slice(signal.first_slot, signal.first_slot + signal.cells_a_rank * run.world.ranks)
        bounds = np.iinfo(signal.dtype)
        for sign, end in ((1, bounds.max), (-1, -bounds.min)):  # to wrap around is to leave the range, too
            most, change = _most(run, changes, [sign * value for value in values], sign, guarded)
            limits += _limits(run, [level[own] for level in most], change[own], int(end))
            grown = sign * (values[run.second] - values[run.first])
            limits += _limits(run, [level[own] for level in _compared(run, sign)], grown[own], int(end))
    return min(limits, default=None)


def guarded_cells(streams: Streams, first: int, second: int) -> set[int]:
    """Return the cells, by slot, whose one subtractor takes no more than it has just waited for, in these calls.

    However far it runs away, such a cell falls no lower than in these calls.

    Args:
        streams: of the run.
        first: the number of the call from which on it is looked at.
        second: the number of the call before which that ends.

    """
    return {slot for slot, history in streams.histories.items() if _is_guarded(streams, history, first, second)}


def _is_guarded(streams: Streams, history: History, first: int, second: int) -> bool:
    def within(actor: int, index: int) -> bool:
        return first <= streams.event((actor, index)).call < second

    if not history.is_sum:
        return False
    taken = [(place, amount) for place, amount, _ in history.updates if amount < 0]
    if len({actor for (actor, _), _ in taken}) > 1:
        return False
    sure: int | None = None
    # A consuming wait comes twice, and waits before it takes.
    waits = [(wait.place, 0, wait.event.op.amount) for wait in history.waits if wait.event.op.how in RISING]
    for place, takes, amount in sorted([*waits, *((place, 1, amount) for place, amount in taken)]):
        if not within(*place) or (taken and place[0] != taken[0][0][0]):
            continue
        if not takes:
            sure = amount
        elif sure is None or sure + amount < history.cell.low:
            return False
        else:
            sure += amount
    return True


def changes_of(world: World, columns: Columns) -> Changes:
    """Return the changes of cells of a run.

    Args:
        world: of the run; its cells begin with the starts of their signals.
        columns: in the order of the run, call by call.

    """
    if first_beyond(columns) is not None:
        return _one_by_one(world, columns)
    steps = columns.steps
    taken = steps.flags & CONSUME != 0
    issued = among(SIGNALLING)[steps.kind] & (steps.flags & DEFERRED == 0)
    landed = among(LANDING)[steps.kind] & (steps.cell >= 0)
    at = np.flatnonzero(issued | landed | taken)
    amount = steps.amount[at].astype(np.int64)
    sets = done_as(UPDATES.keys() - ADDING)[steps.how[at]]
    return Changes(steps.cell[at], np.where(taken[at], -amount, amount), sets, steps.call[at])


def _one_by_one(world: World, columns: Columns) -> Changes:
    """Return the same where operations do more than to add and to set."""
    held = _starts(world).tolist()
    rows: list[tuple[int, int, bool, int]] = []
    for event in columns:
        cell, change = event.op.cell, change_in(event)
        if cell is None or change is None or (event.op.deferred and event.op.kind in SIGNALLING):
            continue
        how, amount = change
        held[cell.slot] = APPLY[how](held[cell.slot], amount)
        adds = how in ADDING
        rows.append((cell.slot, amount if adds else held[cell.slot], not adds, event.call))
    cells, amounts, sets, calls = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Changes(
        np.array(cells, np.int64), np.array(amounts, np.int64), np.array(sets, bool), np.array(calls, np.int64)
    )


def _starts(world: World) -> Numbers:
    starts = np.zeros(world.cells + 1, np.int64)
    for signal in world.signals:
        starts[signal.first_slot : signal.first_slot + signal.cells_a_rank * world.ranks] = signal.start
    return starts


def _most(
    run: Recorded, changes: Changes, values: Sequence[Numbers], sign: int, guarded: Collection[int] | None
) -> tuple[list[Numbers], Numbers]:
    """Return what each cell holds at most up to each boundary from the first one on, and what a period adds to that.

    With the sign -1 all is turned round: the most is the least. Between boundaries of which nobody gets from before
    the one to behind the other, the gains of all the calls may have come, and none of the losses.
    """
    amounts = np.where(changes.sets, 0, sign * changes.amount)
    first, runs_away = run.first, guarded is not None
    gains = list(_sums(changes, np.maximum(amounts, 0), run))
    losses = list(_sums(changes, np.minimum(amounts, 0), run))
    change = values[run.second] - values[first]
    gained = sum(gains[first : run.second], np.zeros_like(change))
    only_gains = sum(losses, np.zeros_like(change)) == 0
    level = values[0] + sum(gains[:first], np.zeros_like(change)) if runs_away else values[first]
    most = [level]
    for call in range(first, run.calls):
        level = level + gains[call]
        most.append(level)
    most = [np.where(only_gains, value, most) for value, most in zip(values[first:], most, strict=True)]
    if runs_away:
        kept = np.zeros(len(change), bool)
        kept[list(guarded or ())] = sign < 0
        change = np.where(kept & (change <= 0), 0, gained)
    _look_at_sets(most, changes, sign, run, values)
    return most, change


def _sums(changes: Changes, amounts: Numbers, run: Recorded) -> Iterator[Numbers]:
    """Yield what comes to each cell in each call."""
    for call in range(run.calls):
        low, high = np.searchsorted(changes.call, (call, call + 1))
        total = np.zeros(run.world.cells + 1, np.int64)
        np.add.at(total, changes.cell[low:high], amounts[low:high])
        yield total


def _look_at_sets(most: list[Numbers], changes: Changes, sign: int, run: Recorded, values: Sequence[Numbers]) -> None:
    """Correct the most of cells that are set: a Set is ordered with all else, and begins anew."""
    slots = np.unique(changes.cell[changes.sets])
    if not len(slots):
        return
    level = {slot: int(values[0][slot]) for slot in slots.tolist()}
    highest = dict.fromkeys(level, LEAST)
    of_sets = np.flatnonzero(np.isin(changes.cell, slots))
    begins = np.searchsorted(changes.call[of_sets], np.arange(run.calls + 1))
    for call in range(run.calls):
        if call == run.first:
            highest = dict(level)
            most[0][slots] = list(level.values())
        for at in of_sets[begins[call] : begins[call + 1]].tolist():
            slot, amount = int(changes.cell[at]), sign * int(changes.amount[at])
            level[slot] = amount if changes.sets[at] else level[slot] + max(amount, 0)
            highest[slot] = max(highest[slot], level[slot])
        if call >= run.first:
            most[call + 1 - run.first][slots] = list(highest.values())


def _compared(run: Recorded, sign: int) -> list[Numbers]:
    """Return the most that each cell is compared with up to each boundary: that must lie in its range, too."""
    steps = run.steps
    compared = np.flatnonzero(among(COMPARING)[steps.kind])
    begins = np.searchsorted(steps.call[compared], np.arange(run.calls + 1))
    highest = np.full(run.world.cells + 1, LEAST)
    found = [highest]
    for call in range(run.first, run.calls):
        at = compared[begins[call] : begins[call + 1]]
        highest = highest.copy()
        np.maximum.at(highest, steps.cell[at], sign * steps.amount[at].astype(np.int64))
        found.append(highest)
    return found


def _limits(run: Recorded, most: Sequence[Numbers], change: Numbers, end: int) -> Iterator[int]:
    """Yield for how many calls cells stay below the end of their range, for each kind of growing cell."""
    growing = change > 0
    if not growing.any():
        return
    length = run.second - run.first
    levels = [level[growing] for level in most]
    change = change[growing]
    last = len(levels) - 1
    # After k periods and `more` calls more than recorded: k times the change, and ...
    beyond = [
        np.max([levels[last], *(levels[last + more - n * length] + n * change
                                for n in range(1, (last + more) // length + 1))], axis=0)
        for more in range(length)
    ]  # fmt: skip
    for *tops, each in np.unique(np.stack([*beyond, change], axis=1), axis=0).tolist():
        reached = [run.calls + (end - top) // each * length + more for more, top in enumerate(tops) if top <= end]
        yield max(reached, default=run.calls)
