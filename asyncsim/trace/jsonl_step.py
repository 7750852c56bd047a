"""Reading one step of a trace: an operation as its kind must be, at places that exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from asyncsim.trace.event import Event
from asyncsim.trace.layout import SignalLayout, WindowLayout
from asyncsim.trace.op import (
    ATOMIC_ADD,
    GET,
    KINDS,
    LOAD,
    NOTIFY,
    PUT,
    REMOTE_LOAD,
    REMOTE_STORE,
    SET,
    STORE,
    WAIT,
    Op,
)  # fmt: skip
from asyncsim.trace.region import ADD, READ, SYMBOLS, WRITE, Access, Region
from asyncsim.trace.strict import BadFieldError, Fields, integer_in, list_in, shown, text_in
from asyncsim.trace.values import decode_data

if TYPE_CHECKING:
    from asyncsim.trace.event import Site
    from asyncsim.trace.region import Box, Cell
    from asyncsim.trace.world import World

MAX_SPANS = 1 << 22
"""The byte ranges of all different regions of a trace, together. A short line can ask for very many."""

_MODES = (READ, WRITE, ADD)
_SITE = re.compile(r"(.+:\d{1,9})?\Z", re.DOTALL)
_COPIES = (GET, PUT)


class Steps:
    """Makes events of the lines of one trace.

    Args:
        world: of its header.
        calls: how many the run makes.

    """

    def __init__(self, world: World, calls: int) -> None:
        """Know the world, and no place in it yet."""
        self._world = world
        self._calls = calls
        self._actors = {actor.name: actor for actor in world.actors}
        self._regions: dict[tuple[object, ...], Region] = {}
        self._spans = 0

    def read(self, fields: Fields, step: int | None) -> Event:
        """Return the event of a line; `step` is the number it must have, None for a pending operation.

        Raises:
            BadFieldError: something in it cannot be.

        """
        if step is not None and (number := fields.integer("step", 0)) != step:
            raise BadFieldError(f"step {number}, where step {step} belongs")
        name = fields.text("actor")
        actor = self._actors.get(name)
        if actor is None:
            raise BadFieldError(f"the header knows no actor {shown(name)}")
        if (rank := fields.integer("rank", 0)) != actor.rank:
            raise BadFieldError(f"actor {name} is of rank {actor.rank}, not {rank}")
        call = fields.integer("call", 0, self._calls - 1)
        kind = fields.choice("op", KINDS)
        op = Op(actor, kind, call=call)
        event = Event(step, op, call, fields.text("phase", ""), _site(fields))
        if "cell" in fields:
            self._read_cell(op, event, fields)
        else:
            self._read_accesses(op, event, fields)
        fields.end()
        return event

    def _read_cell(self, op: Op, event: Event, fields: Fields) -> None:
        """Read what a notify, wait or test has."""
        cell = op.cell = self._cell(fields.take("cell"))
        if op.kind == NOTIFY:
            op.how = fields.choice("how", (ATOMIC_ADD, SET))
            op.amount = fields.integer("value", cell.low, cell.high)
        else:
            op.how = fields.choice("how", tuple(SYMBOLS))
            op.amount = fields.integer("need", cell.low, cell.high)
            if cell.owner != op.actor.rank:
                raise BadFieldError(f"rank {op.actor.rank} waits on {cell}, which is not its own")
        if op.kind == WAIT:
            op.consume = fields.flag("consume")
        event.have = fields.integer("have", cell.low, cell.high)

    def _read_accesses(self, op: Op, event: Event, fields: Fields) -> None:
        """Read what a load, store, get or put has."""
        op.accesses = tuple(self._access(item) for item in fields.items("accesses"))
        fault = _copy_fault(op) if op.kind in _COPIES else _single_fault(op)
        if fault:
            raise BadFieldError(f"rank {op.actor.rank}, {op.kind}: {fault}")
        region = op.accesses[-1].region
        if event.step is not None and "value" in fields:
            event.data = decode_data(fields.take("value"), region.dtype, _elements(region))
        event.unwritten = fields.flag("unwritten")

    def _cell(self, item: Any) -> Cell:  # noqa: ANN401 - any JSON value
        fields = Fields(item, "'cell'")
        layout = self._world.layouts.get(name := fields.text("signal"))
        if not isinstance(layout, SignalLayout):
            raise BadFieldError(f"the header declares no signal {shown(name)}")
        owner = fields.integer("owner", 0, self._world.ranks - 1)
        index = list_in(fields.take("index"), "'index'")
        fields.end()
        if len(index) != len(layout.shape):
            raise BadFieldError(f"'index' has {len(index)} offsets; signal {name} has shape {layout.shape}")
        key = tuple(integer_in(at, "an offset", 0, extent - 1) for at, extent in zip(index, layout.shape, strict=True))
        return layout.cell(owner, key, owner)

    def _access(self, item: Any) -> Access:  # noqa: ANN401
        fields = Fields(item, "an access")
        layout = self._world.layouts.get(name := fields.text("window"))
        if not isinstance(layout, WindowLayout):
            raise BadFieldError(f"the header declares no window {shown(name)}")
        owner = fields.integer("owner", 0, self._world.ranks - 1)
        places = list_in(fields.take("region"), "'region'")
        mode = fields.choice("mode", _MODES)
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
        return {READ: region.reads, WRITE: region.writes, ADD: region.adds}[mode][0]


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


def _site(fields: Fields) -> Site:
    at = tuple(text_in(line, "a line of 'at'") for line in fields.items("at"))
    if len(at) > 2 or not all(_SITE.match(line) for line in at):  # noqa: PLR2004 - the author's and the composite's
        raise BadFieldError(f"'at' is {shown(list(at))}; it holds at most two lines, as file:number")
    return at


def _elements(region: Region) -> int:
    count = 1
    for extent in region.shape:
        count *= extent
    return count


def _single_fault(op: Op) -> str:
    """Say what is wrong with the accesses of a load or store; nothing: empty."""
    if op.kind not in (LOAD, REMOTE_LOAD, STORE, REMOTE_STORE):
        return "it has no 'cell'"
    if len(op.accesses) != 1:
        return f"{len(op.accesses)} accesses; it has one"
    access = op.accesses[0]
    if (access.mode == READ) != (op.kind in (LOAD, REMOTE_LOAD)):
        return f"the mode {access.mode} does not fit"
    if (access.region.owner == op.actor.rank) != (op.kind in (LOAD, STORE)):
        return f"{access.region} is not where this kind goes: remote is a peer's, the others the rank's own"
    return _add_fault(access)


def _copy_fault(op: Op) -> str:  # noqa: PLR0911 - one return a fault
    """Say what is wrong with the accesses of a get or put; nothing: empty."""
    if len(op.accesses) != 2 and not (op.kind == PUT and len(op.accesses) == 1):  # noqa: PLR2004 - source and target
        return f"{len(op.accesses)} accesses; it has a source and a target"
    target = op.accesses[-1]
    if op.kind == GET and target.region.owner != op.actor.rank:
        return f"the target {target.region} is a peer's"
    if len(op.accesses) == 1:
        return "it writes nothing" if target.mode == READ else _add_fault(target)
    source = op.accesses[0]
    if source.mode != READ:
        return "the first access, the source, is not a read"
    if op.kind == PUT and source.region.owner != op.actor.rank:
        return f"the source {source.region} is a peer's"
    if source.region.shape != target.region.shape or source.region.dtype != target.region.dtype:
        return "source and target differ in shape or dtype"
    same = source.region.slot == target.region.slot and source.region.spans == target.region.spans
    if target.mode != ADD and (target.mode == READ) != same:
        return "a copy reads its target exactly when it is the source"
    return _add_fault(target)


def _add_fault(access: Access) -> str:
    return "booleans cannot be added" if access.mode == ADD and access.region.dtype.kind == "b" else ""
