"""Who acts in a trace: the ranks of its header, streams that were started, wires whose operation was issued.

Streams and wires stand in no header. A step that starts a stream, or issues what lands later, says
all about them; here they are made, once each and as the machine made them, with the same order.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from asyncsim.trace.kinds import FENCING, FETCH, FETCHING, JOINING, LAND, MEETING, QUIETING, STARTING
from asyncsim.trace.landing import QUIETED, Landing, Unquiet, landings_of
from asyncsim.trace.strict import BadFieldError, shown

if TYPE_CHECKING:
    from asyncsim.trace.late import Model
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access
    from asyncsim.trace.world import Actor, World

MAX_PIECES = 1 << 22
"""The pieces in which all tiles of a trace land, together. A short line can ask for very many."""

_TASK = r"\d{1,9}(?:\.(?:\d{1,9}|[A-Za-z_]\w*))*"
_STREAM = re.compile(rf"(?P<parent>{_TASK})\.(?:(?P<number>[1-9]\d{{0,8}})|(?P<name>[A-Za-z_]\w*))", re.ASCII)
_MEETING = re.compile(rf"(?P<maker>{_TASK})/[1-9]\d{{0,8}}#(?:0|[1-9]\d{{0,8}})", re.ASCII)


@dataclass(slots=True)
class Wire:
    """A landing that is still to come.

    Args:
        landing: what it is.
        call: of the operation it belongs to.
        fetched: its source was read already.

    """

    landing: Landing
    call: int
    fetched: bool = False

    @property
    def next(self) -> str:
        """What the wire does next."""
        return LAND if self.landing.source is None or self.fetched else FETCH

    @property
    def accesses(self) -> tuple[Access, ...]:
        """What that step touches; nothing for a signal."""
        landing = self.landing
        if landing.source is not None and not self.fetched:
            return landing.source.reads
        if landing.cell is not None:
            return landing.cell.changes
        return () if landing.access is None else (landing.access,)


@dataclass(slots=True)
class _Meeting:
    """One round of a stream barrier: for how many it is, and who has come."""

    parties: int
    came: set[str]


class Actors:
    """Finds the actor of each step, and follows who comes and goes.

    Args:
        world: of the header.
        model: what lands late, and in which pieces.
        landings: are in the trace; on real hardware nobody sees one.

    """

    def __init__(self, world: World, model: Model, *, landings: bool = True) -> None:
        self._model = model
        self._landings = landings
        self._tasks = {actor.name: actor for actor in world.actors}
        self._started: Counter[str] = Counter()
        self._joined: set[str] = set()
        self._issued: dict[str, int] = {}
        self._unquiet: dict[str, Unquiet] = {}
        self._wires: dict[str, Wire] = {}
        self._landed: set[str] = set()
        self._meetings: dict[str, _Meeting] = {}
        self._pieces = 0

    def find(self, name: str) -> tuple[Actor, Wire | None]:
        """Return the actor of this name, and what it carries if it is a wire.

        Raises:
            BadFieldError: there is none, or it has gone already.

        """
        wire = self._wires.get(name)
        if wire is not None:
            return wire.landing.actor, wire
        if name in self._joined:
            raise BadFieldError(f"stream {name} was joined before")
        return self.task(name), None

    def task(self, name: str) -> Actor:
        """Return the task of this name, also if it has gone already."""
        actor = self._tasks.get(name)
        if actor is None:
            raise BadFieldError(self._unknown(name))
        return actor

    def _unknown(self, name: str) -> str:
        if name in self._landed:
            return f"wire {name} has carried its landing before"
        if ">" in name:
            return f"no operation before this step leaves a landing to wire {shown(name)}"
        if _STREAM.fullmatch(name):
            return f"no step before this one starts stream {shown(name)}"
        return f"the header knows no actor {shown(name)}"

    def check_link(self, op: Op) -> None:
        """Refuse a start, join or sync that cannot be."""
        if op.kind in MEETING:
            self._check_meeting(op)
            return
        found = _STREAM.fullmatch(op.link)
        if found is None or found["parent"] != op.actor.name:
            raise BadFieldError(f"actor {op.actor.name} has no stream {shown(op.link)}; its streams are called N.1, …")
        self._stream(op)
        if op.kind in STARTING and op.link in self._tasks:
            raise BadFieldError(f"stream {op.link} was started before")
        if op.kind in JOINING and (op.link not in self._tasks or op.link in self._joined):
            raise BadFieldError(f"stream {op.link} is not running")

    def _stream(self, op: Op) -> Actor:
        """Return the stream that a start is of: a name stands for the number of streams so far, with this one."""
        last = op.link.rpartition(".")[2]
        block = op.payload or "" if op.kind in STARTING else ""
        if last.isdecimal():
            return op.actor.stream(int(last), block)
        return op.actor.stream(self._started[op.actor.name] + 1, block, last)

    def _check_meeting(self, op: Op) -> None:
        found = _MEETING.fullmatch(op.link)
        maker = None if found is None else self._tasks.get(found["maker"])
        if maker is None or maker.rank != op.actor.rank:
            raise BadFieldError(f"{shown(op.link)} is no meeting of streams of rank {op.actor.rank}: ACTOR/N#ROUND")
        meeting = self._meetings.setdefault(op.link, _Meeting(op.amount, set()))
        if meeting.parties != op.amount:
            raise BadFieldError(f"meeting {op.link} is of {meeting.parties} streams, not {op.amount}")
        if op.actor.name in meeting.came or len(meeting.came) == meeting.parties:
            raise BadFieldError(f"actor {op.actor.name} is one too many at meeting {op.link} of {op.amount} streams")
        meeting.came.add(op.actor.name)

    def took_step(self, op: Op) -> None:
        """Follow an executed operation: what it starts, ends and leaves to land."""
        name = op.actor.name
        if op.actor.wire:
            self._moved(name, op)
            return
        index = self._issued.get(name, 0)
        self._issued[name] = index + 1
        if op.kind in STARTING:
            self._tasks[op.link] = self._stream(op)
            self._started[name] += 1
        elif op.kind in JOINING:
            self._joined.add(op.link)
        elif op.deferred or op.kind in FENCING or op.kind in QUIETING:
            self._count_pieces(op)
            self._issue(op, index)

    def _issue(self, op: Op, index: int) -> None:
        """Make the wires that an operation leaves."""
        if self._landings:
            unquiet = self._unquiet.get(op.actor.name, QUIETED)
            landings = landings_of(op, index, self._model, unquiet)
            self._unquiet[op.actor.name] = unquiet.after(op, landings)
            self._wires |= {landing.actor.name: Wire(landing, op.call) for landing in landings}

    def _moved(self, name: str, op: Op) -> None:
        if op.kind in FETCHING:
            self._wires[name].fetched = True
        else:
            del self._wires[name]
            self._landed.add(name)

    def _count_pieces(self, op: Op) -> None:
        """Refuse what would be very many landings, before they are made."""
        if op.accesses and self._model.atom is not None:
            region = op.accesses[-1].region
            self._pieces += prod(region.shape) // self._model.atom + len(region.spans)
            if self._pieces > MAX_PIECES:
                raise BadFieldError(f"the tiles so far land in more than {MAX_PIECES} pieces")
