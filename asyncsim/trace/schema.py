"""The JSON Schema (draft 2020-12) of one line of a trace, and the tables of its fields, made from the declarations.

A schema says what a line looks like. What only the whole trace decides (that an offset lies inside
its window, that a stream was started, that a wire carries what its operation left, the sums) is
the reader's alone. Whatever the reader takes fits the schema; a line that does not fit is refused.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from asyncsim.trace.fields import REQUIRED, Implied, ref
from asyncsim.trace.format import (
    COLLECTIVE,
    ELSEWHERE,
    FOOTER,
    FOOTER_LINE,
    FORMAT,
    HEADER,
    HEADER_LINE,
    SIGNAL,
    STEP_LINE,
    WINDOW,
)
from asyncsim.trace.format_step import ACCESS, AT, CELL, PENDING, STEP, STEPS, WIRE_ACCESS
from asyncsim.trace.kinds import KINDS
from asyncsim.trace.values import DIGEST, ELEMENT, INLINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from asyncsim.trace.fields import Field, Object, Schema
    from asyncsim.trace.format_step import StepObject

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_CRC: Schema = {"type": "string", "pattern": "^[0-9a-f]{8}$"}


def schema(*, elsewhere: bool = False) -> Schema:
    """Return the schema of a line: a header, a step or a footer.

    Args:
        elsewhere: of a trace that was recorded elsewhere, whose lines may leave out more.

    """
    kind = "recorded elsewhere" if elsewhere else "as asyncsim writes it"
    recorded = {"recorded": {"const": ELSEWHERE if elsewhere else ""}}
    needed = ["recorded"] if elsewhere else []
    wires = {} if elsewhere else {"wire_access": WIRE_ACCESS.schema()}
    return {
        "$schema": DRAFT,
        "title": f"A line of an asyncsim trace, format {FORMAT}, {kind}",
        "oneOf": [ref("header"), ref("step"), ref("footer")],
        "$defs": {
            "header": _line(HEADER_LINE, HEADER.schema(elsewhere=elsewhere, **recorded), needed),
            "step": {"oneOf": [_line(STEP_LINE, each) for each in _operations(STEPS, elsewhere=elsewhere)]},
            "footer": _line(FOOTER_LINE, FOOTER.schema(elsewhere=elsewhere)),
            "pending": {"oneOf": list(_operations(PENDING, elsewhere=elsewhere))},
            "window": WINDOW.schema(),
            "signal": SIGNAL.schema(),
            "cell": CELL.schema(elsewhere=elsewhere),
            "access": ACCESS.schema(elsewhere=elsewhere),
            **wires,
            "value": {"oneOf": [_elements(), DIGEST.schema()]},
            "element": ELEMENT,
            "at": AT.schema,
            "collective": COLLECTIVE.schema(),
        },
    }


def _line(kind: str, made: Schema, more: list[str] | None = None) -> Schema:
    """Return the schema of a line, which says what it is, and is summed up, beside its own fields."""
    properties = {"event": {"const": kind}, **made["properties"], "crc": _CRC}
    return {**made, "properties": properties, "required": ["event", *made["required"], *(more or ())]}


def _operations(objects: Mapping[tuple[str, bool], StepObject], *, elsewhere: bool) -> list[Schema]:
    """Return the schemas of steps; kinds that have the same fields share one."""
    shared: dict[str, tuple[list[str], Schema]] = {}
    for (kind, _), declared in objects.items():
        if not (elsewhere and declared.row.landing):
            made = declared.schema(elsewhere=elsewhere, op={})
            shared.setdefault(repr(made), ([], made))[0].append(kind)
    return [{**made, "properties": {**made["properties"], "op": {"enum": kinds}}} for kinds, made in shared.values()]


def _elements() -> Schema:
    element = ref("element")
    pair = {"type": "array", "items": element, "minItems": 2, "maxItems": 2}
    return {"type": "array", "items": {"oneOf": [element, pair]}, "maxItems": INLINE}


# ---- tables for people


def _table(of: Object) -> str:
    return _rows(("field", "holds", "what it says"), ((f"`{f.name}`", f.type.words, f.about) for f in of.fields))


def _steps() -> str:
    """Return the table of the fields of steps, each with the operations that have it."""
    kinds: dict[Field, dict[str, None]] = {}
    for (kind, _), declared in STEPS.items():
        for field in declared.fields:
            kinds.setdefault(field, {})[kind] = None
    order = {field: number for number, field in enumerate(STEP)}
    rows = (
        (f"`{field.name}`", "all" if len(of) == len(KINDS) else " ".join(f"`{kind}`" for kind in of),
         field.type.words, field.about)
        for field, of in sorted(kinds.items(), key=lambda item: order.get(item[0], 0))
    )  # fmt: skip
    return _rows(("field", "of", "holds", "what it says"), rows)


def _left_out() -> str:
    """Return the table of what a trace that was recorded elsewhere may leave out, and what is then meant."""
    parts = {
        "header": HEADER.fields, "step": STEP, "cell": CELL.fields, "access": ACCESS.fields, "footer": FOOTER.fields,
    }  # fmt: skip
    rows = (
        (part, f"`{field.name}`", field.elsewhere if isinstance(field.elsewhere, Implied) else f"`{field.elsewhere}`")
        for part, fields in parts.items()
        for field in fields
        if field.elsewhere is not REQUIRED and field.elsewhere != ""
    )
    return _rows(("of", "may be left out", "what is meant"), rows)


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)) + "\n"


TABLES = {
    **{
        f"of {name}": partial(_table, of)
        for name, of in {
            "header": HEADER, "window": WINDOW, "signal": SIGNAL, "access": WIRE_ACCESS, "cell": CELL,
            "footer": FOOTER, "collective": COLLECTIVE,
        }.items()
    },
    "of step": _steps,
    "left out elsewhere": _left_out,
}  # fmt: skip
"""What makes the tables of fields, in Markdown, by their names."""
