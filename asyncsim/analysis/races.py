"""Data races: conflicting accesses that no schedule-independent order separates (S. of data)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.group import Suspect
from asyncsim.analysis.order import unordered
from asyncsim.trace.conflict import accesses_conflict
from asyncsim.trace.op import WAIT
from asyncsim.trace.region import ADD, READ, SYMBOLS, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.order import Order
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.region import Access, Spans

_Entry = tuple[tuple[int, int], "Access"]


def races(streams: Streams, order: Order) -> Iterator[Suspect]:
    """Yield every race and every order-dependent sum, a suspect a pair of operations."""
    seen: set[tuple[Place, Place]] = set()
    for (x, first), (y, second) in _overlapping(streams):
        pair = (x, y) if x < y else (y, x)
        if pair in seen:
            continue
        both_add = first.mode == second.mode == ADD
        if both_add:
            if first.region.dtype.kind in "biu":
                continue
        elif not accesses_conflict(first, second):
            continue
        seen.add(pair)
        if unordered(order, x, y):
            yield _suspect(streams, (x, y), (first, second), both_add=both_add)


def _overlapping(streams: Streams) -> Iterator[tuple[_Entry, _Entry]]:
    """Yield pairs of accesses of different actors to common bytes, one of which changes them."""
    slots: dict[int, dict[Spans, list[_Entry]]] = {}
    for actor, stream in enumerate(streams.events):
        for index, event in enumerate(stream):
            for access in event.op.accesses:
                spans = access.region.spans
                if spans:
                    slots.setdefault(access.region.slot, {}).setdefault(spans, []).append(((actor, index), access))
    for by_spans in slots.values():
        ordered = sorted(by_spans)
        for n, spans in enumerate(ordered):
            yield from _pairs(by_spans[spans], None)
            end = spans[-1][1]
            for other in ordered[n + 1 :]:
                if other[0][0] >= end:
                    break
                if spans_overlap(spans, other):
                    yield from _pairs(by_spans[spans], by_spans[other])


def _pairs(entries: list[_Entry], others: list[_Entry] | None) -> Iterator[tuple[_Entry, _Entry]]:
    """Yield writers against everybody; within one list each pair once."""
    for n, x in enumerate(entries):
        rest = entries[n + 1 :] if others is None else others
        for y in rest:
            if x[0][0] != y[0][0] and not (x[1].mode == y[1].mode == READ):
                yield x, y


def _suspect(
    streams: Streams, places: tuple[Place, Place], accesses: tuple[Access, Access], *, both_add: bool
) -> Suspect:
    access_at = dict(zip(places, accesses, strict=True))

    def hazard(sides: tuple[Place, ...]) -> str:
        first, second = (access_at[side].mode != READ for side in sides)
        return {(True, False): "RAW", (False, True): "WAR", (True, True): "WAW"}[first, second]

    def why(sides: tuple[Place, ...]) -> str:
        return _why(streams, sides)

    window = accesses[0].region.window
    regions = tuple(str(access.region) for access in accesses)
    if both_add:
        return Suspect("order-dependent-sum", window, places, regions, lambda sides: _why_sum(streams, sides))
    return Suspect("race", window, places, regions, why, hazard)


def _name(streams: Streams, place: Place) -> str:
    event = streams.event(place)
    return f"rank {event.op.actor.rank}'s {event.op.kind} (call {event.call}{_line(event.at)})"


def _line(at: tuple[str, ...]) -> str:
    return f", {at[0]}" if at and at[0] else ""


def _why(streams: Streams, sides: tuple[Place, ...]) -> str:
    """Say what is missing: the last wait for the other rank before the later side, and why it does not help."""
    first, second = sides
    late = streams.event(second).op.actor.rank
    early = streams.event(first).op.actor.rank
    wait = _last_wait(streams, second, first[0])
    reason = (
        f"rank {late} waits for nothing from rank {early} before it"
        if wait is None
        else f"rank {late}'s last wait for rank {early} before it, {_condition(streams, wait)}, "
        f"can pass while rank {early} still stands before its {streams.event(first).op.kind}"
    )
    return f"nothing orders {_name(streams, first)} and {_name(streams, second)}: {reason}"


def _last_wait(streams: Streams, place: Place, writer: int) -> Place | None:
    """Return the last wait before `place` on a cell that actor `writer` adds to or sets."""
    actor, index = place
    for at in range(index - 1, -1, -1):
        op = streams.events[actor][at].op
        if op.kind == WAIT and op.cell is not None:
            history = streams.histories[op.cell.slot]
            if any(who == writer for (who, _), _, _ in history.adds) or any(who == writer for who, _ in history.sets):
                return actor, at
    return None


def _condition(streams: Streams, place: Place) -> str:
    event = streams.event(place)
    inner = f" in {event.at[1]}" if len(event.at) > 1 else ""
    op = event.op
    return f"{op.cell} {SYMBOLS[op.how]} {op.amount} (call {event.call}{_line(event.at)}{inner})"


def _why_sum(streams: Streams, sides: tuple[Place, ...]) -> str:
    first, second = sides
    return (
        f"{_name(streams, first)} and {_name(streams, second)} add floating-point numbers to the same elements "
        "in either order, and such a sum depends on the order"
    )
