"""Masks for Ctrl-C: the first one ends an exploration with a report, and a second must not lose that report."""

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

_stays_masked: ContextVar[bool] = ContextVar("asyncsim_interrupts_stay_masked", default=False)


class InterruptMask:
    """Ignores Ctrl-C from `begin` to `end`; only the main thread ever gets it, so elsewhere this does nothing."""

    def __init__(self) -> None:
        self._before: Handler | None = None

    def begin(self) -> None:
        """Ignore Ctrl-C from here on."""
        if self._before is None and (before := _handler()) is not None:
            self._before = before
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(self) -> None:
        """Let Ctrl-C interrupt as before; in a block of `interrupts_stay_masked`, when that ends."""
        if self._before is not None:
            if not _stays_masked.get():
                signal.signal(signal.SIGINT, self._before)
            self._before = None


@contextmanager
def interrupts_stay_masked() -> Iterator[None]:
    """Keep masks that begin in this block to its end: a report that was made is still to be printed.

    And while the process ends, if it does: its exit status is known by then.
    """
    before = _handler()
    token = _stays_masked.set(True)
    try:
        yield
    finally:
        _stays_masked.reset(token)
        if before not in (None, signal.SIG_IGN) and _handler() is signal.SIG_IGN:
            atexit.unregister(_mask_interrupts)
            atexit.register(_mask_interrupts)
            signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, which is short, and must not be left half done."""
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


def _mask_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _handler() -> Handler | None:
    """Return the handler of Ctrl-C; None in another thread, or if Python did not set it."""
    return signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
