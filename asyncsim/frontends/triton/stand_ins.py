"""Names of other libraries that are ours while a script runs: functions of torch, modules that need not be there."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.triton.space import refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MISSING = object()


class StandIn(ModuleType):
    """A module that answers for one that is not there.

    Args:
        name: as it is imported.
        names: what it has; anything else is refused.

    """

    def __init__(self, name: str, names: Mapping[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(names)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        """Refuse what is not known.

        Raises:
            RefusedError: the name is one of the library's, or none at all.

        """
        if name.startswith("__"):
            raise AttributeError(name)
        raise refused(f"{self.__name__}.{name} is not known here")


def unknown(name: str) -> Callable[..., Any]:
    """Return a function that refuses to be called.

    Args:
        name: what it stands for.

    """

    def refuse(*_: Any, **__: Any) -> Any:
        raise refused(f"{name} is not known here")

    return refuse


def refusals(module: Any, name: str) -> dict[str, Any]:
    """Return refusals for all public functions of a module, by name.

    Args:
        module: torch's.
        name: what messages call it.

    """
    return {
        each: unknown(f"{name}.{each}")
        for each, value in vars(module).items()
        if type(value).__name__ == "function" and not each.startswith("_")
        and value.__module__.startswith("torch.distributed")
    }  # fmt: skip


@contextmanager
def modules(named: Mapping[str, ModuleType]) -> Iterator[None]:
    """Let imports find these modules while the block runs."""
    before = {name: sys.modules.get(name) for name in named}
    sys.modules.update(named)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


@contextmanager
def attributes(owner: Any, named: Mapping[str, Any]) -> Iterator[None]:
    """Let an object have these attributes while the block runs.

    Args:
        owner: a module, or a class.
        named: the attributes.

    """
    before = {name: getattr(owner, name, _MISSING) for name in named}
    for name, value in named.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
