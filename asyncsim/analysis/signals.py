"""Flags: where counting credits is not enough to know what every schedule does.

S1  a Set that is unordered with another Set or update of its cell can erase it, or be erased; and updates of two
    kinds do not commute.
S2  a change against a wait's direction, by another actor and unordered with it, can undo its credit.
S3  a wait whose condition can turn from true to false while it is pending can be missed.
S4  a `test` whose answer depends on the schedule, or a read or atomic whose value does, puts the run outside the
    theory.
S5  a cell that can leave its integer range.

Sound, not exact: a few are harmless, and their witness decides.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from asyncsim.analysis.group import Suspect
from asyncsim.analysis.precede import precedes, unordered
from asyncsim.analysis.steady import constant, threats, undone, value_seen
from asyncsim.analysis.updates import ANSWER, change_in, seen_by
from asyncsim.trace.cells import SET, UP, way_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.analysis.precede import Order
    from asyncsim.analysis.streams import Epoch, History, Place, Streams, Wait

    _Why = Callable[[Streams, Place, Place], str]
    _WhyOne = Callable[[tuple[Place, ...]], str]


def signal_races(streams: Streams, order: Order) -> Iterator[Suspect]:
    """Yield S1 and S2, a suspect a pair of operations.

    Args:
        streams: of the run.
        order: of all schedules.

    """
    for history in streams.histories.values():
        changes = [place for place, _, _ in history.updates] + history.sets
        sets = set(history.sets)
        for x in history.sets:
            for y in changes:
                if x[0] != y[0] and not (y in sets and y <= x) and unordered(order, x, y):
                    yield _pair(streams, history, "signal-race", (x, y), _why_set)
        for x, y in _of_two_kinds(history):
            if unordered(order, x, y):
                yield _pair(streams, history, "signal-race", (x, y), _why_kinds)
        for x, y in _overtaken(streams, order, history):
            yield _pair(streams, history, "signal-race", (x, y), _why_set)
        for wait in history.waits:
            for place in threats(streams, order, wait):
                yield _pair(streams, history, "signal-race", (place, wait.place), _why_taken)


def _overtaken(streams: Streams, order: Order, history: History) -> Iterator[tuple[Place, Place]]:
    """Yield each change that a wait saw pending though its epoch began after the wait, with what began that epoch.

    Where an actor sees its own pending changes, a wait may pass by one that lands when the cell has been set. In the
    epoch of that wait the change does not exist, so the order takes the wait for one that no schedule passes, and
    everything after it for ordered. But what was pending could as well have landed before the Set.
    """
    if len(history.epochs) == 1 or not streams.model.late or not streams.model.forwarding:
        return
    issued: dict[int, list[tuple[Place, int, Place]]] = {}
    for place, _, epoch in history.updates:
        if epoch.opener is not None and epoch.opener != place:
            issued.setdefault(streams.issue(place)[0], []).append((epoch.opener, epoch.number, place))
    found = {
        (opener, place)
        for wait in history.waits
        if wait.epoch is not None
        for opener, number, place in issued.get(wait.place[0], ())
        if number > wait.epoch.number and streams.relation(wait.place, place) == "sure"
    }
    yield from (pair for pair in sorted(found) if not unordered(order, *pair))  # the others are told already


def _of_two_kinds(history: History) -> Iterator[tuple[Place, Place]]:
    """Yield the updates of different actors that do not commute, Sets apart."""
    by_kind: dict[str, list[Place]] = {}
    for place, _, epoch in history.updates:
        by_kind.setdefault(epoch.kind, []).append(place)
    for one, other in combinations(by_kind.values(), 2):
        yield from ((x, y) for x in one for y in other if x[0] != y[0])


def signal_race_at(streams: Streams, x: Place, y: Place) -> Suspect:
    """Return the suspect of two changes of a cell, one a Set, that are known to come in either order.

    Args:
        streams: of the run.
        x: an operation that changes the cell.
        y: another one.

    """
    sets = x if _change_of(streams, x) == SET else y
    cell = streams.event(x).op.cell
    assert cell is not None  # noqa: S101 - for the type checker: both change a cell
    return _pair(streams, streams.histories[cell.slot], "signal-race", (sets, y if sets is x else x), _why_set)


def unstable_waits(streams: Streams, order: Order) -> Iterator[Suspect]:
    """Yield S3: each wait that can be missed, with an operation that makes it false again.

    Args:
        streams: of the run.
        order: of all schedules.

    """
    for history in streams.histories.values():
        for wait in history.waits:
            found = undone(streams, order, wait)
            if found is not None:
                culprit, sets = found
                why = _why_reset if sets else _why_overshoot
                yield _pair(streams, history, "unstable-wait", (wait.place, culprit), why)


def undetermined_tests(streams: Streams, order: Order) -> Iterator[Wait]:
    """Yield S4: each operation whose program gets of its cell what is not the same in every schedule.

    Of a test that is the answer, of a compare_exchange also whether it changed the cell; of all else the value.

    Args:
        streams: of the run.
        order: of all schedules.

    """
    for history in streams.histories.values():
        for test in history.tests:
            seen = seen_by(test.event.op)
            if (constant if seen == ANSWER else value_seen)(streams, order, test) is None:
                yield test
        for wait in history.waits:
            if seen_by(wait.event.op) and value_seen(streams, order, wait) is None:
                yield wait


def why_undetermined(seen: Wait) -> str:
    """Say of an operation that `undetermined_tests` yields what depends on the schedule.

    Args:
        seen: a test, or another operation whose program gets something.

    """
    op = seen.event.op
    what = "the answer of" if seen_by(op) == ANSWER else "what the program gets of"
    return f"{what} {op.actor.title}'s '{op}' depends on the schedule"


def overflows(streams: Streams, order: Order) -> Iterator[Suspect]:
    """Yield S5: a suspect a cell that may leave its range; exact where one actor alone adds, or alone subtracts.

    Args:
        streams: of the run.
        order: of all schedules.

    """
    for history in streams.histories.values():
        cell = history.cell
        for epoch in history.epochs:
            if not epoch.is_sum:
                continue  # what is made of bits, or one of two, stays in the range
            gains = [sum(a for a in tally.amounts if a > 0) for tally in epoch.tallies.values()]
            losses = [sum(a for a in tally.amounts if a < 0) for tally in epoch.tallies.values()]
            low, high = epoch.base + sum(losses), epoch.base + sum(gains)
            if cell.low <= low and high <= cell.high:
                continue
            if len(history.epochs) == 1:
                low, high = _bounds(streams, order, epoch, low, high)
            if cell.low <= low and high <= cell.high:
                continue
            last = max((place for place, _, of in history.updates if of is epoch), default=epoch.opener)
            if last is not None:
                yield Suspect("overflow", cell.signal, (last,), (str(cell),), _why_overflow(streams, low, high))
                break


def _bounds(streams: Streams, order: Order, epoch: Epoch, low: int, high: int) -> tuple[int, int]:
    """Return tighter bounds where only one actor subtracts, or only one adds: the extremes lie between its own."""
    for sign in (1, -1):
        against = [who for who, tally in epoch.tallies.items() if any(sign * amount < 0 for amount in tally.amounts)]
        if len(against) == 1:
            least, most = _extremes(streams, order, epoch, against[0], sign)
            return (least, most) if sign > 0 else (-most, -least)
    return low, high


def _extremes(streams: Streams, order: Order, epoch: Epoch, owner: int, sign: int) -> tuple[int, int]:
    """Return the least and the most of a cell (upside down, if the sign is -1) from which its owner alone takes."""
    own = epoch.tallies[owner]
    base = sign * epoch.base
    lows, highs = [base], []
    for index in [*own.indexes, len(streams.events[owner])]:  # others may add after its last own add, too
        others = [(who, tally) for who, tally in epoch.tallies.items() if who != owner]
        most = sum(tally.credits_before(order.reach(owner, index, who), sign) for who, tally in others)
        highs.append(base + sign * own.before(index) + most)
    for index in own.indexes:
        least = sum(
            sign * amount
            for who, tally in epoch.tallies.items()
            if who != owner
            for at, amount in zip(tally.indexes, tally.amounts, strict=True)
            if precedes(order, (who, at), (owner, index))
        )
        lows.append(base + sign * own.before(index + 1) + least)
    return min(lows), max(highs)


def _pair(streams: Streams, history: History, kind: str, places: tuple[Place, Place], why: _Why) -> Suspect:
    cell = str(history.cell)
    return Suspect(kind, history.cell.signal, places, (cell, cell), lambda _: why(streams, *places))


def _says(streams: Streams, place: Place) -> str:
    event = streams.event(place)
    line = f", {event.at[0]}" if event.at and event.at[0] else ""
    return f"{event.op.actor.title}'s '{event.op}' (call {event.call}{line})"


def _why_set(streams: Streams, x: Place, y: Place) -> str:
    if SET not in (_change_of(streams, x), _change_of(streams, y)):
        return _why_kinds(streams, x, y)
    other = "the other Set" if _change_of(streams, y) == SET else "the credit"
    return f"{_says(streams, x)} and {_says(streams, y)} can come in either order: the Set can erase {other}"


def _change_of(streams: Streams, place: Place) -> str:
    """Return the name of the update of an operation that makes one."""
    change = change_in(streams.event(place))
    return "" if change is None else change[0]


def _why_kinds(streams: Streams, x: Place, y: Place) -> str:
    return f"{_says(streams, x)} and {_says(streams, y)} can come in either order, and do not commute"


def _why_taken(streams: Streams, subtraction: Place, wait: Place) -> str:
    change = change_in(streams.event(subtraction))
    if change is not None and way_of(*change) == UP:
        return f"{_says(streams, subtraction)} can make up for what {_says(streams, wait)} waits to see taken away"
    return f"{_says(streams, subtraction)} can take away the credit that {_says(streams, wait)} waits for"


def _why_reset(streams: Streams, wait: Place, opener: Place) -> str:
    return f"{_says(streams, wait)} can hold and then be undone by {_says(streams, opener)} before it is noticed"


def _why_overshoot(streams: Streams, wait: Place, add: Place) -> str:
    return f"{_says(streams, wait)} can hold and then be overshot by {_says(streams, add)} before it is noticed"


def _why_overflow(streams: Streams, low: int, high: int) -> _WhyOne:
    def why(places: tuple[Place, ...]) -> str:
        cell = streams.event(places[0]).op.cell
        assert cell is not None  # noqa: S101 - for the type checker: an overflow is about a cell
        return f"{cell} can take values from {low} to {high}; it holds {cell.low} to {cell.high}"

    return why
