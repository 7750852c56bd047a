"""Rank: what a kernel can do. Every operation stands at the gate exactly once, before its effect.

`Rank.notify_all` and `Rank.wait_all` stand there once for each of theirs, one after the other.

To stand at the gate is to yield an `Op` to whoever drives this kernel, and to go on with its outcome
when it was chosen. An engine is no more than a loop that sends into a kernel what its last operation
gave, so a kernel does not know which engine it runs on.
"""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from numpy import ndarray

from asyncsim.machine.arguments import (
    atomic_of,
    change_of,
    check_copy,
    no_region,
    pending_of,
    put_of,
    said,
    shown,
    tile_for,
    written_by,
)  # fmt: skip
from asyncsim.machine.operation import operation
from asyncsim.machine.signalling import Signalling
from asyncsim.trace.cells import ATOMIC_ADD
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import (
    FENCE,
    GET,
    LOAD,
    POLL,
    PUT,
    PUT_SIGNAL,
    QUIET,
    REMOTE_LOAD,
    REMOTE_STORE,
    STORE,
    WHOLE_RANK,
)
from asyncsim.trace.op import Op, SyncOp, op_on_data
from asyncsim.trace.region import READ, Cell, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from asyncsim.machine.atomics import Scope
    from asyncsim.machine.memory import Tile

_Result = TypeVar("_Result")
_Atomic = Literal["add", "set"]
_Fence = Literal["acq_rel", "acquire", "release", "sc"]
if TYPE_CHECKING:
    _Operation = Generator[Op, Any, _Result]


class Rank(Signalling):
    """One rank as its kernel sees it; a stream of the rank has one of its own.

    ``id`` and ``size`` are its number and P; ``peers`` the other ranks, ascending; ``call`` the
    number of the present call, from 0. `within` turns to a group, whose name is ``group`` and whose
    ranks, by their numbers in the world, are ``members``. Awaiting anything but these methods in a
    kernel is an error.
    """

    __slots__ = ()

    # Data.

    @operation
    def load(self, region: Region, *, atomic: bool = False) -> _Operation[Tile]:
        """Return a private copy of a region; of a peer's region this is a one-sided remote load.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.
            atomic: read each element atomically against atomic adds and sets, as ``atomic_fetch`` of OpenSHMEM.

        Returns:
            An array of the region's shape and dtype (a numpy scalar for a single element).

        Raises:
            MisuseError: it is no region of this run.

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self._home, "load", region)
        kind = LOAD if region.owner == self._home else REMOTE_LOAD
        accesses = region.atomic(READ) if atomic else region.reads
        tile: Tile = yield op_on_data(self.actor, kind, accesses, None, self._number, False)  # noqa: FBT003
        return tile

    @operation
    def store(self, region: Region, tile: Any, *, atomic: _Atomic | None = None) -> _Operation[None]:  # noqa: ANN401 - numbers are tiles, too
        """Store a tile to a region; of a peer's region this is a one-sided remote store.

        Args:
            region: ``window[...]`` or ``window.at(peer)[...]``.
            tile: an array of exactly the region's shape and dtype; a Python number for a single element.
            atomic: "add" adds element by element instead; "set" stores each element atomically. Either is atomic
                against other atomics of the same dtype, and races with all else.

        Raises:
            MisuseError: it is no region of this run, the tile does not fit it, or it cannot be written so.

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self._home, "store", region)
        kind = STORE if region.owner == self._home else REMOTE_STORE
        accesses = region.writes if atomic is None else atomic_of(self._home, kind, region, atomic)
        if tile.__class__ is not ndarray or tile.dtype != region.dtype or tile.shape != region.shape:
            tile = tile_for(self._home, kind, region, tile)
        yield op_on_data(self.actor, kind, accesses, tile, self._number, self._deferred)

    @operation
    def poll(self, region: Region, predicate: Callable[[Tile], bool]) -> _Operation[Tile]:
        """Park until a region's *data* satisfies a predicate, and return it (flag-in-data protocols).

        Args:
            region: an own region, as a rule: ``window[...]``.
            predicate: takes the tile, says whether to go on; must depend on nothing else.

        A synchronising read: what it orders depends on values, so a kernel that polls is judged by exploration.

        Raises:
            MisuseError: it is no region of this run, `predicate` is no function, or depends on more than the tile.

        """
        if region.__class__ is not Region or region.world is not self._world:
            raise no_region(self._home, "poll", region)
        if not callable(predicate) or iscoroutinefunction(predicate):
            got = "an async function" if callable(predicate) else shown(predicate)
            raise MisuseError(f"rank {self._home}: poll of {region} takes a function of the tile; got {got}")
        op = Op(self.actor, POLL, region.reads, payload=predicate, call=self._number)
        tile: Tile = yield op
        if not op.payload(tile.copy()):
            raise MisuseError(f"rank {self._home}: poll of {region}: the predicate changed its mind on the same tile")
        return tile

    @operation
    def get(self, target: Region, source: Region, *, nbi: bool = False) -> _Operation[None]:
        """Copy a peer's region into an own region.

        Args:
            target: an own region.
            source: ``window.at(peer)[...]``.
            nbi: non-blocking: done only after a `quiet` (under a model in which things land later).

        A get whose source and destination are the same elements is a read.

        Raises:
            MisuseError: they are no regions of this run, the target is not the rank's own, or they differ in shape or
                dtype.

        """
        check_copy(self._home, "get", target, source, self._world)
        if target.owner != self._home:
            raise MisuseError(f"rank {self._home}: get into {target}; a get copies into an own region: window[...]")
        accesses = (*source.reads, *written_by(target, source))
        yield Op(self.actor, GET, accesses, call=self._number, late=bool(nbi), deferred=self._deferred)

    @operation
    def put(
        self,
        target: Region,
        source: Any,  # noqa: ANN401 - an own region, or an array
        *,
        atomic: _Atomic | None = None,
        nbi: bool = False,
    ) -> _Operation[None]:
        """Copy an own region, or a private array, into a peer's region.

        Args:
            target: ``window.at(peer)[...]``.
            source: an own region, or an array, of the target's shape and dtype.
            atomic: "add" adds element by element instead; "set" stores each element atomically. Either is atomic
                against other atomics of the same dtype, and races with all else.
            nbi: non-blocking: an own region is read only when the copy is made, some time up to this
                actor's next `quiet` (under a model in which things land later).

        A put whose source and destination are the same elements is a read.
        """
        accesses, tile = put_of(self._home, PUT, target, source, atomic, self._world)
        late = bool(nbi) and tile is None
        yield Op(
            self.actor, PUT, accesses, payload=tile, call=self._number, late=late, deferred=self._deferred,
            adapter=self._adapter,
        )  # fmt: skip

    @operation
    def put_signal(  # noqa: PLR0913 - a put and a notify in one
        self,
        target: Region,
        source: Any,  # noqa: ANN401 - an own region, or an array
        cell: Cell,
        value: int = 1,
        op: str = ATOMIC_ADD,
        *,
        nbi: bool = False,
    ) -> _Operation[None]:
        """Put, and notify the receiver when this put's own data is there (nothing is said of other puts).

        Args:
            target: ``window.at(peer)[...]``.
            source: an own region, or an array, of the target's shape and dtype.
            cell: ``signal.at(peer)[...]``.
            value: what to add or to set.
            op: the name of an update: `AtomicAdd`, `Set`, …
            nbi: as for `put`.

        Raises:
            MisuseError: as for `put` and `notify`; or the cell is a word, an element of a window.

        """
        accesses, tile = put_of(self._home, PUT_SIGNAL, target, source, None, self._world)
        value = change_of(self._home, PUT_SIGNAL, cell, value, op, self._world)
        if cell.region is not None:
            right = "use a cell of a Signal, or put and then notify the word"
            raise MisuseError(f"rank {self._home}: put_signal notifies no word, {cell}; {right}")
        late = bool(nbi) and tile is None
        step = Op(
            self.actor, PUT_SIGNAL, accesses, cell, op, value, payload=tile, call=self._number, late=late,
            deferred=self._deferred, adapter=self._adapter,
        )  # fmt: skip
        yield step

    # Order of what lands later.

    @operation
    def fence(self, *, order: _Fence | None = None, scope: Scope | None = None) -> _Operation[None]:
        """Order this actor's earlier writes before its later ones, to each destination separately; no get.

        Args:
            order: "acq_rel" (None), "acquire", "release", or "sc": also against other fences that are "sc". It
                means something under ``gpu`` alone.
            scope: between which actors it orders under ``gpu``: "block", "rank" or "world" (None).

        Raises:
            MisuseError: there is no such `order` or `scope`.

        """
        if order is None and scope is None:
            yield Op(self.actor, FENCE, call=self._number)
            return
        ordered, scoped = said(self._home, FENCE, "memory", order, scope)
        yield SyncOp(self.actor, FENCE, call=self._number, order=ordered, scope=scoped)

    @operation
    def quiet(self, *, scope: Literal["stream", "rank"] = "stream", pending: int = 0) -> _Operation[None]:
        """Wait until all outstanding writes and non-blocking gets of this stream have landed.

        Args:
            scope: "rank": those of all streams of the rank, as where its threads share one context of OpenSHMEM.
            pending: of how many copies, the last ones that this stream issued, nothing is awaited, nor of what it
                issued after the first of these; a ``cp.async.bulk.wait_group`` of PTX awaits so. Puts, puts with
                signal and non-blocking gets count. It is no fence, and orders nothing that it does not await.

        Raises:
            MisuseError: there is no such `scope`, or `pending` is no number of copies, or goes with a whole rank.

        """
        if scope not in ("stream", "rank"):
            raise MisuseError(f"rank {self._home}: quiet of scope={scope!r}; use 'stream' or 'rank'")
        most = pending_of(self._home, pending, scope)
        yield Op(self.actor, QUIET, amount=most, call=self._number, link=WHOLE_RANK if scope == "rank" else "")
