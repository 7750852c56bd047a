"""What lands late: the memory models, and the landings that an operation leaves behind.

Under ``sc`` an effect happens at its step, for everybody. Under ``ldst`` and ``nic`` a remote store,
a put, a notify and, in the eyes of peers, a local store *land* later. A landing is an operation of
its own; its actor is a *wire*, which nothing but this landing (and for a non-blocking copy the
fetch before it) ever uses.

    ldst   loads and stores over NVLink or PCIe peer mapping: an actor sees its own pending writes,
           and its writes to one place land in order.
    nic    puts through a network adapter (OpenSHMEM, NVSHMEM): neither holds.

Either may tear: under ``ldst:atom=4`` a tile of more than four elements lands in pieces, each by itself.

What orders landings is written down once, in `asyncsim.machine.wires` for a run under way and in
`asyncsim.analysis.edges` for all runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.trace.columns import KIND, LATE, RELAXED, Columns
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.op import FENCE, GET, NOTIFY, PUT, PUT_SIGNAL, QUIET, REMOTE_STORE, STORE
from asyncsim.trace.world import WIRES, Actor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access, Cell, Region


@dataclass(frozen=True, slots=True)
class Model:
    """A memory model.

    Args:
        name: what the command line calls it.
        late: remote effects land later.
        forwarding: an actor sees its own pending writes.
        place_order: one actor's writes to one place land in the order in which they were issued.
        atom: a tile of more elements lands in pieces of so many, each by itself; None: whole.

    """

    name: str
    late: bool
    forwarding: bool
    place_order: bool
    atom: int | None = None


MODELS = {
    "sc": Model("sc", late=False, forwarding=True, place_order=True),
    "ldst": Model("ldst", late=True, forwarding=True, place_order=True),
    "nic": Model("nic", late=True, forwarding=False, place_order=False),
}


_ATOM = re.compile(r"[1-9]\d{0,17}", re.ASCII)
"""Written as whoever reads it writes it: ``ldst:atom=04`` would be another text for the same model."""


def model_of(text: str) -> Model:
    """Return the memory model that a text names: ``sc``, ``nic``, ``ldst:atom=4``."""
    name, colon, atom = text.partition(":atom=") if isinstance(text, str) else (text, "", "")
    if name not in MODELS:
        raise MisuseError(f"memory={text!r}; the memory models are: {', '.join(MODELS)}")
    model = MODELS[name]
    if not colon:
        return model
    if not model.late or not _ATOM.fullmatch(atom):
        raise MisuseError(f"memory={text!r}; a model that is late lands tiles in pieces of at least one: ldst:atom=1")
    return replace(model, name=text, atom=int(atom))


def says_late_words(events: Sequence[Event]) -> bool:
    """Say whether the author's own words tell when something is there: put, non-blocking, relaxed, fence, quiet.

    Under ``sc`` they mean nothing. What a composite says inside is not its caller's word.

    Args:
        events: of one recorded run, under any model.

    """
    if isinstance(events, Columns):
        steps = events.steps
        own = np.array([len(at) < 2 for _, at in events.wheres], bool)  # noqa: PLR2004 - a second line is a composite's
        kinds = [KIND[kind] for kind in _LATE_KINDS]
        said = np.isin(steps.kind, kinds) | (steps.flags & (LATE | RELAXED) > 0)
        return bool(own[steps.where[said]].any())
    return any(
        (event.op.kind in _LATE_KINDS or event.op.late or event.op.relaxed) and len(event.at) < 2  # noqa: PLR2004
        for event in events
    )


_LATE_KINDS = (PUT, PUT_SIGNAL, FENCE, QUIET)


@dataclass(frozen=True, slots=True, eq=False)
class Landing:
    """One thing that an issued operation leaves to happen later.

    Args:
        actor: the wire.
        access: where data lands, and how; None for a signal.
        source: the region that is read only when the wire fetches; None if the value is fixed at the issue.
        cell: the cell of a signal; None for data.
        how: AtomicAdd or Set, for a signal.
        amount: what a signal adds or sets.
        release: it lands after everything that its issuer issued before.
        after_data: it lands after the data of the same operation.
        local: a local store: its own rank sees it from the issue on, peers when it lands.
        destination: the rank whose memory it changes.
        piece: the elements of the tile that this landing carries, in row-major order; None for all.

    """

    actor: Actor
    access: Access | None = None
    source: Region | None = None
    cell: Cell | None = None
    how: str = ""
    amount: int = 0
    release: bool = False
    after_data: bool = False
    local: bool = False
    destination: int = 0
    piece: tuple[int, int] | None = None


def landings_of(op: Op, index: int, atom: int | None) -> list[Landing]:
    """Return what an operation leaves to land, under a model that is late.

    Args:
        op: the operation.
        index: its place in its actor's stream, which names the wires.
        atom: a tile of more elements lands in pieces of so many; None: whole.

    """
    if op.kind == NOTIFY:
        wire = _wire(op.actor, index, 0)
        return [_signal(op, wire, release=not op.relaxed, after_data=False)]
    if op.kind not in (STORE, REMOTE_STORE, PUT, GET, PUT_SIGNAL):
        return []
    target = op.accesses[-1]
    if target.mode == "read":  # a copy of elements onto themselves
        data: list[Landing] = []
    else:
        source = op.accesses[0].region if op.late and len(op.accesses) > 1 else None
        own = target.region.owner == op.actor.rank
        # A local store, and the destination of a get, are seen by the own rank at once.
        local = own and target.mode == "write" and not op.late
        pieces = _pieces(target, atom)
        data = [
            Landing(
                _wire(op.actor, index, n), access,
                source if source is None or piece is None else source.piece(*piece, "read").region,
                local=local, destination=target.region.owner, piece=piece,
            )
            for n, (access, piece) in enumerate(pieces)
        ]  # fmt: skip
    if op.kind != PUT_SIGNAL:
        return data
    return [*data, _signal(op, _wire(op.actor, index, len(data), "s"), release=False, after_data=True)]


def _signal(op: Op, wire: Actor, *, release: bool, after_data: bool) -> Landing:
    cell = op.cell
    assert cell is not None  # noqa: S101 - for the type checker: the kind has one
    return Landing(
        wire, cell=cell, how=op.how, amount=op.amount, release=release, after_data=after_data, destination=cell.owner,
    )  # fmt: skip


def _wire(actor: Actor, index: int, part: int, mark: str = "") -> Actor:
    """Name a wire by the operation it belongs to: ``1>7``, its further pieces ``1>7.1``, its signal ``1>7s``."""
    name = f"{actor.name}>{index}{mark}" + (f".{part}" if part and not mark else "")
    return Actor(name, actor.rank, WIRES + (actor.order << 64) + (index << 32) + part, wire=True)


def index_of(wire: str) -> int:
    """Return the place, in its actor's stream, of the operation whose landing the wire carries."""
    rest = wire.partition(">")[2]
    return int(rest.partition(".")[0].removesuffix("s"))


def _pieces(target: Access, atom: int | None) -> list[tuple[Access, tuple[int, int] | None]]:
    size = prod(target.region.shape)
    if atom is None or size <= atom:
        return [(target, None)]
    region = target.region
    return [
        (region.piece(start, min(start + atom, size), target.mode), (start, min(start + atom, size)))
        for start in range(0, size, atom)
    ]
