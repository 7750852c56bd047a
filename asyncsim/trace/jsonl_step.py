"""Reading one step of a trace: an operation as its kind must be, at places that exist."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import COMPARISONS, UPDATES
from asyncsim.trace.event import Event
from asyncsim.trace.jsonl_actors import Actors
from asyncsim.trace.jsonl_elsewhere import ELSEWHERE, filled_step
from asyncsim.trace.jsonl_shape import fault_of
from asyncsim.trace.kinds import KINDS, LATER, NONE, POLLING, PUTTING, SEEN, UPDATE, Kind
from asyncsim.trace.late import model_of
from asyncsim.trace.layout import SignalLayout, WindowLayout
from asyncsim.trace.op import Op
from asyncsim.trace.region import ADD, READ, WRITE, Access, Region
from asyncsim.trace.strict import BadFieldError, Fields, integer_in, list_in, shown, text_in
from asyncsim.trace.values import decode_data

if TYPE_CHECKING:
    from asyncsim.trace.event import Header, Site
    from asyncsim.trace.jsonl_actors import Wire
    from asyncsim.trace.region import Box, Cell
    from asyncsim.trace.world import Actor

MAX_SPANS = 1 << 22
"""The byte ranges of all different regions of a trace, together. A short line can ask for very many."""

_MODES = (READ, WRITE, ADD)
_SITE = re.compile(r"(.+:\d{1,9})?\Z", re.ASCII | re.DOTALL)
"""What leaves something to land, under a memory model that is late."""


class Steps:
    """Makes events of the lines of one trace.

    Args:
        header: of that trace.

    """

    def __init__(self, header: Header) -> None:
        model = model_of(header.memory)
        self._world = header.world
        self._calls = header.calls
        self._model = model
        self._foreign = header.recorded == ELSEWHERE
        self._actors = Actors(header.world, model, landings=not self._foreign)
        self._pending: set[str] = set()
        self._regions: dict[tuple[object, ...], Region] = {}
        self._spans = 0
        self._rank = 0  # whose step is being read

    def read(self, fields: Fields, step: int | None, *, pending: bool = False) -> Event:
        """Return the event of a line; `step` is the number it must have, None where nothing says.

        Args:
            fields: of the line.
            step: from 0.
            pending: whether it is an operation that was never done, as a footer lists them; each actor has at most
                one.

        Raises:
            BadFieldError: something in it cannot be.

        """
        if step is not None and (number := fields.integer("step", 0)) != step:
            raise BadFieldError(f"step {number}, where step {step} belongs")
        if self._foreign:
            fields = filled_step(fields, self._world)
        name = fields.text("actor")
        actor, wire = self._actors.find(name)
        if (rank := fields.integer("rank", 0)) != actor.rank:
            raise BadFieldError(f"actor {name} is of rank {actor.rank}, not {rank}")
        self._rank = rank
        call = fields.integer("call", 0, self._calls - 1)
        kind = fields.choice("op", tuple(KINDS))
        op = Op(
            actor, kind, call=call, deferred=self._model.late and kind in LATER,
            adapter=self._model.adapter and kind in PUTTING,
        )  # fmt: skip
        event = Event(step, op, call, fields.text("phase", ""), read_site(fields))
        if wire is not None:
            self._read_landing(wire, event, fields, pending=pending)
        else:
            self._read_operation(event, fields, pending=pending)
        if "time" in fields:
            event.time = _time(fields.take("time"))
        fields.end()
        if not pending:
            self._actors.took_step(op)
        elif name in self._pending:
            raise BadFieldError(f"actor {name} is pending twice")
        else:
            self._pending.add(name)
        return event

    def task(self, name: str) -> Actor:
        """Return a rank's own actor, or a stream that some step started."""
        return self._actors.task(name)

    def _read_operation(self, event: Event, fields: Fields, *, pending: bool) -> None:
        op = event.op
        row = KINDS[op.kind]
        if row.landing:
            raise BadFieldError(f"actor {op.actor.name} is a task; only a wire can {op.kind}")
        if row.touches:
            self._read_accesses(event, fields, pending=pending)
        elif row.cell != NONE:
            self._read_cell(event, row, fields)
        elif row.link is None:
            op.link = fields.text("link")
            op.amount = fields.integer(row.amount, 1) if row.amount else 0
            self._actors.check_link(op)
        elif row.link:
            op.link = _link(fields, row.link)

    def _read_cell(self, event: Event, row: Kind, fields: Fields) -> None:
        """Read what an operation on a cell alone has."""
        op = event.op
        if row.cell == UPDATE:
            self._read_change(event, fields, row.amount)
            op.relaxed = "relaxed" in row.flags and fields.flag("relaxed")
            op.link = _link(fields, row.link) if op.relaxed and row.link else ""
            return
        cell = op.cell = self._cell(fields.take("cell"))
        if row.cell != SEEN:
            op.how = fields.choice("how", tuple(COMPARISONS))
            op.amount = fields.integer(row.amount, cell.low, cell.high)
        if cell.owner != op.actor.rank:
            raise BadFieldError(f"rank {op.actor.rank} waits on {cell}, which is not its own")
        op.consume = "consume" in row.flags and fields.flag("consume")
        event.have = self._have(fields, cell)

    def _read_change(self, event: Event, fields: Fields, amount: str) -> Cell:
        op = event.op
        cell = op.cell = self._cell(fields.take("cell"))
        op.how = fields.choice("how", tuple(UPDATES))
        op.amount = fields.integer(amount, cell.low, cell.high)
        event.have = self._have(fields, cell)
        return cell

    def _have(self, fields: Fields, cell: Cell) -> int | None:
        """Take what a cell held; who instruments a kernel need not know it."""
        if self._foreign and "have" not in fields:
            return None
        return fields.integer("have", cell.low, cell.high)

    def _read_accesses(self, event: Event, fields: Fields, *, pending: bool) -> None:
        """Read what a load, store, poll, get or put has, with or without a signal."""
        op = event.op
        op.accesses = tuple(self._access(item)[0] for item in fields.items("accesses"))
        row, fault = KINDS[op.kind], fault_of(op)
        if "late" in row.flags and fields.flag("late"):
            op.late = True
            if len(op.accesses) == 1:
                fault = fault or "nothing of it can be read late: its source is fixed"
        if fault:
            raise BadFieldError(f"rank {op.actor.rank}, {op.kind}: {fault}")
        if row.cell == UPDATE:
            self._read_change(event, fields, row.amount)
        self._read_data(event, fields, pending=pending)

    def _read_data(self, event: Event, fields: Fields, *, pending: bool) -> None:
        region = event.op.accesses[-1].region
        if (not pending or event.op.kind in POLLING) and "value" in fields:
            event.data = decode_data(fields.take("value"), region.dtype, _elements(region))
        event.unwritten = fields.flag("unwritten")

    def _read_landing(self, wire: Wire, event: Event, fields: Fields, *, pending: bool) -> None:
        """Read a step of a wire, which must be the one that its operation left to it."""
        op, landing = event.op, wire.landing
        name = op.actor.name
        if op.kind != wire.next:
            raise BadFieldError(f"wire {name} does a {op.kind}; its next step is a {wire.next}")
        if op.call != wire.call:
            raise BadFieldError(f"wire {name} carries a landing of call {wire.call}, not {op.call}")
        op.link = fields.text("link", "")
        op.accesses = wire.accesses
        if landing.cell is not None:
            cell = self._read_change(event, fields, "value")
            same = (cell.slot, op.how, op.amount) == (landing.cell.slot, landing.how, landing.amount)
        else:
            found = [self._access(item, wire=True) for item in fields.items("accesses")]
            same = [_key(*each) for each in found] == [_key(due, due.region.part) for due in wire.accesses]
            self._read_data(event, fields, pending=pending)
        if not same or op.link != landing.link:
            raise BadFieldError(f"wire {name}: this is not what the operation that it belongs to left to it")

    def _owner(self, layout: WindowLayout | SignalLayout, fields: Fields) -> int:
        """Take the owner of a place, which is a member of the group that its window or signal belongs to."""
        owner = fields.integer("owner", 0, self._world.ranks - 1)
        for rank, what in ((owner, "owns no part of it"), (self._rank, "cannot touch it")):
            if rank not in layout.members:
                members = ", ".join(map(str, layout.members))
                raise BadFieldError(f"{layout.name} is of group {layout.group!r} (ranks {members}); rank {rank} {what}")
        return owner

    def _cell(self, item: Any) -> Cell:  # noqa: ANN401 - any JSON value
        fields = Fields(item, "'cell'")
        layout = self._world.layouts.get(name := fields.text("signal"))
        if not isinstance(layout, SignalLayout):
            raise BadFieldError(f"the header declares no signal {shown(name)}")
        owner = self._owner(layout, fields)
        index = list_in(fields.take("index"), "'index'")
        fields.end()
        if len(index) != len(layout.shape):
            raise BadFieldError(f"'index' has {len(index)} offsets; signal {name} has shape {layout.shape}")
        key = tuple(integer_in(at, "an offset", 0, extent - 1) for at, extent in zip(index, layout.shape, strict=True))
        return layout.cell(owner, key, owner)

    def _access(self, item: Any, *, wire: bool = False) -> tuple[Access, tuple[int, int] | None]:  # noqa: ANN401
        """Return an access to a whole region and, for a wire, the piece of it that is meant."""
        fields = Fields(item, "an access")
        layout = self._world.layouts.get(name := fields.text("window"))
        if not isinstance(layout, WindowLayout):
            raise BadFieldError(f"the header declares no window {shown(name)}")
        owner = self._owner(layout, fields)
        places = list_in(fields.take("region"), "'region'")
        mode = fields.choice("mode", _MODES)
        piece = _piece(fields.take("piece")) if wire and "piece" in fields else None
        atomic = fields.flag("atomic")
        fields.end()
        if len(places) != len(layout.shape):
            raise BadFieldError(f"'region' has {len(places)} offsets; window {name} has shape {layout.shape}")
        whole = tuple(type(place) is list for place in places)
        box = tuple(_range(place, extent) for place, extent in zip(places, layout.shape, strict=True))
        region = self._regions.get((name, owner, box, whole))
        if region is None:
            self._spans += _span_count(box, layout.shape)
            if self._spans > MAX_SPANS:
                raise BadFieldError(f"the regions so far are more than {MAX_SPANS} pieces of memory")
            region = self._regions[name, owner, box, whole] = layout.from_box(owner, box, whole)
        plain = {READ: region.reads, WRITE: region.writes, ADD: region.adds}[mode]
        return (region.atomic(mode) if atomic and mode != ADD else plain)[0], piece


def _link(fields: Fields, word: str) -> str:
    """Take the word that sets an operation apart, if it is there."""
    return fields.choice("link", (word,)) if "link" in fields else ""


def _time(value: Any) -> float:  # noqa: ANN401
    if type(value) not in (int, float) or value < 0:
        raise BadFieldError(f"'time' is {shown(value)}; it must be a number of seconds, at least 0")
    return float(value)


def _piece(item: Any) -> tuple[int, int]:  # noqa: ANN401
    ends = [integer_in(at, "an end of a 'piece'", 0) for at in list_in(item, "'piece'")]
    if len(ends) != 2:  # noqa: PLR2004 - start and stop
        raise BadFieldError(f"'piece' is {shown(item)}; it is [start, stop]")
    return ends[0], ends[1]


def _key(access: Access, piece: tuple[int, int] | None) -> tuple[object, ...]:
    region = access.region
    return (region.slot, region.index, access.mode, access.atomic, piece)


def _range(place: Any, extent: int) -> tuple[int, int, int]:  # noqa: ANN401
    if type(place) is not list:
        at = integer_in(place, "an offset", 0, extent - 1)
        return (at, at + 1, 1)
    if len(place) != 3:  # noqa: PLR2004 - start, stop, step
        raise BadFieldError(f"{shown(place)} is no [start, stop, step]")
    start, stop, step = place
    integer_in(start, "a start", 0, extent)
    integer_in(stop, "a stop", start, extent)
    integer_in(step, "a step", 1)
    return (start, stop, step)


def _span_count(box: Box, shape: tuple[int, ...]) -> int:
    """Return a bound on the spans of a box, without making them: see `spans_of`."""
    count, contiguous = 1, True
    for (start, stop, step), extent in zip(reversed(box), reversed(shape), strict=True):
        if not (step == 1 and contiguous):
            count *= len(range(start, stop, step))
        contiguous = contiguous and (start, stop, step) == (0, extent, 1)
    return count


def read_site(fields: Fields) -> Site:
    """Take the source lines of an operation."""
    at = tuple(text_in(line, "a line of 'at'") for line in fields.items("at"))
    if len(at) > 2 or not all(_SITE.match(line) for line in at):  # noqa: PLR2004 - the author's and the composite's
        raise BadFieldError(f"'at' is {shown(list(at))}; it holds at most two lines, as file:number")
    return at


def _elements(region: Region) -> int:
    return math.prod(region.shape) if region.part is None else region.part[1] - region.part[0]
