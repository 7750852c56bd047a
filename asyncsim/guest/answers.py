"""Marks what stands for a function of another package: its parameters are that one's, and described there."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Answered(ModuleType):
    """A module of another package, answered."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - nothing is returned
        if name.startswith("__"):
            raise AttributeError(name)
        raise MisuseError(f"{self.__name__}.{name} does not exist, or asyncsim does not answer it")
