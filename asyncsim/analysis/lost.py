"""Credits that came and were lost: which operation made a blocked wait miss what it waits for.

An operation is to blame if the cell would satisfy the wait without it, all others as they were. It must
have taken away something that the waiter had not seen: a value that an earlier wait of the same actor
passed on has done its work, and whoever resets it afterwards takes nothing away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.updates import change_in
from asyncsim.trace.cells import ADDING, APPLY, COMPARE, DOWN, RISING, SET, way_of
from asyncsim.trace.kinds import EXCHANGING, WAITING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from asyncsim.analysis.streams import Streams
    from asyncsim.trace.event import Event

OVERSHOT, ERASED, WRAPPED, TAKEN = "overshot", "erased", "wrapped", "taken away"


def changes_of(streams: Streams, wait: Event) -> list[Event]:
    """Return the executed operations that changed the cell of a wait, in the order of the run.

    Args:
        streams: of the run.
        wait: the event of a wait.

    """
    cell = wait.op.cell
    found = [
        event
        for stream in streams.events
        for event in stream
        if event.step is not None
        and event.op.cell is not None
        and cell is not None
        and event.op.cell.slot == cell.slot
        and not event.op.deferred
        and change_in(event) is not None
    ]
    return sorted(found, key=_step)


def value_after(event: Event) -> int:
    """Return the cell's value after an operation that changed it."""
    have = event.have if event.have is not None else 0
    op, change = event.op, change_in(event)
    if change is None or op.cell is None or not (op.kind in WAITING or op.kind in EXCHANGING):
        return have  # which is what it left there
    how, amount = change
    return op.cell.wrapped(APPLY[how](have, amount))


def loss_of(streams: Streams, wait: Event, changes: Sequence[Event]) -> tuple[str, Event, str] | None:
    """Return how a blocked wait lost what it waits for: in a word, by which operation, and what that did.

    Args:
        streams: of the run.
        wait: that is blocked.
        changes: of its cell, as `changes_of` returns them.

    """
    start = _start(streams, wait)
    before = dict(zip(map(id, changes), [start, *map(value_after, changes)], strict=False))
    passed = _passed(streams, wait)
    for culprit in reversed(changes):
        value = before[id(culprit)]
        step = f"took it from {value} to {value_after(culprit)}"
        if _wrapped(culprit, value):
            if COMPARE[wait.op.how](_value(start, changes), wait.op.amount):
                return WRAPPED, culprit, f"{step}, around its range"
            continue
        consumed = culprit.op.consume and culprit.op.actor is wait.op.actor
        if consumed or not _unseen(wait, culprit, passed, changes):
            continue
        without = _value(start, (each for each in changes if each is not culprit))
        if COMPARE[wait.op.how](without, wait.op.amount):
            return _word(culprit), culprit, f"{step}; without that it would be {without}"
    return _jump(wait, changes, before, passed)


def _jump(
    wait: Event, changes: Sequence[Event], before: dict[int, int], passed: Mapping[int, int]
) -> tuple[str, Event, str] | None:
    """Return the last change, if it went past the one value that is waited for without stopping there."""
    if not changes or wait.op.how != "Eq" or _step(changes[-1]) < max(passed, default=-1):
        return None
    if _change(changes[-1])[0] == SET:
        return None
    low, high = before[id(changes[-1])], value_after(changes[-1])
    return (OVERSHOT, changes[-1], f"took it from {low} to {high}") if low < wait.op.amount < high else None


def _unseen(wait: Event, culprit: Event, passed: Mapping[int, int], changes: Sequence[Event]) -> bool:
    """Say whether something had come before the culprit, or come at all, that the waiter has not passed a wait on."""
    step = _step(culprit)
    rising = wait.op.how in RISING
    if not rising and any(at > step for at in passed):
        return False  # what it saw later made this one old
    since = max((at for at in passed if at < step), default=-1)
    if since < 0:
        return True  # nothing was seen so far, not even the start value
    if rising and passed[since] > 0:
        return True  # it saw more than it asked for
    return any(since < _step(each) < step and each is not culprit and (not rising or _raises(each)) for each in changes)


def _raises(event: Event) -> bool:
    how, amount = _change(event)
    return amount > 0 if how in ADDING else way_of(how, amount) != DOWN


def _passed(streams: Streams, wait: Event) -> dict[int, int]:
    """Return the steps in which the waiter passed waits on this cell, and how much more than it asked for it saw."""
    cell = wait.op.cell
    return {
        each.event.step: (each.event.have or 0) - each.event.op.amount
        for each in ([] if cell is None else streams.histories[cell.slot].waits)
        if each.event.step is not None and each.event.op.actor is wait.op.actor
    }


def _word(culprit: Event) -> str:
    if _change(culprit)[0] == SET:
        return ERASED
    return OVERSHOT if _raises(culprit) else TAKEN


def _value(start: int, changes: Iterable[Event]) -> int:
    """Return what the cell would hold after these changes, if it had no range."""
    value = start
    for event in changes:
        how, amount = _change(event)
        value = APPLY[how](value, amount)
    return value


def _wrapped(event: Event, value: int) -> bool:
    how, amount = _change(event)
    return how in ADDING and not event.op.consume and (value_after(event) < value) != (amount < 0)


def _change(event: Event) -> tuple[str, int]:
    change = change_in(event)
    assert change is not None  # noqa: S101 - for the type checker: only what changes the cell is asked
    return change


def _start(streams: Streams, wait: Event) -> int:
    cell = wait.op.cell
    assert cell is not None  # noqa: S101 - for the type checker: a wait has a cell
    return streams.trace.header.world.start_of(cell)


def _step(event: Event) -> int:
    return -1 if event.step is None else event.step
