"""What is done to a cell: the updates and the comparisons, one row each.

An update gives what a cell holds next, a comparison whether a wait may pass; both are pure functions of what the cell
holds and of the operation's amount. To add one is to add a row; what asks for a property asks a set made from the rows.

A cell holds an integer of so many bits, with or without a sign. The updates by bits are those of Python's integers,
which are endless two's complement: within the range of a cell they give what its bits would.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

UP, DOWN, BY_SIGN, EITHER = "up", "down", "by sign", "either"
"""Which way an update moves a cell, or a cell has to move for a comparison to become true.

``by sign`` is up for an amount above 0 and down for one below; ``either`` is not known without the value.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A way to change a cell.

    Args:
        name: in a trace and in `Op.how`.
        symbol: between the cell and the amount, in a sentence.
        apply: gives what the cell holds next, of what it holds and the amount.
        moves: `UP`, `DOWN`, `BY_SIGN` or `EITHER`; see `way_of` for what a sign bit does to it.
        commutes: two of this kind give the same in either order, whatever their amounts.
        inverse: takes back by an amount of the other sign: such updates are counted, and only their sum matters.

    """

    name: str
    symbol: str
    apply: Callable[[int, int], int]
    moves: str
    commutes: bool
    inverse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A way to compare a cell.

    Args:
        name: in a trace and in `Op.how`.
        symbol: as in Python.
        holds: of what the cell holds and the amount.
        moves: the cell has to move so for the comparison to become true, and may move on for it to stay so; `EITHER`:
            it may become false again either way.
        strict: it is false where the cell holds the amount itself.

    """

    name: str
    symbol: str
    holds: Callable[[int, int], bool]
    moves: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Change:
    """An update with its amount, as a wait makes it in the step in which it passes: ``Set(0)``.

    Args:
        how: the name of an update.
        amount: what it adds, sets, or combines with.

    """

    how: str
    amount: object

    def __str__(self) -> str:
        """Write it as in the kernel."""
        return f"{self.how}({self.amount})"


class UpdateName(str):
    """The name of an update, for ``notify(cell, 1, op=Max)``; called with an amount, the update: ``then=Set(0)``."""

    __slots__ = ()

    def __call__(self, amount: object) -> Change:
        """Return the update by this amount.

        Args:
            amount: an integer that the cell can hold; it is checked where the update is used.

        """
        return Change(str(self), amount)


def _set(value: int, amount: int) -> int:  # noqa: ARG001 - an update is a function of both
    return amount


ATOMIC_ADD, SET, AND, OR, XOR, MIN, MAX = "AtomicAdd", "Set", "And", "Or", "Xor", "Min", "Max"

UPDATES = {
    row.name: row
    for row in (
        Update(name=ATOMIC_ADD, symbol="+=", apply=operator.add, moves=BY_SIGN, commutes=True, inverse=True),
        Update(name=SET, symbol=":=", apply=_set, moves=EITHER, commutes=False),
        Update(name=AND, symbol="&=", apply=operator.and_, moves=DOWN, commutes=True),
        Update(name=OR, symbol="|=", apply=operator.or_, moves=UP, commutes=True),
        Update(name=XOR, symbol="^=", apply=operator.xor, moves=EITHER, commutes=True),
        Update(name=MIN, symbol="min=", apply=min, moves=DOWN, commutes=True),
        Update(name=MAX, symbol="max=", apply=max, moves=UP, commutes=True),
    )
}
"""All updates, by name."""

COMPARISONS = {
    row.name: row
    for row in (
        Comparison(name="Eq", symbol="==", holds=operator.eq, moves=EITHER, strict=False),
        Comparison(name="Ne", symbol="!=", holds=operator.ne, moves=EITHER, strict=True),
        Comparison(name="Gt", symbol=">", holds=operator.gt, moves=UP, strict=True),
        Comparison(name="Ge", symbol=">=", holds=operator.ge, moves=UP, strict=False),
        Comparison(name="Lt", symbol="<", holds=operator.lt, moves=DOWN, strict=True),
        Comparison(name="Le", symbol="<=", holds=operator.le, moves=DOWN, strict=False),
    )
}
"""All comparisons, by name."""

HOWS = ("", *UPDATES, *COMPARISONS)
"""What `Op.how` can be, in the order in which columns number them."""

# Without the row between, for what asks in every step.
APPLY = {name: row.apply for name, row in UPDATES.items()}
COMPARE = {name: row.holds for name, row in COMPARISONS.items()}
SYMBOLS = {name: row.symbol for name, row in COMPARISONS.items()}
COMMUTING = frozenset(name for name, row in UPDATES.items() if row.commutes)
ADDING = frozenset(name for name, row in UPDATES.items() if row.inverse)
RISING = frozenset(name for name, row in COMPARISONS.items() if row.moves == UP)
FALLING = frozenset(name for name, row in COMPARISONS.items() if row.moves == DOWN)
UNSTABLE = frozenset(name for name, row in COMPARISONS.items() if row.moves == EITHER)
STRICT = frozenset(name for name, row in COMPARISONS.items() if row.strict)


def updates_commute(a: str, b: str) -> bool:
    """Say whether two updates give the same in either order, whatever their amounts.

    Args:
        a: the name of an update.
        b: another one's.

    """
    return a == b and a in COMMUTING


def way_of(how: str, amount: int) -> str:
    """Return which way an update moves a cell: `UP`, `DOWN`, or `EITHER` where that depends on what the cell holds.

    Args:
        how: the name of an update.
        amount: of the operation. A negative one has the sign bit: to set it, or to clear it, goes the other way.

    """
    moves = UPDATES[how].moves
    if moves == BY_SIGN:
        return UP if amount >= 0 else DOWN
    if (how == OR and amount < 0) or (how == AND and amount >= 0):
        return EITHER
    return moves


def update_text(cell: object, how: str, amount: int) -> str:
    """Write an update of a cell: ``ready[0]@1 += 2``.

    Args:
        cell: is written as it writes itself.
        how: the name of an update.
        amount: of the operation.

    """
    return f"{cell} {UPDATES[how].symbol} {amount}"
