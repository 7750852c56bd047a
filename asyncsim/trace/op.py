"""Operations: what an actor is about to do, said before it is done."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import ATOMIC_ADD, COMPARE, SYMBOLS, UPDATES, update_text
from asyncsim.trace.kinds import (
    BLOCK,
    CARRYING,
    CHANGING,
    COMPARE_EXCHANGE,
    EFFECTS,
    KINDS,
    QUIETING,
    RELAXED,
    STORES,
    WORLD,
    with_place,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.trace.region import Access, Cell
    from asyncsim.trace.world import Actor


Said = tuple[str, str, str, int, bool]
"""Order, scope, update, operand and result, as `SyncOp` has them."""


class _Plain:
    """What an operation says that says no more: no slots, so that it costs nothing to make."""

    __slots__ = ()

    order = ""
    scope = ""
    update = ""
    operand = 0
    result = False

    @property
    def said(self) -> Said:
        """What it says more than its kind, its place and its amount: the fields of `SyncOp`, in their order."""
        return self.order, self.scope, self.update, self.operand, self.result


@dataclass(slots=True, eq=False)
class Op(_Plain):
    """One operation, as it stands at the gate. Not changed once made.

    (Not frozen: one is made a step, and a frozen dataclass costs three times as much to make.)

    Args:
        actor: who.
        kind: one of `asyncsim.trace.kinds.KINDS`.
        accesses: the regions it touches; get and put have two, operations on cells none.
        cell: the cell of a notify, wait, test, read or atomic.
        how: an update for a notify or an atomic; Eq, Ne, Gt, Ge, Lt or Le for what compares.
        amount: what a notify adds or sets; what a wait or test compares with; how many streams meet; how many of its
            actor's last copies a quiet does not await.
        consume: a wait that subtracts `amount` as it passes.
        payload: the tile of a store, or of a put from a private array.
        call: which call of the kernel, from 0.
        late: a non-blocking copy: if the memory model defers it, its source is read only when it lands.
        relaxed: a notify that may overtake what its actor wrote before.
        link: the stream that is started or joined; the barrier that is synced on; of a landing, a quiet or a
            notify what sets it apart: see `LOCAL`, `QUEUED`, `WHOLE_RANK` and `STORES`.
        deferred: the memory model lets its remote effects land later: what it does at its own step
            is only to read its sources and, in the eyes of its own rank, to store.
        adapter: a put that is made by a network adapter: also its own rank sees it no earlier than it lands.
        follows: it comes out of the same await as its actor's operation before it. It is one like every
            other, and no trace tells; a scheduler may count the two as one turn.

    """

    actor: Actor
    kind: str
    accesses: tuple[Access, ...] = ()
    cell: Cell | None = None
    how: str = ""
    amount: int = 0
    consume: bool = False
    payload: Any = None
    call: int = 0
    late: bool = False
    relaxed: bool = False
    link: str = ""
    deferred: bool = False
    follows: bool = False
    adapter: bool = False

    def __str__(self) -> str:
        """Write it as a sentence without a subject: ``remote_load of data[0, 0:64]@1``."""
        return self._text()

    def _text(self) -> str:
        """Write it without its order and scope."""
        if self.kind in QUIETING and self.amount:
            return f"{self.kind} to {self.amount} pending"
        if self.link and self.cell is None and not self.accesses:
            return f"{self.kind} {self.link}"
        places = self._places()
        if self.cell is None:
            return f"{self.kind} {places}".rstrip()
        if self.how in UPDATES:
            change = update_text(self.cell, self.how, self.amount)
            return f"{self.kind} {places}, {change}" if self.kind in CARRYING else f"{self.kind} {change}"
        if not self.how:
            return with_place(self.kind, str(self.cell))
        change = f" and {update_text('', self.update, self.operand).lstrip()}" if self.update else ""
        consuming = " and subtract" if self.consume else change
        return f"{self.kind} {self.cell} {SYMBOLS[self.how]} {self.amount}{consuming}"

    def _places(self) -> str:
        """Write the regions with the prepositions that the kind asks for."""
        if not self.accesses:
            return ""
        row = KINDS[self.kind]
        if len(self.accesses) == 1:
            return f"{row.joint} {self.accesses[0].region}"
        source, target = self.accesses
        return f"{row.source} {source.region} to {target.region}"


@dataclass(slots=True, eq=False)
class SyncOp(Op):
    """An operation that says more of how it synchronises.

    Args:
        order: one of the orders that its row has; empty: the first of them. A notify that is relaxed says so by
            `Op.relaxed`.
        scope: block or rank; empty: the world.
        update: how a wait or compare_exchange changes its cell, in the same step, where it fits; empty: not at all.
        operand: by what.
        result: a wait whose actor gets what the cell held.

    """

    order: str = ""
    scope: str = ""
    update: str = ""
    operand: int = 0
    result: bool = False

    def __str__(self) -> str:
        """Write it with the order and scope that it says: ``notify f[0]@1 += 1, release, scope rank``."""
        relaxed = RELAXED if self.relaxed and self.link != STORES else ""
        scope = f"scope {self.scope}" if self.scope else ""
        return ", ".join(filter(None, (self._text(), self.order or relaxed, scope)))


def with_said(op: Op, said: Said) -> Op:
    """Return an operation that says more.

    Args:
        op: what it says otherwise.
        said: as `SyncOp.said` returns it.

    """
    plain: dict[str, Any] = {each.name: getattr(op, each.name) for each in fields(Op)}
    order, scope, update, operand, result = said
    return SyncOp(**plain, order=order, scope=scope, update=update, operand=operand, result=result)


def change_by(op: Op) -> tuple[str, int] | None:
    """Return how an operation changes its cell, if it does, and by what; one that is deferred does it by landing.

    Args:
        op: an operation, with a cell or without.

    """
    if op.update:
        return op.update, op.operand
    if op.consume:
        return ATOMIC_ADD, -op.amount
    return (op.how, op.amount) if op.kind in CHANGING else None


def accesses_on(cell: Cell, change: object) -> tuple[Access, ...]:
    """Return what an operation on a cell touches in a window: nothing, unless the cell is a word.

    Args:
        cell: of a signal, or a word.
        change: whether it changes the cell: how, or empty.

    """
    return cell.changes if change else cell.reads


def change_where(op: Op, held: int) -> tuple[str, int] | None:
    """Return how an operation changes a cell that holds this: a compare_exchange does so where it succeeds.

    Args:
        op: an operation with a cell; of a wait it is known that it passes.
        held: what the cell holds before.

    """
    fails = op.kind == COMPARE_EXCHANGE and not COMPARE[op.how](held, op.amount)
    return None if fails else change_by(op)


def saying(op: Op, by_name: Mapping[str, Any]) -> Op:
    """Return an operation that says what these fields say: itself, if they say nothing that an `Op` has not.

    Args:
        op: what it says otherwise.
        by_name: the fields of `SyncOp`; what is missing, or None, says nothing.

    """
    order, scope, update, operand, result = (
        by_name.get(name) for name in ("order", "scope", "update", "operand", "result")
    )
    said: Said = (order or "", scope or "", update or "", operand or 0, bool(result))
    return op if said == op.said else with_said(op, said)


def holds_after(op: Op, value: int) -> int:
    """Return what a cell holds after an operation that takes effect now, brought into its range if it wraps.

    Args:
        op: an operation on a cell, that passes if it waits.
        value: what the cell held.

    """
    cell = op.cell
    assert cell is not None  # noqa: S101 - for the type checker: it is on a cell
    after: int = EFFECTS[op.kind](value, op)[0]
    return after if cell.low <= after <= cell.high or not cell.wrap else int(cell.wrapped(after))


def order_of(op: Op) -> str:
    """Return what an operation orders, also where it does not say so; empty: its kind has no order.

    Args:
        op: any operation.

    """
    if op.relaxed and op.link != STORES:
        return RELAXED
    orders = KINDS[op.kind].orders
    return op.order or (orders[0] if orders else "")


def scope_of(op: Op) -> str:
    """Return between which actors an operation orders: block, rank or world.

    Args:
        op: any operation.

    """
    return op.scope or WORLD


def include(a: Actor, scope: str, b: Actor, other: str) -> bool:
    """Return whether the scopes of two operations include each other: without that nothing synchronises.

    Args:
        a: who does the one.
        scope: its scope: block, rank or world.
        b: who does the other.
        other: the scope of that.

    """
    return _covers(scope, a, b) and _covers(other, b, a)


def _covers(scope: str, a: Actor, b: Actor) -> bool:
    if scope == BLOCK:
        return a.in_block == b.in_block
    return scope == WORLD or a.rank == b.rank


_new = object.__new__


def op_on_data(  # noqa: PLR0913, PLR0917 - by place: names would double what an operation costs
    actor: Actor,
    kind: str,
    accesses: tuple[Access, ...],
    payload: Any,  # noqa: ANN401 - a tile, or nothing
    call: int,
    deferred: bool,  # noqa: FBT001
) -> Op:
    """Return an operation on a region. A third less work than by `Op` itself, and every other step is one.

    Args:
        actor: who does it.
        kind: one of `asyncsim.trace.kinds.KINDS`.
        accesses: the regions it touches.
        payload: the tile of a store; None for a load.
        call: which call of the kernel, from 0.
        deferred: whether its remote effects may land later.

    """
    op: Op = _new(Op)
    op.actor = actor
    op.kind = kind
    op.accesses = accesses
    op.cell = None
    op.how = ""
    op.amount = 0
    op.consume = False
    op.payload = payload
    op.call = call
    op.late = False
    op.relaxed = False
    op.link = ""
    op.deferred = deferred
    op.follows = False
    op.adapter = False
    return op


def op_on_cell(  # noqa: PLR0913, PLR0917 - as above
    actor: Actor,
    kind: str,
    cell: Cell,
    how: str,
    amount: int,
    consume: bool,  # noqa: FBT001
    call: int,
    relaxed: bool,  # noqa: FBT001
    deferred: bool,  # noqa: FBT001
) -> Op:
    """Return an operation on a cell, likewise.

    Args:
        actor: who does it.
        kind: one of `asyncsim.trace.kinds.KINDS`.
        cell: that it changes or looks at.
        how: AtomicAdd or Set, or the name of a comparison.
        amount: what is added, set or compared with.
        consume: whether a wait subtracts `amount` as it passes.
        call: which call of the kernel, from 0.
        relaxed: whether a notify may overtake what its actor wrote before.
        deferred: whether its remote effects may land later.

    """
    op: Op = _new(Op)
    op.actor = actor
    op.kind = kind
    op.accesses = ()
    op.cell = cell
    op.how = how
    op.amount = amount
    op.consume = consume
    op.payload = None
    op.call = call
    op.late = False
    op.relaxed = relaxed
    op.link = ""
    op.deferred = deferred
    op.follows = False
    op.adapter = False
    return op
