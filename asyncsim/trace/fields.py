"""The objects of a JSON file, each declared once: what is written, what is read, the schema and the tables of the docs.

A `Type` is what one field can hold, a `Field` a name with its type, its meaning and what it is where it is left out,
an `Object` some fields in the order in which they are written. Whoever adds a field adds one declaration.

Why no library (msgspec, attrs with cattrs) does it: a number may be longer than 64 bits, a key that stands twice is an
error, what may be left out depends on who recorded the file, and what a field must be depends on the kind of
operation; each of these would be code of ours around it again.
"""

from __future__ import annotations

import math
import re
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from asyncsim.trace.strict import BadFieldError, integer_in, list_in, shown, text_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Schema = dict[str, Any]

REQUIRED: Any = object()
"""The default of a field that may not be left out."""


class Implied(str):
    """What is left out, and follows from the rest or is not known, in words; it is read as None."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """What a field can hold.

    Args:
        check: returns a JSON value as the program has it; of (value, its name for the message), raises BadFieldError.
        schema: of the JSON value.
        words: the same for people.

    """

    check: Callable[[Any, str], Any]
    schema: Schema
    words: str


def ref(name: str) -> Schema:
    """Return the schema that refers to a definition of this name."""
    return {"$ref": f"#/$defs/{name}"}


def anything(name: str, words: str) -> Type:
    """Return the type of what another part of the reader checks.

    Args:
        name: of the definition in the schema.
        words: for people.

    """

    def check(value: Any, what: str) -> Any:  # noqa: ANN401 - any JSON value
        if value is None:
            raise BadFieldError(f"{what} is null; it must be a {words}")
        return value

    return Type(check, ref(name), words)


def narrowed(kind: Type) -> Type:
    """Return a type that the reader checks itself, by bounds that it alone knows; null is never right."""
    return Type(lambda value, what: kind.check(None, what) if value is None else value, kind.schema, kind.words)


def whole(low: int | None = None, high: int | None = None) -> Type:
    """Return the type of an integer.

    Args:
        low: the least; None: no bound.
        high: the most; None: no bound.

    """
    bounds = {name: bound for name, bound in (("minimum", low), ("maximum", high)) if bound is not None}
    words = "integer" if low is None else f"integer from {low}" if high is None else f"integer, {low} to {high}"
    least, most = -math.inf if low is None else low, math.inf if high is None else high

    def check(value: Any, what: str) -> int:  # noqa: ANN401 - any JSON value
        if type(value) is int and least <= value <= most:  # every other field is one, and nearly all are right
            return value
        return integer_in(value, what, low, high)

    return Type(check, {"type": "integer", **bounds}, words)


def choice(*known: str) -> Type:
    """Return the type of a text that is one of some; an empty one is not told."""
    right_ones = frozenset(known)

    def check(value: Any, what: str) -> str:  # noqa: ANN401 - any JSON value
        if type(value) is not str or value not in right_ones:
            right, left_out = ", ".join(filter(None, known)), ", or left out" * ("" in known)
            raise BadFieldError(
                f"{what} is {shown(value)}; it must be {'one of ' if ',' in right else ''}{right}{left_out}"
            )
        return value

    schema: Schema = {"const": known[0]} if len(known) == 1 else {"enum": list(known)}
    return Type(check, schema, " ".join(f"`{word}`" for word in known if word))


def text(pattern: str, right: str) -> Type:
    """Return the type of a text of one form.

    Args:
        pattern: a regular expression that all of it matches, as JSON Schema and Python know them.
        right: what it must be, for the message.

    """
    matches = re.compile(pattern, re.ASCII).fullmatch

    def check(value: Any, what: str) -> str:  # noqa: ANN401
        if not matches(text_in(value, what)):
            raise BadFieldError(f"{what} is {shown(value)}; it must be {right}")
        return value  # type: ignore[no-any-return]

    return Type(check, {"type": "string", "pattern": f"^({pattern})$"}, right)


def _flag(value: Any, what: str) -> bool:  # noqa: ANN401
    if type(value) is not bool:
        raise BadFieldError(f"{what} is {shown(value)}; it must be true or false")
    return value


TEXT = Type(text_in, {"type": "string"}, "text")
FLAG = Type(_flag, {"type": "boolean"}, "true or false")
COUNT = whole(0)
HEX = text("[0-9a-f]{16}", "16 hex digits")


def nullable(kind: Type) -> Type:
    """Return the type of what may also be null, which is None."""
    return Type(
        lambda value, what: None if value is None else kind.check(value, what),
        {"oneOf": [{"type": "null"}, kind.schema]}, f"{kind.words}, or null",
    )  # fmt: skip


def list_of(kind: Type, what: str, low: int = 0, high: int | None = None) -> Type:
    """Return the type of a list, which is read as a tuple.

    Args:
        kind: of its items.
        what: one of them, for messages.
        low: how many there are at least.
        high: how many there are at most; None: no bound.

    """
    bounds = {name: bound for name, bound in (("minItems", low), ("maxItems", high)) if bound}
    right = f"{low}" if low == high else f"at least {low}" if high is None else f"{low} to {high}"

    of = kind.check

    def check(value: Any, name: str) -> tuple[Any, ...]:  # noqa: ANN401
        items = list_in(value, name)
        if len(items) < low or (high is not None and len(items) > high):
            raise BadFieldError(f"{name} has {len(items)} entries; it must have {right}")
        return tuple([of(item, what) for item in items])

    return Type(check, {"type": "array", "items": kind.schema, **bounds}, f"list: {kind.words}")


def by_name(kind: Type) -> Type:
    """Return the type of an object that holds values of one type under any names; it is read as a dict."""

    def check(value: Any, what: str) -> dict[str, Any]:  # noqa: ANN401
        given = object_in(value, what)
        return {text_in(key, "a key"): kind.check(item, repr(key)) for key, item in given.items()}

    return Type(check, {"type": "object", "additionalProperties": kind.schema}, f"{kind.words} by name")


def object_in(value: Any, what: str) -> dict[str, Any]:  # noqa: ANN401
    """Return `value` if it is an object.

    Args:
        value: any JSON value.
        what: its name, for the message.

    Raises:
        BadFieldError: it is none.

    """
    if type(value) is not dict:
        raise BadFieldError(f"{what} is {shown(value)}; it must be an object")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of an object.

    Args:
        name: its key.
        type: what it can hold.
        about: what it says, for the tables of the documentation, if it stands in one.
        default: what it is where it is left out; it is then not written, either.
        elsewhere: the same in a trace that was recorded elsewhere.
        source: where the writer finds it: the path of an attribute, by default its name; or a function of what is
            written, which returns the JSON value.
        kept: it is written also where it is its default.
        of: of a step: which operations have it, by their row in the table of kinds.
        pending: of a step: an operation that was never done has it, too.

    """

    name: str
    type: Type
    about: str = ""
    _: KW_ONLY
    default: Any = REQUIRED
    elsewhere: Any = REQUIRED
    source: str | Callable[[Any], Any] = ""
    kept: bool = False
    of: Callable[[Any], bool] = lambda _: True
    pending: bool = True

    def otherwise(self, *, elsewhere: bool) -> Any:  # noqa: ANN401 - any value
        """Return what it is where it is left out; `REQUIRED`: it may not be."""
        default = self.elsewhere if elsewhere and self.elsewhere is not REQUIRED else self.default
        return None if isinstance(default, Implied) else default


class Object:
    """Some fields that stand together.

    Args:
        what: one of these objects, for messages.
        fields: in the order in which they are written.
        more: there may be other fields, which are not read.

    """

    def __init__(self, what: str, fields: Sequence[Field], *, more: bool = False) -> None:
        self.what = what
        self.fields = tuple(fields)
        self._more = more
        self._checks = {
            foreign: [(f.name, repr(f.name), f.type.check, f.otherwise(elsewhere=foreign)) for f in self.fields]
            for foreign in (False, True)
        }
        self._getters = [
            (f.name, f.source if callable(f.source) else attrgetter(f.source or f.name), f.default, f.kept)
            for f in self.fields
        ]

    def read(self, value: Any, what: str = "", *, elsewhere: bool = False) -> dict[str, Any]:  # noqa: ANN401
        """Return every field of a JSON value, checked; what is left out has its default.

        Args:
            value: any JSON value.
            what: its name, for messages, where it has another one.
            elsewhere: it was recorded elsewhere, and may leave out more.

        Raises:
            BadFieldError: it is no such object.

        """
        given = object_in(value, what or self.what)
        made: dict[str, Any] = {}
        found = 0
        for name, quoted, check, default in self._checks[elsewhere]:
            if name in given:
                made[name] = check(given[name], quoted)
                found += 1
            elif default is REQUIRED:
                raise BadFieldError(f"{what or self.what} has no {quoted}")
            else:
                made[name] = default
        if found < len(given) and not self._more:
            name = shown(next(name for name in given if name not in made))
            raise BadFieldError(f"{what or self.what} has a field {name} that does not belong there")
        return made

    def write(self, made: Any, **known: Any) -> dict[str, Any]:  # noqa: ANN401 - what it describes
        """Return the JSON object of something, without what is empty.

        Args:
            made: what it describes.
            known: fields that it does not know itself.

        """
        written = {}
        for name, get, default, kept in self._getters:
            value = known[name] if name in known else get(made)
            if kept or (value is not None and value != default):
                written[name] = value
        return written

    def schema(self, *, elsewhere: bool = False, **more: Schema) -> Schema:
        """Return the JSON Schema.

        Args:
            elsewhere: of what was recorded elsewhere.
            more: further fields, or other schemas of these.

        """
        properties = {**{field.name: field.type.schema for field in self.fields}, **more}
        needed = [field.name for field in self.fields if field.otherwise(elsewhere=elsewhere) is REQUIRED]
        closed = {} if self._more else {"additionalProperties": False}
        return {"type": "object", "properties": properties, "required": needed, **closed}

    def type(self, name: str = "") -> Type:
        """Return the type of a field that holds such an object.

        Args:
            name: of its definition in the schema; empty: it stands there itself.

        """
        return Type(lambda value, _: self.read(value), ref(name) if name else self.schema(), self.what)
