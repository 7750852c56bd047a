"""A ticker: something is looked at now and then while the command works, so that no step has to tell it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PERIOD = 0.2
"""Seconds between two looks."""


@contextmanager
def ticking(look: Callable[[], None]) -> Iterator[None]:
    """Call a function every `PERIOD` seconds while the block runs, from a thread of its own, and never after it.

    Ctrl-C goes to the main thread, as ever.
    """
    over = threading.Event()

    def tick() -> None:
        while not over.wait(PERIOD):
            look()

    thread = threading.Thread(target=tick, name="asyncsim ticker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
