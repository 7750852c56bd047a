"""Reading a certificate: JSON Lines of known shapes, and nothing else. What they mean is seen later.

    {"format": ..., "kernel": ..., "windows": [...], "cells": [...], ...}    the header
    {"actor": "0", "rank": 0, "ops": [{"kind": "store", "access": [[0, "write", [0, 256]]]}, ...]}
    {"run": [[0, 3], [1, 2], [0, 1], ...]}                   actor 0 takes three steps, then actor 1 two
    {"wait": [0, 7], "epochs": [1, 2]}                       where a wait on a cell with Sets may pass
    {"wait": [0, 9], "way": "down"}                          how a wait is read, if not as its comparison says
    {"hold": [[0, 3]], "cut": [3, 5, 5]}                     how far the actors get while that is held

An event is a thread and an index. Threads are the actors, in the order of their lines, then the wires: one
a landing, in the order of issue (actor by actor; of one operation data first, piece by piece, then the signal).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT = "asyncsim certificate 1"
LARGEST = 1 << 64
"""No integer is as large as this."""

_OP = {
    "kind": str, "access": [(int, str, [int])], "cell": int, "how": str, "amount": int,
    "consume": bool, "relaxed": bool, "late": bool, "link": str, "update": str, "operand": int, "result": bool,
}  # fmt: skip
"""An access: a window, read, write or add, and where its spans of bytes begin and end."""
_OPTIONAL = _OP.keys() - {"kind"}
_HEADER = {
    "format": str, "kernel": str, "source": str, "ranks": int, "calls": int, "memory": str, "seed": int,
    "windows": [(int, int, bool)], "cells": [(int, int, int, int)],
}  # fmt: skip
"""A window: its rank, the bytes of an element, whether adds commute. A cell: its rank, start, lowest, highest."""

Lines = list[tuple[int, dict[str, Any]]]
"""Lines of one kind, each with its number."""


class RejectedError(Exception):
    """The certificate proves nothing.

    `line` is the line of the file that shows it, if there is one.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason = reason
        self.line = line


class UnreadableError(RejectedError):
    """What was given is not a certificate at all."""


@dataclass(slots=True)
class File:
    """A certificate by kinds of lines."""

    header: dict[str, Any]
    streams: Lines = field(default_factory=list)
    runs: Lines = field(default_factory=list)
    epochs: Lines = field(default_factory=list)
    ways: Lines = field(default_factory=list)
    cuts: Lines = field(default_factory=list)


_SHAPES: dict[str, dict[str, Any]] = {
    "streams": {"actor": str, "rank": int, "ops": [_OP]},
    "runs": {"run": [(int, int)]},
    "epochs": {"wait": (int, int), "epochs": [int]},
    "ways": {"wait": (int, int), "way": str},
    "cuts": {"hold": [(int, int)], "cut": [int]},
}


def read(lines: Iterable[str]) -> File:
    """Return the lines by kind.

    Raises:
        UnreadableError: a line is none of those that a certificate is made of.

    """
    file: File | None = None
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # also an integer of too many digits
            raise UnreadableError("no JSON", number) from None
        if file is None:
            if not _like(value, _HEADER) or value["format"] != FORMAT:
                raise UnreadableError(f"not the header of an {FORMAT!r}", number)
            file = File(value)
            continue
        kind = next((name for name, shape in _SHAPES.items() if _like(value, shape)), None)
        if kind is None:
            raise UnreadableError("none of the lines that a certificate is made of", number)
        getattr(file, kind).append((number, value))
    if file is None:
        raise UnreadableError("there is nothing in it")
    return file


def _like(value: Any, shape: Any) -> bool:  # noqa: ANN401 - any JSON, and a shape of types
    """Say whether a value has this shape. Some fields of an operation may be left out, others may not be there."""
    kind = type(shape)
    if kind is dict:
        if type(value) is not dict or not shape.keys() - value.keys() <= _OPTIONAL:
            return False
        return value.keys() <= shape.keys() and all(_like(part, shape[name]) for name, part in value.items())
    if kind is list or kind is tuple:
        if type(value) is not list or (kind is tuple and len(value) != len(shape)):
            return False
        return all(map(_like, value, shape if kind is tuple else repeat(shape[0])))
    if type(value) is not shape:  # a bool is no integer here
        return False
    return abs(value) < LARGEST if shape is int else value.isprintable() if shape is str else True
