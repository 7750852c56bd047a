"""Operations: what an actor is about to do, said before it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import SYMBOLS, update_text
from asyncsim.trace.kinds import CARRYING, CHANGING, KINDS

if TYPE_CHECKING:
    from asyncsim.trace.region import Access, Cell
    from asyncsim.trace.world import Actor


@dataclass(slots=True, eq=False)
class Op:
    """One operation, as it stands at the gate. Not changed once made.

    (Not frozen: one is made a step, and a frozen dataclass costs three times as much to make.)

    Args:
        actor: who.
        kind: one of `asyncsim.trace.kinds.KINDS`.
        accesses: the regions it touches; get and put have two, operations on cells none.
        cell: the cell of a notify, wait or test.
        how: AtomicAdd or Set for a notify; Eq, Ne, Gt, Ge, Lt or Le for a wait or test.
        amount: what a notify adds or sets; what a wait or test compares with.
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
        if self.link and self.cell is None and not self.accesses:
            return f"{self.kind} {self.link}"
        places = self._places()
        if self.cell is None:
            return f"{self.kind} {places}".rstrip()
        if self.kind in CHANGING:
            change = update_text(self.cell, self.how, self.amount)
            return f"{self.kind} {places}, {change}" if self.kind in CARRYING else f"{self.kind} {change}"
        consuming = " and subtract" if self.consume else ""
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
