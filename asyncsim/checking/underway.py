"""What is under way on a trail: which landings an issue left, and what each of them has to wait for.

The rules L1 to L6 are those of `asyncsim.machine.wires`. Here they are edges from named landings,
also from those that have landed by now: another schedule may not have them in another order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asyncsim.trace.late import landings_of
from asyncsim.trace.op import ATOMIC_ADD, FENCE, FETCH, LAND, QUIET, SET, WAIT
from asyncsim.trace.region import ADD, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.trace.late import Landing, Model
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Region


@dataclass(slots=True)
class _Issued:
    """A landing, who issued it, and the wires it has to wait for."""

    landing: Landing
    actor: str
    generation: int
    fetches_after: list[str] = field(default_factory=list)
    lands_after: list[str] = field(default_factory=list)


class Underway:
    """The landings of all issues on a trail.

    Args:
        model: the memory model.

    """

    def __init__(self, model: Model) -> None:
        """Start with nothing issued."""
        self._model = model
        self._atom = model.atom
        self._issued: list[_Issued] = []
        self._by_wire: dict[str, _Issued] = {}
        self._generation: dict[str, int] = {}

    def take(self, op: Op, index: int) -> list[str]:
        """Note a step, the `index`-th of its actor, and return the wires it leaves landings on."""
        if not self._model.late or op.actor.wire:
            return []
        actor = op.actor.name
        if op.kind == FENCE:
            self._generation[actor] = self._generation.get(actor, 0) + 1
        data: list[str] = []
        for landing in landings_of(op, index, self._atom):
            issued = _Issued(landing, actor, self._generation.get(actor, 0))
            issued.lands_after = [
                other.landing.actor.name for other in self._issued if self._holds_back(other, issued, data)
            ]
            if landing.source is not None and self._model.forwarding:  # L5
                issued.fetches_after = [
                    other.landing.actor.name
                    for other in self._issued
                    if other.actor == actor and _covers(other.landing, landing.source)
                ]
            self._issued.append(issued)
            self._by_wire[landing.actor.name] = issued
            data.append(landing.actor.name)
        return data

    def give_back(self, op: Op, wires: Iterable[str]) -> None:
        """Forget the latest step, which left landings on these wires."""
        if op.kind == FENCE and self._model.late:
            self._generation[op.actor.name] -= 1
        for wire in wires:
            del self._by_wire[wire]
            self._issued.pop()

    def awaited(self, op: Op) -> list[str]:
        """Return the wires that must have landed before a step."""
        if op.kind == FETCH:
            return self._by_wire[op.actor.name].fetches_after
        if op.kind == LAND:
            return self._by_wire[op.actor.name].lands_after
        own = (issued.landing for issued in self._issued if issued.actor == op.actor.name)
        if op.kind == QUIET:
            return [landing.actor.name for landing in own]
        if op.kind == WAIT and op.consume and self._model.place_order and op.cell is not None:
            return [
                landing.actor.name
                for landing in own
                if landing.cell is not None and landing.cell.slot == op.cell.slot and landing.how == SET
            ]
        return []

    def _holds_back(self, older: _Issued, issued: _Issued, data: list[str]) -> bool:
        """Say whether one landing has to wait for an older one."""
        one, other = older.landing, issued.landing
        if older.actor != issued.actor:  # L6
            same_rank = one.actor.rank == other.actor.rank
            return one.local and other.local and same_rank and _same_place(one, other)
        return (
            (other.after_data and one.actor.name in data)  # L1
            or other.release  # L4
            or (older.generation < issued.generation and one.destination == other.destination)  # L3
            or ((self._model.place_order or (one.local and other.local)) and _same_place(one, other))  # L2, L6
        )


def _covers(landing: Landing, region: Region) -> bool:
    access = landing.access
    return access is not None and access.region.slot == region.slot and spans_overlap(access.region.spans, region.spans)


def _same_place(a: Landing, b: Landing) -> bool:
    """Say whether two landings change a common place and do not commute."""
    if a.cell is not None and b.cell is not None:
        return a.cell.slot == b.cell.slot and not a.how == b.how == ATOMIC_ADD
    if a.access is None or b.access is None:
        return False
    return not a.access.mode == b.access.mode == ADD and _covers(a, b.access.region)
