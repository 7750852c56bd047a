"""Two traces side by side: the first step that differs, and what follows from it.

Steps are compared as a file says them, field by field. Two runs of one kernel under two schedules
differ at once in their order of actors; what matters then is which actors' own streams differ, where
they first do, and which write each changed value came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from asyncsim.trace.format import HEADER
from asyncsim.trace.format_step import step_fields
from asyncsim.trace.kinds import TESTING
from asyncsim.trace.region import READ, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.trace.event import Event, Footer, Trace

_NO_CONTENT = ("time",)
"""Fields of a step that may differ while the actor does the same: when, in virtual time."""


@dataclass(frozen=True, slots=True)
class Change:
    """A field that differs: its name, and what it is in the one and the other (None: it is not there)."""

    name: str
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class StreamDifference:
    """Where two streams of one actor part.

    Args:
        actor: by name.
        index: of the first operation that differs, in the actor's own stream.
        left: that operation in the first trace; None if its stream ends before.
        right: in the second.
        changes: the fields that differ; of an operation that one of them lacks none.
        left_source: for a read that got another value, the write that it came from in the first trace, in words.
        right_source: in the second.

    """

    actor: str
    index: int
    left: Event | None
    right: Event | None
    changes: tuple[Change, ...] = ()
    left_source: str = ""
    right_source: str = ""


@dataclass(slots=True)
class Comparison:
    """How two traces differ.

    Args:
        header: the fields of the headers that differ.
        step: the number of the first step that differs; None if none does.
        left: that step in the first trace; None if it ends before.
        right: in the second.
        partings: where the stream of each actor parts, in the order of the first trace.
        values: how many values differ between operations that are otherwise the same.
        footer: the fields of the footers that differ; outputs are "output of rank 1 in call 0".

    """

    header: list[Change] = field(default_factory=list)
    step: int | None = None
    left: Event | None = None
    right: Event | None = None
    partings: list[StreamDifference] = field(default_factory=list)
    values: int = 0
    footer: list[Change] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.header and self.step is None and not self.footer

    @property
    def reordered(self) -> bool:
        """Whether every actor does the same with the same values, only in another order."""
        return self.step is not None and not self.partings

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this comparison."""
        return {
            "same": self.same,
            "header": [_change_json(change) for change in self.header],
            "step": self.step,
            "left": _event_json(self.left),
            "right": _event_json(self.right),
            "partings": [
                {
                    "actor": parting.actor, "index": parting.index, "left": _event_json(parting.left),
                    "right": _event_json(parting.right), "changes": [_change_json(each) for each in parting.changes],
                    "left_source": parting.left_source or None, "right_source": parting.right_source or None,
                }
                for parting in self.partings
            ],
            "values": self.values,
            "footer": [_change_json(change) for change in self.footer],
        }  # fmt: skip


def compare_traces(left: Trace, right: Trace) -> Comparison:
    """Compare two traces: headers, steps in their order, the streams of the actors, footers.

    Args:
        left: whole or broken off.
        right: whole or broken off.

    """
    found = Comparison(list(_changes(HEADER.write(left.header), HEADER.write(right.header))))
    for number, (one, other) in enumerate(zip_longest(left.events, right.events)):
        if one is None or other is None or step_fields(one) != step_fields(other):
            found.step, found.left, found.right = number, one, other
            break
    if found.step is not None:
        _compare_streams(found, left, right)
    found.footer = list(_footer_changes(left.footer, right.footer))
    return found


def _compare_streams(found: Comparison, left: Trace, right: Trace) -> None:
    streams, others = _streams(left), _streams(right)
    for actor in dict.fromkeys((*streams, *others)):
        pairs = list(zip_longest(streams.get(actor, []), others.get(actor, [])))
        partings = (_stream_difference(actor, index, one, other) for index, (one, other) in enumerate(pairs))
        parting = next((each for each in partings if each is not None), None)
        if parting is not None:
            found.partings.append(_with_writers(parting, left, right))
        found.values += sum(_value_differs(one, other) for one, other in pairs)
    found.partings.sort(key=_first_step)


def _first_step(parting: StreamDifference) -> int:
    steps = [event.step for event in (parting.left, parting.right) if event is not None and event.step is not None]
    return min(steps, default=0)


def _streams(trace: Trace) -> dict[str, list[Event]]:
    streams: dict[str, list[Event]] = {}
    for event in trace.events:
        streams.setdefault(event.op.actor.name, []).append(event)
    return streams


def _stream_difference(actor: str, index: int, one: Event | None, other: Event | None) -> StreamDifference | None:
    if one is None or other is None:
        return StreamDifference(actor, index, one, other)
    changes = tuple(_changes(_content(one), _content(other)))
    # What a notify or wait finds depends on the order alone; it changes nothing of what its actor does.
    if one.op.kind not in TESTING and all(change.name == "have" for change in changes):
        return None
    return StreamDifference(actor, index, one, other, changes)


def _content(event: Event) -> dict[str, Any]:
    return {key: value for key, value in step_fields(event).items() if key not in _NO_CONTENT}


def _value_differs(one: Event | None, other: Event | None) -> bool:
    if one is None or other is None or one.data is None or other.data is None:
        return False
    mine, theirs = _content(one), _content(other)
    return mine["value"] != theirs["value"] and all(
        mine.get(key) == theirs.get(key) for key in ("op", "accesses", "call")
    )


def _with_writers(parting: StreamDifference, left: Trace, right: Trace) -> StreamDifference:
    """Add which writes a value came from that differs."""
    one, other = parting.left, parting.right
    if one is None or other is None or not _value_differs(one, other) or one.op.accesses[0].mode != READ:
        return parting
    sources = _last_writer(left.events, one), _last_writer(right.events, other)
    return StreamDifference(parting.actor, parting.index, one, other, parting.changes, *sources)


def _last_writer(events: Sequence[Event], read: Event) -> str:
    region = read.op.accesses[0].region
    for number in range((read.step or 0) - 1, -1, -1):
        event = events[number]
        for access in event.op.accesses:
            there = access.region
            if access.mode != READ and there.slot == region.slot and spans_overlap(there.spans, region.spans):
                return f"{event.op.actor.name}'s {event.op}, call {event.call}, step {event.step}"
    return "the memory as it was at the start"


def _changes(left: dict[str, Any], right: dict[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys((*left, *right)):
        if left.get(name) != right.get(name):
            yield Change(name, left.get(name), right.get(name))


def _footer_changes(left: Footer | None, right: Footer | None) -> Iterator[Change]:
    if left is None or right is None:
        if left is not right:
            yield Change("footer", None if left is None else left.ending, None if right is None else right.ending)
        return
    yield from _changes(_footer_fields(left), _footer_fields(right))


def _footer_fields(footer: Footer) -> dict[str, Any]:
    """Return what a footer says, each part with a name that can be read."""
    outputs = {
        f"output of rank {rank} in call {call}": digest
        for call, digests in enumerate(footer.outputs)
        for rank, digest in enumerate(digests)
    }
    standing = {f"actor {event.op.actor.name} stands at": str(event.op) for event in footer.pending}
    return {"ending": footer.ending, **outputs, **standing, "verdict": footer.verdict, "findings": footer.findings}


def _change_json(change: Change) -> dict[str, Any]:
    return {"name": change.name, "left": change.left, "right": change.right}


def _event_json(event: Event | None) -> dict[str, Any] | None:
    return None if event is None else {"step": event.step, **step_fields(event)}
