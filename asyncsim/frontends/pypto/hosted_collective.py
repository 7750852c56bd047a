"""Collectives that a host function calls between dispatches: every rank runs one, as a dispatch of its own."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.pypto.dtypes import DTYPES
from asyncsim.frontends.pypto.host import Dispatch, HostTensor
from asyncsim.frontends.pypto.operation import Operation, unbound
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.values import Buffer, View, type_of
from asyncsim.guest.host import blocking, hosted, is_hosted
from asyncsim.guest.line import Line, at_line

if TYPE_CHECKING:
    from types import FrameType

    from asyncsim.frontends.pypto.host import HostCall
    from asyncsim.frontends.pypto.session import Session
    from asyncsim.machine.rank import Rank


@dataclass(frozen=True, eq=False)
class Composite:
    """A composite as a function on a device.

    Args:
        name: with its module.
        raw: what runs it.
        line: the host function's, which calls it.

    """

    name: str
    raw: Any
    line: Line

    @property
    def parameters(self) -> dict[str, None]:
        """Its parameters, which no annotations describe."""
        return dict.fromkeys(inspect.signature(self.raw).parameters)

    def called(self, function: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401 - the window
        """Call a function with its arguments.

        Args:
            function: of one argument.
            values: by parameter.

        """
        return function(values)

    async def on_device(self, _: Rank, values: dict[str, Any]) -> Any:  # noqa: ANN401 - the window
        """Run on a device, on the host function's line."""
        return await hosted(self.called, partial(at_line(self.line), lambda given: blocking(self.raw(**given))), values)


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """A collective of ``pld.tensor``: an operation in a kernel, and in the host function a dispatch to every rank.

    Args:
        session: of the script.
        operation: in a kernel.

    """

    session: Session
    operation: Operation

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the author passes
        """Come to it, or dispatch it."""
        host = self.session.host
        if is_hosted() or host is None:
            return self.operation(*args, **kwargs)
        kwargs.pop("core_num", None)  # how many cores of a device share the work
        return _dispatched(host, self.operation, args, kwargs, inspect.currentframe().f_back)  # type: ignore[union-attr,arg-type]


def _dispatched(host: HostCall, operation: Operation, args: Any, kwargs: Any, frame: FrameType) -> Any:  # noqa: ANN401
    name = operation.name
    signature = inspect.signature(operation.run)
    try:
        values = signature.bind_partial(*args, **kwargs).arguments
        if "signal" not in values:
            values["signal"] = _signal(host, values, frame)
        signature.bind(**values)
    except TypeError as error:
        raise refused(f"{name}: {unbound(error)}", TypeError) from None
    for parameter in ("target", "signal"):
        if parameter in values and not isinstance(values[parameter], View):
            raise refused(
                f"{name} expects a DistributedTensor {parameter} (window-bound); got {type_of(values[parameter])}",
                TypeError,
            )
    result = values.get("target", values["signal"])
    devices = host.holders(result.buffer)
    values["signal"] = _shaped(values["signal"], values.get("mode", "mesh"), len(devices))
    place = (frame.f_code.co_filename, frame.f_lineno)
    composite = Composite(name, operation.run, Line(*place, str(frame.f_globals.get("__name__", ""))))
    for device in devices:
        own = {key: _of(name, key, value, device, host.ranks) for key, value in values.items()}
        host.dispatches.append(Dispatch(composite, own, device, place))
    return result


def _signal(host: HostCall, values: dict[str, Any], frame: FrameType) -> View:
    """Return a signal that is made for one call."""
    rows, columns = (2 * (host.ranks - 1), host.ranks) if values.get("mode") == "ring" else (host.ranks, 1)
    buffer = Buffer(max(rows * columns, 1) * 4, (frame.f_code.co_filename, frame.f_lineno))
    return View(buffer, (max(rows, 1), columns), DTYPES["INT32"])


def _shaped(signal: View, mode: str, ranks: int) -> View:
    """Return a signal as a kernel has it: here it may have one dimension, and a ring's one row more."""
    if signal.shape == (ranks,):
        return View(signal.buffer, (ranks, 1), signal.dtype)
    if mode == "ring" and signal.shape == (2 * (ranks - 1) + 1, ranks) and ranks > 1:
        return View(signal.buffer, (2 * (ranks - 1), ranks), signal.dtype)
    return signal


def _of(name: str, parameter: str, value: Any, device: int, ranks: int) -> Any:  # noqa: ANN401 - an argument
    """Return what a rank gets: of a tensor of the script's its slice."""
    if not isinstance(value, HostTensor):
        return value
    if not value.shape or value.shape[0] != ranks:
        raise refused(f"{name} {parameter} takes a tensor with a slice a rank, [{ranks}, ...], got {list(value.shape)}")
    return value[device]
