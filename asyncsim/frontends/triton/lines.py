"""Where in a kernel's source its calls stand: whether a result is used is seen there, and nowhere else.

An atomic whose result nobody uses asks nothing of the word, so more can be proved of it. It is a statement by itself;
or what a device function returns that is called so.
"""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType

_Span = tuple[str, int | None, int | None, int | None, int | None]

_statements: set[_Span] = set()
_returned: set[_Span] = set()
_files: set[str] = set()


def note_calls(tree: ast.AST, file: str) -> None:
    """Take note of the calls in a kernel that are statements, and of those that are returned.

    Args:
        tree: as it is compiled.
        file: of the source.

    """
    _files.add(file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.Return) and isinstance(node.value, ast.Call):
            call = node.value
            span = (file, call.lineno, call.end_lineno, call.col_offset, call.end_col_offset)
            (_statements if isinstance(node, ast.Expr) else _returned).add(span)


def result_is_used() -> bool:
    """Say whether the kernel uses what its innermost call returns."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the call is what is asked for
    while frame is not None:
        span = _span(frame.f_code, frame.f_lasti)
        if span in _statements:
            return False
        if frame.f_code.co_filename in _files and span not in _returned:
            return True
        frame = frame.f_back
    return True


@lru_cache(maxsize=4096)
def _span(code: CodeType, instruction: int) -> _Span:
    positions = list(code.co_positions())[instruction // 2]
    return (code.co_filename, *positions)
