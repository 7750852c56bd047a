"""The JSON Schema (draft 2020-12) of one line of a trace, made from the words and limits that the reader uses.

A schema says what a line looks like. What only the whole trace decides (that an offset lies inside
its window, that a stream was started, that a wire carries what its operation left, the sums) is
the reader's alone. Whatever the reader takes fits the schema; a line that does not fit is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import COMPARISONS, UPDATES
from asyncsim.trace.event import ENDINGS
from asyncsim.trace.jsonl_elsewhere import ELSEWHERE
from asyncsim.trace.jsonl_header import FORMAT
from asyncsim.trace.jsonl_read import FOOTER, HEADER, STEP
from asyncsim.trace.kinds import KINDS, LOCAL, NONE, POLLING, QUEUED, SEEN, UPDATE, Kind
from asyncsim.trace.region import ADD, READ, WRITE
from asyncsim.trace.strict import MAX_CALLS, MAX_RANKS
from asyncsim.trace.values import DTYPES, INLINE

if TYPE_CHECKING:
    from collections.abc import Sequence

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_Schema = dict[str, Any]

_TEXT: _Schema = {"type": "string"}
_FLAG: _Schema = {"type": "boolean"}
_WHOLE: _Schema = {"type": "integer"}
_COUNT: _Schema = {"type": "integer", "minimum": 0}
_HEX: _Schema = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_ACTOR: _Schema = {"type": "string", "pattern": r"^\d+(\.\d+)*(>\d+(s|\.\d+)?)?$"}


def schema(*, elsewhere: bool = False) -> _Schema:
    """Return the schema of a line: a header, a step or a footer.

    Args:
        elsewhere: of a trace that was recorded elsewhere, whose lines may leave out more.

    """
    kind = "recorded elsewhere" if elsewhere else "as asyncsim writes it"
    return {
        "$schema": DRAFT,
        "title": f"A line of an asyncsim trace, format {FORMAT}, {kind}",
        "oneOf": [_ref("header"), _ref("step"), _ref("footer")],
        "$defs": _definitions(elsewhere=elsewhere),
    }


def _definitions(*, elsewhere: bool) -> _Schema:
    wires = {} if elsewhere else {"wire_access": _access(("window", "owner", "region", "mode"), piece=_PIECE)}
    needed = () if elsewhere else ("owner", "region", "mode")
    crc = {"crc": {"type": "string", "pattern": "^[0-9a-f]{8}$"}}
    step = {"event": {"const": STEP}, "step": _COUNT, **crc}
    return {
        "header": _header(crc, elsewhere=elsewhere),
        "step": {"oneOf": _operations(step, ("event",) if elsewhere else ("event", "step"), elsewhere=elsewhere)},
        "footer": _footer(crc, elsewhere=elsewhere),
        "pending": {"oneOf": _operations({}, (), elsewhere=elsewhere)},
        "window": _WINDOW,
        "signal": _SIGNAL,
        "cell": _object(
            {"signal": _TEXT, "owner": _COUNT, "index": _list(_COUNT)}, ("signal",), needed[:1], _index(needed)
        ),
        "access": _access(("window", *needed)),
        **wires,
        "value": _VALUE,
        "element": _ELEMENT,
        "at": _AT,
        "collective": _COLLECTIVE,
    }


def _index(needed: tuple[str, ...]) -> tuple[str, ...]:
    return ("index",) if needed else ()


def _ref(name: str) -> _Schema:
    return {"$ref": f"#/$defs/{name}"}


def _list(items: _Schema, **limits: int) -> _Schema:
    return {"type": "array", "items": items, **limits}


def _object(properties: _Schema, *required: tuple[str, ...]) -> _Schema:
    """Return the schema of an object that has no other fields."""
    names = [name for group in required for name in group]
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _header(crc: _Schema, *, elsewhere: bool) -> _Schema:
    properties: _Schema = {
        "event": {"const": HEADER},
        "format": {"const": FORMAT},
        "asyncsim": _TEXT,
        "kernel": _TEXT,
        "source": {"type": "string", "pattern": "^([0-9a-f]{16})?$"},
        "ranks": {"type": "integer", "minimum": 1, "maximum": MAX_RANKS},
        "calls": {"type": "integer", "minimum": 1, "maximum": MAX_CALLS},
        "memory": {"type": "string", "pattern": "^(sc|(ldst|nic)(:atom=[1-9][0-9]{0,17})?)$"},
        "seed": _COUNT,
        "declarations": _list({"oneOf": [_ref("window"), _ref("signal")]}),
        "groups": _list(_object({"name": _TEXT, "ranks": _list(_COUNT)}, ("name", "ranks"))),
        "actors": _list(_object({"actor": _ACTOR, "rank": _COUNT}, ("actor", "rank")), minItems=1),
        "edits": _list(_TEXT),
        "scheduler": _TEXT,
        "recorded": {"const": ELSEWHERE} if elsewhere else {"const": ""},
        **crc,
    }
    if elsewhere:
        return _object(properties, ("event", "format", "recorded", "ranks"))
    said = ("asyncsim", "kernel", "source", "ranks", "calls", "memory", "seed", "actors", "scheduler")
    return _object(properties, ("event", "format"), said)


def _operations(common: _Schema, required: tuple[str, ...], *, elsewhere: bool) -> list[_Schema]:
    """Return the schemas of a step, one for each shape; of a pending operation where nothing is common."""
    common = {
        **common, "rank": _COUNT, "actor": _ACTOR, "call": _COUNT, "phase": _TEXT, "at": _ref("at"),
        "time": {"type": "number", "minimum": 0},
    }  # fmt: skip
    is_step = "step" in common
    required = (*required, "op") if elsewhere else (*required, "rank", "actor", "call", "op")
    moved = {"unwritten": _FLAG, **({"value": _ref("value")} if is_step else {})}
    grouped: dict[str, tuple[list[str], _Schema, list[str]]] = {}
    for row in KINDS.values():
        if not row.landing:
            own, needed = _shape(row, moved, elsewhere=elsewhere)
            grouped.setdefault(repr((own, needed)), ([], own, needed))[0].append(row.name)

    def shape(kinds: Sequence[str], own: _Schema, needed: Sequence[str]) -> _Schema:
        return _object({**common, "op": {"enum": list(kinds)}, **own}, required, tuple(needed))

    shapes = [shape(*group) for group in grouped.values()]
    if elsewhere:
        return shapes
    wire_one = _list(_ref("wire_access"), minItems=1, maxItems=1)
    local, queued = ({"link": {"enum": ["", link]}} for link in (LOCAL, QUEUED))
    landing = tuple(row.name for row in KINDS.values() if row.landing)
    signals = tuple(row.name for row in KINDS.values() if row.landing and row.cell != NONE)
    return [
        *shapes,
        shape(landing, {**local, "accesses": wire_one, **moved}, ("accesses",)),
        shape(signals, {**queued, **_CHANGE, "value": _WHOLE}, ("cell", "how", "value", "have")),
    ]


def _shape(row: Kind, moved: _Schema, *, elsewhere: bool) -> tuple[_Schema, list[str]]:
    """Return the fields that a kind has beside the common ones, and those of them that it needs."""
    own: _Schema = {}
    needed: list[str] = []
    if row.touches:
        own |= {"accesses": _list(_ref("access"), minItems=1, maxItems=len(row.touches)), **moved}
        needed.append("accesses")
        if row.name in POLLING:  # a pending one says what it refuses
            own["value"] = _ref("value")
    if row.cell != NONE:
        own |= _CHANGE if row.cell == UPDATE else _COMPARE if row.cell != SEEN else _CELL
        guessed = elsewhere and row.cell in (UPDATE, SEEN)
        needed += ["cell", *([] if guessed or row.cell == SEEN else ["how"]), *([] if elsewhere else ["have"])]
    if row.amount:
        own[row.amount] = _WHOLE if row.cell != NONE else {"type": "integer", "minimum": 1}
        needed.append(row.amount)
    own |= dict.fromkeys(row.flags, _FLAG)
    if row.link is None:
        needed.append("link")
    if row.link != "":
        own["link"] = _TEXT if row.link is None else {"const": row.link}
    return own, needed


def _footer(crc: _Schema, *, elsewhere: bool) -> _Schema:
    finding = {"type": "object", "properties": {"kind": _TEXT}, "required": ["kind"]}
    properties: _Schema = {
        "event": {"const": FOOTER},
        "ending": {"enum": list(ENDINGS)},
        "steps": _COUNT,
        "outputs": _list(_list({"oneOf": [{"type": "null"}, _HEX]})),
        "pending": _list(_ref("pending")),
        "verdict": _TEXT,
        "findings": _list(finding),
        "collectives": _list(_ref("collective")),
        **crc,
    }
    return _object(properties, ("event",) if elsewhere else ("event", "ending", "steps"))


_CELL: _Schema = {"cell": _ref("cell"), "have": _WHOLE}
_CHANGE: _Schema = {**_CELL, "how": {"enum": list(UPDATES)}}
_COMPARE: _Schema = {**_CELL, "how": {"enum": list(COMPARISONS)}}


def _access(required: tuple[str, ...], **more: _Schema) -> _Schema:
    place = {"oneOf": [_COUNT, _list(_COUNT, minItems=3, maxItems=3)]}
    return _object(
        {
            "window": _TEXT,
            "owner": _COUNT,
            "region": _list(place),
            "mode": {"enum": [READ, WRITE, ADD]},
            "atomic": _FLAG,
            **more,
        },
        required,
    )


_PIECE = _list(_COUNT, minItems=2, maxItems=2)
_SHAPE = _list({"type": "integer", "minimum": 0, "maximum": 1 << 62})
_NUMBER: _Schema = {"oneOf": [{"type": ["number", "boolean", "null"]}, {"enum": ["inf", "-inf", "nan", "random"]}]}
_WINDOW = _object(
    {
        "window": _TEXT, "shape": _SHAPE, "dtype": {"enum": list(DTYPES)}, "initialised": _FLAG, "dirty": _NUMBER,
        "over": _TEXT, "group": _TEXT,
    },
    ("window", "shape", "dtype"),
)  # fmt: skip
_SIGNAL = _object(
    {
        "signal": _TEXT, "shape": _SHAPE, "dtype": {"enum": list(DTYPES)},
        "start": {"type": "integer", "minimum": -(1 << 63)}, "wrap": _FLAG, "self_cleaning": _FLAG, "group": _TEXT,
    },
    ("signal", "shape", "dtype", "start"),
)  # fmt: skip
_ELEMENT: _Schema = {
    "oneOf": [
        {"type": ["number", "boolean"]},
        {"type": "string", "pattern": "^(-?inf|(nan|bits):[0-9a-f]+)$"},
    ]
}
_VALUE: _Schema = {
    "oneOf": [
        _list({"oneOf": [_ref("element"), _list(_ref("element"), minItems=2, maxItems=2)]}, maxItems=INLINE),
        _object({"sha256": _HEX, "elements": {"type": "integer", "minimum": INLINE + 1}}, ("sha256", "elements")),
    ]
}
_AT = _list({"type": "string", "pattern": r"^([\s\S]+:\d{1,9})?$"}, maxItems=2)
_COLLECTIVE = _object(
    {
        "actor": _ACTOR, "rank": _COUNT, "group": _TEXT, "members": _list(_COUNT), "call": _COUNT, "name": _TEXT,
        "facts": {"type": "object", "additionalProperties": _TEXT}, "at": _ref("at"),
    },
    ("actor", "rank", "group", "call", "name"),
)  # fmt: skip
