"""Forgotten awaits: an operation that was made and dropped never came to the gate, so the run is not what it says.

Python tells of a coroutine that is never awaited, and of no generator. So in a run that is looked at, each
operation is wrapped into a coroutine. That is also where `asyncsim.machine.site` finds the line that awaits it.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from functools import wraps
from inspect import getmembers, isgeneratorfunction
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from asyncsim.machine.rank import Rank
from asyncsim.machine.site import shown_path
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from asyncsim.machine.case import Case


class NoticedRank(Rank):
    """The rank of a run that is looked at: what it does are coroutines."""

    __slots__ = ()


def _as_coroutine(operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(operation)
    async def awaited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the operation
        return await operation(*args, **kwargs)

    return awaited


for _name, _operation in getmembers(Rank, isgeneratorfunction):
    setattr(NoticedRank, _name, _as_coroutine(_operation))


NoticedRank.__name__ = NoticedRank.__qualname__ = Rank.__name__  # to a kernel, and in what Python says of it


@contextmanager
def noticed(case: Case) -> Iterator[None]:
    """Refuse a kernel that makes an operation in this block and never awaits it.

    Python only warns of it, when the coroutine is thrown away. All other warnings go on to the user,
    and all of them where the block fails anyway.

    Raises:
        MisuseError: it did.

    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except BaseException:
            for warning in caught:  # a run that fails must not swallow what was warned of
                sys.stderr.write(
                    warnings.formatwarning(warning.message, warning.category, warning.filename, warning.lineno)
                )
            raise
    for warning in caught:
        text = str(warning.message)
        if "coroutine 'Rank." in text and "never awaited" in text:
            method = text.partition("'Rank.")[2].partition("'")[0]
            # An operation that was kept is dropped where the kernel is left, and that is a file of ours.
            ours = PurePath(warning.filename).parent == PurePath(__file__).parent
            place = "" if ours else f", at or before {shown_path(warning.filename, '')}:{warning.lineno}"
            raise MisuseError(
                f"{case.kernel.ref}: a {method} was made but never awaited{place}; write: await rank.{method}(...)"
            )
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
