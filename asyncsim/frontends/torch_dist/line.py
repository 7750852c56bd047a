"""Lines of scripts: where a call is made, as reports write it."""

from __future__ import annotations

import sys
from typing import NamedTuple

from asyncsim.machine.site import shown_path

_PACKAGE = __name__.rpartition(".")[0]


class Line(NamedTuple):
    """A line of the script's, or of a module of its own."""

    file: str
    number: int
    module: str

    def __str__(self) -> str:
        return f"{shown_path(self.file, self.module)}:{self.number}"


def here() -> Line:
    """Return the line of the script's that is being executed: whatever torch does, it does for that line."""
    frame = sys._getframe(1)  # noqa: SLF001 - the only way to ask
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", ""))


def _is_ours(module: str) -> bool:
    return module in (_PACKAGE, "torch") or module.startswith((f"{_PACKAGE}.", "torch."))
