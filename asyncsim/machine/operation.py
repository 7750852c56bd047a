"""What makes a method of a rank an operation: something to await, which yields an `Op` to whoever drives the kernel."""

from __future__ import annotations

from types import coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from asyncsim.trace.op import Op

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

if TYPE_CHECKING:
    # It is a generator, since a coroutine around it would cost as much again. To a type checker it is a coroutine
    # all the same: then an await that was forgotten is an error before anything runs.
    def operation(
        function: Callable[_Params, Generator[Op, Any, _Result]],
    ) -> Callable[_Params, Coroutine[Op, Any, _Result]]:
        """Return the method as an operation."""
        raise NotImplementedError(function)
else:
    operation = coroutine
