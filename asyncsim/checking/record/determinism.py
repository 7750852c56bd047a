"""Hidden state: a second schedule must make every actor do the same, if no operation of another explains more."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from asyncsim.trace.columns import Columns

if TYPE_CHECKING:
    from asyncsim.trace.event import Digest, Event, Trace


def stream_difference(a: Trace, b: Trace) -> str | None:
    """Return how an actor's operations differ between two runs, in words; None if they do not.

    Args:
        a: of a run.
        b: of another one, of the same case.

    """
    if isinstance(a.events, Columns) and isinstance(b.events, Columns):
        found = a.events.differs_in(b.events)
        return None if found is None else _words(*found, _nth(a, *found) or _nth(b, *found))
    streams = [_by_actor(trace) for trace in (a, b)]
    for name in sorted({*streams[0], *streams[1]}):
        own, other = (stream.get(name, []) for stream in streams)
        for index, (x, y) in enumerate(zip_longest(own, other)):
            if x != y:
                step = x or y
                return _words(name, index, step[0] if step else "")
    return None


def _words(name: str, index: int, what: str) -> str:
    return f"differs in actor {name}'s operation {index} ({what})"


def _nth(trace: Trace, name: str, index: int) -> str:
    """Return the text of the index-th operation of an actor; empty if there is none."""
    own = (event for event in trace.events if event.op.actor.name == name)
    return next((str(event.op) for number, event in enumerate(own) if number == index), "")


def _by_actor(trace: Trace) -> dict[str, list[tuple[str, bytes | Digest | None]]]:
    streams: dict[str, list[tuple[str, bytes | Digest | None]]] = {}
    for event in trace.events:
        streams.setdefault(event.op.actor.name, []).append(_content(event))
    return streams


def _content(event: Event) -> tuple[str, bytes | Digest | None]:
    return str(event.op), event.data
