"""Every run of a case on the real machine: the next run differs from the last in its latest choice that can differ.

Plain and slow on purpose: nothing is left out, so nothing can be left out wrongly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Path:
    """Follows a prefix of choices, then always takes the first that is ready; keeps what it could have taken."""

    def __init__(self, prefix: Sequence[int]) -> None:
        """Take the prefix, as indexes among the ready operations."""
        self._prefix = prefix
        self.taken: list[int] = []
        self.offered: list[int] = []

    def begin(self, actors: Sequence[Actor]) -> None:
        """Need to know nothing of the run."""

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the next one of the prefix, or the first."""
        step = len(self.taken)
        index = self._prefix[step] if step < len(self._prefix) else 0
        self.taken.append(index)
        self.offered.append(len(ready))
        return ready[index]


def every_path() -> Iterator[Path]:
    """Yield a scheduler for every run there is; each must have made its run before the next is asked for."""
    prefix: list[int] = []
    while True:
        path = Path(prefix)
        yield path
        prefix = path.taken
        while prefix and prefix[-1] + 1 == path.offered[len(prefix) - 1]:
            prefix.pop()
        if not prefix:
            return
        prefix[-1] += 1
