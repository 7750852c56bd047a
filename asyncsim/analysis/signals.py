"""Flags: where counting credits is not enough to know what every schedule does.

S1  a Set that is unordered with another Set or add of its cell can erase it, or be erased.
S2  a subtraction by another actor that is unordered with a wait can take its credit away.
S3  a wait whose condition can turn from true to false while it is pending can be missed.
S4  a `test` whose answer depends on the schedule puts the run outside the theory.
S5  a cell that can leave its integer range.

Sound, not exact: a few are harmless, and their witness decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.group import Suspect
from asyncsim.analysis.guards import may_turn_false, sure_value
from asyncsim.analysis.order import least_credits, may_be_current, most_credits, precedes, unordered
from asyncsim.trace.op import SET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.analysis.order import Order
    from asyncsim.analysis.streams import Epoch, History, Place, Streams, Wait

    _Why = Callable[[Streams, Place, Place], str]
    _WhyOne = Callable[[tuple[Place, ...]], str]


def signal_races(streams: Streams, order: Order) -> Iterator[Suspect]:
    """Yield S1 and S2, a suspect a pair of operations."""
    for history in streams.histories.values():
        changes = [place for place, _, _ in history.adds] + history.sets
        sets = set(history.sets)
        for x in history.sets:
            for y in changes:
                if x[0] != y[0] and not (y in sets and y <= x) and unordered(order, x, y):
                    yield _pair(streams, history, "signal-race", (x, y), _why_set)
        for place, amount, _ in history.adds:
            if amount < 0:
                for wait in history.waits:
                    if streams.relation(wait.place, place) == "free" and not _strictly_ordered(
                        order, place, wait.place
                    ):
                        yield _pair(streams, history, "signal-race", (place, wait.place), _why_taken)


def _strictly_ordered(order: Order, subtraction: Place, wait: Place) -> bool:
    """S2: the subtraction was executed whenever the wait is *reached*, or the wait whenever the subtraction can be."""
    return order.reach(*subtraction, wait[0]) < wait[1] or precedes(order, wait, subtraction)


def unstable_waits(streams: Streams, order: Order) -> Iterator[Suspect]:
    """Yield S3: each wait that can be missed, with an operation that makes it false again."""
    for history in streams.histories.values():
        for wait in history.waits:
            op = wait.event.op
            current = [epoch for epoch in history.epochs if may_be_current(streams, order, wait, epoch)]
            passable = False
            for epoch in current:
                sure = sure_value(streams, wait, epoch)
                most = most_credits(streams, order, wait, epoch)
                if passable and epoch.opener is not None and not _holds(op.how, op.amount, sure):
                    yield _pair(streams, history, "unstable-wait", (wait.place, epoch.opener), _why_reset)
                    break
                if may_turn_false(op.how, op.amount, sure, most):
                    culprit = _last_credit(streams, order, wait, epoch)
                    if culprit is not None:
                        yield _pair(streams, history, "unstable-wait", (wait.place, culprit), _why_overshoot)
                        break
                passable = passable or _can_hold(op.how, op.amount, sure, sure + most)


def undetermined_tests(streams: Streams, order: Order) -> Iterator[Wait]:
    """Yield S4: each test whose answer is not the same in every schedule."""
    for history in streams.histories.values():
        for test in history.tests:
            answers = set()
            for epoch in history.epochs:
                if may_be_current(streams, order, test, epoch):
                    sure = sure_value(streams, test, epoch)
                    low = sure + least_credits(streams, order, test, epoch)
                    answers |= _answers(
                        test.event.op.how, test.event.op.amount, low, sure + most_credits(streams, order, test, epoch)
                    )
            taken = any(
                amount < 0
                and streams.relation(test.place, place) == "free"
                and not _strictly_ordered(order, place, test.place)
                for place, amount, _ in history.adds
            )
            if taken or len(answers) != 1:
                yield test


def overflows(streams: Streams, order: Order) -> Iterator[Suspect]:
    """Yield S5: a suspect a cell that may leave its range; exact where one actor alone subtracts."""
    for history in streams.histories.values():
        cell = history.cell
        for epoch in history.epochs:
            gains = [sum(a for a in tally.amounts if a > 0) for tally in epoch.tallies.values()]
            losses = [sum(a for a in tally.amounts if a < 0) for tally in epoch.tallies.values()]
            low, high = epoch.base + sum(losses), epoch.base + sum(gains)
            if cell.low <= low and high <= cell.high:
                continue
            if len(history.epochs) == 1:
                low, high = _bounds(streams, order, epoch, low, high)
            if cell.low <= low and high <= cell.high:
                continue
            last = max((place for place, _, number in history.adds if number == epoch.number), default=epoch.opener)
            if last is not None:
                yield Suspect("overflow", cell.signal, (last,), (str(cell),), _why_overflow(streams, low, high))
                break


def _bounds(streams: Streams, order: Order, epoch: Epoch, low: int, high: int) -> tuple[int, int]:
    """Return tighter bounds where only one actor subtracts: the extremes lie between its own adds."""
    subtractors = [who for who, tally in epoch.tallies.items() if min(tally.amounts) < 0]
    if len(subtractors) != 1:
        return low, high
    owner = subtractors[0]
    own = epoch.tallies[owner]
    lows, highs = [epoch.base], []
    for index in [*own.indexes, len(streams.events[owner])]:  # others may add after its last own add, too
        others = [(who, tally) for who, tally in epoch.tallies.items() if who != owner]
        most = sum(tally.credits_before(order.reach(owner, index, who)) for who, tally in others)
        highs.append(epoch.base + own.before(index) + most)
    for index in own.indexes:
        least = sum(
            amount
            for who, tally in epoch.tallies.items()
            if who != owner
            for at, amount in zip(tally.indexes, tally.amounts, strict=True)
            if precedes(order, (who, at), (owner, index))
        )
        lows.append(epoch.base + own.before(index + 1) + least)
    return min(lows), max(highs)


def _holds(how: str, amount: int, value: int) -> bool:
    return _answers(how, amount, value, value) == {True}


def _can_hold(how: str, amount: int, low: int, high: int) -> bool:
    return True in _answers(how, amount, low, high)


def _answers(how: str, amount: int, low: int, high: int) -> set[bool]:
    """Return what the comparison can say for values between `low` and `high`."""
    inside = low <= amount <= high
    if how in ("Eq", "Ne"):
        equal = {True, False} if inside and low != high else {inside}
        return equal if how == "Eq" else {not answer for answer in equal}
    if how in ("Ge", "Lt"):
        at_least = {value >= amount for value in (low, high)}
        return at_least if how == "Ge" else {not answer for answer in at_least}
    above = {value > amount for value in (low, high)}
    return above if how == "Gt" else {not answer for answer in above}


def _last_credit(streams: Streams, order: Order, wait: Wait, epoch: Epoch) -> Place | None:
    """Return a foreign add of the epoch that can come while the wait is pending: the last of the first actor."""
    actor, index = wait.place
    for who, tally in epoch.tallies.items():
        if streams.relation(wait.place, (who, tally.indexes[0])) == "free":
            reached = order.reach(actor, index, who)
            come = [at for at, amount in zip(tally.indexes, tally.amounts, strict=True) if amount > 0 and at < reached]
            if come:
                return who, come[-1]
    return None


def _pair(streams: Streams, history: History, kind: str, places: tuple[Place, Place], why: _Why) -> Suspect:
    cell = str(history.cell)
    return Suspect(kind, history.cell.signal, places, (cell, cell), lambda _: why(streams, *places))


def _says(streams: Streams, place: Place) -> str:
    event = streams.event(place)
    line = f", {event.at[0]}" if event.at and event.at[0] else ""
    return f"{event.op.actor.title}'s '{event.op}' (call {event.call}{line})"


def _why_set(streams: Streams, x: Place, y: Place) -> str:
    other = "the other Set" if streams.event(y).op.how == SET else "the credit"
    return f"{_says(streams, x)} and {_says(streams, y)} can come in either order: the Set can erase {other}"


def _why_taken(streams: Streams, subtraction: Place, wait: Place) -> str:
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
