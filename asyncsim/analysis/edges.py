"""Edges: what must have happened before an operation, beside program order and credits.

Every rule of the memory model is an edge from a *named* landing, never a count: "so many have
landed" is wrong for a release that unfenced landings follow, since the later ones may fill the count.
Starting, joining and rank-local barriers are edges too; they complete no landings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from asyncsim.analysis import late_updates
from asyncsim.trace.cells import SET
from asyncsim.trace.conflict import changes_commute
from asyncsim.trace.kinds import (
    CARRYING,
    FENCING,
    FETCHING,
    GETTING,
    JOINING,
    LANDING,
    LOCAL,
    MEETING,
    NOTIFYING,
    QUIETING,
    STARTING,
    STORES,
    STORING,
    WAITING,
    WHOLE_RANK,
)
from asyncsim.trace.region import WRITE, spans_overlap

if TYPE_CHECKING:
    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.op import Op

Edges = dict["Place", list["Place"]]
"""What each operation needs to have happened."""


def edges_of(streams: Streams) -> Edges:
    """Return all edges of a run; none for a run without streams under ``sc``."""
    edges: Edges = defaultdict(list)
    _streams(streams, edges)
    if streams.model.scoped:
        if streams.model.late:
            late_updates.add_edges(streams, edges)
    elif streams.model.late:
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
            if op.kind in MEETING:
                meetings[op.link].append((number, index))
            elif op.kind in STARTING and child is not None:
                started[child] = (number, index)
                edges[child, 0].append((number, index))
            elif op.kind in JOINING and child is not None:
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


def within_ranks(streams: Streams) -> list[tuple[Place, Place]]:
    """Return what may need a landing of another task of its rank, each as (the landing, what may need it).

    A rank's order at its own places holds (L6): what lands at a place after a local store there was issued, lands
    after it. And a quiet of the whole rank needs what was issued before it. So the need is there where the one is
    issued before the other in every schedule; which these are only the order can tell: see `asyncsim.analysis.order`.
    """
    tasks = Counter(actor.rank for actor in streams.actors if not actor.wire)
    if not streams.model.late or streams.model.scoped or max(tasks.values(), default=0) == 1:
        return []
    data: dict[int, list[Place]] = defaultdict(list)
    landings: dict[int, list[Place]] = defaultdict(list)
    quiets: list[Place] = []
    for number, stream in enumerate(streams.events):
        last = (number, len(stream) - 1)
        if streams.issuer[number] is None:
            quiets += [(number, at) for at, event in enumerate(stream) if event.op.link == WHOLE_RANK]
            continue
        landings[streams.actors[number].rank].append(last)
        if stream[-1].op.kind in LANDING and stream[-1].op.accesses:
            data[stream[-1].op.accesses[0].region.slot].append(last)
    found = [(x, y) for own in data.values() for x in own for y in own if _keeps_back(streams, x, y)]
    found += [(x, y) for y in quiets for x in landings[streams.actors[y[0]].rank]]
    return [(x, y) for x, y in found if streams.issue(x)[0] != streams.issue(y)[0]]


def _keeps_back(streams: Streams, x: Place, y: Place) -> bool:
    """Say whether a landing is of a local store at a place where the other one, of its rank, lands, too."""
    one, other = streams.event(x).op, streams.event(y).op
    same = one.link == LOCAL and one.actor.rank == other.actor.rank
    return same and spans_overlap(one.accesses[0].region.spans, other.accesses[0].region.spans)


class _Issuer:
    """One task and what it issued: walks its stream and adds what orders its landings."""

    def __init__(self, streams: Streams, edges: Edges, wires: dict[Place, list[int]], number: int) -> None:
        self._streams = streams
        self._model = streams.model
        self._edges = edges
        self._wires = wires
        self._number = number
        self._unordered: list[Place] = []
        """Landings since the last release or quiet, and that release: whoever needs all older ones needs these."""
        self._got: list[Place] = []
        """Landings of non-blocking gets since the last quiet that no release needs."""
        self._awaited = 0
        """The first operation of the stream that no quiet has awaited so far."""
        self._stores: list[Place] = []
        """Landings of stores since the last quiet."""
        self._places: dict[int, list[tuple[Place, Op, Op]]] = defaultdict(list)
        """Landings by window slot (or, negative, by cell), each with its issue: for those that keep order."""
        self._now: dict[int, list[Place]] = defaultdict(list)
        self._before_fence: dict[int, list[Place]] = {}
        """Landings by destination: of this fence generation, and of the last one that has any."""

    def walk(self) -> None:
        """Go once through the stream."""
        for index, event in enumerate(self._streams.events[self._number]):
            op = event.op
            if op.kind in FENCING:
                for destination, landings in self._now.items():
                    if landings:
                        self._before_fence[destination] = landings
                self._now = defaultdict(list)
            elif op.kind in QUIETING and op.amount:
                end = self._streams.awaited_to((self._number, index))
                for at in range(self._awaited, end):
                    self._edges[self._number, index] += self._landings_of((self._number, at))
                self._awaited = max(self._awaited, end)
            elif op.kind in QUIETING:
                self._awaited = index
                self._edges[self._number, index] += self._unordered + self._got
                self._unordered, self._got, self._stores = [], [], []
            elif op.kind in WAITING and op.consume and op.cell is not None and self._model.place_order:
                self._edges[self._number, index] += [
                    place for place, other, _ in self._places[-1 - op.cell.slot] if other.how == SET
                ]
            self._issue((self._number, index), op)

    def _landings_of(self, issue: Place) -> list[Place]:
        return [(wire, len(self._streams.events[wire]) - 1) for wire in self._wires.get(issue, ())]

    def _issue(self, issue: Place, op: Op) -> None:
        landings: list[Place] = []
        for wire in self._wires.get(issue, ()):
            steps = self._streams.events[wire]
            landing = (wire, len(steps) - 1)
            self._edges[wire, 0].append(issue)
            if steps[0].op.kind in FETCHING and self._model.forwarding:  # L5
                self._edges[wire, 0] += self._touching(steps[0].op)
            if op.kind in NOTIFYING and not op.relaxed:  # L4
                self._edges[landing] += self._unordered
                self._unordered = []
            if op.link == STORES:  # L4
                self._edges[landing] += self._stores
            if steps[-1].op.cell is not None and op.kind in CARRYING:  # L1
                self._edges[landing] += landings
            self._order(landing, steps[-1].op, op)
            landings.append(landing)
            if op.kind in STORING or steps[-1].op.link == LOCAL:
                self._stores.append(landing)
        if _gets(op) and not self._model.forwarding:
            self._got += landings
        else:
            self._unordered += landings[-1:] if op.kind in CARRYING else landings  # the signal needs its data

    def _order(self, landing: Place, op: Op, issue: Op) -> None:
        """Add L2, L3 and L6 among the issuer's own, then let the landing count for the later ones."""
        if not _gets(issue):
            destination = op.cell.owner if op.cell is not None else op.accesses[0].region.owner
            if issue.link != STORES:
                self._edges[landing] += self._before_fence.get(destination, ())  # L3
            self._now[destination].append(landing)
        slot = -1 - op.cell.slot if op.cell is not None else op.accesses[0].region.slot
        kept = []
        for older in self._places[slot]:
            at, other, other_issue = older
            is_ordered = self._keeps_order(other, other_issue) and _meet_and_clash(other, op)  # L2; L6
            if is_ordered:
                self._edges[landing].append(at)
            if not (is_ordered and self._keeps_order(op, issue) and _covers(op, other)):
                kept.append(older)  # else what would need it needs this landing
        self._places[slot] = [*kept, (landing, op, issue)]

    def _keeps_order(self, op: Op, issue: Op) -> bool:
        """Say whether what lands later at the place of a landing lands after it."""
        return (self._model.place_order or op.link == LOCAL) and not _gets(issue)

    def _touching(self, fetch: Op) -> list[Place]:
        region = fetch.accesses[0].region
        return [
            at
            for at, other, older in self._places[region.slot]
            if other.accesses and not _gets(older) and spans_overlap(other.accesses[0].region.spans, region.spans)
        ]


def _meet_and_clash(older: Op, op: Op) -> bool:
    """Say whether two landings in one window, or on one cell, change a common place and do not commute."""
    meet = op.cell is not None or spans_overlap(older.accesses[0].region.spans, op.accesses[0].region.spans)
    return meet and not changes_commute(older, op)


def _covers(op: Op, older: Op) -> bool:
    """Say whether a landing overwrites all that an older one wrote, so that it commutes with nothing there."""
    if op.cell is not None:
        return op.how == SET
    access = op.accesses[0]
    return access.mode == WRITE and access.region.spans == older.accesses[0].region.spans


def _gets(op: Op) -> bool:
    """Say whether an operation is a non-blocking get, which a quiet alone completes."""
    return op.kind in GETTING and op.late
