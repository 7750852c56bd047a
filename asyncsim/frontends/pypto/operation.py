"""An operation of the dialect: something a kernel awaits, though its author writes a plain call."""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from asyncsim.frontends.pypto.refusals import NotWrittenError, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One name of ``pl`` or ``pld`` at which the scheduler may step in.

    Args:
        name: with its module, as messages write it.
        run: the async function behind it.

    """

    name: str
    run: Callable[..., Coroutine[Any, Any, Any]]

    def start(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:  # noqa: ANN401 - whatever the author passes
        """Return the coroutine of one call.

        Raises:
            TypeError: arguments that the operation does not take, or lacks.

        """
        try:
            return self.run(*args, **kwargs)
        except TypeError as error:
            signature = inspect.signature(self.run)
            try:
                signature.bind(*args, **kwargs)
            except TypeError as wrong:
                shown = ", ".join(_parameter(each) for each in signature.parameters.values())
                raise refused(f"{self.name}: {unbound(wrong)}; it is {self.name}({shown})", TypeError) from None
            raise error from None

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse: this call was not rewritten, so nobody awaits it."""
        raise NotWrittenError(
            f"{self.name} is called where no kernel awaits it: in a lambda, in a function that a library calls, "
            "in a property, in an __init__, or outside a kernel; call it in the body of a kernel, or of a function "
            "that a kernel calls"
        )


def unbound(error: TypeError) -> str:
    """Return why arguments do not fit a signature, in the same words under every version of Python."""
    return str(error).replace("required keyword-only argument", "required argument")


def _parameter(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is inspect.Parameter.empty else "=…"
    star = "*, " if parameter.kind is parameter.KEYWORD_ONLY and default == "" else ""
    return f"{star}{parameter.name}{default}"


@types.coroutine
def awaited(coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Await an operation of a rank on behalf of one of the dialect.

    The source lines of an operation are those of the coroutines that lead to it, without the innermost one,
    which is ours. Through this generator, an operation of the dialect is the innermost one.
    """
    return (yield from coroutine)
