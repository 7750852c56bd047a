"""Why a run that hangs hangs: of each blocked actor the cell, have and need, and why nobody will help."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from asyncsim.trace.finding import Finding, Side
from asyncsim.trace.op import JOIN, LAND, NOTIFY, PUT_SIGNAL, SET, SYNC, WAIT
from asyncsim.trace.region import SYMBOLS

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.event import Event

OVERSHOT, ERASED, WRAPPED, TAKEN, NEVER_SENT = "overshot", "erased", "wrapped", "taken away", "never sent"


def deadlock(streams: Streams) -> Finding:
    """Return the one finding of a run that ended with everybody blocked."""
    blocked = [
        (number, len(stream) - 1)
        for number, stream in enumerate(streams.events)
        if stream and streams.is_pending((number, len(stream) - 1))
    ]
    sentences = [_sentence(streams, place) for place in blocked]
    sides = tuple(Side.of(streams.event(place), place[1]) for place in blocked)
    cells = [op.cell for op in (streams.event(place).op for place in blocked) if op.cell is not None]
    window = cells[0].signal if cells else None
    # Pairs count what is blocked: the actors.
    return Finding(
        "deadlock", "; ".join(sentences), window=window, pairs=len(blocked), harmful=True, sides=sides,
        shown=f"{len(blocked)} of {len(streams.actors)} actors wait for ever",
    )  # fmt: skip


def _sentence(streams: Streams, place: Place) -> str:
    event = streams.event(place)
    op = event.op
    line = f" at {event.at[0]}" if event.at and event.at[0] else ""
    if op.cell is None:
        return f"rank {op.actor.rank}{line}: {_without_cell(streams, event)}"
    reason, detail = reason_of(streams, event)
    return (
        f"rank {op.actor.rank} waits{line} for {op.cell} {SYMBOLS[op.how]} {op.amount} "
        f"(have {event.have}, need {op.amount + (op.how == 'Gt')}): {reason}, {detail}"
    )


def _without_cell(streams: Streams, event: Event) -> str:
    """Say what an operation that waits for no cell waits for."""
    op = event.op
    if op.kind == JOIN:
        return f"waits to join stream {op.link}, which is blocked itself"
    if op.kind == SYNC:
        come = sum(other.op.link == op.link for stream in streams.events for other in stream if other.op.kind == SYNC)
        return f"waits at a stream barrier to which {come} of {op.amount} streams have come: nobody else will come"
    return f"polls {op.accesses[0].region}, and nobody will write there any more"


def reason_of(streams: Streams, wait: Event) -> tuple[str, str]:
    """Return why nobody will satisfy a blocked wait, in a word and in a clause."""
    op = wait.op
    have = wait.have if wait.have is not None else 0
    if (op.how in ("Eq", "Lt", "Le") and have > op.amount) or (op.how == "Lt" and have == op.amount):
        return OVERSHOT, f"the cell went past it: {_last_change(streams, wait)}"
    changes = [streams.event(p) for p in sorted(_changes(streams, wait), key=lambda p: streams.event(p).step or 0)]
    lost = _losses(streams, wait, changes)
    for reason in (WRAPPED, ERASED, TAKEN):
        if reason in lost:
            return reason, f"{_says(lost[reason])} left the cell at {_after(lost[reason])}"
    return NEVER_SENT, _who_could(streams, wait, changes)


def _losses(streams: Streams, wait: Event, changes: list[Event]) -> dict[str, Event]:
    """Return the last operation that lost credits, for each way in which credits that did come can be lost."""
    op = wait.op
    cell = op.cell
    assert cell is not None  # noqa: S101 - for the type checker: a wait has a cell
    value = streams.trace.header.world.layouts[cell.signal].start  # type: ignore[union-attr]  # a cell's is a signal
    came = value
    lost: dict[str, Event] = {}
    for event in changes:
        after = _after(event)
        adds = event.op.kind != WAIT and event.op.how != SET and event.op.amount > 0
        came += event.op.amount if adds else max(after - value, 0)
        if after < value:
            if adds:
                lost[WRAPPED] = event
            elif event.op.how == SET:
                lost[ERASED] = event
            elif streams.issue((streams.number[event.op.actor.order], 0))[0] != streams.number[op.actor.order]:
                lost[TAKEN] = event
        value = after
    if came < _needed_in_all(streams, wait):
        return {reason: event for reason, event in lost.items() if reason == WRAPPED}  # they were never sent
    return lost


def _needed_in_all(streams: Streams, wait: Event) -> int:
    """Return how many credits this wait and those that passed before it need together.

    Growing thresholds count everything that ever came; others use up what they wait for.
    """
    cell = wait.op.cell
    assert cell is not None  # noqa: S101 - as above
    waits = [w.event.op.amount for w in streams.histories[cell.slot].waits if w.epoch is not None] + [wait.op.amount]
    growing = all(a < b for a, b in pairwise(waits))
    return waits[-1] if growing else sum(waits)


def _changes(streams: Streams, wait: Event) -> list[Place]:
    """Return the executed operations that changed the cell."""
    cell = wait.op.cell
    return [
        (number, index)
        for number, stream in enumerate(streams.events)
        for index, event in enumerate(stream)
        if event.step is not None
        and event.op.cell is not None
        and cell is not None
        and event.op.cell.slot == cell.slot
        and (event.op.consume or (event.op.kind in (NOTIFY, PUT_SIGNAL, LAND) and not event.op.deferred))
    ]


def _after(event: Event) -> int:
    """Return the cell's value after a notify or a consuming wait."""
    have = event.have if event.have is not None else 0
    if event.op.kind != WAIT or event.op.cell is None:
        return have
    return event.op.cell.wrapped(have - event.op.amount)


def _last_change(streams: Streams, wait: Event) -> str:
    changes = _changes(streams, wait)
    if not changes:
        return "it started there"
    last = max((streams.event(place) for place in changes), key=lambda event: event.step or 0)
    return f"{_says(last)} made it {_after(last)}"


def _who_could(streams: Streams, wait: Event, changes: list[Event]) -> str:
    """Name those who wrote the cell before, and what keeps each from doing so again."""
    writers = sorted({event.op.actor.order for event in changes if event.op.actor is not wait.op.actor})
    others = [streams.number[order] for order in writers] or [
        number for number, actor in enumerate(streams.actors) if actor is not wait.op.actor
    ]
    who = "those who wrote it" if writers else "nobody ever wrote it, and the others"
    blocked: list[str] = []
    finished: list[str] = []
    for number in others:
        last = (number, len(streams.events[number]) - 1)
        rank = str(streams.actors[number].rank)
        pending = last[1] >= 0 and streams.is_pending(last)
        (blocked if pending else finished).append(rank)
    parts = []
    if finished:
        parts.append(f"rank {', '.join(finished)} finished")
    if blocked:
        parts.append(f"rank {', '.join(blocked)} blocked too")
    return f"nobody will write it any more ({who}: {'; '.join(parts) if parts else 'there are none'})"


def _says(event: Event) -> str:
    line = f" at {event.at[0]}" if event.at and event.at[0] else ""
    return f"rank {event.op.actor.rank}'s '{event.op}'{line}"
