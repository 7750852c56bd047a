"""Polls that one store forces: a poll reads data until its predicate accepts, and may be a wait in disguise.

What a poll can see are *versions*: what lies there when it is reached, and that again after each write that can come
while it is pending. It is forced where

    P1  these writes come in one order in every schedule;
    P2  from the first version that the predicate accepts on, all are the same bytes.

(What was there before in either order is the same, or a race; and where there is one, nothing is said of polls.)

Then the poll needs the write that makes that version as an operation needs an edge, and returns the same bytes in
every schedule. What writes can come, and in which order, depends in turn on what polls let happen. So each is first
taken to be forced by the write that did it in this run; one of which that does not hold is held up by nothing any more,
and all is looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from asyncsim.analysis.precede import precedes, precedes_reaching
from asyncsim.analysis.touches import Entry, entries_of, is_met
from asyncsim.trace.kinds import FETCHING, POLLING
from asyncsim.trace.region import READ, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.precede import Order
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access

Deposits = list[tuple["Access", bytes]]
"""Writes in their order, each with what it stores or adds."""


class Contents(Protocol):
    """Knows what lies in the windows at the start, and asks predicates."""

    def __call__(self, poll: Op, deposits: Deposits) -> tuple[bool, bytes] | None:
        """Return whether the poll accepts what these writes leave where it looks, and that; None if nobody can say."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that a poll may see.

    Args:
        shown: the operation with which it comes, in the eyes of the poll.
        access: what it changes.
        data: what it writes; None if that is not known.

    """

    shown: Place
    access: Access
    data: bytes | None


class Polls:
    """The polls of a run, and which write forces each.

    Args:
        streams: the run.
        contents: None: nobody can ask the predicates.

    """

    def __init__(self, streams: Streams, contents: Contents | None) -> None:
        """Take each to be forced as it was in this run."""
        self._streams = streams
        self._contents = contents
        self._forced: dict[Place, Place | None] = {}
        self._writes: dict[Place, list[_Write]] = {}
        self.every: list[Event] = []
        self.unforced: list[Event] = []
        """Those that nothing forces, as far as it is known."""
        polls = [
            (number, index)
            for number, stream in enumerate(streams.events)
            for index, event in enumerate(stream)
            if event.op.kind in POLLING
        ]
        written: dict[int, list[Entry]] = {}
        for entry in entries_of(streams) if polls and contents is not None else ():
            if entry.access.mode != READ:
                written.setdefault(entry.access.region.slot, []).append(entry)
        for place in polls:
            self.every.append(streams.event(place))
            region = streams.event(place).op.accesses[0].region
            self._writes[place] = self._seen_by(place, written.get(region.slot, []))
            self._take(place)

    def edges(self) -> Iterator[tuple[Place, Place]]:
        """Yield of each forced poll what it needs."""
        for place, source in self._forced.items():
            if source is not None:
                yield place, source

    def give_up(self, order: Order, structure: Edges) -> bool:
        """Give up those that are not forced as they are taken to be; say whether any.

        Args:
            order: in which they are.
            structure: the edges without those of polls.

        """
        wrong = [place for place in self._forced if not self._is_forced(order, structure, place)]
        for place in wrong:
            del self._forced[place]
            self.unforced.append(self._streams.event(place))
        return bool(wrong)

    def _seen_by(self, place: Place, entries: list[Entry]) -> list[_Write]:
        """Return the writes that a poll may see, in the order in which it could in this run."""
        streams = self._streams
        poll = Entry(place, streams.event(place).op.accesses[0], streams.actors[place[0]].rank, None)
        found = []
        for entry in entries:
            overlap = spans_overlap(entry.access.region.spans, poll.access.region.spans)
            if overlap and is_met(entry, poll) and is_met(poll, entry):
                event = streams.event(entry.place)
                shown = streams.issue(entry.place) if self._is_forwarded(entry.place, place) else entry.place
                data = event.data if isinstance(event.data, bytes) else None
                found.append(_Write(shown, entry.access, data))
        return sorted(found, key=lambda write: streams.step(write.shown))

    def _is_forwarded(self, landing: Place, poll: Place) -> bool:
        """Say whether a poll sees a landing of its own actor as soon as it is issued."""
        streams = self._streams
        own = streams.issue(landing) != landing and streams.issue(landing)[0] == poll[0]
        return own and streams.model.forwarding and streams.events[landing[0]][0].op.kind not in FETCHING

    def _take(self, place: Place) -> None:
        """Take a poll to be forced by the last write that made its predicate true in this run."""
        streams = self._streams
        if streams.is_pending(place):
            self._forced[place] = place  # nothing lets it pass
            return
        before = [write for write in self._writes[place] if streams.step(write.shown) < streams.step(place)]
        versions = self._versions(place, [], before)
        if versions is None or versions[-1] != (True, streams.event(place).data):
            # Nobody can say, or it saw something else: where there is a race, what was shown first may come last.
            self.unforced.append(streams.event(place))
            return
        last = len(versions)
        while last and versions[last - 1][0]:
            last -= 1
        self._forced[place] = before[last - 1].shown if last else None

    def _versions(
        self, place: Place, base: Sequence[_Write], more: Sequence[_Write]
    ) -> list[tuple[bool, bytes]] | None:
        """Return what a poll makes of its place after `base`, and after each of `more`; None if that is not known."""
        found = []
        poll = self._streams.event(place).op
        for count in range(len(more) + 1):
            writes = [*base, *more[:count]]
            deposits = [(write.access, write.data) for write in writes if write.data is not None]
            known = self._contents is not None and len(deposits) == len(writes)
            version = self._contents(poll, deposits) if known and self._contents is not None else None
            if version is None:
                return None
            found.append(version)
        return found

    def _is_forced(self, order: Order, structure: Edges, place: Place) -> bool:
        actor, index = place
        came = [write for write in self._writes[place] if order.reach(actor, index, write.shown[0]) > write.shown[1]]
        base = [write for write in came if precedes_reaching(order, write.shown, place, structure)]
        more = [write for write in came if write not in base]
        if not all(precedes(order, x.shown, y.shown) for x, y in pairwise(more)):
            return False
        versions = self._versions(place, base, more)
        if versions is None:
            return False
        first = next((count for count, (accepted, _) in enumerate(versions) if accepted), len(versions))
        if _differ([seen for _, seen in versions[first:]]):
            return False
        source = self._forced[place]
        if first == len(versions):
            return source == place
        if first:
            return source == more[first - 1].shown
        return source is None or source in {write.shown for write in base}


def _differ(seen: list[bytes]) -> bool:
    """P2: say whether these versions are not the same bytes."""
    return len(set(seen)) > 1
