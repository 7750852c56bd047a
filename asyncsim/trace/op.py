"""Operations: what an actor is about to do, said before it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asyncsim.trace.region import SYMBOLS

if TYPE_CHECKING:
    from asyncsim.trace.region import Access, Cell
    from asyncsim.trace.world import Actor

LOAD, STORE, REMOTE_LOAD, REMOTE_STORE, GET, PUT = "load", "store", "remote_load", "remote_store", "get", "put"
NOTIFY, WAIT, TEST = "notify", "wait", "test"
KINDS = (LOAD, STORE, REMOTE_LOAD, REMOTE_STORE, GET, PUT, NOTIFY, WAIT, TEST)

ATOMIC_ADD, SET = "AtomicAdd", "Set"


@dataclass(slots=True, eq=False)
class Op:
    """One operation, as it stands at the gate. Not changed once made.

    (Not frozen: one is made a step, and a frozen dataclass costs three times as much to make.)

    Args:
        actor: who.
        kind: one of `KINDS`.
        accesses: the regions it touches; get and put have two, operations on cells none.
        cell: the cell of a notify, wait or test.
        how: AtomicAdd or Set for a notify; Eq, Ne, Gt, Ge, Lt or Le for a wait or test.
        amount: what a notify adds or sets; what a wait or test compares with.
        consume: a wait that subtracts `amount` as it passes.
        payload: the tile of a store, or of a put from a private array.
        call: which call of the kernel, from 0.

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

    def __str__(self) -> str:
        """Write it as a sentence without a subject: ``remote_load of data[0, 0:64]@1``."""
        if self.cell is None:
            joint = " to " if self.kind in (STORE, REMOTE_STORE) else " of "
            places = " from " if self.kind == GET else " of "
            if len(self.accesses) == 1:
                return f"{self.kind}{joint}{self.accesses[0].region}"
            source, target = self.accesses
            return f"{self.kind}{places}{source.region} to {target.region}"
        if self.kind == NOTIFY:
            return f"notify {self.cell} {':=' if self.how == SET else '+='} {self.amount}"
        consuming = " and subtract" if self.consume else ""
        return f"{self.kind} {self.cell} {SYMBOLS[self.how]} {self.amount}{consuming}"
