"""What a rank does to cells that gives a value back: reads, atomics, compare-and-exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from asyncsim.machine.arguments import change_of, check_condition, no_cell, said
from asyncsim.machine.operation import operation
from asyncsim.machine.parent import Parent
from asyncsim.trace.cells import AND, ATOMIC_ADD, MAX, MIN, OR, SET, XOR
from asyncsim.trace.kinds import ARRIVE, ATOMIC, CHANGING, COMPARE_EXCHANGE, READ_CELL, TEST
from asyncsim.trace.op import Op, SyncOp, accesses_on
from asyncsim.trace.region import Cell, Condition

if TYPE_CHECKING:
    from collections.abc import Generator

    from asyncsim.trace.world import Actor

Seeing = Literal["acquire", "relaxed"]
"""What a test or read orders; None: acquire."""
Both = Literal["acq_rel", "acquire", "release", "relaxed"]
"""What an operation orders that reads and changes a cell."""
Scope = Literal["block", "rank", "world"]
"""Between which actors an operation orders: those of a block, of a rank, all. None: all."""


class Atomics(Parent):
    """A rank's operations on cells with a result; `asyncsim.Rank` adds data, and notify and wait.

    Each is one step, on a cell of any rank: what it returns is what the cell held when it changed it. Under a memory
    model that is late it takes effect at its own step, after all that its actor did to that cell before; as a
    release (which it is, unless told otherwise) after all that its actor wrote.
    """

    __slots__ = ()

    @operation
    def read(self, cell: Cell, *, order: Seeing | None = None, scope: Scope | None = None) -> Generator[Op, Any, int]:
        """Return what a cell of any rank holds now.

        Args:
            cell: ``signal[...]``, ``signal.at(peer)[...]`` or a word, ``window.word[...]``.
            order: "acquire" (None) or "relaxed".
            scope: between which actors it orders: "block", "rank" or "world" (None).

        Raises:
            MisuseError: it is no cell of this run, or there is no such `order` or `scope`.

        """
        if not isinstance(cell, Cell) or cell.world is not self._world:
            raise no_cell(self._home, READ_CELL, cell, "signal[...] or signal.at(peer)[...]")
        told = said(self._home, READ_CELL, cell, order, scope)
        held: int = yield _asking(self.actor, READ_CELL, cell, "", 0, self._number, told)
        return held

    @operation
    def test(
        self, condition: Condition, *, order: Seeing | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, bool]:
        """Say whether a condition on a cell of any rank holds now, without waiting.

        Args:
            condition: a comparison of a cell: ``signal[peer] >= 1``.
            order: as for `read`.
            scope: as for `read`.

        Raises:
            MisuseError: it is no condition on a cell of this run, or there is no such `order` or `scope`.

        """
        check_condition(self._home, "test", condition, self._world)
        told = said(self._home, TEST, condition.cell, order, scope)
        op = _asking(self.actor, TEST, condition.cell, condition.compare, condition.expected, self._number, told)
        holds: bool = yield op
        return holds

    @operation
    def fetch_add(
        self, cell: Cell, value: int = 1, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Add to a cell of any rank, and return what it held before.

        Args:
            cell: ``signal[...]``, ``signal.at(peer)[...]`` or a word, ``window.word[...]``.
            value: what to add; may be negative.
            order: "acq_rel" (None), "acquire", "release" or "relaxed".
            scope: between which actors it orders: "block", "rank" or "world" (None).

        Raises:
            MisuseError: it is no cell of this run, or does not hold the value, or there is no such `order` or `scope`.

        """
        held: int = yield self._atomic("fetch_add", cell, ATOMIC_ADD, value, order, scope)
        return held

    @operation
    def exchange(
        self, cell: Cell, value: int, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Set a cell of any rank, and return what it held before.

        Args:
            cell: as for `fetch_add`.
            value: what to set.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: as for `fetch_add`.

        """
        held: int = yield self._atomic("exchange", cell, SET, value, order, scope)
        return held

    @operation
    def fetch_and(
        self, cell: Cell, value: int, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Keep of a cell of any rank the bits of `value`, and return what it held before.

        Args:
            cell: as for `fetch_add`.
            value: the bits to keep.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: as for `fetch_add`.

        """
        held: int = yield self._atomic("fetch_and", cell, AND, value, order, scope)
        return held

    @operation
    def fetch_or(
        self, cell: Cell, value: int, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Set in a cell of any rank the bits of `value`, and return what it held before.

        Args:
            cell: as for `fetch_add`.
            value: the bits to set.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: as for `fetch_add`.

        """
        held: int = yield self._atomic("fetch_or", cell, OR, value, order, scope)
        return held

    @operation
    def fetch_xor(
        self, cell: Cell, value: int, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Turn over in a cell of any rank the bits of `value`, and return what it held before.

        Args:
            cell: as for `fetch_add`.
            value: the bits to turn over.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: as for `fetch_add`.

        """
        held: int = yield self._atomic("fetch_xor", cell, XOR, value, order, scope)
        return held

    @operation
    def fetch_min(
        self, cell: Cell, value: int, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Set a cell of any rank to `value` if that is less, and return what it held before.

        Args:
            cell: as for `fetch_add`.
            value: what to compare with and to set.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: as for `fetch_add`.

        """
        held: int = yield self._atomic("fetch_min", cell, MIN, value, order, scope)
        return held

    @operation
    def fetch_max(
        self, cell: Cell, value: int, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Set a cell of any rank to `value` if that is more, and return what it held before.

        Args:
            cell: as for `fetch_add`.
            value: what to compare with and to set.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: as for `fetch_add`.

        """
        held: int = yield self._atomic("fetch_max", cell, MAX, value, order, scope)
        return held

    @operation
    def compare_exchange(
        self, cell: Cell, expected: int, value: int, *, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, int]:
        """Set a cell of any rank to `value` if it holds `expected`, and return what it held before, in any case.

        Args:
            cell: ``signal[...]``, ``signal.at(peer)[...]`` or a word, ``window.word[...]``.
            expected: it succeeded if and only if this is what it returns.
            value: what to set.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: it is no cell of this run, or does not hold one of the values, or there is no such `order`
                or `scope`.

        """
        rank, world = self._home, self._world
        expected = change_of(rank, COMPARE_EXCHANGE, cell, expected, SET, world)
        value = change_of(rank, COMPARE_EXCHANGE, cell, value, SET, world)
        ordered, scoped = said(rank, COMPARE_EXCHANGE, cell, order, scope)
        held: int = yield SyncOp(
            self.actor, COMPARE_EXCHANGE, cell.changes, cell, "Eq", expected, call=self._number,
            order=ordered, scope=scoped, update=SET, operand=value,
        )  # fmt: skip
        return held

    @operation
    def arrive(
        self, cell: Cell, *, of: int, order: Both | None = None, scope: Scope | None = None
    ) -> Generator[Op, Any, bool]:
        """Add 1 to a cell of any rank, and say whether that makes it `of`: whether this is the last of so many.

        So a program shows that it looks at nothing else of what the cell held. With `fetch_add` the whole value has to
        be the same in every schedule for one run to decide.

        Args:
            cell: ``signal[...]`` or ``signal.at(peer)[...]``.
            of: how many arrive, together with what the cell held before them.
            order: as for `fetch_add`.
            scope: as for `fetch_add`.

        Raises:
            MisuseError: it is no cell of this run, or does not hold `of`, or there is no such `order` or `scope`.

        """
        rank = self._home
        last = change_of(rank, ARRIVE, cell, of, SET, self._world) - 1
        ordered, scoped = said(rank, ARRIVE, cell, order, scope)
        held: int = yield SyncOp(
            self.actor, ARRIVE, cell.changes, cell, "Eq", last, call=self._number, order=ordered, scope=scoped,
            update=ATOMIC_ADD, operand=1,
        )  # fmt: skip
        return held == last

    def _atomic(  # noqa: PLR0913, PLR0917 - what an atomic is given
        self, name: str, cell: Cell, how: str, value: int, order: str | None, scope: str | None
    ) -> Op:
        """Return an atomic of this name as an operation."""
        value = change_of(self._home, name, cell, value, how, self._world)
        told = said(self._home, ATOMIC, cell, order, scope)
        return _asking(self.actor, ATOMIC, cell, how, value, self._number, told)


def _asking(  # noqa: PLR0913, PLR0917 - what an operation on a cell is made of
    actor: Actor, kind: str, cell: Cell, how: str, amount: int, call: int, told: tuple[str, str]
) -> Op:
    """Return an operation on a cell; `told`: the order and the scope that it says."""
    accesses = accesses_on(cell, kind in CHANGING)
    if told == ("", ""):
        return Op(actor, kind, accesses, cell, how, amount, call=call)
    return SyncOp(actor, kind, accesses, cell, how, amount, call=call, order=told[0], scope=told[1])
