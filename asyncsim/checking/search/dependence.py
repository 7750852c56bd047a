"""The dependence relation of a search, and the order that happens-before is made of.

`are_dependent` is symmetric and by kind, from `asyncsim.trace.conflict`: it decides what wakes a
sleeping operation. `is_ordered` is its sharper, directed form, of which happens-before is made:
it leaves out one direction of one kind of pair. An operation that cannot make a wait false does not
happen after that wait because it was executed after it: moved before it, it changes nothing. (An edge there
would hide races: in ``st x; wait c >= 1 || c += 1; st x`` with c = 1 the two stores would be
ordered whenever the wait came first.) The other direction, from an add to a wait that did not need it,
is always an edge; `asyncsim.checking.search.dpor` decides separately whether it can be reversed.

Two atomic adds are no race, but on floating types their order shows in the sum: here they depend on
each other. Two subtractions from one cell commute, and depend on each other all the same: which of
them keeps a consuming wait from passing decides what may come before it, and sleep sets would lose
that (``ld x; take c >= 1; st x || c -= 1; c -= 1 || ld x; c -= 1; st y || st x`` with c = 1). Cells
whose range can be left are called *tight*: there two adds do not commute (one of the orders may
overflow), and where the cell wraps no wait is monotone.

Two updates of a cell of one kind commute (and, or, xor, min, max as well), but where both may go against what a wait
waits for that changes the cell, they depend on each other as two subtractions do. What returns to its actor what the
cell held depends on every update, and so does a wait that returns it.

Where an actor sees its own writes before they land, what it reads depends on them when they are issued, and
what it adds to memory of its own rank is in one queue with the stores of that rank: `Dependence.order_is_visible`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.checking.search.cellwise import (
    CHOOSING,
    both_commute,
    change_now,
    changes_cell,
    passes_within,
    raises_as_it_passes,
    value_range,
)
from asyncsim.trace.cells import ADDING, ATOMIC_ADD, COMPARE, DOWN, FALLING, RISING, SET, UP, way_of
from asyncsim.trace.conflict import accesses_conflict, conflict, stores_locally
from asyncsim.trace.kinds import (
    CHANGING,
    FENCING,
    FETCHING,
    LANDING,
    LOCAL,
    POLLING,
    QUEUED,
    QUIETING,
    SC,
    SEEING,
    WAITING,
    WHOLE_RANK,
)
from asyncsim.trace.op import order_of
from asyncsim.trace.region import ADD, READ, adds_commute, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from asyncsim.trace.late import Model
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access, Cell

Location = tuple[str, int]
"""A window of a rank, or a cell, by its slot. Operations without a common location do not depend on each other."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a search learns of a case, and has to know from its start.

    Args:
        tight: slots of cells whose range some execution can leave.
        own_adds: actors that add, late, to memory or to a cell of their own rank, each with the location.
        added_by_waits: slots of cells that a wait adds to as it passes: it waits from above, as who takes a lock.

    """

    tight: frozenset[int] = frozenset()
    own_adds: frozenset[tuple[str, Location]] = frozenset()
    added_by_waits: frozenset[int] = frozenset()

    def __or__(self, other: Refinement) -> Refinement:
        return Refinement(
            self.tight | other.tight, self.own_adds | other.own_adds, self.added_by_waits | other.added_by_waits
        )


class Dependence:
    """The dependence relation of one search.

    Args:
        model: the memory model.

    Attributes:
        forwards: an actor sees its own changes before they land.
        refinement: what is known of the case; grows while searching.

    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.forwards = model.late and model.forwarding
        self._keep_versions = model.old is not None
        self.refinement = Refinement()

    def are_dependent(self, a: Op, b: Op) -> bool:
        """Whether two operations of different actors may not commute, or one may enable or disable the other.

        Args:
            a: an operation.
            b: one of another actor.

        """
        if (_only_reads_cell(a) and self.sees_before_landing(a, b)) or (
            _only_reads_cell(b) and self.sees_before_landing(b, a)
        ):
            return False
        if conflict(a, b) or _sums_depend(a, b) or self.order_is_visible(a, b) or self.order_is_visible(b, a):
            return True
        if _quiet_awaits(a, b) or _quiet_awaits(b, a):
            return True
        if not both_commute(a, b):
            return self._keep_versions and a.kind in FENCING and b.kind in FENCING and order_of(a) == order_of(b) == SC
        if self._keep_versions:  # a read may return what only one of them made, or acquire it
            return True
        return self.may_overflow(a) or self._both_withdraw(a, b)

    def _both_withdraw(self, a: Op, b: Op) -> bool:
        """Whether both updates may go against what a wait waits for that changes their cell."""
        cell = a.cell
        assert cell is not None  # noqa: S101 - for the type checker: an update has a cell
        ways = way_of(a.how, a.amount), way_of(b.how, b.amount)
        return UP not in ways or (cell.slot in self.refinement.added_by_waits and DOWN not in ways)

    def may_overflow(self, op: Op) -> bool:
        """Whether the cell of an operation can leave its range and does not wrap: then an order may end the run."""
        return op.cell is not None and op.cell.slot in self.refinement.tight and not op.cell.wrap

    def sees_before_landing(self, op: Op, landing: Op) -> bool:
        """Whether `landing` brings a signal that the actor of `op` issued, and so saw before it lands.

        A signal that is queued behind a copy is not seen before.

        Args:
            op: an operation of a task.
            landing: an operation, perhaps a landing.

        """
        return self.forwards and _carries_signal(landing) and _issuer_of(landing) == op.actor.name

    def order_is_visible(self, a: Op, b: Op) -> bool:
        """Whether a rank can observe in which order `a` and `b` were issued, before they land.

        That is so for a write that lands late at its own rank and a local store of another stream there: of the
        two, whatever was issued after the store lands after it. For an actor that sees its own writes at once it
        is so for a fetch and what the actor issued after the copy (what it issued before must land first); and,
        once it has a pending late add to its own rank, for what it reads and the landing of such a store, which
        takes the store out from on top of the add.

        Args:
            a: an operation.
            b: one of another actor.

        """
        if a.actor.rank != b.actor.rank:
            return False
        if _lands_on_own_rank(a) and b.deferred and b.accesses and stores_locally(b):
            return _some_conflict(a.accesses[-1:], b.accesses[-1:])
        if not self.forwards:
            return False
        if a.kind in FETCHING and b.deferred and _issuer_of(a) == b.actor.name and not b.late:
            return _some_conflict(a.accesses, b.accesses[-1:])
        if b.kind in LANDING and b.link == LOCAL and (_issuer_of(a), locations_of(b)[0]) in self.refinement.own_adds:
            return not a.late and _some_conflict([access for access in a.accesses if access.mode == READ], b.accesses)
        return False

    def is_ordered(self, earlier: Op, later: Op) -> bool:
        """Whether of two operations of different actors, executed in this order, one happened before the other.

        Args:
            earlier: an operation.
            later: one that was executed after it.

        """
        if not self.are_dependent(earlier, later):
            return False
        if earlier.kind in WAITING and _only_reads_cell(earlier) and not earlier.result:
            return self.may_disable(later, earlier)
        return True

    def may_disable(self, op: Op, wait: Op) -> bool:
        """Whether in some state a wait or poll can pass before `op`, on which it depends, but not after it.

        Args:
            op: an operation that changes what the wait reads.
            wait: a wait, poll or quiet.

        """
        if wait.cell is None or op.cell is None or op.cell.slot != wait.cell.slot:
            return True  # a poll waits for code, a quiet for whatever is pending; and a store writes any word
        how, amount = change_now(op) or (ATOMIC_ADD, 0)
        if how in CHOOSING:  # what is left is what was there, or the amount
            # What the waiting actor has added itself may stand on top of what is set.
            on_top = op.cell is not None and (wait.actor.name, ("cell", op.cell.slot)) in self.refinement.own_adds
            return on_top or not COMPARE[wait.how](amount, wait.amount)
        if how not in ADDING or self._may_wrap(op.cell):
            return how not in ADDING or amount != 0  # of bits nothing is known without the value
        if wait.how in RISING:
            return amount < 0
        if wait.how in FALLING:
            return amount > 0
        return amount != 0

    def _may_wrap(self, cell: Cell | None) -> bool:
        """Whether some execution may take a cell out of its range, to its other end; of a word that is not followed."""
        return cell is not None and cell.wrap and (cell.region is not None or cell.slot in self.refinement.tight)

    def wait_may_pass(self, wait: Op, value: int, others: Iterable[Op]) -> bool:
        """Whether `wait` could pass after some of `others`, all on its cell, on top of `value`.

        An over-approximation: which of them can come together is not examined.

        Args:
            wait: the wait.
            value: of its cell.
            others: operations that change that cell.

        """
        bases, low, high, bits = value_range(value, others)
        if bits:
            return True
        if self._may_wrap(wait.cell) and low < high:
            return True
        return any(passes_within(wait.how, wait.amount, base + low, base + high) for base in bases)

    def refine(self, starts: Sequence[int], ops: Sequence[Op]) -> bool:
        """Learn from executed operations; return whether anything is new.

        As long as no cell is tight, no order of these operations leaves a range.

        Args:
            starts: the value with which each cell begins, by slot.
            ops: the operations of an execution.

        """
        own_adds = set(_own_adds(ops)) if self.forwards else set()
        cells: dict[int, Cell] = {}
        changing: dict[int, list[Op]] = {}
        for op in ops:
            if op.cell is None or op.cell.region is not None:
                continue
            if changes_cell(op) or op.consume or op.update:
                cells[op.cell.slot] = op.cell
                changing.setdefault(op.cell.slot, []).append(op)
        found = set()
        for slot, changes in changing.items():
            bases, low, high, bits = value_range(starts[slot], changes)
            ends = (cells[slot].low, cells[slot].high) if bits else (min(bases), max(bases))
            if ends[1] + high > cells[slot].high or ends[0] + low < cells[slot].low:
                found.add(slot)
        added_by_waits = {op.cell.slot for op in ops if op.cell is not None and raises_as_it_passes(op)}
        known = self.refinement
        self.refinement |= Refinement(frozenset(found), frozenset(own_adds), frozenset(added_by_waits))
        return self.refinement != known


def can_be_disabled(op: Op) -> bool:
    """Whether an operation can be ready, and then no longer, without having been executed."""
    return op.kind in WAITING or op.kind in POLLING or is_rank_quiet(op)


def is_rank_quiet(op: Op) -> bool:
    """Whether an operation waits for what is pending of all streams of its rank."""
    return op.kind in QUIETING and op.link == WHOLE_RANK


def _quiet_awaits(quiet: Op, issue: Op) -> bool:
    """Whether one waits for what the other, of another stream of its rank, leaves pending."""
    return is_rank_quiet(quiet) and issue.deferred and issue.actor.rank == quiet.actor.rank


def _only_reads_cell(op: Op) -> bool:
    return op.kind in SEEING and op.kind not in CHANGING and not op.consume and not op.update


def _issuer_of(op: Op) -> str:
    """Return the name of the actor of an operation; of a landing, that of its issuer."""
    return op.actor.name.partition(">")[0]


def _carries_signal(landing: Op) -> bool:
    """Whether a landing brings a signal that an actor may see before it lands."""
    return landing.actor.wire and landing.cell is not None and landing.link != QUEUED


def _lands_on_own_rank(op: Op) -> bool:
    """Whether an issue leaves data to land at its own rank that the rank does not see before."""
    if not op.deferred or not op.accesses:
        return False
    target = op.accesses[-1]
    return target.mode != READ and target.region.owner == op.actor.rank and not stores_locally(op)


def _own_adds(ops: Sequence[Op]) -> Iterator[tuple[str, Location]]:
    """Yield the actors that add late to memory of their own rank, or to a peer's cell that they also read."""
    read = {(op.actor.order, op.cell.slot) for op in ops if op.cell is not None and op.kind in SEEING}
    for op in ops:
        if not op.deferred:
            continue
        target = op.accesses[-1] if op.accesses else None
        if target is not None and (target.mode == ADD or target.word) and target.region.owner == op.actor.rank:
            yield op.actor.name, ("window", op.accesses[-1].region.slot)
        cell = op.cell if op.how != SET else None
        if cell is not None and (cell.owner == op.actor.rank or (op.actor.order, cell.slot) in read):
            yield op.actor.name, ("cell", cell.slot)


def _some_conflict(some: Iterable[Access], others: Sequence[Access]) -> bool:
    return any(accesses_conflict(one, other) for one in some for other in others)


def _sums_depend(a: Op, b: Op) -> bool:
    """Whether both add to one location in one type in which the order of additions shows: not in an integer."""
    return any(
        adds_commute(x, y)
        and x.region.dtype.kind not in "iu"
        and x.region.slot == y.region.slot
        and spans_overlap(x.region.spans, y.region.spans)
        for x in a.accesses
        for y in b.accesses
    )


def locations_of(op: Op, *, seeking: bool = False) -> list[Location]:
    """Return the locations of an operation; with `seeking`, those at which another one may depend on it.

    The two differ for a quiet of a whole rank alone, which depends on what the rank issues, and on no other quiet.

    Args:
        op: an operation.
        seeking: give the locations of operations that may depend on it.

    """
    locations = [("window", slot) for slot in dict.fromkeys(access.region.slot for access in op.accesses)]
    if op.cell is not None:
        locations.append(("cell", op.cell.slot))
    if op.deferred:
        locations.append(("quiets" if seeking else "issues", op.actor.rank))
    elif is_rank_quiet(op):
        locations.append(("issues" if seeking else "quiets", op.actor.rank))
    elif op.order == SC:
        locations.append(("fences", 0))
    return locations
