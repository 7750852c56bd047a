"""A guest as a kernel: a blocking function of a dialect, with the memory that the dialect gives it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from asyncsim.guest.host import hosted
from asyncsim.machine.kernel import Kernel
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.rank import Rank
    from asyncsim.trace.declare import Declaration


class GuestProgram:
    """What a kernel has for its program: to all who ask, it is the author's function.

    Args:
        function: blocking; takes what `dialect` makes and, of a kernel with inputs, its input.
        dialect: takes a `Rank` and the views of the kernel's memory.
        inputs: whether the kernel has inputs.

    """

    def __init__(self, function: Callable[..., Any], dialect: Callable[..., Any], *, inputs: bool) -> None:
        self._function = function
        self._dialect = dialect
        self._inputs = inputs
        self.__code__ = function.__code__
        self.__globals__ = function.__globals__
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__signature__ = inspect.Signature([
            inspect.Parameter("rank", inspect.Parameter.POSITIONAL_ONLY),
            inspect.Parameter("given", inspect.Parameter.VAR_POSITIONAL),
            inspect.Parameter("params", inspect.Parameter.VAR_KEYWORD),
        ])  # fmt: skip

    async def __call__(self, rank: Rank, *given: Any, **params: Any) -> Any:  # noqa: ANN401 - whatever the author returns
        """Host the function on one rank; `given` is the input, if there is one, and the views of the memory."""
        own = given[: int(self._inputs)]
        return await hosted(self._function, self._dialect(rank, *given[len(own) :]), *own, **params)


def guest(dialect: Callable[..., Any], *, memory: Sequence[Declaration], **fields: Any) -> Callable[..., Kernel]:  # noqa: ANN401
    """Return a decorator that makes a kernel of a blocking function, for a front end to hand to its authors.

    Args:
        dialect: takes a `Rank` and the views of the memory; its methods are what authors call, by `blocking`.
        memory: what every kernel of this dialect has: `asyncsim.Window`, `asyncsim.Signal`.
        fields: further fields of `asyncsim.Kernel`: inputs, golden, finds, …

    Raises:
        MisuseError: when decorating: what it stands on is no plain function.

    """

    def decorate(function: Callable[..., Any]) -> Kernel:
        if not inspect.isfunction(function) or inspect.iscoroutinefunction(function):
            raise MisuseError(f"{function!r} is no guest; decorate a plain, blocking function")
        program = GuestProgram(function, dialect, inputs=fields.get("inputs") is not None)
        return Kernel(program, memory=tuple(memory), **fields)

    return decorate
