"""What of the code that runs is the author's own: neither asyncsim's, nor a library's."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType

_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *map(sysconfig.get_path, _PATHS)))
"""Folders of what is not the author's, this package first; each with its separator at the end."""


def is_the_authors(code: CodeType) -> bool:
    """Say whether a function is the author's own."""
    file = code.co_filename
    return not file.startswith("<") and not file.startswith(_LIBRARIES)
