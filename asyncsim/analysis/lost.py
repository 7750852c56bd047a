"""Credits that came and were lost: which operation made a blocked wait miss what it waits for.

An operation is to blame if the cell would satisfy the wait without it, all others as they were. It must
have taken away something that the waiter had not seen: a value that an earlier wait of the same actor
passed on has done its work, and whoever resets it afterwards takes nothing away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.cells import COMPARE, RISING, SET
from asyncsim.trace.kinds import CHANGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from asyncsim.analysis.streams import Streams
    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op

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
        and (event.op.consume or (event.op.kind in CHANGING and not event.op.deferred))
    ]
    return sorted(found, key=_step)


def value_after(event: Event) -> int:
    """Return the cell's value after a notify or a consuming wait."""
    have = event.have if event.have is not None else 0
    if not event.op.consume or event.op.cell is None:
        return have
    return event.op.cell.wrapped(have - event.op.amount)


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
    if not changes or wait.op.how != "Eq" or changes[-1].op.how == SET or _step(changes[-1]) < max(passed, default=-1):
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
    return any(
        since < _step(each) < step and each is not culprit and (not rising or _raises(each.op)) for each in changes
    )


def _raises(op: Op) -> bool:
    return op.how == SET or (op.amount > 0 and not op.consume)


def _passed(streams: Streams, wait: Event) -> dict[int, int]:
    """Return the steps in which the waiter passed waits on this cell, and how much more than it asked for it saw."""
    cell = wait.op.cell
    return {
        each.event.step: (each.event.have or 0) - each.event.op.amount
        for each in ([] if cell is None else streams.histories[cell.slot].waits)
        if each.event.step is not None and each.event.op.actor is wait.op.actor
    }


def _word(culprit: Event) -> str:
    if culprit.op.how == SET:
        return ERASED
    return OVERSHOT if _raises(culprit.op) else TAKEN


def _value(start: int, changes: Iterable[Event]) -> int:
    """Return what the cell would hold after these changes, if it had no range."""
    value = start
    for event in changes:
        op = event.op
        value = op.amount if op.how == SET else value - op.amount if op.consume else value + op.amount
    return value


def _wrapped(event: Event, value: int) -> bool:
    return event.op.how != SET and not event.op.consume and (value_after(event) < value) != (event.op.amount < 0)


def _start(streams: Streams, wait: Event) -> int:
    cell = wait.op.cell
    assert cell is not None  # noqa: S101 - for the type checker: a wait has a cell
    start: int = streams.trace.header.world.layouts[cell.signal].start  # type: ignore[union-attr]  # a cell's is a signal
    return start


def _step(event: Event) -> int:
    return -1 if event.step is None else event.step
