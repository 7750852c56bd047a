"""What operations do to one cell: the value that they leave, and the values that they could leave in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.cells import ADDING, COMPARE, DOWN, MAX, MIN, SET, updates_commute, way_of
from asyncsim.trace.kinds import CHANGING, EFFECTS, EXCHANGING, SIGNALLING, WAITING
from asyncsim.trace.op import change_by

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.trace.op import Op

CHOOSING = (SET, MIN, MAX)
"""The updates that leave what a cell holds, or their amount."""


def changes_cell(op: Op) -> bool:
    """Say whether an operation adds to its cell or sets it, at its own step; a consuming wait is another matter."""
    return op.cell is not None and op.kind in CHANGING and not op.deferred


def both_commute(a: Op, b: Op) -> bool:
    """Say whether both make an update of one cell, of a kind that commutes, and do not tell what it held.

    Args:
        a: an operation.
        b: another one.

    """
    if a.cell is None or b.cell is None or a.cell.slot != b.cell.slot:
        return False
    if a.kind in EXCHANGING or b.kind in EXCHANGING:
        return False
    return changes_cell(a) and changes_cell(b) and updates_commute(a.how, b.how)


def value_after(value: int, op: Op) -> int:
    """Return the value of a cell after an operation on it.

    Args:
        value: before it.
        op: an operation on the cell; a wait changes it only if it consumes.

    """
    if changes_cell(op) or op.consume or op.update:
        value, _ = EFFECTS[op.kind](value, op)
    return op.cell.wrapped(value) if op.cell is not None and op.cell.wrap else value


def wait_passes(wait: Op, value: int) -> bool:
    """Say whether a wait can pass at this value.

    Args:
        wait: a wait or a test.
        value: of its cell.

    """
    return COMPARE[wait.how](value, wait.amount)


def change_now(op: Op) -> tuple[str, int] | None:
    """Return how an operation changes its cell at its own step; None: it does not, or only when it lands.

    Args:
        op: an operation.

    """
    return None if op.deferred and op.kind in SIGNALLING else change_by(op)


def value_range(value: int, ops: Iterable[Op]) -> tuple[list[int], int, int, bool]:
    """Return the values that counting can start from, how far down and up from there it can go, and if bits change.

    Args:
        value: of the cell before all of them.
        ops: operations on it; each may come or not.

    """
    bases, low, high, bits = [value], 0, 0, False
    for op in ops:
        change = change_now(op)
        if change is None:
            continue
        how, amount = change
        if how in CHOOSING:
            bases.append(amount)
        elif how in ADDING:
            low += min(amount, 0)
            high += max(amount, 0)
        else:
            bits = True
    return bases, low, high, bits


def passes_within(how: str, amount: int, low: int, high: int) -> bool:
    """Say whether some integer from `low` to `high` compares so with `amount`.

    Args:
        how: the name of a comparison.
        amount: what is compared with.
        low: the least.
        high: the most.

    """
    if how == "Eq":
        return low <= amount <= high
    return COMPARE[how](low, amount) or COMPARE[how](high, amount)


def raises_as_it_passes(wait: Op) -> bool:
    """Say whether a wait may add to its cell as it passes, so that what others add may keep it from passing.

    Args:
        wait: an operation on a cell.

    """
    change = change_by(wait)
    return wait.kind in WAITING and change is not None and way_of(*change) != DOWN and change[1] != 0
