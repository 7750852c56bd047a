"""Reading the findings of a footer. The format asks only for their ``kind``; here all of a finding is read."""

from __future__ import annotations

from typing import Any

from asyncsim.trace.finding import KINDS, Finding, Side
from asyncsim.trace.strict import BadFieldError, Fields, integer_in, shown, text_in

_TEXTS = ("hazard", "scope", "window", "trace", "token", "shown")


def finding_of(item: Any) -> Finding:  # noqa: ANN401 - any JSON value
    """Return the finding that `Finding.to_json` wrote. Where its operations stand in their streams is not known.

    Raises:
        BadFieldError: it is not what that writes.

    """
    fields = Fields(item, "a finding")
    kind, why = fields.choice("kind", KINDS), fields.text("why")
    hazard, scope, window, trace, token, said = (_text(fields, name) for name in _TEXTS)
    pairs = fields.integer("pairs", 0)
    harmful = fields.take("harmful", None)
    if harmful is not None and type(harmful) is not bool:
        raise BadFieldError(f"'harmful' is {shown(harmful)}; it must be true, false or null")
    sides = tuple(_side(Fields(side, "a side")) for side in fields.items("sides"))
    return Finding(
        kind, why, hazard=hazard, scope=scope, window=window, pairs=pairs, harmful=harmful, sides=sides,
        trace=trace, token=token, shown=said or "",
    )  # fmt: skip


def _side(fields: Fields) -> Side:
    file, line = _text(fields, "file"), fields.take("line", None)
    at = [] if file is None else [file if line is None else f"{file}:{integer_in(line, 'the line', 0)}"]
    if (inner := _text(fields, "composite")) is not None:
        at.append(inner)
    return Side(
        fields.text("actor"), -1, fields.integer("rank", 0), fields.integer("call", 0), _text(fields, "phase") or "",
        fields.text("op"), fields.text("region"), tuple(at),
    )  # fmt: skip


def _text(fields: Fields, name: str) -> str | None:
    value = fields.take(name, None)
    return None if value is None else text_in(value, repr(name))
