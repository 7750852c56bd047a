"""What a search over schedules may exchange: which operations depend on each other, and what orders them.

Two relations. *Dependent* is symmetric and by kind, from `asyncsim.trace.conflict`: it decides what
wakes a sleeping operation. *Orders* is its sharper, directed form, of which happens-before is made:
it leaves out one direction of one kind of pair. An operation that cannot make a wait false does not
come after that wait because it happened to: moved in front of it, it changes nothing. (An edge there
would hide races: in ``st x; wait c >= 1 || c += 1; st x`` with c = 1 the two stores would look
ordered whenever the wait came first.) The other direction, from an add to a wait that could have done
without it, always stays an edge; `asyncsim.checking.search.dpor` asks separately whether it can be undone.

Two atomic adds are no race, but on floating types their order shows in the sum: here they depend on
each other. Two subtractions from one cell commute, and depend on each other all the same: which of
them keeps a consuming wait from passing decides what may come before it, and sleep sets would lose
that (``ld x; take c >= 1; st x || c -= 1; c -= 1 || ld x; c -= 1; st y || st x`` with c = 1). Cells
whose range can be left are called *tight*: there two adds do not commute (one of the orders may
overflow), and where the cell wraps no wait is monotone.

Where an actor sees its own writes before they land, what it reads meets them when they are issued,
and what it adds to memory of its own rank stands in one queue with the stores of that rank: see
`Dependence.order_is_visible`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.machine.effect import COMPARE
from asyncsim.trace.conflict import accesses_conflict, conflict, stores_locally
from asyncsim.trace.op import (
    FETCH,
    LAND,
    LOCAL,
    NOTIFY,
    POLL,
    PUT_SIGNAL,
    QUEUED,
    QUIET,
    SET,
    TEST,
    WAIT,
    WHOLE_RANK,
)  # fmt: skip
from asyncsim.trace.region import ADD, READ, adds_commute, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from asyncsim.trace.late import Model
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access, Cell

Location = tuple[str, int]
"""A window of a rank, or a cell, by its slot. Operations without a common place do not depend on each other."""

_CHANGING = (NOTIFY, PUT_SIGNAL, LAND)
_RISING, _FALLING = ("Ge", "Gt"), ("Le", "Lt")


class Dependence:
    """The dependence of one search.

    Args:
        model: the memory model.

    Attributes:
        forwards: an actor sees its own changes before they land.
        tight: the slots of cells whose range some execution can leave; grows while searching.
        added_by_waits: the slots of cells that are waited for from above by who adds to them as it passes: a consuming
            wait of less than nothing; grows while searching.
        own_adds: the actors that add, late, to memory or to a cell of their own rank, each with the
            place; grows while searching.

    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.forwards = model.late and model.forwarding
        self.tight: set[int] = set()
        self.added_by_waits: set[int] = set()
        self.own_adds: set[tuple[str, Location]] = set()

    def are_dependent(self, a: Op, b: Op) -> bool:
        """Say whether the two, of different actors, may not commute, or one may enable or disable the other.

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
        if not both_add(a, b):
            return False
        return self.may_overflow(a) or self._both_withdraw(a, b)

    def _both_withdraw(self, a: Op, b: Op) -> bool:
        """Say whether both of two adds go against what a consuming wait of their cell waits for."""
        cell = a.cell
        assert cell is not None  # noqa: S101 - for the type checker: who adds has a cell
        return max(a.amount, b.amount) < 0 or (cell.slot in self.added_by_waits and min(a.amount, b.amount) > 0)

    def may_overflow(self, op: Op) -> bool:
        """Say whether the cell of an operation can leave its range and does not wrap: then an order may end the run."""
        return op.cell is not None and op.cell.slot in self.tight and not op.cell.wrap

    def sees_before_landing(self, op: Op, landing: Op) -> bool:
        """Say whether `landing` brings a signal that the actor of `op` has seen since it issued it itself.

        A signal that is queued behind a copy it has not.

        Args:
            op: an operation of a task.
            landing: an operation, perhaps a landing.

        """
        return self.forwards and _carries_signal(landing) and _issuer_of(landing) == op.actor.name

    def order_is_visible(self, a: Op, b: Op) -> bool:
        """Say whether a rank can tell in which order `a` and `b` came, though what they do is not there yet.

        That is so for what lands late at its own place and a local store of another stream there: of the
        two, whatever was issued after the store lands after it. And for an actor that sees its own writes
        at once it is so for a fetch and what the actor issued after the copy (what it issued before must land
        first); and, once it has a late add to its own rank under way, for what it reads and the landing of such
        a store, which takes the store out from on top of the add.

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
        if a.kind == FETCH and b.deferred and _issuer_of(a) == b.actor.name and not b.late:
            return _some_conflict(a.accesses, b.accesses[-1:])
        if b.kind == LAND and b.link == LOCAL and (_issuer_of(a), locations_of(b)[0]) in self.own_adds:
            return not a.late and _some_conflict([access for access in a.accesses if access.mode == READ], b.accesses)
        return False

    def is_ordered(self, earlier: Op, later: Op) -> bool:
        """Say whether two operations of different actors that were executed in this order happened in this order.

        Args:
            earlier: an operation.
            later: one that was executed after it.

        """
        if not self.are_dependent(earlier, later):
            return False
        if earlier.kind == WAIT and not earlier.consume:
            return self.may_disable(later, earlier)
        return True

    def may_disable(self, op: Op, wait: Op) -> bool:
        """Say whether in some state a wait or poll can pass before `op`, on which it depends, but not after it.

        Args:
            op: an operation that changes what the wait looks at.
            wait: a wait, poll or quiet.

        """
        if wait.kind in (POLL, QUIET):  # what a poll waits for is code; and a quiet waits for whatever is under way
            return True
        if changes_cell(op) and op.how == SET:
            # What the waiting actor has added itself may stand on top of what is set.
            on_top = op.cell is not None and (wait.actor.name, ("cell", op.cell.slot)) in self.own_adds
            return on_top or not COMPARE[wait.how](op.amount, wait.amount)
        change = change_of(op)
        if op.cell is not None and op.cell.wrap and op.cell.slot in self.tight:
            return change != 0
        if wait.how in _RISING:
            return change < 0
        if wait.how in _FALLING:
            return change > 0
        return change != 0

    def wait_may_pass(self, wait: Op, value: int, others: Iterable[Op]) -> bool:
        """Say whether `wait` could pass when some of `others`, all on its cell, come on top of `value`.

        It may say yes where the answer is no: which of them can come together is not looked at.

        Args:
            wait: the wait.
            value: of its cell.
            others: operations that change that cell.

        """
        bases, low, high = _value_range(value, others)
        if wait.cell is not None and wait.cell.wrap and wait.cell.slot in self.tight and low < high:
            return True
        return any(_passes_within(wait.how, wait.amount, base + low, base + high) for base in bases)

    def refine(self, starts: Sequence[int], ops: Sequence[Op]) -> bool:
        """Note the cells that the executed operations could take out of their range; say whether anything is new.

        As long as there is none, no order of these operations leaves a range. Note likewise who adds to
        what its own rank owns, and which cells a consuming wait adds to.

        Args:
            starts: the value with which each cell begins, by slot.
            ops: the operations of an execution.

        """
        own_adds = {
            (op.actor.name, location) for op in ops if self.forwards for location in _own_locations_added_to(op)
        }
        cells: dict[int, Cell] = {}
        changing: dict[int, list[Op]] = {}
        for op in ops:
            if op.cell is not None and (changes_cell(op) or op.consume):
                cells[op.cell.slot] = op.cell
                changing.setdefault(op.cell.slot, []).append(op)
        found = set()
        for slot, changes in changing.items():
            bases, low, high = _value_range(starts[slot], changes)
            if max(bases) + high > cells[slot].high or min(bases) + low < cells[slot].low:
                found.add(slot)
        added_by_waits = {op.cell.slot for op in ops if op.consume and op.amount < 0 and op.cell is not None}
        new = not found <= self.tight or not own_adds <= self.own_adds or not added_by_waits <= self.added_by_waits
        self.tight |= found
        self.added_by_waits |= added_by_waits
        self.own_adds |= own_adds
        return new


def can_be_disabled(op: Op) -> bool:
    """Say whether an operation can be ready, and then no longer, without having been executed."""
    return op.kind in (WAIT, POLL) or is_rank_quiet(op)


def is_rank_quiet(op: Op) -> bool:
    """Say whether an operation waits for what all streams of its rank have under way."""
    return op.kind == QUIET and op.link == WHOLE_RANK


def _quiet_awaits(quiet: Op, issue: Op) -> bool:
    """Say whether one waits for what the other, of another stream of its rank, leaves under way."""
    return is_rank_quiet(quiet) and issue.deferred and issue.actor.rank == quiet.actor.rank


def _only_reads_cell(op: Op) -> bool:
    return op.kind == TEST or (op.kind == WAIT and not op.consume)


def _issuer_of(op: Op) -> str:
    """Return the name of the actor whose operation it is, or whose landing."""
    return op.actor.name.partition(">")[0]


def _carries_signal(landing: Op) -> bool:
    """Say whether a landing brings a signal that an actor may see before it lands."""
    return landing.actor.wire and landing.cell is not None and landing.link != QUEUED


def _lands_on_own_rank(op: Op) -> bool:
    """Say whether an issue leaves data to land at its own rank that the rank does not see before."""
    if not op.deferred or not op.accesses:
        return False
    target = op.accesses[-1]
    return target.mode != READ and target.region.owner == op.actor.rank and not stores_locally(op)


def _own_locations_added_to(op: Op) -> list[Location]:
    """Return the place at its own rank that an issue adds to, if it does: that lands late though it is near."""
    if not op.deferred:
        return []
    locations: list[Location] = []
    if op.accesses and op.accesses[-1].mode == ADD and op.accesses[-1].region.owner == op.actor.rank:
        locations.append(("window", op.accesses[-1].region.slot))
    if op.cell is not None and op.how != SET and op.cell.owner == op.actor.rank:
        locations.append(("cell", op.cell.slot))
    return locations


def _some_conflict(some: Iterable[Access], others: Sequence[Access]) -> bool:
    return any(accesses_conflict(one, other) for one in some for other in others)


def _sums_depend(a: Op, b: Op) -> bool:
    """Say whether both add to one place in one type in which the order of additions shows: in no integer."""
    return any(
        adds_commute(x, y)
        and x.region.dtype.kind not in "iu"
        and x.region.slot == y.region.slot
        and spans_overlap(x.region.spans, y.region.spans)
        for x in a.accesses
        for y in b.accesses
    )


def locations_of(op: Op, *, seeking: bool = False) -> list[Location]:
    """Return where an operation can be met by another one; with `seeking`, where it meets others.

    The two differ for a quiet of a whole rank alone, which meets what the rank issues, and no other quiet.

    Args:
        op: an operation.
        seeking: give the locations where it meets others.

    """
    locations = [("window", slot) for slot in dict.fromkeys(access.region.slot for access in op.accesses)]
    if op.cell is not None:
        locations.append(("cell", op.cell.slot))
    if op.deferred:
        locations.append(("quiets" if seeking else "issues", op.actor.rank))
    elif is_rank_quiet(op):
        locations.append(("issues" if seeking else "quiets", op.actor.rank))
    return locations


def changes_cell(op: Op) -> bool:
    """Say whether an operation adds to its cell or sets it, at its own step; a consuming wait is another matter."""
    return op.cell is not None and op.kind in _CHANGING and not op.deferred


def both_add(a: Op, b: Op) -> bool:
    """Say whether both add to one cell, which commutes.

    Args:
        a: an operation.
        b: another one.

    """
    if a.cell is None or b.cell is None or a.cell.slot != b.cell.slot:
        return False
    return changes_cell(a) and changes_cell(b) and SET not in (a.how, b.how)


def change_of(op: Op) -> int:
    """Return what an operation that is no Set adds to its cell."""
    if changes_cell(op):
        return op.amount
    return -op.amount if op.consume else 0


def value_after(value: int, op: Op) -> int:
    """Return the value of a cell after an operation on it.

    Args:
        value: before it.
        op: an operation on the cell; a wait changes it only if it consumes.

    """
    if changes_cell(op) and op.how == SET:
        return op.amount
    value += change_of(op)
    return op.cell.wrapped(value) if op.cell is not None and op.cell.wrap else value


def wait_passes(wait: Op, value: int) -> bool:
    """Say whether a wait can pass at this value.

    Args:
        wait: a wait or a test.
        value: of its cell.

    """
    return COMPARE[wait.how](value, wait.amount)


def _value_range(value: int, ops: Iterable[Op]) -> tuple[list[int], int, int]:
    """Return the values that counting can start from, and how far down and up from there it can go."""
    bases, low, high = [value], 0, 0
    for op in ops:
        if changes_cell(op) and op.how == SET:
            bases.append(op.amount)
        else:
            change = change_of(op)
            low += min(change, 0)
            high += max(change, 0)
    return bases, low, high


def _passes_within(how: str, amount: int, low: int, high: int) -> bool:
    """Say whether some integer from `low` to `high` compares so with `amount`."""
    if how == "Eq":
        return low <= amount <= high
    return COMPARE[how](low, amount) or COMPARE[how](high, amount)
