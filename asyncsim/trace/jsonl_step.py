"""Reading one step of a trace: an operation as its kind must be, at places that exist."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import Event
from asyncsim.trace.fields import object_in
from asyncsim.trace.format import ELSEWHERE
from asyncsim.trace.format_step import ACCESS, CELL, KIND, PENDING, STEPS, WIRE_ACCESS
from asyncsim.trace.jsonl_actors import Actors
from asyncsim.trace.kinds import ACQ_REL, ANY, COPYING, KINDS, LATER, OWN, PUTTING, READING, RELEASE, WAITING
from asyncsim.trace.late import model_of
from asyncsim.trace.layout import SignalLayout, WindowLayout
from asyncsim.trace.op import Op, accesses_on, change_by, order_of, saying
from asyncsim.trace.region import ADD, READ, WRITE, Access, Region
from asyncsim.trace.strict import BadFieldError, integer_in, shown
from asyncsim.trace.values import decode_data

if TYPE_CHECKING:
    from asyncsim.trace.event import Header
    from asyncsim.trace.jsonl_actors import Wire
    from asyncsim.trace.kinds import Kind, Touch
    from asyncsim.trace.region import Box, Cell
    from asyncsim.trace.world import Actor

MAX_SPANS = 1 << 22
"""The byte ranges of all different regions of a trace, together. A short line can ask for very many."""


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

    def read(self, line: Any, step: int | None, *, pending: bool = False) -> Event:  # noqa: ANN401 - any JSON value
        """Return the event of a line; `step` is the number it must have, None where nothing says.

        Args:
            line: a step, or a pending operation.
            step: from 0.
            pending: whether it is an operation that was never done, as a footer lists them; each actor has at most
                one.

        Raises:
            BadFieldError: something in it cannot be.

        """
        what = "a pending operation" if pending else "the line"
        given = object_in(line, what)
        if "op" not in given:
            raise BadFieldError(f"{what} has no 'op'")
        kind = KIND.check(given["op"], "'op'")
        objects = PENDING if pending else STEPS
        declared = objects.get((kind, "cell" in given)) or objects[kind, False]
        made = declared.read(given, elsewhere=self._foreign)
        if not pending and made["step"] != step:
            raise BadFieldError(f"step {made['step']}, where step {step} belongs")
        actor, wire = self._actor(made["actor"], made["rank"])
        call = integer_in(made["call"], "'call'", 0, self._calls - 1)
        op = Op(
            actor, kind, call=call, deferred=self._model.late and kind in LATER,
            adapter=self._model.adapter and kind in PUTTING,
        )  # fmt: skip
        for name, operand in declared.operands:
            setattr(op, operand, made[name])
        op = saying(op, made)
        op.payload = made.get("block")
        event = Event(step, op, call, made["phase"], made["at"], time=made["time"])
        if "cell" in made:
            self._read_cell(event, made, declared.row.amount)
        if wire is not None:
            self._read_landing(wire, op, made)
        else:
            self._read_operation(op, made, declared.row)
        if op.accesses:
            event.unwritten = made["unwritten"]
            if declared.row.touches and made.get("value") is not None:
                region = op.accesses[-1].region
                event.data = decode_data(made["value"], region.dtype, _elements(region))
        if not pending:
            self._actors.took_step(op)
        elif actor.name in self._pending:
            raise BadFieldError(f"actor {actor.name} is pending twice")
        else:
            self._pending.add(actor.name)
        return event

    def task(self, name: str) -> Actor:
        """Return a rank's own actor, or a stream that some step started."""
        return self._actors.task(name)

    def _actor(self, name: str | None, rank: int | None) -> tuple[Actor, Wire | None]:
        """Return who did it, and what it carries if it is a wire; recorded elsewhere, one of the two may be None."""
        if name is None and rank is None:
            raise BadFieldError("the line has no 'actor', and no 'rank'")
        actor, wire = self._actors.find(str(rank) if name is None else name)
        if rank not in {None, actor.rank}:
            raise BadFieldError(f"actor {actor.name} is of rank {actor.rank}, not {rank}")
        return actor, wire

    def _read_cell(self, event: Event, made: dict[str, Any], amount: str) -> None:
        """Read what an operation does to a cell, or sees of it."""
        op = event.op
        cell = op.cell = self._cell(made["cell"], op.actor.rank)
        if amount:
            integer_in(op.amount, repr(amount), cell.low, cell.high)
        if made["have"] is not None:  # who instruments a kernel need not know it
            event.have = integer_in(made["have"], "'have'", cell.low, cell.high)

    def _read_operation(self, op: Op, made: dict[str, Any], row: Kind) -> None:
        """Read the places of an operation of a task, and check that all of it fits together."""
        rank = op.actor.rank
        if row.landing:
            raise BadFieldError(f"actor {op.actor.name} is a task; only a wire can {op.kind}")
        if row.touches:
            items = made["accesses"]
            reading = len(items) if op.kind in READING else len(items) - 1 if op.kind in COPYING else 0
            op.accesses = tuple(
                [self._access(item, rank, READ if at < reading else WRITE)[0] for at, item in enumerate(items)]
            )
            fault = _fault_of(op)
            if op.late and len(op.accesses) == 1:
                fault = fault or "nothing of it can be read late: its source is fixed"
            if fault:
                raise BadFieldError(f"rank {rank}, {op.kind}: {fault}")
        elif op.cell is not None:
            _check_said(op, made)
            op.accesses = accesses_on(op.cell, change_by(op))
            if op.link and not op.relaxed:
                raise BadFieldError(f"'link' is {shown(op.link)}; only what is relaxed has one")
        elif row.link is None:
            self._actors.check_link(op)
        elif op.link and op.amount:
            raise BadFieldError(f"'pending' is {op.amount}; the quiet of a whole rank leaves nothing pending")

    def _read_landing(self, wire: Wire, op: Op, made: dict[str, Any]) -> None:
        """Read a step of a wire, which must be the one that its operation left to it."""
        landing, name = wire.landing, op.actor.name
        if op.kind != wire.next:
            raise BadFieldError(f"wire {name} does a {op.kind}; its next step is a {wire.next}")
        if op.call != wire.call:
            raise BadFieldError(f"wire {name} carries a landing of call {wire.call}, not {op.call}")
        found = [self._access(item, op.actor.rank, "", wire=True) for item in made.get("accesses", ())]
        due = [] if landing.cell is not None else [_key(access, access.region.part) for access in wire.accesses]
        same = [_key(*each) for each in found] == due
        left = None if landing.cell is None else (landing.cell.slot, landing.how, landing.amount)
        if not same or op.link != landing.link or left != (op.cell and (op.cell.slot, op.how, op.amount)):
            raise BadFieldError(f"wire {name}: this is not what the operation that it belongs to left to it")
        op.accesses = wire.accesses

    def _owner(self, layout: WindowLayout | SignalLayout, owner: int | None, rank: int) -> int:
        """Return the owner of a place, which is a member of the group that its window or signal belongs to."""
        owner = rank if owner is None else integer_in(owner, "'owner'", 0, self._world.ranks - 1)
        for each, what in ((owner, "owns no part of it"), (rank, "cannot touch it")):
            if each not in layout.members:
                members = ", ".join(map(str, layout.members))
                raise BadFieldError(f"{layout.name} is of group {layout.group!r} (ranks {members}); rank {each} {what}")
        return owner

    def _cell(self, item: Any, rank: int) -> Cell:  # noqa: ANN401 - any JSON value
        made = CELL.read(item, elsewhere=self._foreign)
        layout = self._world.layouts.get(name := made["signal"])
        if layout is None:
            raise BadFieldError(f"the header declares no signal {shown(name)}")
        owner, index = self._owner(layout, made["owner"], rank), made["index"]
        if index is None:
            if math.prod(layout.shape) != 1:
                raise BadFieldError(f"'cell' has no 'index'; signal {name} has shape {layout.shape}")
            index = (0,) * len(layout.shape)
        if len(index) != len(layout.shape):
            raise BadFieldError(f"'index' has {len(index)} offsets; {name} has shape {layout.shape}")
        for at, extent in zip(index, layout.shape, strict=True):
            integer_in(at, "an offset", 0, extent - 1)
        if isinstance(layout, SignalLayout):
            return layout.cell(owner, index, owner)
        try:
            return layout.word(owner, index, owner)
        except MisuseError as error:
            raise BadFieldError(str(error)) from None

    def _access(
        self, item: Any, rank: int, mode: str, *, wire: bool = False,  # noqa: ANN401
    ) -> tuple[Access, tuple[int, ...] | None]:  # fmt: skip
        """Return an access to a whole region and, for a wire, the piece of it that is meant.

        Recorded elsewhere, it may be of the whole window, in the mode that its kind has there.
        """
        made = (WIRE_ACCESS if wire else ACCESS).read(item, elsewhere=self._foreign)
        layout = self._world.layouts.get(name := made["window"])
        if not isinstance(layout, WindowLayout):
            raise BadFieldError(f"the header declares no window {shown(name)}")
        owner, places = self._owner(layout, made["owner"], rank), made["region"]
        mode = made["mode"] or mode
        if places is None:
            places = [[0, extent, 1] for extent in layout.shape]
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
        return (region.atomic(mode) if made["atomic"] and mode != ADD else plain)[0], made.get("piece")


def _check_said(op: Op, made: dict[str, Any]) -> None:
    """Refuse an operation that says what does not fit together."""
    cell = op.cell
    assert cell is not None  # noqa: S101 - for the type checker: only operations on cells come here
    if op.update:
        integer_in(made["operand"], "'operand'", cell.low, cell.high)
    elif made.get("operand") is not None:
        raise BadFieldError("there is an 'operand', and no 'update'")
    if op.update and op.consume:
        raise BadFieldError("it consumes, and has an 'update'; one step makes one")
    if op.kind in WAITING and order_of(op) in {RELEASE, ACQ_REL} and change_by(op) is None:
        raise BadFieldError(f"'order' is {op.order}; what only waits releases nothing")


def _key(access: Access, piece: tuple[int, ...] | None) -> tuple[object, ...]:
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


def _elements(region: Region) -> int:
    return math.prod(region.shape) if region.part is None else region.part[1] - region.part[0]


# ---- what accesses a kind has


def _fault_of(op: Op) -> str:
    """Say what is wrong with the accesses of an operation; nothing: empty."""
    return _copy_fault(op) if op.kind in COPYING else _single_fault(op)


def _single_fault(op: Op) -> str:
    access, touch = op.accesses[0], KINDS[op.kind].touches[0]
    if (access.mode == READ) != (touch.mode == READ):
        return f"the mode {access.mode} does not fit"
    if not _is_there(op, access, touch):
        return f"{access.region} is not where this kind goes: remote is a peer's, the others the rank's own"
    return _add_fault(access, touch)


def _copy_fault(op: Op) -> str:
    source, target = KINDS[op.kind].touches
    if len(op.accesses) != 2 and not (source.optional and len(op.accesses) == 1):  # noqa: PLR2004 - source and target
        return f"{len(op.accesses)} accesses; it has a source and a target"
    last = op.accesses[-1]
    if not _is_there(op, last, target):
        return f"the target {last.region} is a peer's"
    if last.mode == ADD and not target.adds:
        return "only a put or a store adds"
    if len(op.accesses) == 1:
        return "it writes nothing" if last.mode == READ else _add_fault(last, target)
    return _source_fault(op, op.accesses[0], last)


def _is_there(op: Op, access: Access, touch: Touch) -> bool:
    return touch.at == ANY or (access.region.owner == op.actor.rank) == (touch.at == OWN)


def _source_fault(op: Op, source: Access, target: Access) -> str:
    if source.mode != READ:
        return "the first access, the source, is not a read"
    row, place = KINDS[op.kind].touches
    if not _is_there(op, source, row):
        return f"the source {source.region} is a peer's"
    if source.region.shape != target.region.shape or source.region.dtype != target.region.dtype:
        return "source and target differ in shape or dtype"
    same = source.region.slot == target.region.slot and source.region.spans == target.region.spans
    if target.mode != ADD and (target.mode == READ) != same:
        return "a copy reads its target exactly when it is the source"
    return _add_fault(target, place)


def _add_fault(access: Access, touch: Touch) -> str:
    if access.mode == ADD and not touch.adds:
        return f"the mode {access.mode} does not fit"
    return "booleans cannot be added" if access.mode == ADD and access.region.dtype.kind == "b" else ""
