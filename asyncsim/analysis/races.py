"""Data races: conflicting accesses that no schedule-independent order separates."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

from asyncsim.analysis.group import Suspect
from asyncsim.analysis.precede import unordered
from asyncsim.analysis.touches import entries_of, is_met
from asyncsim.trace.cells import SYMBOLS
from asyncsim.trace.conflict import accesses_conflict, meeting_accesses
from asyncsim.trace.finding import ATOMIC, RACE, SUM
from asyncsim.trace.kinds import FETCHING, LANDING, WAITING
from asyncsim.trace.region import READ, adds_commute, both_atomic, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.analysis.precede import Order
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.analysis.touches import Entry
    from asyncsim.trace.region import Access, Spans

    _Why = Callable[[tuple[Place, ...]], str]


def kind_of(first: Access, second: Access) -> str | None:
    """Say what two accesses that nothing orders are: a race, or atomics whose order may show; None: neither.

    Args:
        first: an access.
        second: another one, of the same world.

    """
    one, other = first.region, second.region
    if adds_commute(first, second):
        rounded = one.dtype.kind not in "biu" and one.slot == other.slot and spans_overlap(one.spans, other.spans)
        return SUM if rounded else None
    if not accesses_conflict(first, second):
        return None
    return ATOMIC if both_atomic(first, second) else RACE


def races(streams: Streams, order: Order, why: _Why | None = None) -> Iterator[Suspect]:
    """Yield every race and all atomics whose order may show, a suspect a pair of operations.

    Args:
        streams: of the run.
        order: of all schedules.
        why: says of two sides of a race what is missing; None: as `why_unordered` does.

    """
    raced: set[tuple[Place, Place]] = set()
    atomics: dict[tuple[Place, Place], Suspect] = {}
    for a, b in _overlapping(streams):
        x, y, first, second = a.place, b.place, a.access, b.access
        pair = (min(x, y), max(x, y))
        kind = kind_of(first, second)
        if kind is None or pair in raced or (kind != RACE and pair in atomics) or not unordered(order, x, y):
            continue
        suspect = _suspect(streams, (x, y), (first, second), kind, why)
        if kind == RACE:
            raced.add(pair)
            yield suspect
        else:
            atomics[pair] = suspect
    # Two operations that race in one place and are atomic in another are a race.
    yield from (suspect for pair, suspect in atomics.items() if pair not in raced)


def suspect_at(streams: Streams, x: Place, y: Place, kind: str) -> Suspect:
    """Return the suspect of two operations that are known to race, or to be atomics whose order may show.

    Args:
        streams: of the run.
        x: an operation.
        y: another one, that nothing orders with it.
        kind: `RACE` or `ATOMIC` or `SUM`; the first of their accesses that are in such a relation are named.

    Raises:
        RuntimeError: no two of their accesses are.

    """
    for first, second in meeting_accesses(streams.event(x).op, streams.event(y).op):
        if kind_of(first, second) == kind:
            return _suspect(streams, (x, y), (first, second), kind)
    raise RuntimeError(f"{streams.event(x).op} and {streams.event(y).op} do not conflict")


def _overlapping(streams: Streams) -> Iterator[tuple[Entry, Entry]]:
    """Yield pairs of accesses of different actors to common bytes, one of which changes them."""
    slots: dict[int, dict[Spans, list[Entry]]] = {}
    for entry in entries_of(streams):
        region = entry.access.region
        slots.setdefault(region.slot, {}).setdefault(region.spans, []).append(entry)
    for by_spans in slots.values():
        ordered = sorted(by_spans)
        for n, spans in enumerate(ordered):
            yield from _pairs(streams, by_spans[spans], None)
            end = spans[-1][1]
            for other in ordered[n + 1 :]:
                if other[0][0] >= end:
                    break
                if spans_overlap(spans, other):
                    yield from _pairs(streams, by_spans[spans], by_spans[other])


def _pairs(streams: Streams, entries: list[Entry], others: list[Entry] | None) -> Iterator[tuple[Entry, Entry]]:
    """Yield each pair of different actors of which one writes; within one list each pair once."""
    for x, y in _writers_first(entries, others):
        if x.place[0] != y.place[0] and is_met(x, y) and is_met(y, x) and not _forwarded(streams, x, y):
            yield x, y


def _writers_first(entries: list[Entry], others: list[Entry] | None) -> Iterator[tuple[Entry, Entry]]:
    """Yield the pairs without those of two readers, which can be very many."""
    writers = [entry for entry in entries if entry.access.mode != READ]
    readers = [entry for entry in entries if entry.access.mode == READ]
    if others is None:
        yield from combinations(writers, 2)
        yield from product(writers, readers)
    else:
        yield from product(writers, others)
        yield from product(readers, [entry for entry in others if entry.access.mode != READ])


def _forwarded(streams: Streams, x: Entry, y: Entry) -> bool:
    """Say whether one is a landing that the other, a load of the same actor, sees before it has landed.

    A non-blocking copy is never seen before.
    """
    if not (streams.model.late and streams.model.forwarding):
        return False
    for landing, load in ((x, y), (y, x)):
        wire = landing.place[0]
        issuer = streams.issuer[wire]
        if issuer is not None and issuer[0] == load.place[0] and load.access.mode == READ:
            return streams.events[wire][0].op.kind not in FETCHING
    return False


def _suspect(
    streams: Streams,
    places: tuple[Place, Place],
    accesses: tuple[Access, Access],
    kind: str,
    missing: _Why | None = None,
) -> Suspect:
    access_at = dict(zip(places, accesses, strict=True))

    def hazard(sides: tuple[Place, ...]) -> str:
        return hazard_of(*(access_at[side] for side in sides))

    def why(sides: tuple[Place, ...]) -> str:
        return missing(sides) if missing is not None else why_unordered(streams, sides)

    window = streams.trace.header.world.memory_of(accesses[0].region.window)
    regions = tuple(str(access.region) for access in accesses)
    if kind == SUM:
        return Suspect(kind, window, places, regions, lambda sides: _why_sum(streams, sides))
    if kind == ATOMIC:
        return Suspect(kind, window, places, regions, lambda sides: _why_atomic(streams, sides))
    return Suspect(kind, window, places, regions, why, hazard)


def hazard_of(first: Access, second: Access) -> str:
    """Name a race by what its first side and its second do.

    Args:
        first: the access of the side that is named first.
        second: the other's; one of the two changes memory.

    """
    return {(True, False): "RAW", (False, True): "WAR", (True, True): "WAW"}[first.mode != READ, second.mode != READ]


def name_of(streams: Streams, place: Place) -> str:
    """Name an operation in a sentence: by its task, its kind, its call and its line.

    Args:
        streams: of the run.
        place: of the operation.

    """
    event = streams.event(place)
    what = event.op.kind
    if what in LANDING:
        what = f"{streams.event(streams.issue(place)).op.kind}, when it lands"
    return f"{_who(streams, place)}'s {what} (call {event.call}{_line(event.at)})"


def _line(at: tuple[str, ...]) -> str:
    return f", {at[0]}" if at and at[0] else ""


def why_unordered(streams: Streams, sides: tuple[Place, ...]) -> str:
    """Say what is missing: the last wait for the other side before the later one, and why it does not help.

    Args:
        streams: of the run.
        sides: two operations, the one that comes first in the run before the other.

    """
    first, second = sides
    late, early = (_who(streams, side) for side in (second, first))
    wait = _last_wait(streams, second, first[0])
    if wait is not None:
        reason = (
            f"{late}'s last wait for {early} before it, {_condition(streams, wait)}, "
            f"can pass {_before(streams, first, early)}"
        )
    elif late == early:
        reason = f"{late} issues both, and no fence, quiet or wait of its own orders them"
    else:
        reason = f"{late} waits for nothing from {early} before it"
    return f"nothing orders {name_of(streams, first)} and {name_of(streams, second)}: {reason}"


def _who(streams: Streams, place: Place) -> str:
    """Name a task: a rank, or one of its streams."""
    actor = streams.actors[streams.issue(place)[0]]
    return f"rank {actor.rank}" if actor.name == str(actor.rank) else f"stream {actor.name}"


def _before(streams: Streams, place: Place, who: str) -> str:
    """Say that an operation has not happened yet; of a landing, by what it was issued as."""
    kind = streams.event(place).op.kind
    if kind in LANDING:
        return f"before {who}'s {streams.event(streams.issue(place)).op.kind} has landed"
    return f"while {who} still stands before its {kind}"


def _last_wait(streams: Streams, place: Place, writer: int) -> Place | None:
    """Return the last wait before `place` on a cell that actor `writer` adds to or sets."""
    actor, index = streams.issue(place)
    writer, _ = streams.issue((writer, 0))
    for at in range(index - 1, -1, -1):
        op = streams.events[actor][at].op
        if op.kind in WAITING and op.cell is not None:
            history = streams.histories[op.cell.slot]
            changes = (*history.sets, *(change for change, _, _ in history.updates))
            if any(streams.issue(change)[0] == writer for change in changes):
                return actor, at
    return None


def _condition(streams: Streams, place: Place) -> str:
    event = streams.event(place)
    inner = f" in {event.at[1]}" if len(event.at) > 1 else ""
    op = event.op
    return f"{op.cell} {SYMBOLS[op.how]} {op.amount} (call {event.call}{_line(event.at)}{inner})"


def _why_atomic(streams: Streams, sides: tuple[Place, ...]) -> str:
    first, second = sides
    return (
        f"{name_of(streams, first)} and {name_of(streams, second)} are atomic and can come in either order: "
        "no race, but what is read, or stays, depends on it"
    )


def _why_sum(streams: Streams, sides: tuple[Place, ...]) -> str:
    first, second = sides
    return (
        f"{name_of(streams, first)} and {name_of(streams, second)} add floating-point numbers to the same elements "
        "in either order, and such a sum depends on the order"
    )
