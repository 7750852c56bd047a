"""What stands behind an author's callables: partials, methods, objects with ``__call__``, functions of a kernel."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.pypto.refusals import NotWrittenError
from asyncsim.frontends.pypto.scope import is_the_authors

if TYPE_CHECKING:
    from collections.abc import Callable


class AsyncFunction:
    """Marks what a rewritten kernel awaits besides operations: decorated functions of the dialect."""

    start: Callable[..., Any]


class InnerFunction(AsyncFunction):
    """A function that a kernel defines: awaited by the kernel, and callable by what cannot await, such as ``sorted``.

    Args:
        function: its async form.

    """

    __slots__ = ("start",)  # no attribute: a decorator of the author's may copy those of another function to it

    def __init__(self, function: Callable[..., Any]) -> None:
        """Take its name, too."""
        functools.update_wrapper(self, function)
        self.start = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the author's function
        """Call it at once.

        Raises:
            MisuseError: it comes to an operation at which the scheduler may step in.

        """
        where = f"in {self.start.__name__}, which a library calls; call it in the body of a kernel"
        return at_once(self.start, where)(*args, **kwargs)


def at_once(start: Callable[..., Any], where: str) -> Callable[..., Any]:
    """Return what runs a coroutine function to its end in one step: nobody could await it.

    Raises:
        MisuseError: when called: it comes to an operation at which the scheduler may step in.

    """

    def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on
        coroutine = start(*args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as ended:
            return ended.value
        coroutine.close()
        raise NotWrittenError(f"a kernel cannot await an operation {where}")

    return run


def behind(called: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:  # noqa: ANN401 - whatever is called
    """Return what a callable calls, the arguments that it puts first, and those by name; None: it is all there is."""
    if isinstance(called, functools.partial):
        return called.func, called.args, called.keywords
    if inspect.ismethod(called):
        return called.__func__, (called.__self__,), {}
    call = getattr(type(called), "__call__", None)  # noqa: B004 - which, not whether
    if isinstance(call, FunctionType) and is_the_authors(call.__code__):
        return call, (called,), {}
    return None
