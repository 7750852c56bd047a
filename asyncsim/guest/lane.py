"""Which rank the running thread belongs to, where each rank of a guest is a thread."""

from __future__ import annotations

import threading
from typing import Any


class Lane:
    """One rank that runs as a thread; a front end may know more of it.

    Args:
        rank: its number.

    Attributes:
        thread: the identity of the thread that it is; those that it starts have others.
        handlers: what it set with ``signal.signal``, by the number of the signal.

    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.thread = 0
        self.handlers: dict[int, Any] = {}


_present = threading.local()


def lane() -> Any:  # noqa: ANN401 - a `Lane`, or what a front end made of it
    """Return the lane that the present thread belongs to; None: to none."""
    return getattr(_present, "lane", None)


def enter_lane(own: Lane | None) -> None:
    """Let the present thread belong to a lane, or to none."""
    _present.lane = own
