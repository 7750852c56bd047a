"""The functions of a program: what ``@pl.function``, ``@pl.jit`` and ``@pl.program`` make of them."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_type_hints

from asyncsim.frontends.pypto.annotations import Annotation, Dynamic, scalar
from asyncsim.frontends.pypto.compiled import Compiled
from asyncsim.frontends.pypto.dtypes import FunctionType, Level, Role
from asyncsim.frontends.pypto.host import HostTensor
from asyncsim.frontends.pypto.loops import Frame
from asyncsim.frontends.pypto.names import check_names, check_runs
from asyncsim.frontends.pypto.operation import unbound
from asyncsim.frontends.pypto.parameters import bound_again, declared, one_by_one
from asyncsim.frontends.pypto.refusals import NotWrittenError, UnknownNameError, nearest, refused
from asyncsim.frontends.pypto.values import LocalTensor, View, WindowTensor, type_of
from asyncsim.guest.host import hosted, is_hosted, keep, present

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.frontends.pypto.session import Session
    from asyncsim.machine.rank import Rank

HOST, SUB_WORKER = "host", "sub-worker"


@dataclass(frozen=True, eq=False)
class Function:
    """A decorated function: a kernel, an orchestration, or the host function.

    Args:
        session: of the script.
        raw: what the author wrote.
        kind: "host", or what it is for on a device.
        owner: the program that it is a method of; None for a function, or until it is looked up on one.

    """

    session: Session
    raw: Any
    kind: str
    owner: object = None
    known: dict[str, Any] = field(default_factory=dict, repr=False)
    """What is looked up once, for all programs that it is a method of: signatures are slow to make."""

    def __post_init__(self) -> None:
        if self.owner is None:
            check_runs(self.raw)

    def __get__(self, instance: object, owner: type | None = None) -> Function:
        """Return it as a method of a program."""
        return self if instance is None else replace(self, owner=instance)

    @property
    def name(self) -> str:
        """What the author calls it."""
        return str(self.raw.__name__)

    @property
    def signature(self) -> inspect.Signature:
        """The signature of what the author wrote."""
        if "signature" not in self.known:
            self.known["signature"] = inspect.signature(self.raw)
        return self.known["signature"]  # type: ignore[no-any-return]

    @property
    def parameters(self) -> dict[str, Annotation | None]:
        """The parameters with what they take, without `self`."""
        key = "parameters" if self.owner is None else "own parameters"
        if key not in self.known:
            names = list(self.signature.parameters)
            hints = _hints(self.raw)
            found = {name: hints.get(name) for name in (names if self.owner is None else names[1:])}
            self.known[key] = {n: hint if isinstance(hint, Annotation) else None for n, hint in found.items()}
        return self.known[key]  # type: ignore[no-any-return]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter, checked against the annotations.

        Raises:
            RefusedError: there are too many or too few, or one does not fit.

        """
        given = args if self.owner is None else (self.owner, *args)
        try:
            bound = self.signature.bind(*given, **kwargs)
        except TypeError as error:
            raise refused(f"{self.name}: {unbound(error)}", TypeError) from None
        bound.apply_defaults()
        if self.owner is not None:
            del bound.arguments[next(iter(self.signature.parameters))]
        values = one_by_one(bound)
        known = self.extents(values)
        for name in values:
            annotation = self.parameters[declared(name)]
            if annotation is not None:
                where = f"{self.name}: parameter {name}"
                if annotation.kind == "Scalar":
                    values[name] = scalar(where, annotation.dtype, values[name])
                else:
                    values[name] = _fitted(annotation, values[name], known)
                    _check(where, annotation, values[name], known)
        return values

    def extents(self, values: dict[str, Any]) -> dict[str, int]:
        """Return the dynamic extents that arguments settle, by name.

        Args:
            values: by parameter.

        """
        known: dict[str, int] = {}
        for name, value in values.items():
            annotation = self.parameters[declared(name)]
            if annotation is not None and hasattr(value, "shape"):
                annotation.learn(tuple(value.shape), known)
        return known

    def called(self, function: Callable[..., Any], values: dict[str, Any]) -> Any:  # noqa: ANN401 - what it returns
        """Call what was made of it on arguments that were bound: each by place or by name, as it takes them."""
        own = {} if self.owner is None else {next(iter(self.signature.parameters)): self.owner}
        bound = bound_again(self.signature, own | values)
        return function(*bound.args, **bound.kwargs)

    def _called_by_kernel(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - as `called`
        if self.kind == HOST:
            raise refused(f"{self.name} is a host function; a kernel cannot call it")
        if "device" in kwargs:
            raise refused(f"{self.name}: device= belongs into the host function; a kernel calls on its own device")
        return self._framed(self.bind(args, kwargs))

    def _framed(self, values: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
        """Call what the author wrote, with what its arguments settle kept for it."""
        outer = present()
        keep(Frame(self.extents(values)))
        try:
            return self.called(self.raw, values)
        finally:
            keep(outer)

    async def on_device(self, _: Rank, values: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the kernel returns
        """Run on a device, on arguments that were bound."""
        return await hosted(self._framed, values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what the host function goes on with
        """Dispatch it from the host function; call it from a kernel; or, a host function, compile and run it."""
        if is_hosted():
            return self._called_by_kernel(args, kwargs)
        if self.kind == HOST:
            config = kwargs.pop("config", None)
            return self.compile(*args, config=config)(*args, **kwargs)
        host = self.session.host
        if host is None:
            raise NotWrittenError(f"{self.name} runs on a device; call it in a host function, with device=")
        if self.kind == SUB_WORKER:
            return host.on_host(self, self.bind(args, kwargs))
        if "device" not in kwargs and host.ranks > 1:
            raise refused(
                f"{self.name} is called without device=, which means the one device there is, and there are "
                f"{host.ranks}; dispatch one to each rank: {self.name}(..., device=r)"
            )
        device = kwargs.pop("device", 0)
        return host.dispatch(self, self.bind(args, kwargs), device, sys._getframe(1))  # noqa: SLF001 - the author's line

    def compile(self, *args: Any, config: Any = None, **_: object) -> Compiled:  # noqa: ANN401 - a RunConfig
        """Compile a host function for these arguments: ``host_fn.compile(x, y, config=RunConfig(...))``.

        Args:
            args: the tensors and numbers that the program is made for.
            config: its `distributed_config` is taken; None: the default.

        Raises:
            RefusedError: it is no host function.

        """
        if self.kind != HOST:
            raise refused(f"{self.name} is no host function; compile the one under @pl.jit.host")
        return Compiled(self.session, self, self.name, getattr(config, "distributed_config", None), args)


def _hints(function: Any) -> dict[str, Any]:  # noqa: ANN401 - the author's function
    """Return the annotations; those that are texts (``from __future__ import annotations``) are evaluated."""
    hints: dict[str, Any] = dict(function.__annotations__)
    if any(isinstance(hint, str) for hint in hints.values()):
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        try:
            return get_type_hints(function, localns={name: cell.cell_contents for name, cell in cells})
        except (NameError, ValueError, TypeError, AttributeError):
            return {}  # a name of an enclosing function that nobody keeps
    return hints


def _fitted(annotation: Annotation, value: Any, known: dict[str, int]) -> Any:  # noqa: ANN401
    """Return a window in the shape of its parameter, where they differ by extents of 1 alone: [64] for [1, 64]."""
    if not isinstance(value, View) or annotation.shape is None or len(annotation.shape) == len(value.shape):
        return value
    shape = tuple((each.known(known) or 0) if isinstance(each, Dynamic) else each for each in annotation.shape)
    if [each for each in shape if each != 1] != [each for each in value.shape if each != 1]:
        return value
    return replace(value, shape=shape)


def _check(where: str, annotation: Annotation, value: Any, known: dict[str, int]) -> None:  # noqa: ANN401
    """Refuse an argument that its annotation does not take."""
    window = isinstance(value, View | WindowTensor)
    if not window and (annotation.kind == "DistributedTensor" or not isinstance(value, HostTensor | LocalTensor)):
        raise refused(f"{where} takes a {annotation.kind}, got {type_of(value)}", TypeError)
    annotation.check(where, tuple(value.shape), value.dtype, known)


class Program:
    """What ``@pl.program`` makes of a class."""

    def __init__(self, written: type) -> None:
        self.written = written
        self.name = written.__name__
        self.__name__ = written.__name__
        self.__doc__ = written.__doc__

    def host(self) -> Function:
        """Return the host function, as a method of a new instance."""
        found = [name for name, each in vars(self.written).items() if isinstance(each, Function) and each.kind == HOST]
        if len(found) != 1:
            raise refused(
                f"program {self.name} has {len(found)} host functions; give one method "
                "@pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)"
            )
        return getattr(self.written(), found[0])  # type: ignore[no-any-return]

    def prepare(self) -> None:
        """Look at the names in every kernel now, also in those that are never called.

        Raises:
            MisuseError: one of them is unknown.

        """
        for each in vars(self.written).values():
            if isinstance(each, Function) and each.kind != HOST:
                check_names(each.raw)


def program_of(written: object) -> Program:
    """Make a program: ``@pl.program``."""
    if not isinstance(written, type):
        raise refused("@pl.program stands on a class", TypeError)
    return Program(written)


def function_of(session: Session) -> Callable[..., Any]:
    """Return ``pl.function`` of a session."""

    def function(
        raw: Any = None,  # noqa: ANN401 - the author's function, where the decorator has no brackets
        *,
        type: FunctionType = FunctionType.Opaque,  # noqa: A002 - upstream's name
        level: Level | None = None,
        role: Role | None = None,
    ) -> Any:  # noqa: ANN401 - the function, or a decorator
        """Make a method of a program a kernel, an orchestration or the host function."""
        for name, value, right in (("type", type, FunctionType), ("level", level, Level), ("role", role, Role)):
            if value is not None and not isinstance(value, right):
                raise refused(f"pl.function: {name}={value!r}; give one of pl.{right.__name__}", TypeError)
        kind = type.value if level is not Level.HOST else SUB_WORKER if role is Role.SubWorker else HOST
        return Function(session, raw, kind) if raw is not None else lambda each: Function(session, each, kind)

    return function


class Jit:
    """``pl.jit`` (an orchestration), ``pl.jit.incore`` (a kernel), ``pl.jit.host``."""

    def __init__(self, session: Session, kind: str = FunctionType.Orchestration.value) -> None:
        self._session = session
        self._kind = kind

    def __call__(self, raw: Any = None, **_: object) -> Any:  # noqa: ANN401 - the function, or a decorator
        """Decorate, with or without brackets."""
        return self if raw is None else Function(self._session, raw, self._kind)

    def __getattr__(self, name: str) -> Jit:
        """Turn to another kind."""
        kinds = {"incore": FunctionType.InCore.value, "inline": FunctionType.Inline.value, "host": HOST}
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in kinds:
            raise UnknownNameError(f"pl.jit has no {name!r}{nearest(name, kinds)}")
        return Jit(self._session, kinds[name])
