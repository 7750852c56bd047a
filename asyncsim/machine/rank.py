"""Rank: what a kernel can do. Every async method stands at the gate exactly once, before its effect."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from asyncsim.machine.arguments import (
    adds_of, change_of, check_condition, check_copy, no_region, tile_for, written_by,
)  # fmt: skip
from asyncsim.machine.stream import Stream, StreamBarrier
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.op import (
    ATOMIC_ADD, FENCE, GET, JOIN, LOAD, NOTIFY, POLL, PUT, PUT_SIGNAL, QUIET, REMOTE_LOAD, REMOTE_STORE, START, STORE,
    SYNC, TEST, WAIT, Op,
)  # fmt: skip
from asyncsim.trace.region import Region

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from asyncsim.machine.memory import Tile
    from asyncsim.trace.region import Access, Cell, Condition
    from asyncsim.trace.world import Actor, World

_Result = TypeVar("_Result")


@types.coroutine
def _stand_at_gate(op: Op) -> Generator[Op, Any, Any]:
    """Hand the operation to whoever drives this kernel; go on with its outcome when it was chosen.

    An engine is no more than a loop that sends into a kernel what its last operation gave, so a
    kernel does not know which engine it runs on.
    """
    return (yield op)


class Phase:
    """A label for what happens in a ``with`` block."""

    __slots__ = ("_name", "_outer", "_rank")

    def __init__(self, rank: Rank, name: str) -> None:
        """Remember whose phase it is."""
        if not isinstance(name, str) or not name:
            raise MisuseError(f"rank {rank.id}: phase({name!r}); a phase is named by a short text")
        self._rank = rank
        self._name = name
        self._outer = ""

    def __enter__(self) -> None:
        """Put this label inside those that already hold."""
        self._outer = self._rank.phase_name
        self._rank.phase_name = f"{self._outer}/{self._name}" if self._outer else self._name

    def __exit__(self, *_: object) -> None:
        """Go back to the labels outside."""
        self._rank.phase_name = self._outer


class Rank:
    """One rank as its kernel sees it; a stream of the rank has one of its own.

    ``id`` and ``size`` are its number and P; ``peers`` the other ranks, ascending; ``call`` the
    number of the present call, from 0. Awaiting anything but these methods in a kernel is an error.
    """

    __slots__ = ("_deferred", "_started", "_world", "actor", "call", "id", "open_streams", "peers", "phase_name", "size")

    def __init__(self, actor: Actor, world: World, *, deferred: bool = False) -> None:
        """Act as `actor` in `world`; `deferred`: what it does to peers lands later."""
        self.id = actor.rank
        self.size = world.ranks
        self.peers = tuple(peer for peer in range(world.ranks) if peer != actor.rank)
        self.call = 0
        self.phase_name = ""
        self.actor = actor
        self.open_streams: list[str] = []
        self._started = 0
        self._world = world
        self._deferred = deferred

    def phase(self, name: str) -> Phase:
        """Label what happens in a ``with`` block, for reports and traces."""
        return Phase(self, name)

    # Data.

    async def load(self, region: Region) -> Tile:
        """Return a private copy of a region; of a peer's region this is a one-sided remote load.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.

        Returns:
            An array of the region's shape and dtype (a numpy scalar for a single element).

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self.id, "load", region)
        kind = LOAD if region.owner == self.id else REMOTE_LOAD
        return await _stand_at_gate(Op(self.actor, kind, region.reads, call=self.call))  # type: ignore[no-any-return]

    async def store(self, region: Region, tile: Any, *, atomic: Literal["add"] | None = None) -> None:  # noqa: ANN401
        """Store a tile to a region; of a peer's region this is a one-sided remote store.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.
            tile: an array of exactly the region's shape and dtype; a Python number for a single element.
            atomic: "add" adds element by element instead, atomic against other adds.

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self.id, "store", region)
        kind = STORE if region.owner == self.id else REMOTE_STORE
        accesses = region.writes if atomic is None else adds_of(self.id, kind, region, atomic)
        if tile.__class__ is not np.ndarray or tile.dtype != region.dtype or tile.shape != region.shape:
            tile = tile_for(self.id, kind, region, tile)
        op = Op(self.actor, kind, accesses, payload=tile, call=self.call, deferred=self._deferred)
        await _stand_at_gate(op)

    async def poll(self, region: Region, predicate: Callable[[Tile], bool]) -> Tile:
        """Park until a region's *data* satisfies a predicate, and return it (flag-in-data protocols).

        Args:
            region: an own region, as a rule: ``window[...]``.
            predicate: takes the tile, says whether to go on; must depend on nothing else.

        A synchronising read: what it orders depends on values, so a kernel that polls is judged by exploration.
        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self.id, "poll", region)
        if not callable(predicate):
            raise MisuseError(f"rank {self.id}: poll of {region} takes a function of the tile; got {predicate!r}")
        op = Op(self.actor, POLL, region.reads, payload=predicate, call=self.call)
        return await _stand_at_gate(op)  # type: ignore[no-any-return]

    async def get(self, target: Region, source: Region, *, nbi: bool = False) -> None:
        """Copy a peer's region into an own region.

        Args:
            target: an own region.
            source: ``window.at(peer)[...]``.
            nbi: non-blocking: done only after a `quiet` (under a model in which things land later).

        A get whose source and destination are the same elements is a read.
        """
        check_copy(self.id, "get", target, source, self._world)
        if target.owner != self.id:
            raise MisuseError(f"rank {self.id}: get into {target}; a get copies into an own region: window[...]")
        accesses = (*source.reads, *written_by(target, source))
        late = nbi and self._deferred
        await _stand_at_gate(Op(self.actor, GET, accesses, call=self.call, late=late, deferred=self._deferred))

    async def put(
        self, target: Region, source: Any, *, atomic: Literal["add"] | None = None, nbi: bool = False  # noqa: ANN401
    ) -> None:
        """Copy an own region, or a private array, into a peer's region.

        Args:
            target: ``window.at(peer)[...]``.
            source: an own region, or an array, of the target's shape and dtype.
            atomic: "add" adds element by element instead, atomic against other adds.
            nbi: non-blocking: an own region is read only when the copy is made, some time up to this
                actor's next `quiet` (under a model in which things land later).

        A put whose source and destination are the same elements is a read.
        """
        accesses, tile = self._put(PUT, target, source, atomic)
        late = nbi and self._deferred and tile is None
        op = Op(self.actor, PUT, accesses, payload=tile, call=self.call, late=late, deferred=self._deferred)
        await _stand_at_gate(op)

    async def put_signal(  # noqa: PLR0913 - a put and a notify in one
        self, target: Region, source: Any, cell: Cell, value: int = 1, op: str = ATOMIC_ADD, *, nbi: bool = False  # noqa: ANN401
    ) -> None:
        """Put, and notify the receiver when this put's own data is there (nothing is said of other puts).

        Args:
            target: ``window.at(peer)[...]``.
            source: an own region, or an array, of the target's shape and dtype.
            cell: ``signal.at(peer)[...]``.
            value: what to add or to set.
            op: `AtomicAdd` or `Set`.
            nbi: as for `put`.

        """
        accesses, tile = self._put(PUT_SIGNAL, target, source, None)
        value = change_of(self.id, PUT_SIGNAL, cell, value, op, self._world)
        late = nbi and self._deferred and tile is None
        step = Op(
            self.actor, PUT_SIGNAL, accesses, cell, op, value, payload=tile, call=self.call, late=late,
            deferred=self._deferred,
        )  # fmt: skip
        await _stand_at_gate(step)

    # Signals.

    async def notify(
        self, cell: Cell, value: int = 1, op: str = ATOMIC_ADD, *, order: Literal["release", "relaxed"] = "release"
    ) -> None:
        """Add to a cell of a peer (or an own one), or set it.

        Args:
            cell: ``signal.at(peer)[...]``.
            value: what to add (may be negative) or to set.
            op: `AtomicAdd` or `Set`.
            order: "release": it lands after all that this actor wrote before; "relaxed": ordered by nothing
                but what the memory model orders. Under ``sc`` there is no difference.

        """
        value = change_of(self.id, NOTIFY, cell, value, op, self._world)
        if order not in ("release", "relaxed"):
            raise MisuseError(f"rank {self.id}: notify of {cell}: order={order!r}; use 'release' or 'relaxed'")
        relaxed = order == "relaxed"
        step = Op(self.actor, NOTIFY, (), cell, op, value, call=self.call, relaxed=relaxed, deferred=self._deferred)
        await _stand_at_gate(step)

    async def wait(self, condition: Condition, *, consume: bool = False) -> None:
        """Park until the condition on an own cell holds.

        Args:
            condition: a comparison of a cell: ``signal[peer] >= 1``.
            consume: subtract the compared value as it passes; otherwise the cell stays as it is.

        """
        check_condition(self.id, "wait", condition, self._world)
        cell, how, expected = condition.cell, condition.compare, condition.expected
        await _stand_at_gate(Op(self.actor, WAIT, (), cell, how, expected, bool(consume), call=self.call))

    async def test(self, condition: Condition) -> bool:
        """Say whether the condition on an own cell holds now, without waiting."""
        check_condition(self.id, "test", condition, self._world)
        op = Op(self.actor, TEST, (), condition.cell, condition.compare, condition.expected, call=self.call)
        return await _stand_at_gate(op)  # type: ignore[no-any-return]

    # Order of what lands later.

    async def fence(self) -> None:
        """Order this actor's earlier remote writes before its later ones, to each destination separately."""
        await _stand_at_gate(Op(self.actor, FENCE, call=self.call))

    async def quiet(self) -> None:
        """Wait until all of this actor's outstanding writes have landed."""
        await _stand_at_gate(Op(self.actor, QUIET, call=self.call))

    # Streams.

    async def start(self, program: Callable[..., Coroutine[Any, Any, _Result]], *args: Any) -> Stream[_Result]:  # noqa: ANN401
        """Start a stream: a further task of this rank, which runs ``program(rank, *args)`` with a `Rank` of its own.

        Everything before the start happens before everything in the stream. Each stream must be joined
        in the call that started it.
        """
        if not callable(program):
            raise MisuseError(f"rank {self.id}: start({program!r}); give an async function that takes a Rank first")
        self._started += 1
        stream: Stream[_Result] = Stream(self.actor.stream(self._started), program, args)
        self.open_streams.append(stream.actor.name)
        await _stand_at_gate(Op(self.actor, START, link=stream.actor.name, payload=stream, call=self.call))
        return stream

    async def join(self, stream: Stream[_Result]) -> _Result:
        """Wait until a stream that this actor started has finished, and return what its program returned."""
        name = stream.actor.name if isinstance(stream, Stream) else None
        if name not in self.open_streams:
            raise MisuseError(f"rank {self.id}: join({name or stream!r}); join a stream that this actor started, once")
        await _stand_at_gate(Op(self.actor, JOIN, link=name, call=self.call))
        self.open_streams.remove(name)
        return stream.result

    def stream_barrier(self, parties: int) -> StreamBarrier:
        """Return a barrier for so many streams of this rank; each of them awaits ``rank.sync(barrier)``."""
        if isinstance(parties, bool) or not isinstance(parties, int) or parties < 1:
            raise MisuseError(f"rank {self.id}: stream_barrier({parties!r}); give the number of streams that meet")
        self._started += 1
        return StreamBarrier(f"{self.actor.name}/{self._started}", self.id, parties)

    async def sync(self, barrier: StreamBarrier) -> None:
        """Wait until every party of a rank-local barrier has come. It completes no remote write."""
        if not isinstance(barrier, StreamBarrier) or barrier.rank != self.id:
            raise MisuseError(f"rank {self.id}: sync takes a stream barrier of this rank, rank.stream_barrier(n)")
        link = barrier.next(self.actor.name)
        await _stand_at_gate(Op(self.actor, SYNC, amount=barrier.parties, link=link, call=self.call))

    def _put(
        self, kind: str, target: Region, source: Any, atomic: Literal["add"] | None  # noqa: ANN401
    ) -> tuple[tuple[Access, ...], Tile | None]:
        """Return the accesses of a put, and its tile if the source is a private array."""
        if target.__class__ is not Region or target.world is not self._world:
            raise no_region(self.id, kind, target)
        if source.__class__ is not Region:
            tile = tile_for(self.id, kind, target, source)
            return (target.writes if atomic is None else adds_of(self.id, kind, target, atomic)), tile
        check_copy(self.id, kind, target, source, self._world)
        if source.owner != self.id:
            raise MisuseError(f"rank {self.id}: {kind} from {source}; a put copies from an own region: window[...]")
        written = written_by(target, source) if atomic is None else adds_of(self.id, kind, target, atomic)
        return (*source.reads, *written), None
