"""The format of a trace: each object of each line, declared once, for reader, writer, schema and documentation.

A trace is JSON Lines: a header, one line a step, a footer; docs/reference/trace-format.md tells it to people. The order
of the fields is that of the file. Steps are in `asyncsim.trace.format_step`.

Traces recorded elsewhere, by instrumenting a real kernel, may leave out what follows from the rest or is not known:
whoever instruments a kernel knows what each rank does, in the order of that rank, and often nothing else. What is
filled in is read as strictly as everything else. A trace of late memory has no landings there either: nobody sees one
on real hardware, and they follow from the operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asyncsim.trace.declare import WORLD, Window
from asyncsim.trace.event import COMPLETE, ENDINGS
from asyncsim.trace.fields import (
    COUNT,
    FLAG,
    HEX,
    TEXT,
    Field,
    Implied,
    Object,
    Type,
    anything,
    by_name,
    choice,
    list_of,
    narrowed,
    nullable,
    text,
    whole,
)
from asyncsim.trace.format_step import ACTOR, AT, step_fields
from asyncsim.trace.late import MODELS, OLD, OLD_READ, model_of
from asyncsim.trace.strict import MAX_CALLS, MAX_RANKS, BadFieldError, shown
from asyncsim.trace.values import DTYPES, decode_number, dtype_name, encode_number

if TYPE_CHECKING:
    from asyncsim.trace.declare import Declaration
    from asyncsim.trace.layout import SignalLayout, WindowLayout
    from asyncsim.trace.world import World

FORMAT = 1
"""The version of the format. A reader reads its own version only."""
HEADER_LINE, STEP_LINE, FOOTER_LINE = "header", "step", "footer"
ELSEWHERE = "elsewhere"
"""What ``recorded`` says in the header of a trace that no asyncsim recorded."""

# ---- types


def _version(value: Any, _: str) -> int:  # noqa: ANN401 - any JSON value
    if type(value) is not int or value != FORMAT:
        raise BadFieldError(f"format {shown(value)}; this asyncsim reads format {FORMAT}")
    return value


def _start(value: Any, what: str) -> Any:  # noqa: ANN401
    return value if value is None or value == "random" else decode_number(value, what)


SOURCE = text("([0-9a-f]{16})?", "16 hex digits, or empty")
_ATOM = "(:atom=[1-9][0-9]{0,17})?"
_OLD = f"{OLD}(={OLD_READ}(,{OLD_READ})*)?"
_MEMORY = text(f"[a-z]{{1,20}}{_ATOM}|{_OLD}", f"one of the memory models: {', '.join(MODELS)}")
MEMORY = Type(
    lambda value, what: model_of(_MEMORY.check(value, what)).name,
    {
        "type": "string",
        "pattern": f"^({'|'.join(name + _ATOM * model.late for name, model in MODELS.items())}|{_OLD})$",
    },
    " ".join(f"`{name}`" for name in MODELS),
)  # fmt: skip
SHAPE = list_of(whole(0, 1 << 62), "an extent")
NUMBER = Type(
    _start, {"oneOf": [{"type": ["number", "boolean", "null"]}, {"enum": ["inf", "-inf", "nan", "random"]}]},
    "number, or `random`",
)  # fmt: skip
VERSION = Type(_version, {"const": FORMAT}, f"{FORMAT}")
RECORDED = choice("", ELSEWHERE)
RANKS, CALLS, EDITS = whole(1, MAX_RANKS), whole(1, MAX_CALLS), list_of(TEXT, "an edit")

# ---- the header


@dataclass(frozen=True, slots=True)
class Declared:
    """A window or signal as a trace writes it: what was declared, and its place in a world."""

    declared: Declaration
    layout: WindowLayout | SignalLayout


def _extent_fields() -> tuple[Field, ...]:
    return (
        Field("shape", SHAPE, "of it at each rank", source=lambda made: list(made.layout.shape)),
        Field("dtype", choice(*DTYPES), "of its elements", source=lambda made: dtype_name(made.layout.dtype)),
    )


def _dirt(made: Declared) -> Any:  # noqa: ANN401 - a number, a text or None
    dirty = made.declared.dirty if isinstance(made.declared, Window) else None
    return dirty if dirty in (None, "random") else encode_number(dirty)


_GROUP = Field(
    "group", TEXT, "whose it is, by its name in `groups`; left out: the world's", default=None,
    source=lambda made: None if made.layout.group == WORLD else made.layout.group,
)  # fmt: skip
WINDOW = Object(
    "a declaration",
    (
        Field("window", TEXT, "its name", source="declared.name"),
        *_extent_fields(),
        Field("initialised", FLAG, "it may be read from the start", default=False, source="declared.initialised"),
        Field("dirty", NUMBER, "what it holds at the start instead of zeros", default=None, source=_dirt),
        Field("over", TEXT, "the window whose memory it shares", default="", source="declared.over"),
        _GROUP,
    ),
)
SIGNAL = Object(
    "a declaration",
    (
        Field("signal", TEXT, "its name", source="declared.name"),
        *_extent_fields(),
        Field("start", whole(-(1 << 63)), "what a cell holds first", source=lambda made: int(made.declared.start)),
        Field(
            "wrap", FLAG, "a cell that leaves its range goes on at the other end", default=False,
            source="declared.wrap",
        ),
        Field(
            "self_cleaning", FLAG, "every cell is left as it was found", default=False, source="declared.self_cleaning"
        ),
        _GROUP,
    ),
)  # fmt: skip


def _declaration(value: Any, _: str) -> dict[str, Any]:  # noqa: ANN401
    return (WINDOW if type(value) is dict and "window" in value else SIGNAL).read(value)


DECLARATION = Type(_declaration, {"oneOf": [anything("window", "").schema, anything("signal", "").schema]}, "object")
GROUP = Object(
    "a group",
    (
        Field("name", TEXT, "of the group", source=lambda made: made[0]),
        Field(
            "ranks",
            list_of(narrowed(COUNT), "a member"),
            "its members, by their numbers in the world",
            source=lambda made: list(made[1]),
        ),
    ),
)
MEMBER = Object("an actor", (Field("actor", ACTOR, "its name", source="name"), Field("rank", COUNT, "its rank")))


def declarations(world: World) -> list[dict[str, Any]]:
    """Return the windows and signals of a world as JSON objects, in the order in which a kernel takes them."""
    return [
        (WINDOW if isinstance(each, Window) else SIGNAL).write(Declared(each, world.layouts[each.name]))
        for each in world.memory
    ]


def groups(world: World) -> list[dict[str, Any]]:
    """Return the groups that own memory as JSON objects, in the order in which the declarations name them."""
    layouts = [world.layouts[declared.name] for declared in world.memory]
    return [GROUP.write(each) for each in {at.group: at.members for at in layouts if at.group != WORLD}.items()]


HEADER = Object(
    "the line",
    (
        Field("format", VERSION, "the version of this format; a reader reads its own only", source=lambda _: FORMAT),
        Field("asyncsim", TEXT, "the version that recorded it", elsewhere="", source="version"),
        Field("kernel", TEXT, "`module:name` or `file.py:name`", elsewhere="recorded:elsewhere"),
        Field("source", SOURCE, "the first 16 hex digits of the SHA-256 of the kernel's file", elsewhere=""),
        Field("ranks", RANKS, "P"),
        Field("calls", CALLS, "how many calls back to back", elsewhere=1),
        Field("memory", MEMORY, "the memory model; `ldst:atom=4` lets larger tiles land in pieces", elsewhere="sc"),
        Field("seed", COUNT, "of the inputs", elsewhere=0),
        Field(
            "declarations", list_of(DECLARATION, "a declaration"),
            "the windows and signals, in the order in which the kernel takes them", default=(), kept=True,
            source=lambda made: declarations(made.world),
        ),
        Field(
            "groups", list_of(GROUP.type(), "a group"), "which ranks are the members of each group that owns memory",
            default=(), kept=True, source=lambda made: groups(made.world),
        ),
        Field(
            "actors", list_of(MEMBER.type(), "an actor", 1),
            "every rank; streams and wires follow from the steps", elsewhere=Implied("every rank"),
            source=lambda made: [MEMBER.write(actor) for actor in made.world.actors],
        ),
        Field(
            "edits", EDITS, "what was removed from the kernel or added to it", default=(), kept=True,
            source=lambda made: list(made.edits),
        ),
        Field("scheduler", TEXT, "who chose", elsewhere=ELSEWHERE),
        Field("recorded", RECORDED, "`elsewhere`, if no asyncsim did", default=""),
    ),
)  # fmt: skip

# ---- the footer

COLLECTIVE = Object(
    "a collective",
    (
        Field("actor", ACTOR, "who takes part in it"),
        Field("rank", COUNT, "whose it is"),
        Field("group", TEXT, "which group calls it together"),
        Field("members", list_of(narrowed(COUNT), "a member"), "the ranks of that group", default=(), kept=True),
        Field("call", narrowed(COUNT), "of the kernel, from 0"),
        Field("name", TEXT, "the collective"),
        Field(
            "facts", by_name(TEXT), "what must be the same on all members", default=(),
            source=lambda said: dict(said.facts) or None,
        ),
        Field("at", AT, "as of a step", default=()),
    ),
)  # fmt: skip
FOUND = Object("a finding", (Field("kind", TEXT, "of the finding"),), more=True)


def _found(value: Any, _: str) -> Any:  # noqa: ANN401
    FOUND.read(value)
    return value


FOOTER = Object(
    "the line",
    (
        Field("ending", choice(*ENDINGS), "how the run ended; `stopped`: by an exception or an interrupt",
              elsewhere=COMPLETE),
        Field("steps", COUNT, "how many there are", elsewhere=Implied("as many as there are")),
        Field(
            "outputs", list_of(list_of(nullable(HEX), "an output"), "'outputs'"),
            "a digest of each output, by call and rank; null: that rank did not finish", default=(),
            source=lambda footer: tuple(footer.outputs),
        ),
        Field(
            "pending", list_of(anything("pending", "operation"), "a pending operation"),
            "what stood at the gate at the end", default=(),
            source=lambda footer: tuple(step_fields(event) for event in footer.pending),
        ),
        Field("verdict", TEXT, "what was concluded", default=""),
        Field(
            "findings", list_of(Type(_found, FOUND.schema(), "object"), "a finding"), "as `check --json` has them",
            default=(), source=lambda footer: tuple(footer.findings),
        ),
        Field(
            "collectives", list_of(COLLECTIVE.type("collective"), "a collective"),
            "what each task said it takes part in, in the order of the run", default=(),
            source=lambda footer: tuple(map(COLLECTIVE.write, footer.collectives)),
        ),
    ),
)  # fmt: skip
