"""Streams: further tasks of a rank, and the barrier at which they meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from asyncsim.machine.site import module_name, shown_path
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

    def run(self, rank: Any) -> Any:  # noqa: ANN401 - a `Rank`; what an author's function returned
        """Return the coroutine of its life.

        Args:
            rank: the `Rank` that it is handed.

        """
        return self.program(rank, *self.args)

    @property
    def result(self) -> _Result:
        """What the program returned; meaningful once the stream is joined."""
        return self.value  # type: ignore[no-any-return]


class Named(Stream[_Result]):
    """A stream with a name: one actor, which runs a program each time it is started.

    It meets at its door, a barrier of two, whoever joins it, and then who starts it again.
    """

    __slots__ = ("call", "door", "idle", "lasting", "phase_name", "running")

    def __init__(
        self,
        actor: Actor,
        program: Callable[..., Coroutine[Any, Any, _Result]],
        args: tuple[Any, ...],
        *,
        door: StreamBarrier,
        lasting: bool,
    ) -> None:
        """Run ``program(rank, *args)`` as `actor`, which is started for the first time."""
        super().__init__(actor, program, args)
        self.door = door
        self.lasting = lasting
        self.running = True
        """It was started, and is not joined yet."""
        self.idle = False
        """It stands at its door, or comes there."""
        self.call = 0
        """The call in which it was started again, and the phase of who did it."""
        self.phase_name = ""

    async def run(self, rank: Any) -> Any:  # noqa: ANN401 - a `Rank`; it does not return
        """Run one program after the other, each when the stream is started.

        Args:
            rank: the `Rank` that each is handed.

        """
        while True:
            self.value = await started(self.program(rank, *self.args))
            check_joined(rank)
            self._turns(rank, idle=True)
            await rank.sync(self.door)  # with who joins it
            await rank.sync(self.door)  # with who starts it again
            self._turns(rank, idle=False)

    def _turns(self, rank: Any, *, idle: bool) -> None:  # noqa: ANN401 - a `Rank`
        """Tell the run under way that the stream has come to its door, or goes on in the call of its new start."""
        self.idle = idle
        if rank.begin is not None:
            rank.begin(self, rank)

    @property
    def site(self) -> str:
        """Where its program stands, as a place in the source: at its door it is at no line of it."""
        code = getattr(self.program, "__code__", None)
        if code is None:
            return ""
        return f"{shown_path(code.co_filename, module_name(self.program.__globals__))}:{code.co_firstlineno}"


def started(coroutine: Any) -> Any:  # noqa: ANN401 - what an author's function returned
    """Return what a program made, if it can be driven.

    Raises:
        MisuseError: it is not a coroutine.

    """
    if not hasattr(coroutine, "send"):
        kind = type(coroutine).__name__
        raise MisuseError(f"a program returned an object of type {kind} at once; give an async function")
    return coroutine


def check_joined(rank: Any) -> None:  # noqa: ANN401 - a `Rank`, which stands above this page
    """Refuse a program that returned while something of it goes on.

    Raises:
        MisuseError: a stream of it runs, or it is in the middle of something.

    """
    if rank.open_streams:
        names = ", ".join(rank.open_streams)
        raise MisuseError(
            f"rank {rank.id} returns while its stream {names} runs; join each stream: await rank.join(stream)"
        )
    if rank.unfinished:
        raise MisuseError(f"rank {rank.id} returns {rank.unfinished[0]}")


class StreamBarrier:
    """A barrier for streams of one rank, which can be used again and again."""

    __slots__ = ("_rounds", "name", "of", "parties", "rank")

    def __init__(self, name: str, rank: int, parties: int, *, of: str = "") -> None:
        """Let `parties` streams of `rank` meet; `of`: the stream with a name whose door it is."""
        self.of = of
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
