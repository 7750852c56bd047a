"""Threads that a rank starts: they know whose they are, and may ask, but not call collectives.

A rank gives its turn away while it waits in a collective. Another thread of its own would go on
meanwhile, beside the other ranks, and what happens would depend on the system's scheduler.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asyncsim.guest.lane import enter_lane, lane

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def threads_known() -> Iterator[None]:
    """Let threads that ranks start while the block runs be known as theirs."""
    thread: Any = threading.Thread
    start = thread.start

    def start_known(self: Any) -> None:  # noqa: ANN401 - a thread
        """Start a thread; if a rank starts it, as the rank's."""
        own, run = lane(), self.run

        def run_known() -> None:
            enter_lane(own)
            run()

        if own is not None:
            self.run = run_known
        start(self)

    thread.start = start_known
    try:
        yield
    finally:
        thread.start = start
