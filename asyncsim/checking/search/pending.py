"""Pending writes of an execution: which landings an issue left, and what each of them has to wait for.

The rules L1 to L6 are those of `asyncsim.trace.landing`. Here they are edges from named landings,
also from those that have landed by now: another schedule may not have them in another order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asyncsim.trace.kinds import FENCING, FETCHING, LANDING, QUIETING, WHOLE_RANK
from asyncsim.trace.landing import (
    QUIETED,
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
from asyncsim.trace.op import change_by

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.trace.landing import Landing
    from asyncsim.trace.late import Model
    from asyncsim.trace.op import Op


@dataclass(slots=True)
class _Issued:
    """A landing, its issuer, and the wires it has to wait for."""

    landing: Landing
    actor: str
    generation: int
    fetches_after: list[str] = field(default_factory=list)
    lands_after: list[str] = field(default_factory=list)


class PendingWrites:
    """The landings of all issues on an execution.

    Args:
        model: the memory model.

    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._issued: list[_Issued] = []
        self._by_wire: dict[str, _Issued] = {}
        self._generation: dict[str, int] = {}
        self._unquiet: list[tuple[str, Unquiet]] = []
        """By actor, what was unquiet before each of its steps that may have changed it."""
        self._unquiet_now: dict[str, Unquiet] = {}
        self._steps: dict[str, int] = {}
        self._copies: dict[str, list[int]] = defaultdict(list)
        """By actor, how many steps it took, and which of them were copies."""

    def issue(self, op: Op, index: int) -> list[str]:
        """Note a step, the `index`-th of its actor, and return the wires it leaves landings on.

        Args:
            op: what is done.
            index: from 0.

        """
        if not self._model.late or op.actor.wire:
            return []
        actor = op.actor.name
        self._steps[actor] = index + 1
        if is_counted(op):
            self._copies[actor].append(index)
        if op.kind in FENCING:
            self._generation[actor] = self._generation.get(actor, 0) + 1
        data: list[str] = []
        before = self._unquiet_now.get(actor, QUIETED)
        landings = landings_of(op, index, self._model, before)
        self._unquiet.append((actor, before))
        self._unquiet_now[actor] = before.after(op, landings)
        for landing in landings:
            issued = _Issued(landing, actor, self._generation.get(actor, 0))
            issued.lands_after = [
                other.landing.actor.name for other in self._issued if self._holds_back(other, issued, data)
            ]
            issued.fetches_after = [
                other.landing.actor.name
                for other in self._issued
                if other.actor == actor and fetched_first(other.landing, landing, self._model)
            ]
            self._issued.append(issued)
            self._by_wire[landing.actor.name] = issued
            data.append(landing.actor.name)
        return data

    def undo(self, op: Op, wires: Iterable[str]) -> None:
        """Forget the latest step, which left landings on these wires.

        Args:
            op: what was done.
            wires: as `issue` returned them.

        """
        if not self._model.late or op.actor.wire:
            return
        self._steps[op.actor.name] -= 1
        if is_counted(op):
            self._copies[op.actor.name].pop()
        if op.kind in FENCING:
            self._generation[op.actor.name] -= 1
        actor, before = self._unquiet.pop()
        self._unquiet_now[actor] = before
        for wire in wires:
            del self._by_wire[wire]
            self._issued.pop()

    def wires_before(self, op: Op) -> list[str]:
        """Return the wires that must have landed before a step."""
        if op.kind in FETCHING:
            return self._by_wire[op.actor.name].fetches_after
        if op.kind in LANDING:
            return self._by_wire[op.actor.name].lands_after
        if op.kind in QUIETING and op.link == WHOLE_RANK:
            return [issued.landing.actor.name for issued in self._issued if issued.landing.actor.rank == op.actor.rank]
        own = [issued for issued in self._issued if issued.actor == op.actor.name]
        if op.kind in QUIETING:
            actor = op.actor.name
            end = awaits_to(self._steps.get(actor, 0), op.amount, self._copies[actor])
            wires = [issued.landing.actor.name for issued in own]
            return [wire for wire in wires if index_of(wire) < end]
        now = self._generation.get(op.actor.name, 0)
        first = [
            issued.landing.actor.name
            for issued in own
            if completes_first(issued.landing, op, self._model, fenced=issued.generation < now)
        ]
        return first + self._local_stores_before(op)

    def _local_stores_before(self, op: Op) -> list[str]:
        """Return the wires of the local stores of its rank that an atomic on a word of this rank comes after: L6."""
        region = None if op.cell is None or op.deferred or change_by(op) is None else op.cell.region
        if region is None or region.owner != op.actor.rank:
            return []
        landings = [each.landing for each in self._issued if each.actor != op.actor.name]
        local = [each for each in landings if each.local and each.actor.rank == op.actor.rank]
        return [each.actor.name for each in local if covers(each, region)]

    def is_queued(self, wire: str) -> bool:
        """Return whether a wire carries a signal that its own actor sees no earlier than others."""
        return self._by_wire[wire].landing.queued

    def _holds_back(self, older: _Issued, issued: _Issued, data: list[str]) -> bool:
        """Return whether one landing has to wait for an older one."""
        one, other = older.landing, issued.landing
        if older.actor != issued.actor:  # L6
            return one.local and one.actor.rank == other.actor.rank and same_place(one, other)
        if other.after_data and one.actor.name in data:  # L1
            return True
        return goes_first(one, other, self._model, fenced=older.generation < issued.generation)
