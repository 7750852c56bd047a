"""Compiled programs: a host function that can be called, and what a call does.

A call executes the host function, rehearses what it dispatched, runs it once on the simulated machine, in the very
memory of the script's tensors, and notes it for the verdict.
"""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from asyncsim.frontends.pypto.annotations import Dynamic
from asyncsim.frontends.pypto.dispatched import Dispatched, Settings
from asyncsim.frontends.pypto.host import HostCall, HostTensor
from asyncsim.frontends.pypto.launch import Launch
from asyncsim.frontends.pypto.refusals import UnknownNameError, refused
from asyncsim.frontends.pypto.rehearsal import rehearse
from asyncsim.frontends.pypto.session import StuckError
from asyncsim.frontends.pypto.tensors import array_of, is_tensor
from asyncsim.trace.event import COMPLETE

if TYPE_CHECKING:
    from pathlib import Path

    from asyncsim.frontends.pypto.session import Session


class Compiled:
    """What ``ir.compile`` and ``host_fn.compile`` return.

    Args:
        session: of the script.
        host: the host function.
        name: of the program.
        config: a DistributedConfig.
        samples: arguments to compile for; without them the annotations say what is passed.

    Raises:
        AsyncsimError: the program is refused.

    """

    def __init__(self, session: Session, host: Any, name: str, config: Any, samples: tuple[Any, ...]) -> None:  # noqa: ANN401
        """Refuse, before anything runs, what cannot be right."""
        if config is None:
            raise refused(
                f"{name}: how many ranks are there? Give distributed_config=DistributedConfig(device_ids=[0, 1])"
            )
        self._session = session
        self._host = host
        self._name = name
        self._ranks = len(config.device_ids)
        self._folder: Path | None = None
        self._kept = False
        given = [_host_value(value) for value in samples] if samples else _annotated(host)
        if given is not None:
            with redirect_stdout(StringIO()):  # the call is what prints
                launch = self._launch(given)[0]
            rehearse(launch, unknown=True)

    @property
    def output_dir(self) -> Path:
        """A folder that exists until the script has ended; nothing is written to it."""
        if self._folder is None:
            self._folder = self._session.folder()
        return self._folder

    def __call__(self, *args: Any, config: object = None) -> Any:  # noqa: ANN401, ARG002 - the script's tensors
        """Run the program once; the results are in the tensors that were passed.

        Returns:
            The tensor that the host function returns, as it was passed; or None.

        """
        given = [_host_value(value) for value in args]
        launch, returned, call = self._launch(given)
        session = self._session
        run = Settings(session.scheduler, session.memory, session.seed)
        dispatched = Dispatched.of(launch, rehearse(launch), run)
        session.serial = False
        ending = dispatched.run_once()
        dispatched.serial = session.serial
        dispatched.note(session.dispatched)
        if ending != COMPLETE:
            raise StuckError(ending)
        for function, values in call.afterwards:
            function.called(function.raw, {name: _scripts(value) for name, value in values.items()})
        return returned

    def prepare(self, *_: object, **__: object) -> Prepared:
        """Return the program with windows that stay from one call to the next: ``with compiled.prepare() as rt:``."""
        self._kept = True
        return Prepared(self)

    def _launch(self, given: list[Any]) -> tuple[Launch, Any, HostCall]:
        """Execute the host function; return what it dispatches, what it returns, and the call itself."""
        session, host = self._session, self._host
        values = host.bind(tuple(given), {})
        call = HostCall(self._ranks, host.extents(values))
        outer, session.host = session.host, call
        try:
            result = host.called(host.raw, values)
        except TypeError as error:
            raise _no_kernel(error) from None
        finally:
            session.host = outer
        call.check()
        return Launch(call, self._name, session.path, joined=self._kept), _returned(result), call


class Prepared:
    """A program whose windows stay from one call to the next; each call has ended when it returns.

    The script sees what calls on fresh windows give; what stale windows do to the next call is judged beside it.

    Args:
        compiled: the program.

    """

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, *args: Any, config: object = None) -> Any:  # noqa: ANN401 - the script's tensors
        """Run the program once more."""
        return self._compiled(*args, config=config)

    def close(self) -> None:
        """Give the windows back."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownNameError(f"a prepared program has no {name!r}; call it, rt(x, y), and close it")


def _scripts(value: Any) -> Any:  # noqa: ANN401 - an argument
    """Return a tensor as the script has it: what was passed, or a slice of the same kind."""
    if not isinstance(value, HostTensor) or value.original is not None:
        return getattr(value, "original", value)
    torch = sys.modules.get("torch")
    return value.array if torch is None else torch.from_numpy(value.array)


def _no_kernel(error: TypeError) -> TypeError:
    """Say of a plain function that was called with ``device=`` that it is no kernel; return all else as it is."""
    found = re.fullmatch(r"(.+?)(?:\(\) got an unexpected| takes no) keyword argument(?: 'device'|s)", str(error))
    if found is None:
        return error
    name = found[1].rpartition(".")[2].removesuffix("()")
    better = refused(
        f"{name} is dispatched with device=, and is no kernel; decorate it with "
        "@pl.function(type=...), @pl.jit or @pl.jit.incore",
        TypeError,
    )
    return better.with_traceback(error.__traceback__)  # type: ignore[return-value]  # it is a TypeError, too


def _host_value(value: Any) -> Any:  # noqa: ANN401 - a tensor or a number
    return HostTensor(array_of(value, "an argument"), value) if is_tensor(value) else value


def _annotated(host: Any) -> list[Any] | None:  # noqa: ANN401
    """Return tensors of zeros as the annotations say; None if they do not say enough."""
    made = []
    for hint in host.parameters.values():
        if hint is None or hint.shape is None or hint.dtype is None:
            return None
        if any(isinstance(extent, Dynamic) for extent in hint.shape):
            return None
        made.append(HostTensor(np.zeros(hint.shape, hint.dtype.numpy)))
    return made


def _returned(result: Any) -> Any:  # noqa: ANN401 - what the host function returns
    if isinstance(result, tuple | list):
        return type(result)(_returned(part) for part in result)
    if isinstance(result, HostTensor):
        return result.array if result.original is None else result.original
    return result
