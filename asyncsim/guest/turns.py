"""Turns: a thread a rank, one of them running at a time, handed over in an order that is always the same.

A thread keeps the turn until it waits for something, or ends. The turn then goes to the lowest rank
that can go on. So what the ranks print, and in which order they meet, does not depend on the system's
scheduler.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_IDLE_ROUNDS = 1_000
"""After so many looks by every rank that changed nothing, whoever polls is taken to wait for ever."""


class StoppedError(BaseException):
    """Ends a rank's thread because the whole run was given up; no ``except Exception`` of a script stops it."""


class Turns:
    """Who runs.

    Args:
        ranks: P.
        stuck: called when nobody can go on; makes it so that somebody can, if only to fail.
        keep, bring: called with a rank when it gives the turn away, and when it has it again.

    """

    def __init__(
        self,
        ranks: int,
        *,
        stuck: Callable[[], None],
        keep: Callable[[int], None],
        bring: Callable[[int], None],
    ) -> None:
        self._ready: list[Callable[[], bool] | None] = [_always] * ranks
        self._wake = [threading.Semaphore(0) for _ in range(ranks)]
        self._over = threading.Event()
        self._stuck = stuck
        self._keep = keep
        self._bring = bring
        self._idle = 0
        self._stopping = False

    def begin(self) -> None:
        """Give the first turn away; called once, by the thread that starts the others."""
        self._hand_on(0)

    def join(self) -> None:
        """Wait until every rank has ended."""
        self._over.wait()

    def stop(self) -> None:
        """Give the run up: each rank ends as soon as it would have the turn."""
        self._stopping = True

    def enter(self, rank: int) -> None:
        """Wait for the first turn of a rank."""
        self._wait(rank)

    def pause(self, rank: int, ready: Callable[[], bool]) -> None:
        """Give the turn away until `ready` says that this rank can go on, and it is its turn.

        Args:
            rank: the caller's, from 0.
            ready: asked whenever a turn is to be given; must not give the turn away itself.

        """
        self._idle = 0
        self._give(rank, ready, first=0)

    def look(self, rank: int) -> None:
        """Let all others have a turn first: this rank polls for what one of them must do."""
        self._idle += 1
        alone = all(other == rank or ready is None or not ready() for other, ready in enumerate(self._ready))
        if alone or self._idle > _IDLE_ROUNDS * len(self._ready):
            self._idle = 0
            self._stuck()
        self._give(rank, _always, first=rank + 1)

    def leave(self, rank: int) -> None:
        """End a rank: the turn goes on, and does not come back."""
        self._idle = 0
        self._keep(rank)
        self._ready[rank] = None
        self._hand_on(0)

    def _give(self, rank: int, ready: Callable[[], bool], *, first: int) -> None:
        self._keep(rank)
        self._ready[rank] = ready
        self._hand_on(first)
        self._wait(rank)

    def _wait(self, rank: int) -> None:
        self._wake[rank].acquire()
        self._ready[rank] = _always
        self._bring(rank)
        if self._stopping:
            raise StoppedError

    def _hand_on(self, first: int) -> None:
        """Wake the next rank that can go on: of those from `first` on, around."""
        if all(ready is None for ready in self._ready):
            self._over.set()
            return
        chosen = self._next(first)
        if chosen is None:
            self._stuck()
            chosen = self._next(first)
        if chosen is None:
            raise RuntimeError("nobody can go on")
        self._wake[chosen].release()

    def _next(self, first: int) -> int | None:
        ranks = len(self._ready)
        for rank in ((first + n) % ranks for n in range(ranks)):
            ready = self._ready[rank]
            if ready is not None and (self._stopping or ready()):
                return rank
        return None


def _always() -> bool:
    return True
