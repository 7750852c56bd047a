"""Streams: further tasks of a rank, and the barrier at which they meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from asyncsim.trace.world import Actor

_Result = TypeVar("_Result")


class Stream(Generic[_Result]):
    """A stream that was started. Join it to get its result."""

    __slots__ = ("actor", "args", "program", "value")

    def __init__(
        self, actor: Actor, program: Callable[..., Coroutine[Any, Any, _Result]], args: tuple[Any, ...]
    ) -> None:
        """Run ``program(rank, *args)`` as `actor`."""
        self.actor = actor
        self.program = program
        self.args = args
        self.value: Any = None

    @property
    def result(self) -> _Result:
        """What the program returned; meaningful once the stream is joined."""
        return self.value  # type: ignore[no-any-return]


class StreamBarrier:
    """A barrier for streams of one rank, which can be used again and again."""

    __slots__ = ("_rounds", "name", "parties", "rank")

    def __init__(self, name: str, rank: int, parties: int) -> None:
        """Let `parties` streams of `rank` meet."""
        self.name = name
        self.rank = rank
        self.parties = parties
        self._rounds: dict[str, int] = {}

    def next(self, actor: str) -> str:
        """Return the name of the meeting that `actor` comes to now."""
        number = self._rounds.get(actor, 0)
        self._rounds[actor] = number + 1
        if len(self._rounds) > self.parties:
            raise MisuseError(f"stream barrier {self.name} is for {self.parties} streams; {actor} is one too many")
        return f"{self.name}#{number}"
