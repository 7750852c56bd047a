"""Deafness to Ctrl-C: the first one ends an exploration with a report, and a second must not lose that report."""

from __future__ import annotations

import atexit
import signal
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from asyncsim.trace.guest import raise_signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Handler = Callable[..., Any] | int

_lasting: ContextVar[bool] = ContextVar("asyncsim_deafness_lasts", default=False)


class Deaf:
    """Has Ctrl-C ignored from `begin` to `end`; only the main thread ever gets it, so elsewhere nothing is done."""

    def __init__(self) -> None:
        self._before: Handler | None = None

    def begin(self) -> None:
        """Ignore Ctrl-C from here on."""
        if self._before is None and (before := _handler()) is not None:
            self._before = before
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(self) -> None:
        """Hear Ctrl-C as before; in a block of `lasting_deafness`, when that ends."""
        if self._before is not None:
            if not _lasting.get():
                signal.signal(signal.SIGINT, self._before)
            self._before = None


@contextmanager
def lasting_deafness() -> Iterator[None]:
    """Let who becomes deaf in this block remain so to its end: a report that was made is still to be printed.

    And while the process ends, if it does: what it leaves with is known by then.
    """
    before = _handler()
    token = _lasting.set(True)
    try:
        yield
    finally:
        _lasting.reset(token)
        if before not in (None, signal.SIG_IGN) and _handler() is signal.SIG_IGN:
            atexit.unregister(_end_deaf)
            atexit.register(_end_deaf)
            signal.signal(signal.SIGINT, before)


@contextmanager
def ctrl_c_afterwards() -> Iterator[None]:
    """Put Ctrl-C off to the end of the block, which is a short one, and must not be left half done."""
    before = _handler()
    if before is None or before is signal.SIG_IGN:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            raise_signal(signal.SIGINT)


def _end_deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _handler() -> Handler | None:
    """Return who gets Ctrl-C; None where nobody here may say so: another thread, or one that Python did not set."""
    return signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
