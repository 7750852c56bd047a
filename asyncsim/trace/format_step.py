"""The format of a step of a trace: each field of each operation, declared once; see `asyncsim.trace.format`.

What a step has depends on the kind of its operation, of which `asyncsim.trace.kinds` has a row each. To add a field is
to add a declaration to `STEP`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import ATOMIC_ADD, COMPARISONS, SET, UPDATES
from asyncsim.trace.fields import (
    COUNT,
    FLAG,
    REQUIRED,
    TEXT,
    Field,
    Implied,
    Object,
    Type,
    anything,
    choice,
    list_of,
    narrowed,
    text,
    whole,
)
from asyncsim.trace.kinds import (
    KINDS,
    LOCAL,
    MOST_PENDING,
    NONE,
    POLLING,
    QUEUED,
    SCOPES,
    SEEN,
    STARTS,
    STORES,
    UPDATE,
    WHOLE_RANK,
    Kind,
)
from asyncsim.trace.op import Op
from asyncsim.trace.region import ADD, READ, WRITE
from asyncsim.trace.strict import BadFieldError, shown
from asyncsim.trace.values import encode_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncsim.trace.event import Event
    from asyncsim.trace.region import Access


def _seconds(value: Any, what: str) -> float:  # noqa: ANN401
    if type(value) not in (int, float) or value < 0:
        raise BadFieldError(f"{what} is {shown(value)}; it must be a number of seconds, at least 0")
    return float(value)


_NAMED = r"^\d+(\.(\d+|[A-Za-z_][A-Za-z0-9_]*))*(>\d+(s|\.\d+)?)?$"
ACTOR = replace(TEXT, schema={"type": "string", "pattern": _NAMED}, words="actor")
SITE = text(r"([\s\S]+:\d{1,9})?", "a source line, as file:number")
AT = list_of(SITE, "a line of 'at'", 0, 2)
TIME = Type(_seconds, {"type": "number", "minimum": 0}, "seconds")

# ---- places and values


def _places(access: Access) -> list[Any]:
    return [[at.start, at.stop, at.step] if isinstance(at, slice) else at for at in access.region.index]


def _offset(value: Any, _: str) -> Any:  # noqa: ANN401 - the reader knows the extents
    return value


_PLACE = Type(
    _offset, {"oneOf": [COUNT.schema, list_of(COUNT, "", 3, 3).schema]}, "offset, or [start, stop, step]"
)  # fmt: skip
_OWN = Implied("the rank itself")
CELL = Object(
    "'cell'",
    (
        Field("signal", TEXT, "its signal; of a word, its window"),
        Field("owner", narrowed(COUNT), "whose cell it is, by its number in the world", elsewhere=_OWN),
        Field(
            "index", list_of(narrowed(COUNT), "an offset"), "which of them, an offset a dimension",
            elsewhere=Implied("if the signal has one cell a rank"),
            source=lambda cell: list(cell.index),
        ),
    ),
)  # fmt: skip
_ACCESS = (
    Field("window", TEXT, "its window", source="region.window"),
    Field("owner", narrowed(COUNT), "whose memory it is, by its number in the world", elsewhere=_OWN,
          source="region.owner"),
    Field(
        "region", list_of(_PLACE, "an offset"), "what of it, in elements, one entry a dimension",
        elsewhere=Implied("the whole window"),
        source=_places,
    ),
    Field(
        "mode", choice(READ, WRITE, ADD), "what is done to it",
        elsewhere=Implied("a load reads, a store writes, a copy reads its first access and writes its last"),
    ),
    Field(
        "atomic", FLAG, "an atomic read or write; an add always is one", default=False,
        source=lambda access: access.atomic and access.mode != ADD,
    ),
)  # fmt: skip
ACCESS = Object("an access", _ACCESS)
WIRE_ACCESS = Object(
    "an access",
    (
        *_ACCESS,
        Field(
            "piece", list_of(COUNT, "an end of a 'piece'", 2, 2),
            "of a tile that lands in pieces: from which to which element, in row-major order", default=None,
            source=lambda access: None if access.region.part is None else list(access.region.part),
        ),
    ),
)  # fmt: skip
# ---- a step


def _value(event: Event) -> Any:  # noqa: ANN401 - a list, or an object
    return None if event.data is None else encode_data(event.data, event.op.accesses[-1].region.dtype)


def _have(row: Kind) -> bool:
    return row.cell != NONE


def _accesses(name: str, about: str, high: int, of: Callable[[Kind], bool]) -> Field:
    return Field(
        "accesses", list_of(anything(name, "access"), "an access", 1, high), about, of=of,
        source=lambda event: [WIRE_ACCESS.write(access) for access in event.op.accesses],
    )  # fmt: skip


def _flagged(name: str, about: str) -> Field:
    return Field(name, FLAG, about, default=False, source=f"op.{name}", of=lambda row: name in row.flags)


def _amount(name: str, kind: Type, about: str, default: Any = REQUIRED) -> Field:  # noqa: ANN401
    return Field(name, kind, about, default=default, source="op.amount", of=lambda row: row.amount == name)


def _link(word: str | None, kind: Type, about: str, default: Any = "") -> Field:  # noqa: ANN401
    return Field("link", kind, about, default=default, source="op.link", of=lambda row: row.link == word)


def _operand(event: Event) -> int | None:
    return event.op.operand if event.op.update else None


def _block(event: Event) -> str:
    """Return the block of the stream that is started: read from a file, a start has no stream, but its block's name."""
    started = event.op.payload
    return started if isinstance(started, str) else getattr(getattr(started, "actor", None), "block", "")


def _order(known: tuple[str, ...]) -> Field:
    return Field(
        "order", choice(*known), "what it orders, if not what its kind does", default="", source="op.order",
        of=lambda row: row.sayable == known,
    )  # fmt: skip


def _made(update: str) -> Field:
    return Field(
        "update",
        choice(update),
        "what is done to the cell if it fits" if update == SET else "what is done to the cell",
        source="op.update",
        of=lambda row: row.update == update,
    )


KIND = choice(*KINDS)
STEP = (
    Field("step", COUNT, "its number, from 0", elsewhere=Implied("none: then in all lines"), source=lambda _: None,
          pending=False),
    Field("rank", COUNT, "whose it is", elsewhere=Implied("the actor's"), source="op.actor.rank"),
    Field("actor", ACTOR, "who did it", elsewhere=Implied("the rank's own"), source="op.actor.name"),
    Field("call", narrowed(COUNT), "of the kernel, from 0", elsewhere=0),
    Field("op", KIND, "what was done", source="op.kind"),
    _link(None, TEXT, "the stream, or `ACTOR/N#ROUND`, one round of a stream barrier", REQUIRED),
    Field("block", TEXT, "the thread block that the stream is started in; left out: one of its own", default="",
          source=_block, of=lambda row: row.order == STARTS),
    _link(STORES, choice(STORES), "it is ordered after its actor's stores alone; only where it is relaxed"),
    _link(WHOLE_RANK, choice(WHOLE_RANK), "it is of all streams of the rank"),
    _link(LOCAL, choice("", LOCAL), "a local store that peers now see"),
    _link(QUEUED, choice("", QUEUED), "a signal behind a non-blocking copy: its own actor sees it no earlier, either"),
    _amount("parties", whole(1), "how many streams meet"),
    _amount("pending", whole(0, MOST_PENDING), "so many of its actor's last copies it does not await", 0),
    Field(
        "how", choice(*UPDATES), "what is done to the cell", elsewhere=ATOMIC_ADD, source="op.how",
        of=lambda row: row.cell == UPDATE,
    ),
    Field(
        "how", choice(*COMPARISONS), "how the cell is compared", source="op.how",
        of=lambda row: row.cell not in {NONE, UPDATE, SEEN},
    ),
    _accesses("access", "its place", 1, lambda row: len(row.touches) == 1 and not row.landing),
    _accesses("access", "its source (none for a private array) and its target", 2, lambda row: len(row.touches) > 1),
    _accesses("wire_access", "its place", 1, lambda row: bool(row.touches) and row.landing),
    Field(
        "cell", anything("cell", "cell"), "its cell", of=_have,
        source=lambda event: None if event.op.cell is None else CELL.write(event.op.cell),
    ),
    Field("value", anything("value", "value"), "what was moved", default=None, source=_value, pending=False,
          of=lambda row: bool(row.touches) and row.name not in POLLING),
    Field("value", anything("value", "value"), "what was seen; of one that is pending, what its predicate refuses",
          default=None, source=_value, of=lambda row: row.name in POLLING),
    _amount("value", narrowed(whole()), "what is added or set"),
    _amount("need", narrowed(whole()), "what the cell is compared with"),
    _amount("amount", narrowed(whole()), "what its signal adds or sets"),
    Field("have", narrowed(whole()), "what the cell holds after it; of what compares it or returns it, what it saw",
          elsewhere=Implied("not known"),
          of=_have),
    _flagged("consume", "it subtracts as it passes"),
    Field("update", choice(*UPDATES), "it changes its cell as it passes, in the same step", default="",
          source="op.update", of=lambda row: "update" in row.flags and not row.update),
    Field("operand", narrowed(whole()), "by what", default=None, source=_operand,
          of=lambda row: "update" in row.flags and not row.update),
    *map(_made, dict.fromkeys(row.update for row in KINDS.values() if row.update)),
    Field("operand", narrowed(whole()), "by what", source="op.operand", of=lambda row: bool(row.update)),
    _flagged("result", "it returns what the cell held"),
    *map(_order, dict.fromkeys(row.sayable for row in KINDS.values() if row.sayable)),
    Field("scope", choice(*SCOPES[1:]), "between which actors it orders; left out: all", default="",
          source="op.scope", of=lambda row: bool(row.orders)),
    _flagged("late", "it is non-blocking: its source is read when it lands"),
    _flagged("relaxed", "it may overtake what its actor wrote before"),
    Field("phase", TEXT, "the path of phases that it was done in", default=""),
    Field("at", AT, "the author's line, then the line inside a composite", default=()),
    Field("unwritten", FLAG, "it read what nobody had written", default=False,
          of=lambda row: bool(row.touches) or row.cell != NONE),
    Field("time", TIME, "when it was done, in virtual time", default=None),
)  # fmt: skip
"""The fields of a step, in their order. Which of them an operation has, its row says: see `StepObject`."""


class StepObject(Object):
    """The fields of the operations of one row.

    Args:
        row: of the table of kinds.
        of: all fields that a step can have.
        pending: of operations that were never done.

    """

    def __init__(self, row: Kind, of: Sequence[Field], *, pending: bool) -> None:
        self.row = row
        fields = [field for field in of if field.of(row) and (field.pending or not pending)]
        super().__init__("a pending operation" if pending else "the line", fields)
        paths = [(field.name, field.source.partition(".")[::2]) for field in fields if isinstance(field.source, str)]
        self.operands = [(name, path[1]) for name, path in paths if path[0] == "op" and path[1] in _OPERANDS]
        """Of each field that is an attribute of the operation, its name and that of the attribute."""


_OPERANDS = frozenset(Op.__slots__) - {"actor", "kind", "call"}


def _rows() -> Iterator[tuple[tuple[str, bool], Kind]]:
    """Yield the rows of the kinds; a kind of landing that carries data or a signal has a row for each."""
    for name, row in KINDS.items():
        if not row.landing:
            yield (name, False), row
            continue
        yield (name, False), replace(row, cell=NONE, amount="", link=LOCAL)
        if row.cell != NONE:
            yield (name, True), replace(row, touches=(), link=QUEUED)


Steps = dict[tuple[str, bool], StepObject]
"""Objects by the kind of the operation, and whether it is the landing of a signal."""


def step_objects(fields: Sequence[Field]) -> tuple[Steps, Steps]:
    """Return what the operations of each row are read and written by, as steps and where they are pending."""
    done, pending = (
        {key: StepObject(row, fields, pending=pending) for key, row in _rows()} for pending in (False, True)
    )
    return done, pending


STEPS, PENDING = step_objects(STEP)


def step_fields(event: Event) -> dict[str, Any]:
    """Return the fields of a step, or of an operation that was pending at the end."""
    op = event.op
    return STEPS[op.kind, op.actor.wire and op.cell is not None].write(event)
