"""Edges: what must have happened before an operation, beside program order and credits.

Every rule of the memory model is an edge from a *named* landing, never a count: "so many have
landed" is wrong for a release that unfenced landings follow, since the later ones may fill the count.
Starting, joining and rank-local barriers are edges too; they complete no landings.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from asyncsim.trace.conflict import changes_commute
from asyncsim.trace.op import FENCE, FETCH, JOIN, LOCAL, NOTIFY, PUT_SIGNAL, QUIET, SET, START, SYNC, WAIT
from asyncsim.trace.region import spans_overlap

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.op import Op

Edges = dict["Place", list["Place"]]
"""What each operation needs to have happened."""


def edges_of(streams: Streams) -> Edges:
    """Return all edges of a run; none for a run without streams under ``sc``."""
    edges: Edges = defaultdict(list)
    _streams(streams, edges)
    if streams.model.late:
        wires: dict[Place, list[int]] = defaultdict(list)
        for number, issuer in enumerate(streams.issuer):
            if issuer is not None:
                wires[issuer].append(number)
        for number, issuer in enumerate(streams.issuer):
            if issuer is None:
                _Issuer(streams, edges, wires, number).walk()
    return {place: needed for place, needed in edges.items() if needed}


def _streams(streams: Streams, edges: Edges) -> None:
    """Add what starting, joining and meeting order."""
    by_name = {actor.name: number for number, actor in enumerate(streams.actors)}
    started: dict[int, Place] = {}
    meetings: dict[str, list[Place]] = defaultdict(list)
    for number, stream in enumerate(streams.events):
        for index, event in enumerate(stream):
            op = event.op
            child = by_name.get(op.link)
            if op.kind == SYNC:
                meetings[op.link].append((number, index))
            elif op.kind == START and child is not None:
                started[child] = (number, index)
                edges[child, 0].append((number, index))
            elif op.kind == JOIN and child is not None:
                edges[number, index].append((child, len(streams.events[child]) - 1))
    for parties in meetings.values():
        _meet(streams, edges, parties, started)


def _meet(streams: Streams, edges: Edges, parties: list[Place], started: dict[int, Place]) -> None:
    """Let each party of a rank-local barrier need what comes before the barrier in all the others."""
    for place in parties:
        if len(parties) < streams.event(place).op.amount:
            edges[place].append(place)  # somebody never came: it cannot happen
        for number, index in parties:
            before = (number, index - 1) if index else started.get(number)
            if number != place[0] and before is not None:
                edges[place].append(before)


def stores_of_one_rank(streams: Streams) -> list[tuple[Place, Place]]:
    """Return the pairs of landings of local stores to one place by different tasks of one rank.

    Peers see them in the order of issue (L6): where one is issued first in every schedule, its landing is
    needed by the other's. Which these are only the order can tell; see `asyncsim.analysis.order`.
    """
    stores: dict[int, list[tuple[Place, Op]]] = defaultdict(list)
    for number, issuer in enumerate(streams.issuer):
        op = streams.events[number][-1].op if issuer is not None else None
        if op is not None and op.link == LOCAL:
            stores[op.accesses[0].region.slot].append(((number, len(streams.events[number]) - 1), op))
    return [
        (x, y)
        for landings in stores.values()
        for x, one in landings
        for y, other in landings
        if streams.issue(x)[0] != streams.issue(y)[0]
        and spans_overlap(one.accesses[0].region.spans, other.accesses[0].region.spans)
    ]


class _Issuer:
    """One task and what it issued: walks its stream and adds what orders its landings."""

    def __init__(self, streams: Streams, edges: Edges, wires: dict[Place, list[int]], number: int) -> None:
        self._streams = streams
        self._edges = edges
        self._wires = wires
        self._number = number
        self._unordered: list[Place] = []
        """Landings since the last release or quiet, and that release: whoever needs all older ones needs these."""
        self._places: dict[int, list[tuple[Place, Op]]] = defaultdict(list)
        """Landings by window slot (or, negative, by cell), for those that keep order."""
        self._now: dict[int, list[Place]] = defaultdict(list)
        self._before_fence: dict[int, list[Place]] = {}
        """Landings by destination: of this fence generation, and of the last one that has any."""

    def walk(self) -> None:
        """Go once through the stream."""
        for index, event in enumerate(self._streams.events[self._number]):
            op = event.op
            if op.kind == FENCE:
                for destination, landings in self._now.items():
                    if landings:
                        self._before_fence[destination] = landings
                self._now = defaultdict(list)
            elif op.kind == QUIET:
                self._edges[self._number, index] += self._unordered
                self._unordered = []
            elif op.kind == WAIT and op.consume and op.cell is not None and self._streams.model.place_order:
                self._edges[self._number, index] += [
                    place for place, other in self._places[-1 - op.cell.slot] if other.how == SET
                ]
            self._issue((self._number, index), op)

    def _issue(self, issue: Place, op: Op) -> None:
        data: list[Place] = []
        for wire in self._wires.get(issue, ()):
            steps = self._streams.events[wire]
            landing = (wire, len(steps) - 1)
            self._edges[wire, 0].append(issue)
            if steps[0].op.kind == FETCH and self._streams.model.forwarding:  # L5
                self._edges[wire, 0] += self._touching(steps[0].op)
            if op.kind == NOTIFY and not op.relaxed:  # L4
                self._edges[landing] += self._unordered
                self._unordered = []
            if steps[-1].op.cell is not None and op.kind == PUT_SIGNAL:  # L1
                self._edges[landing] += data
            self._order(landing, steps[-1].op)
            data.append(landing)
        for landing in data:
            self._unordered.append(landing)

    def _order(self, landing: Place, op: Op) -> None:
        """Add L2, L3 and L6 among the issuer's own, then let the landing count for the later ones."""
        destination = op.cell.owner if op.cell is not None else op.accesses[0].region.owner
        self._edges[landing] += self._before_fence.get(destination, ())  # L3
        self._now[destination].append(landing)
        if op.cell is not None:
            slot = -1 - op.cell.slot
            if self._streams.model.place_order:
                self._edges[landing] += [at for at, other in self._places[slot] if not changes_commute(other, op)]
        else:
            slot = op.accesses[0].region.slot
            self._edges[landing] += [
                at
                for at, other in self._places[slot]
                if (self._streams.model.place_order or (other.link and op.link))  # L2; L6 for local stores
                and spans_overlap(other.accesses[0].region.spans, op.accesses[0].region.spans)
                and not changes_commute(other, op)
            ]
        self._places[slot].append((landing, op))

    def _touching(self, fetch: Op) -> list[Place]:
        region = fetch.accesses[0].region
        return [
            at
            for at, other in self._places[region.slot]
            if other.accesses and spans_overlap(other.accesses[0].region.spans, region.spans)
        ]
