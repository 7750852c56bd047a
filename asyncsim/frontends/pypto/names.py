"""What can be seen in the code of a kernel before anything runs: unknown names, and that it is a generator."""

from __future__ import annotations

import dis
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.pypto.refusals import NotWrittenError, UnknownNameError, at_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType


def check_names(function: Callable[..., Any]) -> None:
    """Look up every ``module.name`` in the code of a function, where the module is known before it runs.

    Raises:
        UnknownNameError: the dialect does not have it; with the line.

    """
    known = inspect.getclosurevars(function)
    modules = {
        name: each for name, each in {**known.globals, **known.nonlocals}.items() if isinstance(each, ModuleType)
    }
    owner: Any = None
    line = function.__code__.co_firstlineno
    for step in dis.get_instructions(function.__code__):
        line = step.starts_line or line
        if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
            owner = modules.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(owner, ModuleType):
            try:
                owner = getattr(owner, step.argval, None)
            except UnknownNameError as error:
                raise at_line(error, function.__code__.co_filename, line) from None
        else:
            owner = None


def check_runs(function: Callable[..., Any]) -> None:
    """Refuse what runs nothing when it is called: a generator, a coroutine function.

    Raises:
        MisuseError: it is one; with the line of the first ``yield``, or of the function.

    """
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        code = function.__code__
        what, line = "is async", code.co_firstlineno
        if inspect.isgeneratorfunction(function):
            what, line = "yields", _line_of("YIELD_VALUE", code)
        error = NotWrittenError(
            f"{function.__name__} {what}, so a call would run nothing of it; a kernel calls its operations in turn"
        )
        raise at_line(error, code.co_filename, line)


def _line_of(operation: str, code: CodeType) -> int:
    """Return the line of the first such instruction of a function, which has one."""
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = step.starts_line or line
        if step.opname == operation:
            break
    return line
