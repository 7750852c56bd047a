"""Marks what stands for a function of another package: its parameters are that one's, and described there."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_MARK = "__answers__"


def answers(function: _Function) -> _Function:
    """Mark a function."""
    setattr(function, _MARK, True)
    return function


def answering(*modules: ModuleType) -> dict[str, Any]:
    """Return the marked functions of modules, by name."""
    found = (item for module in modules for item in vars(module).items())
    return {name: value for name, value in found if hasattr(value, _MARK)}
