"""An operation of the dialect: a plain call to its author, at which the scheduler may step in."""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.pypto.annotations import Dynamic
from asyncsim.frontends.pypto.refusals import NotWrittenError, refused
from asyncsim.guest.host import blocking, is_hosted

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the author passes
        """Come to it, and return what it gives.

        Raises:
            MisuseError: no kernel is running.
            TypeError: arguments that the operation does not take, or lacks.

        """
        if not is_hosted():
            raise NotWrittenError(
                f"{self.name} is called outside a kernel; call it in a function that is dispatched to a device, or in "
                "one that such a function calls"
            )
        args = tuple(map(_settled, args))  # here, in the kernel: where the operation is awaited, none is running
        kwargs = {name: _settled(value) for name, value in kwargs.items()}
        try:
            coroutine = self.run(*args, **kwargs)
        except TypeError as error:
            signature = inspect.signature(self.run)
            try:
                signature.bind(*args, **kwargs)
            except TypeError as wrong:
                shown = ", ".join(_parameter(each) for each in signature.parameters.values())
                raise refused(f"{self.name}: {unbound(wrong)}; it is {self.name}({shown})", TypeError) from None
            raise error from None
        return blocking(coroutine)


def _settled(value: Any) -> Any:  # noqa: ANN401 - an argument
    """Return an argument with numbers for dynamic extents, as far as they are known."""
    if isinstance(value, Dynamic):
        known = value.known()
        return value if known is None else known
    if isinstance(value, list | tuple) and any(isinstance(each, Dynamic) for each in value):
        return [_settled(each) for each in value]
    return value


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
