"""What a run moved, and how long it takes: counted from its events alone.

The critical path is the longest chain of operations that had to wait for one another: each follows the
one before it in its own task, and a wait also the notify that satisfied it. With several producers of
one cell, which notify that was depends on the run; a run in virtual time (`schedulers.latency`) has
them in the order in which they come at these prices.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING

from asyncsim.trace.cells import ADDING, COMPARE
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import EFFECTS, JOINING, MEETING, POLLING, SIGNALLING, STARTING, WAITING
from asyncsim.trace.late import model_of
from asyncsim.trace.op import Op, change_by
from asyncsim.trace.price import moved, peer_of, pulls, signals, size_of
from asyncsim.trace.region import ADD, READ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.price import Price
    from asyncsim.trace.region import Cell

REDUCING = ("reduce", "halve")
"""What comes from a peer in a phase whose name begins so is reduced. Of other reductions only atomic adds show."""


@dataclass(slots=True)
class Cost:
    """What one rank did, or all of them.

    Args:
        received: bytes that came from peers, read by itself or written by them.
        sent: bytes that went to peers, likewise.
        messages: loads, stores, gets and puts that it issued to peers.
        notifies: changes of peers' cells that it issued; giving back own credits is none.
        waits: waits that it passed.
        barriers: that its composites say they take part in.
        credits: what its notifies added, in all.
        reduced: bytes that it reduced; see `REDUCING`.
        windows: bytes of its windows that anybody ever touched. Windows live as long as the run, so this is the peak.

    """

    received: int = 0
    sent: int = 0
    messages: int = 0
    notifies: int = 0
    waits: int = 0
    barriers: int = 0
    credits: int = 0
    reduced: int = 0
    windows: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(Cost)))


@dataclass(slots=True)
class Path:
    """The critical path.

    Args:
        seconds: how long it takes.
        messages: messages and notifies on it; each costs alpha.
        moved: bytes that they move; each costs beta.
        reduced: bytes that are reduced on it; each costs gamma.
        events: those on it that cost anything, in order.

    """

    seconds: float = 0.0
    messages: int = 0
    moved: int = 0
    reduced: int = 0
    events: list[Event] = field(default_factory=list)


def costs(trace: Trace) -> list[Cost]:
    """Return what each rank did, by rank; a landing is counted with its issue."""
    ranks = trace.header.world.ranks
    made = [Cost() for _ in range(ranks)]
    touched: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for event in trace.events:
        op = event.op
        for access in op.accesses:
            touched.setdefault((access.region.owner, access.region.slot), set()).update(access.region.spans)
        if not op.actor.wire:
            _count(made, event)
    for (owner, _), spans in touched.items():
        made[owner].windows += _length(spans)
    if trace.footer is not None:
        for said in trace.footer.collectives:
            made[said.rank].barriers += said.name == "barrier"
    return made


def critical_path(trace: Trace, price: Price) -> Path:
    """Return the longest chain of a run, at these prices.

    Args:
        trace: of a whole run.
        price: seconds a message and a byte.

    Raises:
        MisuseError: the run is one in which effects land later.

    """
    if model_of(trace.header.memory).late:
        raise MisuseError(f"memory={trace.header.memory!r}; the critical path is that of a run under sc")
    return _Paths(trace, price).longest()


def reduces(event: Event) -> bool:
    """Say whether what an operation brings is reduced."""
    op = event.op
    if op.accesses and op.accesses[-1].mode == ADD:
        return True
    return moved(op) > 0 and pulls(op) and any(part.startswith(REDUCING) for part in event.phase.split("/"))


def _count(made: list[Cost], event: Event) -> None:
    op = event.op
    own = made[op.actor.rank]
    peer = peer_of(op)
    if peer is not None:
        giver, taker = (made[peer], own) if pulls(op) else (own, made[peer])
        giver.sent += size_of(op)
        taker.received += size_of(op)
        own.messages += 1
    if op.kind in SIGNALLING and signals(op):
        own.notifies += 1
        own.credits += op.amount if op.how in ADDING else 0
    own.waits += op.kind in WAITING
    own.reduced += size_of(op) if reduces(event) else 0


def _length(spans: set[tuple[int, int]]) -> int:
    """Return how many bytes are in some of the spans."""
    ends = sorted((at, sign) for start, stop in spans for at, sign in ((start, 1), (stop, -1)))
    total = depth = 0
    for (at, sign), (following, _) in pairwise(ends):
        depth += sign
        total += following - at if depth else 0
    return total


class _Paths:
    """The time at which each event of a run is done, and the event it waited for longest."""

    def __init__(self, trace: Trace, price: Price) -> None:
        self._price = price
        self._events = trace.events
        self._times: list[float] = []
        self._before: list[int | None] = []
        self._last: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._world = trace.header.world
        self._cells: dict[int, list[tuple[int, int | None]]] = {}
        self._writes: dict[int, int] = {}
        self._syncs: dict[str, list[str]] = {}
        for event in trace.events:
            if event.op.kind in MEETING:
                self._syncs.setdefault(event.op.link, []).append(event.op.actor.name)
        for number, event in enumerate(trace.events):
            self._take(number, event)

    def longest(self) -> Path:
        path = Path(max(self._times, default=0.0))
        at = self._times.index(path.seconds) if self._times else None
        while at is not None:
            event = self._events[at]
            if self._price.seconds(event.op, reduces=reduces(event)) or moved(event.op) or signals(event.op):
                path.events.append(event)
                path.messages += 1 if moved(event.op) or signals(event.op) else 0
                path.moved += moved(event.op)
                path.reduced += size_of(event.op) if reduces(event) else 0
            at = self._before[at]
        path.events.reverse()
        return path

    def _take(self, number: int, event: Event) -> None:
        op = event.op
        candidates = list(self._causes(op))
        before = max(candidates, key=self._times.__getitem__, default=None)
        start = 0.0 if before is None else self._times[before]
        self._times.append(start + self._price.seconds(op, reduces=reduces(event)))
        self._before.append(before)
        self._last[op.actor.name] = number
        if op.kind in STARTING:
            self._starts[op.link] = number
        if op.accesses and op.accesses[-1].mode != READ:
            self._writes[op.accesses[-1].region.slot] = number
        if op.cell is not None and change_by(op) is not None:
            self._change(number, op)

    def _causes(self, op: Op) -> Iterator[int]:
        """Yield what an operation had to follow."""
        name = op.actor.name
        if name in self._last:
            yield self._last[name]
        elif name in self._starts:
            yield self._starts[name]
        if op.kind in JOINING:
            yield self._last.get(op.link, self._starts[op.link])
        elif op.kind in MEETING:
            yield from (self._last[other] for other in self._syncs[op.link] if other in self._last)
        elif op.kind in POLLING and op.accesses[0].region.slot in self._writes:
            yield self._writes[op.accesses[0].region.slot]
        elif op.kind in WAITING:
            enabler = self._enabler(op)
            yield from () if enabler is None else (enabler,)

    def _change(self, number: int, op: Op) -> None:
        cell = op.cell
        assert cell is not None  # noqa: S101 - for the type checker: its caller has asked
        history = self._history(cell)
        value, latest = history[-1]
        value = cell.wrapped(EFFECTS[op.kind](value, op)[0])
        later = latest is None or self._times[number] >= self._times[latest]
        history.append((value, number if later else latest))

    def _history(self, cell: Cell) -> list[tuple[int, int | None]]:
        """Return a cell's values, each with the change up to it that was done last; the start value has none."""
        return self._cells.setdefault(cell.slot, [(self._world.start_of(cell), None)])

    def _enabler(self, op: Op) -> int | None:
        """Return what a wait had to wait for: of the changes up to the one that satisfied it, that done last."""
        assert op.cell is not None  # noqa: S101 - for the type checker: a wait has a cell
        history = self._history(op.cell)
        first = len(history) - 1
        while first and COMPARE[op.how](history[first - 1][0], op.amount):
            first -= 1
        return history[first][1]
