"""Strict JSON: numbers that stay numbers, and no value is taken for another.

The json module accepts what no trace may hold: NaN literals, a key twice, numbers without end. A
file from somebody else is checked here before anything is made of it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MAX_DEPTH = 32
"""How deep the brackets of a line may be nested."""
MAX_DIGITS = 100
"""How long a number may be, in characters. A seed may be large; nothing else is."""
MAX_RANKS = 1 << 12
MAX_CALLS = 1 << 16
"""A small file can ask for a large world; larger ones than this are not made."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.")
"""An escape in JSON: a pair of surrogates, a lone one, or another."""


class BadFieldError(ValueError):
    """Something in a line is not what the format says. The reader adds the line number."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise BadFieldError(f"the key {twice!r} stands twice in one object")
    return made


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise BadFieldError(f"a number of {len(text)} digits; at most {MAX_DIGITS} are read")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= MAX_DIGITS else math.inf
    if math.isinf(value):
        raise BadFieldError(f"the number {text[:MAX_DIGITS]} is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise BadFieldError(f"{text} is no JSON; it is written as a text")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_constant)


def parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value that `text` is.

    Raises:
        BadFieldError: it is no JSON, nested too deep, a key stands twice, or a number is out of bounds.

    """
    # Counting is quick and nearly always enough; only a line with many brackets is looked at closely.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadFieldError(f"no JSON: {error.msg} at column {error.colno}") from None


def json_text(value: Any) -> str:  # noqa: ANN401
    """Write a value as JSON that `parse_json` and `text_in` read; half a character becomes its escape, as text.

    A file name that is not UTF-8 has such halves, and so has any text that an author made of them.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII: any encoding keeps the bytes
    return _ESCAPE.sub(_whole, text) if "\\ud" in text else text


def _whole(escape: re.Match[str]) -> str:
    return f"\\{escape[0]}" if escape[1] else escape[0]


def _check_depth(text: str) -> None:
    depth = 0
    for sign in _STRING.sub("", text):
        depth += (sign in "[{") - (sign in "]}")
        if depth > MAX_DEPTH:
            raise BadFieldError(f"nested deeper than {MAX_DEPTH}")


def shown(value: Any) -> str:  # noqa: ANN401
    """Return `value` in few characters, for a message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004 - a message fits a line


def text_in(value: Any, what: str) -> str:  # noqa: ANN401
    """Return `value` if it is a text that can be printed and encoded.

    Args:
        value: any JSON value.
        what: its name, for the message.

    Raises:
        BadFieldError: it is no text, or holds a lone surrogate.

    """
    if type(value) is not str:
        raise BadFieldError(f"{what} is {shown(value)}; it must be a text")
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise BadFieldError(f"{what} holds half a character (a lone surrogate)")
    return value


def integer_in(value: Any, what: str, low: int | None = None, high: int | None = None) -> int:  # noqa: ANN401
    """Return `value` if it is an integer from `low` to `high`, both included.

    Args:
        value: any JSON value; a boolean is no integer.
        what: its name, for the message.
        low: the least that is right; None: no bound.
        high: the most; None: no bound.

    Raises:
        BadFieldError: it is no integer, or out of bounds.

    """
    if type(value) is not int or (low is not None and value < low) or (high is not None and value > high):
        bounds = "" if low is None else f", at least {low}" if high is None else f", {low} to {high}"
        raise BadFieldError(f"{what} is {shown(value)}; it must be an integer{bounds}")
    return value


def list_in(value: Any, what: str) -> list[Any]:  # noqa: ANN401
    """Return `value` if it is a list.

    Args:
        value: any JSON value.
        what: its name, for the message.

    Raises:
        BadFieldError: it is none.

    """
    if type(value) is not list:
        raise BadFieldError(f"{what} is {shown(value)}; it must be a list")
    return value
