"""Domains: operations of a process that are ordered and completed apart from its others.

A domain is a stream of its process, which does what it is handed and nothing else; so a fence or a quiet in it concerns
what was issued there alone. The process waits while its domain issues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.guest.host import blocking, hosted
from asyncsim.guest.line import at_line, present_line

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from asyncsim.guest.line import Line
    from asyncsim.guest.memory import Memory
    from asyncsim.machine.rank import Rank

    Make = Callable[[Rank], Coroutine[Any, Any, Any]]
    """Makes an operation, of the actor that does it."""


class Domain:
    """One of them.

    Args:
        own: the process.

    """

    def __init__(self, own: Memory) -> None:
        self._meeting = own.rank.stream_barrier(2)
        self._order: tuple[Make, Line] | None = None
        self._result: Any = None
        self._stream = own.do(own.rank.start(self._hosted))

    async def _hosted(self, rank: Rank) -> None:
        await hosted(self._serve, rank)

    def _serve(self, rank: Rank) -> None:
        """Do what is handed over, until nothing is."""
        while True:
            blocking(rank.sync(self._meeting))
            if self._order is None:
                return
            make, line = self._order
            self._result = at_line(line)(blocking, make(rank))
            blocking(rank.sync(self._meeting))

    def run(self, own: Memory, make: Make) -> Any:  # noqa: ANN401 - what the operation gives
        """Do an operation in it.

        Args:
            own: the process.
            make: makes it.

        """
        self._order = (make, present_line())

        async def both(rank: Rank) -> None:
            await rank.sync(self._meeting)
            await rank.sync(self._meeting)

        own.do(both(own.rank))
        return self._result

    def end(self, own: Memory) -> None:
        """Do no more in it."""
        self._order = None

        async def left(rank: Rank) -> None:
            await rank.sync(self._meeting)
            await rank.join(self._stream)

        own.do(left(own.rank))
