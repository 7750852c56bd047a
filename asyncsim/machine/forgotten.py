"""Forgotten awaits: an operation that was made and dropped never came to the gate, so the run is not what it says.

Python tells of a coroutine that is never awaited, and of no generator. So in a run that is looked at, each
operation is wrapped into a coroutine. That is also where `asyncsim.machine.site` finds the line that awaits it.
"""

from __future__ import annotations

import re
import sys
import warnings
from contextlib import contextmanager
from functools import wraps
from inspect import CORO_CREATED, getcoroutinestate, getmembers, isgeneratorfunction
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from asyncsim.machine.rank import Rank
from asyncsim.machine.site import shown_path
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from asyncsim.machine.case import Case


class NoticedRank(Rank):
    """The rank of a run that is looked at: what it does are coroutines."""

    __slots__ = ()


def _as_coroutine(name: str, operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(operation)
    async def awaited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the operation
        return await operation(*args, **kwargs)

    awaited.__qualname__ = f"{Rank.__name__}.{name}"  # wherever it is defined: Python names it so in its warning
    return awaited


for _name, _operation in getmembers(Rank, isgeneratorfunction):
    setattr(NoticedRank, _name, _as_coroutine(_name, _operation))


NoticedRank.__name__ = NoticedRank.__qualname__ = Rank.__name__  # to a kernel, and in what Python says of it


@contextmanager
def noticed(case: Case) -> Iterator[None]:
    """Refuse a kernel that makes an operation in this block, or calls what is async, and never awaits it.

    Python only warns of it, when the coroutine is thrown away. All other warnings go on to the user,
    and all of them where the block fails anyway.

    Raises:
        MisuseError: it did.

    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        depth = sys.get_coroutine_origin_tracking_depth()
        sys.set_coroutine_origin_tracking_depth(max(depth, 1))  # where it was made, each coroutine then knows
        try:
            yield
        except BaseException as error:
            for warning in caught:  # a run that fails must not swallow what was warned of
                if NEVER_AWAITED in str(error) and _WARNED.match(str(warning.message)):
                    continue  # it failed of that
                sys.stderr.write(
                    warnings.formatwarning(warning.message, warning.category, warning.filename, warning.lineno)
                )
            raise
        finally:
            sys.set_coroutine_origin_tracking_depth(depth)
    for warning in caught:
        found = _WARNED.match(str(warning.message))
        if found is not None:
            name, file, line = found.groups()
            kernels_own = file == case.kernel.program.__code__.co_filename
            if name.startswith(_OPERATIONS) or kernels_own:
                raise MisuseError(f"{case.kernel.ref}: {_never_awaited(name, file, int(line))}")
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def forgotten_in(values: Iterable[Any], deep: int = 2) -> str:
    """Name an operation among these values that was made and never awaited, with its line; empty if there is none.

    Args:
        values: of the variables at the place of an error.
        deep: how many levels of lists and tuples are looked into.

    """
    for value in values:
        if isinstance(value, list | tuple):
            if deep and (found := forgotten_in(value, deep - 1)):
                return found
        elif isinstance(value, CoroutineType | GeneratorType) and value.__qualname__.startswith(_OPERATIONS):
            name = value.__qualname__
            if isinstance(value, GeneratorType):
                return _never_awaited(name)
            if getcoroutinestate(value) == CORO_CREATED:
                value.close()  # it is told here, and Python need not warn of it
                origin = value.cr_origin
                return _never_awaited(name, *origin[0][:2]) if origin else _never_awaited(name)
    return ""


NEVER_AWAITED = "was made but never awaited"
_WARNED = re.compile(r"coroutine '(.+?)' was never awaited\n.*File \"(.+)\", line (\d+)", re.DOTALL)
_OPERATIONS = tuple(f"{each.__name__}." for each in Rank.__mro__[:-1])


def _never_awaited(name: str, file: str = "", line: int = 0) -> str:
    """Say of a coroutine or an operation that it was never awaited, where it was made, and what would be right."""
    place = f" at {shown_path(file, '')}:{line}" if file else ""
    method = name.rpartition(".")[2]
    what = f"rank.{method}" if name.startswith(_OPERATIONS) else method
    return f"a {method} {NEVER_AWAITED}{place}; write: await {what}(...)"
