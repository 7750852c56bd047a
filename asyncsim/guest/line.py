"""The author's line: where it is, and operations that come from a line which has gone by."""

from __future__ import annotations

import linecache
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncsim.guest.author import is_the_authors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the author's.

    Args:
        file: as its code names it.
        number: from 1.
        module: the name of the module that it is in.

    """

    file: str
    number: int
    module: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.number}"

    def assigned(self) -> str:
        """Return the name that the line assigns to; empty if it assigns to none."""
        found = _ASSIGNED.match(linecache.getline(self.file, self.number))
        return "" if found is None else found[1]


_ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::[^=]+)?=[^=]")


def present_line() -> Line:
    """Return the author's line that runs."""
    return next(_present(), Line("", 0, ""))


def present_lines() -> list[Line]:
    """Return the author's lines that lead to what runs, the innermost first."""
    return list(_present())


def _present() -> Iterator[Line]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to ask
    while frame is not None:
        if is_the_authors(frame.f_code):
            yield Line(frame.f_code.co_filename, frame.f_lineno, str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back


@cache
def at_line(line: Line) -> Callable[[Callable[..., Any], Any], Any]:
    """Return a function that calls another one with one argument on a line of the author's, so that it is named."""
    space: dict[str, Any] = {"__name__": line.module}
    source = "\n" * (line.number - 1) + "def call(function, argument): return function(argument)"
    exec(compile(source, line.file, "exec", dont_inherit=True), space)  # noqa: S102 - our own line
    made: Callable[[Callable[..., Any], Any], Any] = space["call"]
    return made
