"""Where a function of the author's is written, and what its names mean before it runs."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from asyncsim.frontends.pypto.refusals import NotWrittenError, UnknownNameError, at_line

_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parents[2], *map(sysconfig.get_path, _PATHS)))
"""Folders of what is not the author's, this package first; each with its separator at the end."""
UNKNOWN: Any = object()
"""What a name means that is bound only when the function runs."""


def is_the_authors(code: CodeType) -> bool:
    """Say whether a function is the author's own: neither asyncsim's, nor of a library."""
    file = code.co_filename
    return not file.startswith("<") and not file.startswith(_LIBRARIES)


@lru_cache(maxsize=64)
def _tree(source: str, file: str) -> ast.Module:
    return ast.parse(source, file)


def definition_of(function: FunctionType) -> ast.FunctionDef:
    """Return where a function is written.

    Raises:
        MisuseError: that cannot be found.

    """
    code = function.__code__
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    for node in ast.walk(_tree(source, code.co_filename)):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    raise NotWrittenError(
        f"the source of {function.__qualname__} cannot be read from {code.co_filename}; a kernel must stand in a file"
    )


class Closure:
    """What the names of a function mean depends on its code, and on what its closure holds: equal if both are.

    Args:
        function: the author's.

    """

    __slots__ = ("_code", "_held", "_ids")

    def __init__(self, function: FunctionType) -> None:
        """Look at the cells now: they may hold something else later. What cannot be called is all the same."""
        self._code = function.__code__
        self._held = (function.__globals__, *map(_held, function.__closure__ or ()))  # or an id is used again
        self._ids = tuple(map(id, self._held))

    def __eq__(self, other: object) -> bool:
        """Compare the code, and which objects the cells hold."""
        return isinstance(other, Closure) and self._code == other._code and self._ids == other._ids

    def __hash__(self) -> int:
        """Return the same for equal ones."""
        return hash((self._code, self._ids))


class Scope:
    """What the names of one function mean, as far as that is known before it runs."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef) -> None:
        """Look at what the function binds, and at what its closure holds."""
        self.function = function
        self.file = function.__code__.co_filename
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self._free = {name: cell.cell_contents for name, cell in cells if not _is_empty(cell)}
        self._local = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
        self._local |= {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and _is_bound(node)}
        self._local |= {node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)}

    def meaning(self, node: ast.expr) -> Any:  # noqa: ANN401 - any object of the author's
        """Return what an expression stands for, or `UNKNOWN`."""
        if isinstance(node, ast.Name):
            if node.id in self._free:
                return self._free[node.id]
            if node.id in self._local:
                return UNKNOWN
            namespace = self.function.__globals__
            return namespace.get(node.id, getattr(builtins, node.id, UNKNOWN))
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            if isinstance(owner, ModuleType):
                try:
                    return getattr(owner, node.attr)
                except UnknownNameError as error:
                    raise at_line(error, self.file, node.lineno) from None
                except AttributeError:  # of another module; perhaps it is never come to
                    return UNKNOWN
        return UNKNOWN


def _held(cell: Any) -> Any:  # noqa: ANN401 - types.CellType
    if _is_empty(cell):
        return UNKNOWN
    return cell.cell_contents if callable(cell.cell_contents) or isinstance(cell.cell_contents, ModuleType) else None


def _is_empty(cell: Any) -> bool:  # noqa: ANN401 - types.CellType
    try:
        return cell.cell_contents is cell
    except ValueError:
        return True


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
