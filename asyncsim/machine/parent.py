"""What a rank does with its streams: start, join, and let them meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from asyncsim.machine.arguments import shown
from asyncsim.machine.member import Member
from asyncsim.machine.operation import operation
from asyncsim.machine.stream import Named, Stream, StreamBarrier
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
        name: str = "",
        lasting: bool = False,
    ) -> _Operation[Stream[_Result]]:
        """Start a stream: a further task of this rank, which runs ``program(rank, *args)`` with a `Rank` of its own.

        Everything before the start happens before everything in the stream. Each stream must be joined
        in the call that started it, unless it is `lasting`.

        A stream with a name is the same actor in every call: ``1.proxy``. To start it again, after it was joined, is
        to let that one actor go on with another program; what it has done and consumed before stays its own. It
        meets who starts and joins it, so in a trace these are `sync`, but for the first start.

        Args:
            program: an async function; what it returns, `join` returns.
            args: what it takes after its `Rank`.
            name: what the stream is called, a Python name; by default its number, another one for each start.
            lasting: it may run on when the call ends. To start it while it runs gives the stream that runs, whatever
                the program. It ends by its own return, or with the run, when every rank has returned from its last
                call, and what is left stands.
            block: the thread block of this rank that it belongs to, by a name: what it does at the scope of a block
                orders the streams of that block alone. By default it is a block of its own.

        Raises:
            MisuseError: it is not a function, `block` or `name` is not a name, a stream of that name runs, or one
                that is lasting has no name.

        """
        if not callable(program):
            got = shown(program)
            raise MisuseError(f"rank {self._home}: start({got}); give an async function that takes a Rank first")
        if not isinstance(block, str) or (block and not block.isidentifier()):
            raise MisuseError(f"rank {self._home}: start(..., block={shown(block)}); name a block as a variable: 'b0'")
        if not isinstance(name, str) or (name and not (name.isidentifier() and name.isascii())):
            raise MisuseError(
                f"rank {self._home}: start(..., name={shown(name)}); name a stream as a variable: 'proxy'"
            )
        if name in self.named:
            known = self.named[name]
            if self._starts_again(known, program, args, block, lasting=lasting):
                yield Op(self.actor, SYNC, amount=2, link=known.door.next(self.actor.name), call=self._number)
            return known
        stream: Stream[_Result] = self._made(program, args, block, name, lasting=lasting)
        if not lasting:
            self.open_streams.append(stream.actor.name)
        yield Op(self.actor, START, link=stream.actor.name, payload=stream, call=self._number)
        if self.begin is not None:
            self.begin(stream, self.whole)
        return stream

    def _made(
        self, program: Callable[..., Coroutine[Any, Any, _Result]], args: tuple[Any, ...], block: str, name: str,
        *, lasting: bool,
    ) -> Stream[_Result]:  # fmt: skip
        """Return a new stream of this actor; a name is kept for later calls."""
        if lasting and not name:
            raise MisuseError(f"rank {self._home}: start(..., lasting=True) without a name; give name='proxy'")
        actor = self.actor.stream(next(self._streams), block, name)
        if not name:
            return Stream(actor, program, args)
        door = StreamBarrier(f"{self.actor.name}/{next(self._barriers)}", self._home, 2, of=actor.name)
        made = self.named[name] = Named(actor, program, args, door=door, lasting=lasting)
        return made

    def _starts_again(
        self, stream: Named[Any], program: Callable[..., Coroutine[Any, Any, Any]], args: tuple[Any, ...], block: str,
        *, lasting: bool,
    ) -> bool:  # fmt: skip
        """Give a stream with a name another program; one that lasts and runs is left as it is, and needs no start."""
        name = stream.actor.name
        if block != stream.actor.block:
            raise MisuseError(f"rank {self._home}: stream {name} stays in the block that it was first started in")
        if stream.running and lasting and stream.lasting:
            return False
        if stream.running:
            raise MisuseError(f"rank {self._home}: start({name}): it runs already; join it first, or make it lasting")
        stream.program, stream.args, stream.lasting = program, args, lasting
        stream.call, stream.phase_name, stream.running = self._number, self.whole.phase_name, True
        if not lasting:
            self.open_streams.append(name)
        return True

    @operation
    def join(self, stream: Stream[_Result]) -> _Operation[_Result]:
        """Wait until a stream that this actor started has finished, and return what its program returned."""
        name = stream.actor.name if isinstance(stream, Stream) else None
        named = isinstance(stream, Named) and stream.running and stream in self.named.values()
        if name not in self.open_streams and not named:
            got = name or shown(stream)
            raise MisuseError(f"rank {self._home}: join({got}); join a stream that this actor started, once")
        if isinstance(stream, Named):  # it goes on, so it is met
            yield Op(self.actor, SYNC, amount=2, link=stream.door.next(self.actor.name), call=self._number)
            stream.running = False
        else:
            yield Op(self.actor, JOIN, link=name, call=self._number)
        if name in self.open_streams:
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
        ends = barrier.of == self.actor.name  # a stream with a name may stand there when the run ends
        yield Op(self.actor, SYNC, amount=barrier.parties, link=link, payload=ends or None, call=self._number)
