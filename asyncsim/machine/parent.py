"""What a rank does with its streams: start, join, and let them meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from asyncsim.machine.arguments import shown
from asyncsim.machine.member import Member
from asyncsim.machine.operation import operation
from asyncsim.machine.stream import Stream, StreamBarrier
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import JOIN, START, SYNC
from asyncsim.trace.op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

_Result = TypeVar("_Result")
if TYPE_CHECKING:
    _Operation = Generator[Op, Any, _Result]


class Parent(Member):
    """A rank, or a stream of it, that starts streams; `asyncsim.Rank` adds data and signals."""

    __slots__ = ()

    @operation
    def start(
        self,
        program: Callable[..., Coroutine[Any, Any, _Result]],
        *args: Any,  # noqa: ANN401 - whatever the program takes
        block: str = "",
    ) -> _Operation[Stream[_Result]]:
        """Start a stream: a further task of this rank, which runs ``program(rank, *args)`` with a `Rank` of its own.

        Everything before the start happens before everything in the stream. Each stream must be joined
        in the call that started it.

        Args:
            program: an async function; what it returns, `join` returns.
            args: what it takes after its `Rank`.
            block: the thread block of this rank that it belongs to, by a name: what it does at the scope of a block
                orders the streams of that block alone. By default it is a block of its own.

        Raises:
            MisuseError: it is not a function, or `block` is not a name.

        """
        if not callable(program):
            got = shown(program)
            raise MisuseError(f"rank {self._home}: start({got}); give an async function that takes a Rank first")
        if not isinstance(block, str) or (block and not block.isidentifier()):
            raise MisuseError(f"rank {self._home}: start(..., block={shown(block)}); name a block as a variable: 'b0'")
        stream: Stream[_Result] = Stream(self.actor.stream(next(self._streams), block), program, args)
        self.open_streams.append(stream.actor.name)
        yield Op(self.actor, START, link=stream.actor.name, payload=stream, call=self._number)
        if self.begin is not None:
            self.begin(stream, self.whole)
        return stream

    @operation
    def join(self, stream: Stream[_Result]) -> _Operation[_Result]:
        """Wait until a stream that this actor started has finished, and return what its program returned."""
        name = stream.actor.name if isinstance(stream, Stream) else None
        if name not in self.open_streams:
            got = name or shown(stream)
            raise MisuseError(f"rank {self._home}: join({got}); join a stream that this actor started, once")
        yield Op(self.actor, JOIN, link=name, call=self._number)
        self.open_streams.remove(name)
        return stream.result

    def stream_barrier(self, parties: int) -> StreamBarrier:
        """Return a barrier for so many streams of this rank; each of them awaits ``rank.sync(barrier)``."""
        # No rank has 2**31 streams, and a long run keeps the number in 32 bits.
        if isinstance(parties, bool) or not isinstance(parties, int) or not 0 < parties < 1 << 31:
            got = shown(parties)
            raise MisuseError(f"rank {self._home}: stream_barrier({got}); give the number of streams that meet")
        return StreamBarrier(f"{self.actor.name}/{next(self._barriers)}", self._home, parties)

    @operation
    def sync(self, barrier: StreamBarrier) -> _Operation[None]:
        """Wait until every party of a rank-local barrier has come. It completes no remote write."""
        if not isinstance(barrier, StreamBarrier) or barrier.rank != self._home:
            raise MisuseError(f"rank {self._home}: sync takes a stream barrier of this rank, rank.stream_barrier(n)")
        link = barrier.next(self.actor.name)
        yield Op(self.actor, SYNC, amount=barrier.parties, link=link, call=self._number)
