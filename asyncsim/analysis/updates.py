"""What operations do to their cells in a run, and what their programs see of them: [predicate] [update] [result].

Updates of one kind commute, so between two Sets, and between two changes of kind, only which of them have come matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from asyncsim.trace.cells import AND, APPLY, COMPARE, MAX, MIN, OR
from asyncsim.trace.kinds import ARRIVE, COMPARING, EXCHANGING, TESTING, WAITING
from asyncsim.trace.op import change_by, change_where

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op

EITHER_WAY = 0
"""The direction of updates that can move a cell up as well as down."""

NOTHING, ANSWER, VALUE = "", "answer", "value"
"""What a program gets of a cell: nothing, whether a comparison held, or what the cell held."""


def change_in(event: Event) -> tuple[str, int] | None:
    """Return how an operation changed its cell in this run, and by what: a compare_exchange does so if it succeeds.

    Args:
        event: of an operation on a cell.

    """
    return change_by(event.op) if event.have is None else change_where(event.op, event.have)


def seen_by(op: Op) -> str:
    """Return what the program gets of the cell: `NOTHING`, `ANSWER` or `VALUE`.

    Args:
        op: an operation on a cell.

    """
    if op.kind in WAITING:
        return VALUE if op.result else NOTHING
    if op.kind == ARRIVE:
        return ANSWER
    if op.kind in EXCHANGING:
        return VALUE
    if op.kind in TESTING:
        return ANSWER if op.kind in COMPARING else VALUE
    return NOTHING


def direction_of(kind: str, base: int, operands: Iterable[int]) -> int:
    """Return in which direction updates of one kind, neither Sets nor sums, move a cell: 1, -1 or `EITHER_WAY`.

    Bits are those of two's complement: to set or to clear the sign goes against the direction of all the others.

    Args:
        kind: the name of the update.
        base: what the cell holds before.
        operands: of all of them.

    """
    if kind in (MAX, MIN):
        return 1 if kind == MAX else -1
    if kind == OR:
        return 1 if base < 0 or all(operand >= 0 for operand in operands) else EITHER_WAY
    if kind == AND:
        return -1 if base >= 0 or all(operand < 0 for operand in operands) else EITHER_WAY
    return EITHER_WAY


def fold(kind: str, value: int, operands: Iterable[int]) -> int:
    """Return what a cell holds after updates of one kind, in whatever order.

    Args:
        kind: the name of the update; empty where there are none.
        value: what it holds before.
        operands: of the updates.

    """
    return reduce(APPLY[kind], operands, value) if kind else value


@dataclass(frozen=True, slots=True)
class Reached:
    """What a cell has to come to for a wait to pass, while updates of one kind move it in the wait's direction.

    Args:
        kind: of the updates: one that has a direction.
        how: the comparison.
        amount: what is compared with. To be equal to it, the cell has to come so far, or past it; of bits, have all.

    """

    kind: str
    how: str
    amount: int

    def holds(self, value: int) -> bool:
        """Say whether the cell has come so far: once it has, it stays so.

        Args:
            value: what it holds.

        """
        if self.how != "Eq":
            return COMPARE[self.how](value, self.amount)
        if self.kind == OR:
            return value & self.amount == self.amount
        if self.kind == AND:
            return value | self.amount == self.amount
        return value >= self.amount if self.kind == MAX else value <= self.amount
