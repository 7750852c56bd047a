"""Landings: what an operation leaves to happen later, and what orders that.

A pending landing may go when
    L1  the data of its own operation has landed, if it is the signal of a put with signal;
    L2  no older one of its actor goes to the same place (if places keep order; adds commute);
    L3  no older one of its actor goes to the same rank and comes from before a fence, unless it is ordered after
        stores alone: a sync of OpenSHMEM completes no put, fenced or not;
    L4  no older one of its actor is left at all, if it is a release; no older store, if it is ordered after stores;
    L5  a fetch: no older write of its actor to what it reads is pending (if writes are forwarded);
    L6  no older local store of its rank to the same place is left: a rank's order at its own places holds.

A quiet comes after all that its actor has issued; one that leaves n copies pending, after what was issued before
the first of its actor's last n copies, and beside that it orders nothing.

A non-blocking get is completed by a quiet alone. It holds nothing back, and no fence holds it back; only the
release of a machine of loads and stores (``ldst``) comes after it, for there a get is loads and stores of its actor.

The rules stand here for a run under way (`asyncsim.machine.wires`) and for the search over runs; as edges between
operations, for all runs at once, they are in `asyncsim.analysis.edges`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from asyncsim.trace.cells import ATOMIC_ADD, updates_commute
from asyncsim.trace.kinds import (
    ACQ_REL,
    CARRYING,
    EXCHANGING,
    FENCING,
    GETTING,
    LATER,
    LOCAL,
    NOTIFYING,
    PUTTING,
    QUEUED,
    QUIETING,
    RELEASE,
    STORES,
    STORING,
)
from asyncsim.trace.op import order_of
from asyncsim.trace.region import adds_commute, spans_overlap
from asyncsim.trace.world import WIRES, Actor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.late import Model
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access, Cell, Region


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
        after_stores: it lands after all that its issuer stored before.
        after_data: it lands after the data of the same operation.
        queued: a signal behind a copy: its issuer sees it no earlier than anybody else does.
        local: a local store: its own rank sees it from the issue on, peers when it lands.
        stored: data of a store, not of a put.
        got: data of a non-blocking get.
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
    after_stores: bool = False
    after_data: bool = False
    queued: bool = False
    local: bool = False
    stored: bool = False
    got: bool = False
    destination: int = 0
    piece: tuple[int, int] | None = None

    @property
    def place(self) -> Region | None:
        """The region that it changes: of data, or of a word; None for a cell of a signal."""
        return self.access.region if self.access is not None else None if self.cell is None else self.cell.region

    @property
    def link(self) -> str:
        """What sets its operation apart."""
        return LOCAL if self.local else QUEUED if self.queued else ""


def covers(landing: Landing, region: Region) -> bool:
    """Say whether a landing changes some element of a region.

    Args:
        landing: of a signal it changes none.
        region: of the same world.

    """
    place = landing.place
    return place is not None and place.slot == region.slot and spans_overlap(place.spans, region.spans)


def same_place(a: Landing, b: Landing) -> bool:
    """Say whether two landings change a common place and do not commute.

    Args:
        a: a landing.
        b: another one, of the same world.

    """
    if a.cell is not None and b.cell is not None:
        return a.cell.slot == b.cell.slot and not updates_commute(a.how, b.how)
    if b.place is None or not covers(a, b.place):
        return False
    return a.access is None or b.access is None or not adds_commute(a.access, b.access)


def goes_first(older: Landing, landing: Landing, model: Model, *, fenced: bool) -> bool:
    """Say whether of two landings of one actor the older one has to go first, by L2, L3, L4 or L6.

    Args:
        older: the one that was issued first.
        landing: the other one.
        model: the memory model.
        fenced: a fence stands between the two.

    """
    if older.got:
        return landing.release and model.forwarding
    if landing.release or (landing.after_stores and older.stored):
        return True
    if fenced and older.destination == landing.destination and not (landing.got or landing.after_stores):
        return True
    return (model.place_order or older.local) and same_place(older, landing)


def completes_first(older: Landing, op: Op, model: Model, *, fenced: bool) -> bool:
    """Say whether an operation that changes its cell at its own step comes after a landing of its actor.

    What returns a value, or changes a cell as it passes, comes after all that its actor did to that cell; as a
    release after all that its actor issued; and it does not overtake a fence. A wait that consumes, as it does no
    more than subtract, overtakes the actor's own adds.

    Args:
        older: what is under way.
        op: an operation of the same actor, issued later.
        model: the memory model.
        fenced: a fence stands between the two.

    """
    cell = op.cell
    if cell is None or op.kind in LATER:
        return False
    here = older.cell is not None and older.cell.slot == cell.slot
    here = here or (cell.region is not None and covers(older, cell.region))
    if op.consume:
        return here and model.place_order and not updates_commute(older.how, ATOMIC_ADD)
    if not op.update and op.kind not in EXCHANGING:
        return False
    if order_of(op) in _RELEASING and (not older.got or model.forwarding):
        return True
    return here or (fenced and not older.got and older.destination == cell.owner)


_RELEASING = (RELEASE, ACQ_REL)


def fetched_first(older: Landing, landing: Landing, model: Model) -> bool:
    """Say whether a copy is fetched only when an older landing of its actor has come, by L5.

    Args:
        older: a pending landing of the same actor.
        landing: the one that is to fetch; of one whose value is fixed at the issue the answer is no.
        model: the memory model; only under one that forwards writes is there such an order.

    """
    return model.forwarding and landing.source is not None and not older.got and covers(older, landing.source)


@dataclass(frozen=True, slots=True)
class Unquiet:
    """What an actor has issued since its last quiet that a signal can come behind: copies, and signals behind them.

    One that leaves copies pending is no such quiet.

    Such a signal is *queued*. Where an actor sees its own pending signals it would see it before the data that it
    tells of, which nobody sees before they land; so of these it sees only what has landed.

    Args:
        copies: whether there is any non-blocking one.
        here: where copies (gets aside) and queued signals go that no fence has followed.
        fenced: where those go that one has.
        cells: the slots of cells with a queued signal, each with what the signal does.

    """

    copies: bool = False
    here: frozenset[int] = frozenset()
    fenced: frozenset[int] = frozenset()
    cells: frozenset[tuple[int, str]] = frozenset()

    def after(self, op: Op, landings: Sequence[Landing]) -> Unquiet:
        """Return the same after one more operation of the actor, which left these landings.

        Args:
            op: the operation that was issued.
            landings: as `landings_of` gives them; empty if it left none.

        """
        if op.kind in QUIETING:
            return self if op.amount else QUIETED
        if op.kind in FENCING:
            return Unquiet(self.copies, frozenset(), self.fenced | self.here, self.cells)
        copied = any(landing.source is not None for landing in landings)
        here = {each.destination for each in landings if each.queued or (each.source is not None and not each.got)}
        cells = {(each.cell.slot, each.how) for each in landings if each.queued and each.cell is not None}
        if not copied and not cells:
            return self
        return Unquiet(self.copies or copied, self.here | here, self.fenced, self.cells | cells)

    def queues(self, signal: Landing, model: Model, *, copied: bool) -> bool:
        """Say whether a signal comes behind a copy; `copied`: its own data is one.

        Args:
            signal: of a notify, or of a put with signal.
            model: the memory model; only under one that forwards writes is the answer ever yes.
            copied: whether the signal's own put copies from a region that is read later.

        """
        cell = signal.cell
        assert cell is not None  # noqa: S101 - for the type checker: a signal has one
        return model.forwarding and (
            (signal.after_data and copied)
            or (signal.release and self.copies)
            or signal.destination in self.fenced
            or (
                model.place_order
                and any(slot == cell.slot and not updates_commute(how, signal.how) for slot, how in self.cells)
            )
        )


def is_counted(op: Op) -> bool:
    """Say whether an operation is a copy that a quiet may leave pending: a put, or a non-blocking get.

    Args:
        op: any operation.

    """
    return op.kind in PUTTING or (op.kind in GETTING and op.late)


def awaits_to(index: int, pending: int, copies: Sequence[int]) -> int:
    """Return the index of the first operation of its actor that a quiet does not await.

    Args:
        index: of the quiet in its actor's stream.
        pending: how many copies it leaves.
        copies: the indexes of its actor's copies so far, ascending; the last ones will do.

    """
    return (*copies[-pending:], index)[0] if pending else index


QUIETED = Unquiet()
"""What an actor begins with, and what a quiet leaves."""


def landings_of(op: Op, index: int, model: Model, before: Unquiet = QUIETED) -> list[Landing]:
    """Return what an operation leaves to land, under a model that is late.

    Args:
        op: the operation.
        index: its place in its actor's stream, which names the wires.
        model: the memory model.
        before: what its actor has issued since its last quiet.

    """
    atom = model.atom
    if op.kind in NOTIFYING:
        wire = wire_of(op.actor, index, 0)
        return [_signal(op, wire, model, before)]
    if op.kind not in LATER:
        return []
    target = op.accesses[-1]
    if target.mode == "read":  # a copy of elements onto themselves
        data: list[Landing] = []
    else:
        source = op.accesses[0].region if op.late and len(op.accesses) > 1 else None
        own = target.region.owner == op.actor.rank
        # A local store, and the destination of a get, are seen by the own rank at once.
        local = own and target.mode == "write" and not op.late and not op.adapter
        pieces = _pieces(target, atom)
        data = [
            Landing(
                wire_of(op.actor, index, n), access,
                source if source is None or piece is None else source.piece(*piece, "read").region,
                local=local, stored=local or op.kind in STORING, got=op.late and op.kind in GETTING,
                destination=target.region.owner, piece=piece,
            )
            for n, (access, piece) in enumerate(pieces)
        ]  # fmt: skip
    if op.kind not in CARRYING:
        return data
    copied = any(landing.source is not None for landing in data)
    return [*data, _signal(op, wire_of(op.actor, index, len(data), "s"), model, before, copied=copied)]


def _signal(op: Op, wire: Actor, model: Model, before: Unquiet, *, copied: bool = False) -> Landing:
    cell = op.cell
    assert cell is not None  # noqa: S101 - for the type checker: the kind has one
    signal = Landing(
        wire, cell=cell, how=op.how, amount=op.amount, release=op.kind in NOTIFYING and not op.relaxed,
        after_stores=op.link == STORES, after_data=op.kind in CARRYING, destination=cell.owner,
    )  # fmt: skip
    return replace(signal, queued=True) if before.queues(signal, model, copied=copied) else signal


def wire_of(actor: Actor, index: int, part: int = 0, mark: str = "") -> Actor:
    """Return a wire, named by the operation it belongs to: ``1>7``, its further pieces ``1>7.1``, its signal ``1>7s``.

    Args:
        actor: who issues the operation.
        index: its place in that actor's stream.
        part: the number of the piece.
        mark: "s" for the signal that comes with a copy.

    """
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
        (
            region.piece(start, min(start + atom, size), target.mode, atomic=target.atomic),
            (start, min(start + atom, size)),
        )
        for start in range(0, size, atom)
    ]
