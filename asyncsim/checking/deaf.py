"""Deafness to Ctrl-C: the first one ends an exploration with a report, and a second must not lose that report."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Deaf:
    """Has Ctrl-C ignored from `begin` to `end`; only the main thread ever gets it, so elsewhere nothing is done."""

    def __init__(self) -> None:
        """Hear everything yet."""
        self._before: Callable[..., Any] | int | None = None

    def begin(self) -> None:
        """Ignore Ctrl-C from here on."""
        if threading.current_thread() is threading.main_thread() and self._before is None:
            self._before = signal.getsignal(signal.SIGINT)
            if self._before is not None:  # a handler that was not set by Python could not be set again
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(self) -> None:
        """Hear Ctrl-C as before."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
