"""Equivalence of schedules: which schedules of a case are the same but for the order of what may be exchanged.

Two schedules show the same behaviour if all operations that conflict come in the same order in both:
Mazurkiewicz, "Trace theory", 1987. Conflict is the dependence relation (`asyncsim.checking.search.dependence`) of every
search here, but for two kinds of pairs: a wait, and a change of its cell that cannot make it
false; and two adds to a cell that stays in its range. Where both can go they commute, so swapping them
leads nowhere else. (Counted, they would give a correct barrier thousands of behaviours: a credit may come
before its wait or during it.)

A behaviour has a number. Each operation gets a hash of its actor, of the operations of that
actor before it, and of the sum of the hashes of all earlier operations that conflict with it. A sum
does not know the order of its parts, and there is a part for every pair, so the hashes are equal
exactly if the orders are, but for collisions: one in 2^64 a pair of behaviours. No hash of Python's
is used, so every process gives the same number.

Left out, unless a search has learnt of it: an overflow that only some order of two adds reaches, and what an
actor that sees its own writes early can tell of their landing. Behaviours that differ in nothing else count as one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from asyncsim.checking.search.cellwise import both_commute
from asyncsim.checking.search.dependence import Dependence
from asyncsim.trace.cells import ADDING
from asyncsim.trace.kinds import EXCHANGING, LANDING, MEETING, POLLING, QUIETING, WAITING
from asyncsim.trace.op import SyncOp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.late import Model
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

_ALL = (1 << 64) - 1
_ODD, _ODDER = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95
"""Multipliers that spread bits: the golden ratio, and Steele and Vigna's for 64 bits (2021)."""


class RecordedChoices:
    """A scheduler that records what another one chooses.

    Attributes:
        ops: the operations that were chosen.
        ready_at_sync: for each step of a rank-local barrier, what was ready with it.

    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._choose = scheduler.choose
        self.ops: list[Op] = []
        self.ready_at_sync: dict[int, tuple[Op, ...]] = {}

    @property
    def choices(self) -> list[str]:
        """The actors that were chosen, by name."""
        return [op.actor.name for op in self.ops]

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self.ops = []
        self.ready_at_sync = {}
        self._scheduler.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Choose as the wrapped scheduler does."""
        op = self._choose(ready)
        if op.kind in MEETING:
            self.ready_at_sync[len(self.ops)] = tuple(ready)
        self.ops.append(op)
        return op


def order_matters(dependence: Dependence, a: Op, b: Op) -> bool:
    """Return whether another order of two operations is another behaviour.

    Args:
        dependence: which operations depend on each other.
        a: an operation.
        b: one of another actor.

    """
    if not dependence.are_dependent(a, b) or (both_commute(a, b) and not dependence.may_overflow(a)):
        return False
    return not (_passes_by(dependence, a, b) or _passes_by(dependence, b, a))


def _passes_by(dependence: Dependence, wait: Op, op: Op) -> bool:
    """Return whether `op` changes the cell of `wait` and neither makes it false nor differs from after it."""
    if wait.kind not in WAITING or wait.kind in EXCHANGING or op.cell is None or op.kind in WAITING:
        return False
    if wait.result or wait.update or (wait.consume and (op.how not in ADDING or op.kind in EXCHANGING)):
        return False
    return not dependence.may_disable(op, wait)


class EquivalenceClasses:
    """Numbers the behaviours of the runs of one case.

    Operations that conflict with the same others are one *class*. Which classes conflict is worked out
    once; a run then costs a look-up and a short sum for each of its operations.

    Args:
        model: the memory model.
        dependence: what a search has learnt of the case; None: nothing. It must not change from here on.

    """

    def __init__(self, model: Model, dependence: Dependence | None = None) -> None:
        self._dependence = dependence or Dependence(model)
        self._late = model.late
        self._fast: dict[Any, int] = {}
        self._classes: dict[Any, int] = {}
        self._examples: list[Op] = []
        self._conflicts: list[list[int]] = []
        self._starts: dict[Any, int] = {}

    def number_of(self, ops: Sequence[Op]) -> int:  # noqa: C901 - what is done in every step is written out
        """Return the number of the behaviour, 64 bits, of a run with these operations in this order."""
        fast, conflicts, late = self._fast, self._conflicts, self._late
        sums = [0] * len(conflicts)
        last: dict[Any, int] = {}
        for op in ops:
            cell = op.cell
            # As in `_key`; inlined, because this is done in every step.
            if late:
                if cell is None and not op.accesses:
                    continue
                key: Any = _late_key(op)
            elif cell is not None:
                key = (cell.slot, op.kind, op.how, op.amount, op.consume, op.accesses)
                if op.__class__ is SyncOp:
                    key += op.said
            elif key := op.accesses:
                if op.kind in POLLING:
                    key = (op.kind, key)
            else:
                continue  # it orders, but in the same way in every schedule
            number = fast.get(key)
            if number is None:
                number = self._class_of(op)
                sums += [0] * (len(conflicts) - len(sums))
            before = 0
            for other in conflicts[number]:
                before += sums[other]
            actor = op.actor
            actor_key = actor.name if late and actor.wire else actor.order
            own = last.get(actor_key)
            if own is None:
                own = self._start(actor_key)
            own = ((own ^ before * _ODD) * _ODDER + 1) & _ALL
            last[actor_key] = own = own ^ own >> 29
            sums[number] += own
        return _spread(sum(map(_spread, last.values())))

    def _start(self, actor_key: int | str) -> int:
        """Return the hash of an actor that has done nothing yet."""
        found = self._starts.get(actor_key)
        if found is None:
            digest = hashlib.sha256(str(actor_key).encode()).digest()
            found = self._starts[actor_key] = int.from_bytes(digest[:8], "big")
        return found

    def _class_of(self, op: Op) -> int:
        """Return the class of an operation that was not seen yet in this form, a new one if it needs it."""
        key = _lasting_key(op, late=self._late)
        number = self._classes.get(key)
        if number is None:
            number = self._classes[key] = len(self._examples)
            mine = [n for n, other in enumerate(self._examples) if order_matters(self._dependence, op, other)]
            if order_matters(self._dependence, op, op):
                mine.append(number)
            for other in mine:
                if other != number:
                    self._conflicts[other].append(number)
            self._conflicts.append(mine)
            self._examples.append(op)
        if all(access.region.part is None for access in op.accesses):
            # Pieces are made anew in each run: remembered by their identity they would fill the memory.
            self._fast[(_late_key if self._late else _key)(op)] = number
        return number


def _key(op: Op) -> Any:  # noqa: ANN401 - a key
    """Return what determines the class of an operation; regions are one object a location, so this is quick."""
    cell = op.cell
    if cell is None:
        return op.accesses if op.kind not in POLLING else (op.kind, op.accesses)
    key = (cell.slot, op.kind, op.how, op.amount, op.consume, op.accesses)
    return key if op.__class__ is not SyncOp else (*key, *op.said)


def _late_key(op: Op) -> Any:  # noqa: ANN401 - a key
    """Return the same where writes land late: there the actor matters, and what lands."""
    issuer = op.actor.name.partition(">")[0]
    link = op.link if op.kind in LANDING or op.kind in QUIETING else ""
    return (_key(op), op.kind, issuer, op.deferred, op.late, link, op.amount)


def _lasting_key(op: Op, *, late: bool) -> Any:  # noqa: ANN401 - a key
    """Return a key that is equal for equal pieces, too."""
    places = tuple((access.region.slot, access.region.spans, access.mode) for access in op.accesses)
    cell = None if op.cell is None else (op.cell.slot, op.kind, op.how, op.amount, op.consume, op.said)
    return (places, cell, op.kind in POLLING, _late_key(op)[1:] if late else None)


def _spread(number: int) -> int:
    """Return 64 well-mixed bits (the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    number &= _ALL
    number = ((number ^ number >> 30) * 0xBF58476D1CE4E5B9) & _ALL
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & _ALL
    return number ^ number >> 31
