"""The kinds of operations, one row each: all that the machine, the analyses, the traces and the views ask of a kind.

A row says what an operation of its kind touches, what it does to its cell, whether it may block, whether it lands
later, what it orders, how it is written in a sentence and in a trace. `Op.kind` is the name of a row.
What asks for a property asks one of the sets below, which are made from the rows. The words of the sets are what an
operation *does*: ``op.kind in WAITING`` holds for each kind that stands until its cell fits, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from asyncsim.trace.cells import APPLY, ATOMIC_ADD, COMPARE, SET
from asyncsim.trace.region import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

LOAD, STORE, REMOTE_LOAD, REMOTE_STORE, GET, PUT = "load", "store", "remote_load", "remote_store", "get", "put"
NOTIFY, WAIT, TEST, PUT_SIGNAL, POLL = "notify", "wait", "test", "put_signal", "poll"
READ_CELL, ATOMIC, COMPARE_EXCHANGE, ARRIVE = "read", "atomic", "compare_exchange", "arrive"
FENCE, QUIET = "fence", "quiet"
START, JOIN, SYNC = "start", "join", "sync"
FETCH, LAND = "fetch", "land"

LOCAL, QUEUED = "local", "queued"
"""The link of a landing that shows a local store to the peers; of a signal that its own actor sees no earlier."""
WHOLE_RANK, STORES = "rank", "stores"
"""The link of a quiet for all streams of its rank; of a notify that is ordered after its actor's stores alone."""

MOST_PENDING = (1 << 31) - 1
"""No quiet leaves more copies pending."""

RELAXED, ACQUIRE, RELEASE, ACQ_REL, SC = "relaxed", "acquire", "release", "acq_rel", "sc"
"""What an operation orders: nothing but its own place; what comes after it; what came before it; both; fences alone,
also against each other."""
BLOCK, RANK, WORLD = "block", "rank", "world"
"""Between which actors it orders: those of its block, of its rank, all."""
SCOPES = (WORLD, RANK, BLOCK)

OWN, PEER, ANY = "own", "peer", "any"
"""At whom a place lies: at the rank itself, at another one, at either."""
NONE, UPDATE, PREDICATE, BOTH, SEEN = "none", "update", "predicate", "predicate and update", "read"
"""What a kind does to its cell: it has none; changes it; compares it; changes it where it fits; reads it."""
FENCES, QUIETS, STARTS, JOINS, MEETS = "fence", "quiet", "start", "join", "sync"
"""What a kind orders: its actor's writes to one rank; all of them, completed; a stream's begin, and end; streams."""


class Operands(Protocol):
    """What an effect may ask of its operation."""

    @property
    def how(self) -> str:
        """An update, or a comparison."""

    @property
    def amount(self) -> int:
        """What it adds, sets, or compares with."""

    @property
    def consume(self) -> bool:
        """Whether a wait subtracts its amount."""

    @property
    def update(self) -> str:
        """How it changes its cell where that fits what it compares with; empty: it does not."""

    @property
    def operand(self) -> int:
        """By what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One access of a kind.

    Args:
        mode: read or write.
        at: `OWN`, `PEER` or `ANY`.
        adds: what writes may also add.
        optional: it may be missing, as the source of a put from a private array is.

    """

    mode: str
    at: str = ANY
    adds: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of operation.

    Args:
        name: in a trace and in `Op.kind`.
        touches: its accesses: of two the first is the source, the last the target.
        cell: what it does to its cell: `NONE`, `UPDATE`, `PREDICATE`, `BOTH` or `SEEN`.
        effect: of an operation on a cell: what the cell holds next, and what its actor gets, of what the cell holds.
        update: of one that compares and changes: the update that it makes.
        result: its actor gets what the cell held, so that its order against every update can be told.
        may_block: it stands until what it waits for is there.
        lands: under a memory model that is late its writes and updates come to be after its own step.
        landing: a step of a wire.
        order: `FENCES`, `QUIETS`, `STARTS`, `JOINS` or `MEETS`; empty: it orders by what it touches alone.
        joint: the word between the kind and its place; empty: none.
        source: the word before the source, where it has two places.
        done: what a rank *has* when it has done one; a kind may have several words, several kinds one.
        group: what a view shows it as.
        orders: what it may order; the first is meant where it names none. Empty: it has no order and no scope.
        amount: the field of a trace with its amount.
        flags: the fields of a trace that may set it apart: late, relaxed, consume, result; update, with its operand.
        link: the word that its field ``link`` may hold; None: any, and it must be there.

    """

    name: str
    touches: tuple[Touch, ...] = ()
    cell: str = NONE
    effect: Callable[[int, Operands], tuple[int, Any]] | None = None
    update: str = ""
    result: bool = False
    may_block: bool = False
    lands: bool = False
    landing: bool = False
    order: str = ""
    joint: str = "of"
    source: str = "of"
    done: tuple[str, ...] = ()
    group: str = "order"
    orders: tuple[str, ...] = ()
    amount: str = ""
    flags: tuple[str, ...] = ()
    link: str | None = ""

    @property
    def sayable(self) -> tuple[str, ...]:
        """The orders that its field ``order`` may name: neither the first, nor one that is a flag."""
        return tuple(order for order in self.orders[1:] if order not in self.flags)


def _updated(value: int, op: Operands) -> tuple[int, None]:
    return APPLY[op.how](value, op.amount), None


def _exchanged(value: int, op: Operands) -> tuple[int, int]:
    return APPLY[op.how](value, op.amount), value


def _awaited(value: int, op: Operands) -> tuple[int, int]:
    if op.update:
        return APPLY[op.update](value, op.operand), value
    return (value - op.amount if op.consume else value), value


def _read(value: int, op: Operands) -> tuple[int, int]:  # noqa: ARG001 - an effect is a function of both
    return value, value


def _compared(value: int, op: Operands) -> tuple[int, int]:
    return (APPLY[op.update](value, op.operand) if COMPARE[op.how](value, op.amount) else value), value


def _arrived(value: int, op: Operands) -> tuple[int, int]:
    return APPLY[op.update](value, op.operand), value


def _tested(value: int, op: Operands) -> tuple[int, bool]:
    return value, COMPARE[op.how](value, op.amount)


_SYNCHRONISES = (ACQ_REL, ACQUIRE, RELEASE, RELAXED)
_SOURCE = Touch(mode=READ, at=OWN, optional=True)

KINDS = {
    row.name: row
    for row in (
        Kind(name=LOAD, touches=(Touch(mode=READ, at=OWN),), done=("loaded",), group="load"),
        Kind(
            name=STORE, touches=(Touch(mode=WRITE, at=OWN, adds=True),), lands=True, joint="to", done=("stored",),
            group="store",
        ),
        Kind(name=REMOTE_LOAD, touches=(Touch(mode=READ, at=PEER),), done=("loaded",), group="load"),
        Kind(
            name=REMOTE_STORE, touches=(Touch(mode=WRITE, at=PEER, adds=True),), lands=True, joint="to",
            done=("stored",), group="store",
        ),
        Kind(
            name=GET, touches=(Touch(mode=READ), Touch(mode=WRITE, at=OWN)), lands=True, source="from", done=("got",),
            group="copy", flags=("late",),
        ),
        Kind(
            name=PUT, touches=(_SOURCE, Touch(mode=WRITE, adds=True)), lands=True, joint="to", done=("put",),
            group="copy", flags=("late",),
        ),
        Kind(
            name=NOTIFY, cell=UPDATE, effect=_updated, lands=True, joint="", done=("notified",), group="notify",
            orders=(RELEASE, RELAXED), amount="value", flags=("relaxed",), link=STORES,
        ),
        Kind(
            name=WAIT, cell=PREDICATE, effect=_awaited, may_block=True, joint="", done=("waited",), group="wait",
            orders=(ACQUIRE, RELAXED, RELEASE, ACQ_REL), amount="need", flags=("consume", "update", "result"),
        ),
        Kind(
            name=TEST, cell=PREDICATE, effect=_tested, joint="", done=("tested",), group="wait",
            orders=(ACQUIRE, RELAXED), amount="need",
        ),
        Kind(
            name=PUT_SIGNAL, touches=(_SOURCE, Touch(mode=WRITE)), cell=UPDATE, effect=_updated, lands=True, joint="to",
            done=("put", "notified"), group="copy", orders=(RELEASE,), amount="amount", flags=("late",),
        ),
        Kind(
            name=READ_CELL, cell=SEEN, effect=_read, result=True, done=("read",), group="wait",
            orders=(ACQUIRE, RELAXED),
        ),
        Kind(
            name=ATOMIC, cell=UPDATE, effect=_exchanged, result=True, joint="", done=("changed",), group="notify",
            orders=_SYNCHRONISES, amount="value",
        ),
        Kind(
            name=COMPARE_EXCHANGE, cell=BOTH, effect=_compared, update=SET, result=True, done=("exchanged",),
            group="notify", orders=_SYNCHRONISES, amount="need", flags=("update",),
        ),
        Kind(
            name=ARRIVE, cell=BOTH, effect=_arrived, update=ATOMIC_ADD, result=True, joint="at", done=("arrived",),
            group="notify", orders=_SYNCHRONISES, amount="need", flags=("update",),
        ),
        Kind(name=POLL, touches=(Touch(mode=READ),), may_block=True, done=("polled",), group="load"),
        Kind(name=FENCE, order=FENCES, orders=(ACQ_REL, ACQUIRE, RELEASE, SC)),
        Kind(name=QUIET, order=QUIETS, may_block=True, joint="", amount="pending", link=WHOLE_RANK),
        Kind(name=START, order=STARTS, link=None),
        Kind(name=JOIN, order=JOINS, may_block=True, joint="stream", link=None),
        Kind(name=SYNC, order=MEETS, may_block=True, joint="at", amount="parties", link=None),
        Kind(name=FETCH, touches=(Touch(mode=READ),), landing=True, group="landing"),
        Kind(
            name=LAND, touches=(Touch(mode=WRITE, adds=True, optional=True),), cell=UPDATE, effect=_updated,
            landing=True, joint="to", done=("landed",), group="landing", amount="value",
        ),
    )
}  # fmt: skip
"""All kinds, by name, in the order in which columns number them."""


EFFECTS = {name: kind.effect for name, kind in KINDS.items() if kind.effect is not None}
"""What a kind does to its cell, without the row between, for what asks in every step."""


def _those(holds: Callable[[Kind], bool]) -> frozenset[str]:
    return frozenset(name for name, kind in KINDS.items() if holds(kind))


_TASKS = _those(lambda kind: not kind.landing)

# Data.
READING = _those(lambda kind: bool(kind.touches) and all(touch.mode == READ for touch in kind.touches))
WRITING = _those(lambda kind: any(touch.mode == WRITE for touch in kind.touches))
COPYING = _those(lambda kind: len(kind.touches) == 2)  # noqa: PLR2004 - a source and a target
SINGLE = _those(lambda kind: len(kind.touches) == 1) & _TASKS
STORING = SINGLE & WRITING
GETTING = COPYING & _those(lambda kind: bool(kind.touches) and kind.touches[-1].at == OWN)
PUTTING = COPYING - GETTING

# Cells. A kind that reads a cell and changes it in one step is `EXCHANGING`; a wait that consumes, only now and then.
CHANGING = _those(lambda kind: kind.cell in (UPDATE, BOTH))
SIGNALLING = CHANGING & _TASKS
EXCHANGING = _those(lambda kind: kind.cell == BOTH or (kind.cell == UPDATE and kind.result))
COMPARING = _those(lambda kind: kind.cell in (PREDICATE, BOTH))
SEEING = COMPARING | _those(lambda kind: kind.cell == SEEN)
CARRYING = SIGNALLING & COPYING
NOTIFYING = SIGNALLING - CARRYING - EXCHANGING

# What may block.
BLOCKING = _those(lambda kind: kind.may_block)
WAITING = BLOCKING & COMPARING
TESTING = SEEING - WAITING
POLLING = BLOCKING & READING
LOADING = (SINGLE & READING) - POLLING

# What orders.
FENCING = _those(lambda kind: kind.order == FENCES)
QUIETING = _those(lambda kind: kind.order == QUIETS)
STARTING = _those(lambda kind: kind.order == STARTS)
JOINING = _those(lambda kind: kind.order == JOINS)
MEETING = _those(lambda kind: kind.order == MEETS)
LINKING = STARTING | JOINING | MEETING

# What lands later, and the steps of wires.
LATER = _those(lambda kind: kind.lands)
FETCHING = READING - _TASKS
LANDING = WRITING - _TASKS


def in_order(kinds: frozenset[str]) -> tuple[str, ...]:
    """Return kinds in the order of the table."""
    return tuple(name for name in KINDS if name in kinds)


def with_place(kind: str, place: str) -> str:
    """Write what is done and where: ``store to data[0]@1``.

    Args:
        kind: one of `KINDS`, or another word that a finding has for what is done.
        place: a region, a cell, a stream; may be empty.

    """
    row = KINDS.get(kind)
    joint = "" if row is None else row.joint
    return f"{kind} {joint} {place}" if joint else f"{kind} {place}"
