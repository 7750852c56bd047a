"""Wires: writes that were issued and have not landed yet, by the rules of `asyncsim.trace.landing`."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from asyncsim.machine.effect import change_cell, satisfied
from asyncsim.machine.memory import Pending
from asyncsim.trace.cells import APPLY, COMPARE
from asyncsim.trace.kinds import (
    CHANGING,
    EFFECTS,
    EXCHANGING,
    FENCING,
    FETCH,
    FETCHING,
    KINDS,
    LAND,
    LATER,
    POLLING,
    QUIETING,
    READING,
    SEEING,
    WHOLE_RANK,
)
from asyncsim.trace.landing import (
    QUIETED,
    Landing,
    Unquiet,
    awaits_to,
    completes_first,
    covers,
    fetched_first,
    goes_first,
    index_of,
    is_counted,
    landings_of,
    same_place,
)
from asyncsim.trace.op import Op
from asyncsim.trace.region import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncsim.machine.memory import Deposit, Memory, Tile
    from asyncsim.trace.late import Model
    from asyncsim.trace.region import Region
    from asyncsim.trace.world import Actor


class _Pending:
    """A landing under way."""

    __slots__ = ("data", "generation", "issuer", "landing", "op", "sequence", "shown", "tile")

    def __init__(  # noqa: PLR0913, PLR0917 - only `_issue` makes one
        self, landing: Landing, issue: Op, generation: int, sequence: int, tile: Tile | None, data: list[_Pending]
    ) -> None:
        self.landing = landing
        self.issuer = issue.actor
        self.generation = generation
        self.sequence = sequence
        self.tile = tile
        self.data = data
        self.shown = False
        link = landing.link
        if landing.cell is not None:
            cell = landing.cell
            self.op = Op(
                landing.actor, LAND, cell.changes, cell, landing.how, landing.amount, call=issue.call, link=link
            )  # fmt: skip
        elif landing.source is not None:
            self.op = Op(landing.actor, FETCH, landing.source.reads, call=issue.call)
        else:
            assert landing.access is not None  # noqa: S101 - for the type checker: data or signal
            self.op = Op(landing.actor, LAND, (landing.access,), call=issue.call, link=link)


class Wires:
    """The effects of operations under a model that is late.

    Args:
        memory: what has landed.
        model: which orders hold.

    """

    late = True

    def __init__(self, memory: Memory, model: Model) -> None:
        self._memory = memory
        self._model = model
        self._pending: dict[int, list[_Pending]] = {}
        self._beside: dict[int, list[list[_Pending]]] = defaultdict(list)
        """The same lists, by rank."""
        self._stirred: set[int] = set()
        """The ranks of which something was issued or has landed since somebody asked what may go."""
        self._by_wire: dict[int, _Pending] = {}
        self._generation: dict[int, int] = {}
        self._unquiet: dict[int, Unquiet] = {}
        self._issued: dict[int, int] = {}
        self._copies: dict[int, list[int]] = defaultdict(list)
        """By actor, which of its operations were copies."""
        self._sequence = 0

    @property
    def table(self) -> dict[str, Callable[[Op], Any]]:
        """What an operation of each kind does at its own step."""
        return dict.fromkeys(KINDS, self.perform)

    def passes(self, op: Op) -> bool:
        """Say whether a wait, poll or quiet can go on now, in the eyes of its actor."""
        own = self._pending.get(op.actor.order, ())
        if op.kind in QUIETING:
            return not self._awaited(op, own) and (op.link != WHOLE_RANK or not any(self._of_rank(op.actor.rank)))
        if op.kind in POLLING:
            return satisfied(op, self.peek(op))
        cell = op.cell
        assert cell is not None  # noqa: S101 - for the type checker: a wait has a cell
        now = self._generation.get(op.actor.order, 0)
        if any(completes_first(each.landing, op, self._model, fenced=each.generation < now) for each in own):
            return False  # it changes the cell at once, which must not overtake what its actor did before
        region = cell.region
        if region is not None and cell.owner == op.actor.rank and op.accesses[0].mode == WRITE:  # L6
            local = (each.landing for each in self._of_rank(op.actor.rank) if each.landing.local)
            if any(covers(landing, region) for landing in local):
                return False
        return op.kind in EXCHANGING or COMPARE[op.how](self.seen(op), op.amount)

    def perform(self, op: Op) -> Any:  # noqa: ANN401 - a tile, a bool or nothing, by kind
        """Do what the operation does at its own step; what lands later becomes pending."""
        kind = op.kind
        if op.actor.wire:
            return self._land(op)
        index = self._issued.get(op.actor.order, 0)
        self._issued[op.actor.order] = index + 1
        if kind in READING:
            return self._view(op.accesses[0].region, op.actor)
        if kind in LATER:
            if is_counted(op):
                self._copies[op.actor.order].append(index)
            return self._issue(op, index)
        if op.cell is not None:
            if kind in CHANGING:
                return change_cell(self._memory, op, op.cell)
            seen = self.seen(op)
            if op.cell.region is not None:
                self._memory.note_read(op.cell.region)
            if op.consume or op.update:
                change_cell(self._memory, op, op.cell)
            return EFFECTS[kind](seen, op)[1]
        if kind in FENCING or (kind in QUIETING and not op.amount):
            self._generation[op.actor.order] = self._generation.get(op.actor.order, 0) + 1
            self._unquiet[op.actor.order] = self._unquiet.get(op.actor.order, QUIETED).after(op, ())
        return None

    def _awaited(self, quiet: Op, own: Sequence[_Pending]) -> bool:
        """Say whether something of its actor is under way that a quiet awaits."""
        if not quiet.amount:
            return bool(own)
        actor = quiet.actor.order
        end = awaits_to(self._issued.get(actor, 0), quiet.amount, self._copies[actor])
        return any(index_of(pending.landing.actor.name) < end for pending in own)

    def arrive(self, op: Op) -> None:
        """A meeting completes nothing, so nothing is noted."""

    def fresh(self) -> list[Op]:
        """Return the landings that have become possible since this was last asked."""
        found = []
        for own in self._pending.values():
            if not own or own[0].issuer.rank not in self._stirred:
                continue
            for place, pending in enumerate(own):
                if not pending.shown and self._may_go(pending, own[:place]):
                    pending.shown = True
                    found.append(pending.op)
        self._stirred.clear()
        return found

    def _issue(self, op: Op, index: int) -> Tile | None:
        """Fix what is fixed at the issue, and let the rest become pending; return the tile, if it is fixed."""
        own = self._pending.get(op.actor.order)
        if own is None:
            own = self._pending[op.actor.order] = []
            self._beside[op.actor.rank].append(own)
        self._stirred.add(op.actor.rank)
        generation = self._generation.get(op.actor.order, 0)
        tile: Tile | None = None
        if op.accesses and (not op.late or op.accesses[-1].mode == READ):  # a copy onto itself leaves nothing to land
            tile = op.payload if op.payload is not None else self._view(op.accesses[0].region, op.actor)
        data: list[_Pending] = []
        unquiet = self._unquiet.get(op.actor.order, QUIETED)
        landings = landings_of(op, index, self._model, unquiet)
        self._unquiet[op.actor.order] = unquiet.after(op, landings)
        for landing in landings:
            self._sequence += 1
            kept = None if tile is None or landing.access is None else _part(tile, landing.access.region).copy()
            pending = _Pending(landing, op, generation, self._sequence, kept, data if landing.after_data else [])
            if landing.cell is None:
                data.append(pending)
            own.append(pending)
            self._by_wire[landing.actor.order] = pending
        return tile

    def _may_go(self, pending: _Pending, older: list[_Pending]) -> bool:
        """Apply L1 to L6; `older` are the pending ones that its actor issued before it."""
        landing, model = pending.landing, self._model
        if pending.op.kind in FETCHING:
            return not any(fetched_first(other.landing, landing, model) for other in older)
        if any(other in older for other in pending.data):  # L1
            return False
        for other in older:
            if goes_first(other.landing, landing, model, fenced=other.generation < pending.generation):
                return False
        return (
            landing.place is None
            or landing.destination != pending.issuer.rank
            or not any(  # L6
                other.landing.local and other.sequence < pending.sequence and same_place(other.landing, landing)
                for other in self._of_rank(pending.issuer.rank)
            )
        )

    def _of_rank(self, rank: int) -> Iterator[_Pending]:
        """Yield what all streams of a rank have under way."""
        return chain.from_iterable(self._beside[rank])

    def _land(self, op: Op) -> Any:  # noqa: ANN401 - the tile of data
        """Take one step of a wire: fetch, or land."""
        pending = self._by_wire[op.actor.order]
        landing = pending.landing
        self._stirred.add(pending.issuer.rank)
        if op.kind in FETCHING:
            tile = self._view(op.accesses[0].region, pending.issuer)
            pending.tile = _part(tile, op.accesses[0].region)
            assert landing.access is not None  # noqa: S101 - for the type checker: what is fetched lands as data
            pending.op = Op(landing.actor, LAND, (landing.access,), call=op.call)
            pending.shown = False
            return pending.tile
        self._pending[pending.issuer.order].remove(pending)
        del self._by_wire[op.actor.order]
        if landing.cell is not None:
            return change_cell(self._memory, op, landing.cell)
        assert landing.access is not None  # noqa: S101 - for the type checker: data or signal
        assert pending.tile is not None  # noqa: S101 - fixed at the issue, or fetched
        self._memory.deposit(landing.access, pending.tile)
        return pending.tile

    def seen(self, op: Op) -> int:
        """Return the value of an operation's cell; to a wait or test with its actor's pending changes, if forwarded."""
        cell = op.cell
        assert cell is not None  # noqa: S101 - for the type checker: the caller knows
        if cell.region is not None:
            return int(self._memory.peek(cell.region, self._seen_landings(cell.region, op.actor)))
        value = self._memory.cells[cell.slot]
        if self._model.forwarding and op.kind in SEEING:
            for pending in self._pending.get(op.actor.order, ()):
                landing = pending.landing
                if landing.cell is not None and landing.cell.slot == cell.slot and not landing.queued:
                    value = cell.wrapped(APPLY[landing.how](value, landing.amount))
        return value

    def peek(self, op: Op) -> Tile:
        """Return what a poll looks at, in the eyes of its actor."""
        region = op.accesses[0].region
        return self._memory.peek(region, self._seen_landings(region, op.actor))

    def _view(self, region: Region, actor: Actor) -> Tile:
        """Return a region in the eyes of an actor."""
        deposits = self._seen_landings(region, actor)
        if not deposits and region.part is None:
            return self._memory.read(region)
        return self._memory.read_over(region, deposits)

    def _seen_landings(self, region: Region, actor: Actor) -> list[Deposit]:
        """Return what an actor sees in a region though it is pending: its rank's local stores, its own if forwarded."""
        seen = [
            pending
            for pending in self._of_rank(actor.rank)
            if self._is_seen(pending, actor) and covers(pending.landing, region)
        ]
        seen.sort(key=lambda pending: pending.sequence)
        return [_deposit(pending) for pending in seen]

    def _is_seen(self, pending: _Pending, actor: Actor) -> bool:
        landing = pending.landing
        if landing.place is None or landing.source is not None or landing.queued:  # a pending copy is not forwarded
            return False
        if landing.local:
            return pending.issuer.rank == actor.rank
        return self._model.forwarding and pending.issuer is actor


def _deposit(pending: _Pending) -> Deposit:
    """Return what is pending as it may land in a window: data, or an update of a word."""
    landing = pending.landing
    if landing.cell is not None:
        return landing.cell.changes[0], Pending(landing.cell, landing.how, landing.amount)
    assert landing.access is not None  # noqa: S101 - for the type checker: it is no signal
    assert pending.tile is not None  # noqa: S101 - likewise: what is seen has its tile
    return landing.access, pending.tile


def _part(tile: Tile, region: Region) -> Tile:
    """Return the elements of a tile that a region stands for: all, or those of one piece."""
    return tile if region.part is None else tile.reshape(-1)[slice(*region.part)]
