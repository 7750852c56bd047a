"""Rank: what a kernel can do. Every async method stands at the gate exactly once, before its effect.

`Rank.notify_all` and `Rank.wait_all` stand there once for each of theirs, one after the other.
"""

from __future__ import annotations

import types
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from asyncsim.machine.arguments import (
    adds_of,
    change_of,
    check_condition,
    check_copy,
    no_region,
    put_of,
    shown,
    tile_for,
    written_by,
)  # fmt: skip
from asyncsim.machine.block import cells_of, conditions_of, notifies, waits
from asyncsim.machine.phase import Phase
from asyncsim.machine.stream import Stream, StreamBarrier
from asyncsim.trace.declare import WORLD
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.op import (
    ATOMIC_ADD,
    FENCE,
    GET,
    JOIN,
    LOAD,
    NOTIFY,
    POLL,
    PUT,
    PUT_SIGNAL,
    QUIET,
    REMOTE_LOAD,
    REMOTE_STORE,
    START,
    STORE,
    SYNC,
    TEST,
    WAIT,
    Op,
)  # fmt: skip
from asyncsim.trace.region import Cell, Condition, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterable

    from asyncsim.machine.calluse import CallUse
    from asyncsim.machine.memory import Tile
    from asyncsim.trace.declare import Group
    from asyncsim.trace.world import Actor, World

_Result = TypeVar("_Result")
_Order = Literal["release", "relaxed"]


@types.coroutine
def _stand_at_gate(op: Op) -> Generator[Op, Any, Any]:
    """Hand the operation to whoever drives this kernel; go on with its outcome when it was chosen.

    An engine is no more than a loop that sends into a kernel what its last operation gave, so a
    kernel does not know which engine it runs on.
    """
    return (yield op)


class Rank:
    """One rank as its kernel sees it; a stream of the rank has one of its own.

    ``id`` and ``size`` are its number and P; ``peers`` the other ranks, ascending; ``call`` the
    number of the present call, from 0. `within` turns to a group, whose name is ``group`` and whose
    ranks, by their numbers in the world, are ``members``. Awaiting anything but these methods in a
    kernel is an error.
    """

    __slots__ = (
        "_barriers", "_deferred", "_home", "_streams", "_whole", "_world", "actor", "call", "group", "id", "members",
        "note", "number", "open_streams", "peers", "phase_name", "size",
    )  # fmt: skip

    def __init__(self, actor: Actor, world: World, *, deferred: bool = False) -> None:
        """Act as `actor` in `world`; `deferred`: what it does to peers lands later."""
        self._home = actor.rank
        self._be(WORLD, world.groups[WORLD])
        self._whole: Rank | None = None  # a rank that led to itself would wait for the garbage collector
        self.calling(0)
        self.phase_name = ""
        self.actor = actor
        self.open_streams: list[str] = []
        self.note: Callable[[Rank, str, dict[str, Any]], None] | None = None
        self._streams = count(1)
        self._barriers = count(1)
        self._world = world
        self._deferred = deferred

    def _be(self, group: str, members: tuple[int, ...]) -> None:
        """Take the numbers of a group."""
        self.group = group
        self.members = members
        self.id = members.index(self._home)
        self.size = len(members)
        self.peers = (*range(self.id), *range(self.id + 1, self.size))

    def calling(self, number: int, use: CallUse | None = None) -> None:
        """Begin a call; `use` is told what the kernel does with its number."""
        self.number = number
        # To a kernel it is an integer; one that tells of its use is handed out in a single run.
        self.call: int = number if use is None else use.number(number)  # type: ignore[assignment]

    def within(self, group: Group) -> Rank:
        """Return this rank as a member of a group, for the present call.

        Its ``id``, ``size`` and ``peers`` are numbers of the group, as ``at`` takes them of windows and
        signals that were declared with ``group=``. All else is the same, so composites need not know.
        """
        members = self._world.members(group, self._home)
        team = Rank(self.actor, self._world, deferred=self._deferred)
        team._be(group.name, members)
        team._whole, team._streams, team._barriers = self._whole or self, self._streams, self._barriers
        team.call, team.note, team.open_streams = self.call, self.note, self.open_streams
        team.number = self.number
        return team

    def phase(self, name: str) -> Phase:
        """Label what happens in a ``with`` block, for reports and traces."""
        return Phase(self._whole or self, name)

    def collective(self, name: str, **facts: Any) -> None:  # noqa: ANN401 - texts, numbers, dtypes, tuples of these
        """Say that this rank now takes part in a collective, as every rank must that is in the same group.

        Composites say it; a kernel that writes its collectives by hand may. The n-th collective of a call is
        then compared between the ranks: another name, another fact (op, shape, dtype, root), or none at all
        is the finding *call-mismatch*. Nothing is scheduled, and nothing kept unless the run is recorded.
        """
        if self.note is not None:
            self.note(self, name, facts)

    # Data.

    async def load(self, region: Region) -> Tile:
        """Return a private copy of a region; of a peer's region this is a one-sided remote load.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.

        Returns:
            An array of the region's shape and dtype (a numpy scalar for a single element).

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self._home, "load", region)
        kind = LOAD if region.owner == self._home else REMOTE_LOAD
        # By place here and in the other frequent operations: keywords would double what an Op costs.
        op = Op(self.actor, kind, region.reads, None, "", 0, False, None, self.number)  # noqa: FBT003
        return await _stand_at_gate(op)  # type: ignore[no-any-return]

    async def store(self, region: Region, tile: Any, *, atomic: Literal["add"] | None = None) -> None:  # noqa: ANN401 - numbers are tiles, too
        """Store a tile to a region; of a peer's region this is a one-sided remote store.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.
            tile: an array of exactly the region's shape and dtype; a Python number for a single element.
            atomic: "add" adds element by element instead, atomic against other adds.

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self._home, "store", region)
        kind = STORE if region.owner == self._home else REMOTE_STORE
        accesses = region.writes if atomic is None else adds_of(self._home, kind, region, atomic)
        if tile.__class__ is not np.ndarray or tile.dtype != region.dtype or tile.shape != region.shape:
            tile = tile_for(self._home, kind, region, tile)
        deferred = self._deferred
        op = Op(self.actor, kind, accesses, None, "", 0, False, tile, self.number, False, False, "", deferred)  # noqa: FBT003
        await _stand_at_gate(op)

    async def poll(self, region: Region, predicate: Callable[[Tile], bool]) -> Tile:
        """Park until a region's *data* satisfies a predicate, and return it (flag-in-data protocols).

        Args:
            region: an own region, as a rule: ``window[...]``.
            predicate: takes the tile, says whether to go on; must depend on nothing else.

        A synchronising read: what it orders depends on values, so a kernel that polls is judged by exploration.
        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self._home, "poll", region)
        if not callable(predicate):
            got = shown(predicate)
            raise MisuseError(f"rank {self._home}: poll of {region} takes a function of the tile; got {got}")
        op = Op(self.actor, POLL, region.reads, payload=predicate, call=self.number)
        tile: Tile = await _stand_at_gate(op)
        if not predicate(tile.copy()):
            raise MisuseError(f"rank {self._home}: poll of {region}: the predicate changed its mind on the same tile")
        return tile

    async def get(self, target: Region, source: Region, *, nbi: bool = False) -> None:
        """Copy a peer's region into an own region.

        Args:
            target: an own region.
            source: ``window.at(peer)[...]``.
            nbi: non-blocking: done only after a `quiet` (under a model in which things land later).

        A get whose source and destination are the same elements is a read.
        """
        check_copy(self._home, "get", target, source, self._world)
        if target.owner != self._home:
            raise MisuseError(f"rank {self._home}: get into {target}; a get copies into an own region: window[...]")
        accesses = (*source.reads, *written_by(target, source))
        late = nbi and self._deferred
        await _stand_at_gate(Op(self.actor, GET, accesses, call=self.number, late=late, deferred=self._deferred))

    async def put(
        self,
        target: Region,
        source: Any,  # noqa: ANN401 - an own region, or an array
        *,
        atomic: Literal["add"] | None = None,
        nbi: bool = False,
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
        accesses, tile = put_of(self._home, PUT, target, source, atomic, self._world)
        late = nbi and self._deferred and tile is None
        op = Op(self.actor, PUT, accesses, payload=tile, call=self.number, late=late, deferred=self._deferred)
        await _stand_at_gate(op)

    async def put_signal(  # noqa: PLR0913 - a put and a notify in one
        self,
        target: Region,
        source: Any,  # noqa: ANN401 - an own region, or an array
        cell: Cell,
        value: int = 1,
        op: str = ATOMIC_ADD,
        *,
        nbi: bool = False,
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
        accesses, tile = put_of(self._home, PUT_SIGNAL, target, source, None, self._world)
        value = change_of(self._home, PUT_SIGNAL, cell, value, op, self._world)
        late = nbi and self._deferred and tile is None
        step = Op(
            self.actor, PUT_SIGNAL, accesses, cell, op, value, payload=tile, call=self.number, late=late,
            deferred=self._deferred,
        )  # fmt: skip
        await _stand_at_gate(step)

    # Signals.

    async def notify(self, cell: Cell, value: int = 1, op: str = ATOMIC_ADD, *, order: _Order = "release") -> None:
        """Add to a cell of a peer (or an own one), or set it.

        Args:
            cell: ``signal.at(peer)[...]``.
            value: what to add (may be negative) or to set.
            op: `AtomicAdd` or `Set`.
            order: "release": it lands after all that this actor wrote before; "relaxed": ordered by nothing
                but what the memory model orders. Under ``sc`` there is no difference.

        """
        known = cell.__class__ is Cell and cell.world is self._world and value.__class__ is int and op == ATOMIC_ADD
        if not (known and cell.low <= value <= cell.high):
            value = change_of(self._home, NOTIFY, cell, value, op, self._world)
        relaxed = order != "release"
        if relaxed and order != "relaxed":
            raise MisuseError(f"rank {self._home}: notify of {cell}: order={order!r}; use 'release' or 'relaxed'")
        deferred = self._deferred
        step = Op(self.actor, NOTIFY, (), cell, op, value, False, None, self.number, False, relaxed, "", deferred)  # noqa: FBT003
        await _stand_at_gate(step)

    async def wait(self, condition: Condition, *, consume: bool = False) -> None:
        """Park until the condition on an own cell holds.

        Args:
            condition: a comparison of a cell: ``signal[peer] >= 1``.
            consume: subtract the compared value as it passes; otherwise the cell stays as it is.

        """
        if condition.__class__ is not Condition:
            check_condition(self._home, "wait", condition, self._world)
        cell = condition.cell
        if cell.owner != self._home or cell.world is not self._world:
            check_condition(self._home, "wait", condition, self._world)
        how, expected = condition.compare, condition.expected
        await _stand_at_gate(Op(self.actor, WAIT, (), cell, how, expected, bool(consume), None, self.number))

    async def notify_all(
        self, cells: Iterable[Cell], value: int = 1, op: str = ATOMIC_ADD, *, order: _Order = "release"
    ) -> None:
        """Notify several cells one after the other: what `notify` in a loop does, in less time.

        Each notify is a step of its own; what others do can come between, as it can in the loop. No cell: no step.

        Args:
            cells: ``signal.at(peer)[...]`` of each. All are checked before the first is notified.
            value: what to add to each (may be negative) or to set each to.
            op: `AtomicAdd` or `Set`.
            order: as for `notify`.

        """
        found, value = cells_of(self._home, cells, value, op, order, self._world)
        await notifies(self.actor, found, op, value, self.number, relaxed=order != "release", deferred=self._deferred)

    async def wait_all(self, conditions: Iterable[Condition], *, consume: bool = False) -> None:
        """Park until one condition after the other was met: what `wait` in a loop does, in less time.

        Each wait is a step of its own, as in the loop; nothing says that all hold at one moment.

        Args:
            conditions: comparisons of own cells. All are checked before the first is waited for.
            consume: as for `wait`.

        """
        await waits(self.actor, conditions_of(self._home, conditions, self._world), self.number, consume=bool(consume))

    async def test(self, condition: Condition) -> bool:
        """Say whether the condition on an own cell holds now, without waiting."""
        check_condition(self._home, "test", condition, self._world)
        op = Op(self.actor, TEST, (), condition.cell, condition.compare, condition.expected, call=self.number)
        return await _stand_at_gate(op)  # type: ignore[no-any-return]

    # Order of what lands later.

    async def fence(self) -> None:
        """Order this actor's earlier remote writes before its later ones, to each destination separately."""
        await _stand_at_gate(Op(self.actor, FENCE, call=self.number))

    async def quiet(self) -> None:
        """Wait until all of this actor's outstanding writes have landed."""
        await _stand_at_gate(Op(self.actor, QUIET, call=self.number))

    # Streams.

    async def start(self, program: Callable[..., Coroutine[Any, Any, _Result]], *args: Any) -> Stream[_Result]:  # noqa: ANN401
        """Start a stream: a further task of this rank, which runs ``program(rank, *args)`` with a `Rank` of its own.

        Everything before the start happens before everything in the stream. Each stream must be joined
        in the call that started it.
        """
        if not callable(program):
            got = shown(program)
            raise MisuseError(f"rank {self._home}: start({got}); give an async function that takes a Rank first")
        stream: Stream[_Result] = Stream(self.actor.stream(next(self._streams)), program, args)
        self.open_streams.append(stream.actor.name)
        await _stand_at_gate(Op(self.actor, START, link=stream.actor.name, payload=stream, call=self.number))
        return stream

    async def join(self, stream: Stream[_Result]) -> _Result:
        """Wait until a stream that this actor started has finished, and return what its program returned."""
        name = stream.actor.name if isinstance(stream, Stream) else None
        if name not in self.open_streams:
            got = name or shown(stream)
            raise MisuseError(f"rank {self._home}: join({got}); join a stream that this actor started, once")
        await _stand_at_gate(Op(self.actor, JOIN, link=name, call=self.number))
        self.open_streams.remove(name)
        return stream.result

    def stream_barrier(self, parties: int) -> StreamBarrier:
        """Return a barrier for so many streams of this rank; each of them awaits ``rank.sync(barrier)``."""
        if isinstance(parties, bool) or not isinstance(parties, int) or parties < 1:
            got = shown(parties)
            raise MisuseError(f"rank {self._home}: stream_barrier({got}); give the number of streams that meet")
        return StreamBarrier(f"{self.actor.name}/{next(self._barriers)}", self._home, parties)

    async def sync(self, barrier: StreamBarrier) -> None:
        """Wait until every party of a rank-local barrier has come. It completes no remote write."""
        if not isinstance(barrier, StreamBarrier) or barrier.rank != self._home:
            raise MisuseError(f"rank {self._home}: sync takes a stream barrier of this rank, rank.stream_barrier(n)")
        link = barrier.next(self.actor.name)
        await _stand_at_gate(Op(self.actor, SYNC, amount=barrier.parties, link=link, call=self.number))
