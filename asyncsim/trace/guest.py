"""The author's code as a guest: it may exit, close and raise what it likes, and the verdict still comes.

Kernels, inputs, goldens, predicates and the functions in declarations are somebody else's. While they run, what
would end this process without a word raises instead, so that the message has their line; the output streams are
lent; and whatever they raise is told. A process that is asyncsim's own is shut to its end, for what they started or
registered may run later. What goes round Python (C that exits or crashes) is out of reach.
"""

from __future__ import annotations

import _thread
import dis
import functools
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.lent import Lent, lent

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_Result = TypeVar("_Result")

_LIBRARIES = frozenset((
    *sys.stdlib_module_names, "asyncsim", "click", "importlib", "ml_dtypes", "numpy", "outcome", "rich", "trio",
)) - {"__main__"}  # fmt: skip
"""An error that comes out of one of these is told at the line that called it."""


def told_name(module: str) -> str:
    """Return the name by which a module is told: ``kernels.ring`` for an installed exhibit, too."""
    return module.removeprefix("asyncsim.") if f"{module}.".startswith("asyncsim.kernels.") else module


@functools.cache
def is_library(module: str) -> bool:
    """Say whether a module is Python's, ours, or of a package that is installed."""
    root = told_name(module).partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return root in _LIBRARIES or "site-packages" in file


# ---- what is raised


def said(error: BaseException) -> str:
    """Return the type and the text of an exception; the text is its author's, and may fail."""
    try:
        text = str(error)
    except BaseException as worse:
        if is_ctrl_c(worse):
            raise
        text = f"(it has no text: its __str__ raises {type(worse).__name__})"
    return f"{type(error).__name__}: {text}"


def author_place(error: BaseException) -> tuple[str, int] | None:
    """Return the innermost line of an error that is no library's: the file, and the number; None if there is none."""
    place = None
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if told_name(str(frame.f_globals.get("__name__", ""))).partition(".")[0] not in _LIBRARIES:
            place = (frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return place


def raised(error: BaseException) -> str:
    """Say what was raised, and on which line of the author's."""
    place = author_place(error)
    kind, _, text = said(error).partition(": ")
    where = "" if place is None else f" at line {place[1]} of {os.path.basename(place[0])}"  # noqa: PTH119 - perhaps no path
    return f"{kind}{where}: {text}"


_RAISE = dis.opmap["RAISE_VARARGS"]


def is_ctrl_c(error: BaseException) -> bool:
    """Say whether an exception is Ctrl-C, which comes from without: no statement of the author's raises it.

    Python calls what handles a signal between two instructions, so where a signal came, the author's innermost
    frame is not at a ``raise``.
    """
    step = error.__traceback__
    if not isinstance(error, KeyboardInterrupt) or step is None:
        return isinstance(error, KeyboardInterrupt)
    while step.tb_next is not None:
        step = step.tb_next
    frame = step.tb_frame
    return is_library(str(frame.f_globals.get("__name__", ""))) or frame.f_code.co_code[step.tb_lasti] != _RAISE


def call(what: str, function: Callable[..., _Result], *args: Any) -> _Result:  # noqa: ANN401 - as the function takes them
    """Call a function of the author's.

    Args:
        what: how a message begins: "window 'x': the function that gives its extent".
        function: the function.
        *args: what it is called with.

    Raises:
        MisuseError: it raised, or would have ended the process; the message says on which line.

    """
    try:
        with GUEST:
            return function(*args)
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        raise MisuseError(f"{what} raised {raised(error)}") from error


# ---- what would end the process


def _shut(module: ModuleType, name: str, ends: Callable[..., bool]) -> Callable[..., Any]:
    """Return a function for the place of `module.name`: it raises where that would end the process, or its output.

    Whoever imported it keeps it, and a process that was forked goes its own way; so it looks whether it is to shut.
    """
    real = getattr(module, name)

    def shut(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the function
        if GUEST.here and ends(*args, **kwargs):
            given = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())])
            raise MisuseError(
                f"{module.__name__}.{name}({given}) would end asyncsim, or its output, before the verdict; "
                "leave with return, or raise an exception"
            )
        return real(*args, **kwargs)

    return shut


def _always(*_args: object, **_kwargs: object) -> bool:
    return True


def _deadly(signalnum: int, /) -> bool:
    """Say whether a signal ends a process: if nothing handles it, or, that of Ctrl-C, if nothing of the author's."""
    handler = signal.getsignal(signalnum) if signalnum else None
    if signalnum == signal.SIGINT and callable(handler):
        return is_library(str(getattr(handler, "__module__", "")))
    return handler is signal.SIG_DFL and signalnum not in _HARMLESS


def _kills(pid: int, signal: int, /) -> bool:
    return pid == os.getpid() and _deadly(signal)


def _kills_group(pgid: int, signal: int, /) -> bool:
    return pgid in {0, os.getpgrp()} and _deadly(signal)


def _kills_thread(_thread_id: int, signalnum: int, /) -> bool:
    return _deadly(signalnum)


def _interrupts(signum: int = signal.SIGINT, /) -> bool:
    return _deadly(signum)


def _is_output(fd: int) -> bool:
    return fd in (1, 2)


def _onto_output(_fd: int, fd2: int, *_inheritable: bool, **_named: bool) -> bool:
    return _is_output(fd2)


_HARMLESS = {getattr(signal, name, None) for name in ("SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH")}
_OWN = sys.modules[os.name]
"""What `os` is made of, ``posix`` or ``nt``."""
_EVERY: tuple[tuple[ModuleType, str, Callable[..., bool]], ...] = (
    (os, "_exit", _always),
    (os, "abort", _always),
    (os, "execv", _always),
    (os, "execve", _always),
    (os, "kill", _kills),
    (os, "killpg", _kills_group),
    (os, "close", _is_output),
    (os, "dup2", _onto_output),
    (signal, "raise_signal", _deadly),
    (signal, "pthread_kill", _kills_thread),
    (_thread, "interrupt_main", _interrupts),
)
_DOORS = [
    (module, name, ends)
    for first, name, ends in _EVERY
    for module in ((os, _OWN) if first is os else (first,))
    if hasattr(module, name)  # not every system has each
]


class _Guest:
    """A block in which the author's code runs; blocks may lie in each other, and overlap in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._process = os.getpid()
        self._kept = 0
        self._real: list[Any] = []
        self._streams: tuple[Any, Any] = (None, None)
        self._lent: list[Any] = [None, None]
        self._doors = [(module, name, _shut(module, name, ends)) for module, name, ends in _DOORS]

    @property
    def here(self) -> bool:
        """Whether the author's code runs now, in this process; or may, where it is kept shut."""
        process = os.getpid()
        return self._kept == process or (self._depth > 0 and self._process == process)

    def keep_shut(self) -> None:
        """Stay shut for the rest of this process: threads and exit functions of the author's may run at any time.

        A process that is forked from it is not.
        """
        with self._lock:
            self._kept = os.getpid()
            if not self._depth:
                for module, name, shut in self._doors:
                    setattr(module, name, shut)

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            self._process = os.getpid()
            self._real = [getattr(module, name) for module, name, _ in self._doors]
            for module, name, shut in self._doors:
                setattr(module, name, shut)
            self._streams = sys.stdout, sys.stderr
            self._lent = [_again(known, stream) for known, stream in zip(self._lent, self._streams, strict=True)]
            sys.stdout, sys.stderr = self._lent

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth:
                return
            for (module, name, _shut), real in zip(self._doors, self._real, strict=True):
                setattr(module, name, real)
            sys.stdout, sys.stderr = self._streams
            for stream in self._lent:
                if isinstance(stream, Lent):
                    stream.closed = False  # whoever kept it may go on


def _again(known: Any, stream: Any) -> Any:  # noqa: ANN401 - whatever stands for a stream
    """Return a stream to lend: the same as before, if it is the same stream."""
    return known if isinstance(known, Lent) and known.is_of(stream) else lent(stream)


GUEST = _Guest()
"""``with GUEST:`` stands around whatever is not ours."""

copy_onto: Callable[[int, int], int] = os.dup2
"""Puts a file in the place of another, for asyncsim itself: while the author's code runs, `os.dup2` is shut."""
raise_signal: Callable[[int], None] = signal.raise_signal
"""Raises a signal here, for asyncsim itself: while the author's code runs, `signal.raise_signal` is shut."""
end_process: Callable[[int], NoReturn] = os._exit
"""Ends this process at once, for asyncsim itself: while the author's code runs, `os._exit` is shut."""
