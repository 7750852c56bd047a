"""Notify and wait: what a rank does to cells that gives nothing back, unless it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from asyncsim.machine.arguments import change_of, check_condition, said
from asyncsim.machine.atomics import Atomics
from asyncsim.machine.block import ORDERS, cells_of, conditions_of, notifies, wait_of, waits
from asyncsim.machine.operation import operation
from asyncsim.trace.cells import ATOMIC_ADD
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import NOTIFY, STORES, WAIT
from asyncsim.trace.op import Op, SyncOp, op_on_cell
from asyncsim.trace.region import Cell, Condition

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from asyncsim.machine.atomics import Both, Scope
    from asyncsim.trace.cells import Change

_Result = TypeVar("_Result")
_Order = Literal["release", "stores", "relaxed"]
if TYPE_CHECKING:
    _Operation = Generator[Op, Any, _Result]


class Signalling(Atomics):
    """A rank's notifies and waits; `asyncsim.Rank` adds data."""

    __slots__ = ()

    @operation
    def notify(
        self,
        cell: Cell,
        value: int = 1,
        op: str = ATOMIC_ADD,
        *,
        order: _Order = "release",
        scope: Scope | None = None,
    ) -> _Operation[None]:
        """Add to a cell of a peer (or an own one), set it, or change it by another update. It returns nothing.

        Args:
            cell: ``signal.at(peer)[...]``, or a word: ``window.at(peer).word[...]``.
            value: what to add (may be negative), to set, or to combine with.
            op: `AtomicAdd`, `Set`, `And`, `Or`, `Xor`, `Min` or `Max`.
            order: "release": it lands after all that this actor wrote before (under ``nic`` not after its
                non-blocking gets); "stores": after what it stored before, and after no put: as a
                ``sync`` of OpenSHMEM, which completes none; "relaxed": ordered by nothing but what the
                memory model orders. Under ``sc`` there is no difference.
            scope: between which actors it orders: "block", "rank" or "world" (None).

        Raises:
            MisuseError: it is no cell of this run, its signal does not hold the value, or there is no such `op`,
                `order` or `scope`.

        """
        known = cell.__class__ is Cell and cell.world is self._world and type(value) is int and op == ATOMIC_ADD
        if not (known and cell.low <= value <= cell.high):
            value, op = change_of(self._home, NOTIFY, cell, value, op, self._world), str(op)
        relaxed = order != "release"
        if relaxed and order != "relaxed":
            if order != STORES:
                raise MisuseError(f"rank {self._home}: notify of {cell}: order={order!r}; use {ORDERS}")
            said(self._home, NOTIFY, cell, None, scope)
            yield from notifies(self.actor, (cell,), op, value, self._number, order=order, deferred=self._deferred)
            return
        if scope or cell.region is not None:
            _, scoped = said(self._home, NOTIFY, cell, None, scope)
            yield SyncOp(
                self.actor, NOTIFY, cell.changes, cell, op, value, call=self._number, relaxed=relaxed,
                deferred=self._deferred, scope=scoped,
            )  # fmt: skip
            return
        yield op_on_cell(self.actor, NOTIFY, cell, op, value, False, self._number, relaxed, self._deferred)  # noqa: FBT003

    @operation
    def wait(
        self,
        condition: Condition,
        *,
        consume: bool = False,
        then: Change | None = None,
        order: Both | None = None,
        scope: Scope | None = None,
    ) -> _Operation[None]:
        """Park until the condition on a cell of any rank holds.

        Args:
            condition: a comparison of a cell: ``signal[peer] >= 1``.
            consume: subtract the compared value as it passes; otherwise the cell stays as it is.
            then: change the cell as it passes, in the same step: ``Set(0)``, ``AtomicAdd(-1)``, ``Max(3)``. So a spin
                on compare-and-exchange waits: ``wait(lock == 0, then=Set(1))``.
            order: "acquire" (None) or "relaxed"; of one that changes its cell also "release" or "acq_rel".
            scope: between which actors it orders: "block", "rank" or "world" (None).

        Raises:
            MisuseError: it is no condition on a cell of this run, the cell does not hold the amount of `then`, there is
                no such `order` or `scope`, or it is to consume and to do something else, too.

        """
        if not isinstance(condition, Condition) or condition.cell.world is not self._world:
            check_condition(self._home, "wait", condition, self._world)
        number = self._number
        if then or order or scope or condition.__class__ is not Condition:
            yield wait_of(self.actor, condition, then, number, self._world, consume=consume, order=order, scope=scope)
            return
        cell, how, expected = condition.cell, condition.compare, condition.expected
        yield op_on_cell(self.actor, WAIT, cell, how, expected, bool(consume), number, False, False)  # noqa: FBT003

    @operation
    def wait_value(
        self,
        condition: Condition,
        *,
        then: Change | None = None,
        order: Both | None = None,
        scope: Scope | None = None,
    ) -> _Operation[int]:
        """Park as `wait` does, and return what the cell held as it passed.

        That value has to be the same in every schedule for one run to decide; so wait without it where the condition
        is all that matters.

        Args:
            condition: as for `wait`.
            then: as for `wait`.
            order: as for `wait`.
            scope: as for `wait`.

        Raises:
            MisuseError: as for `wait`.

        """
        check_condition(self._home, "wait_value", condition, self._world)
        number = self._number
        held: int = yield wait_of(
            self.actor, condition, then, number, self._world, order=order, scope=scope, value=True
        )
        return held

    @operation
    def notify_all(
        self, cells: Iterable[Cell], value: int = 1, op: str = ATOMIC_ADD, *, order: _Order = "release"
    ) -> _Operation[None]:
        """Notify several cells one after the other: what `notify` in a loop does, in less time.

        Each notify is a step of its own; what others do can come between, as it can in the loop. No cell: no step.

        Args:
            cells: ``signal.at(peer)[...]`` of each. All are checked before the first is notified.
            value: what to add to each (may be negative) or to set each to.
            op: the name of an update: `AtomicAdd`, `Set`, …
            order: as for `notify`.

        """
        found, value = cells_of(self._home, cells, value, op, order, self._world)
        yield from notifies(self.actor, found, op, value, self._number, order=order, deferred=self._deferred)

    @operation
    def wait_all(self, conditions: Iterable[Condition], *, consume: bool = False) -> _Operation[None]:
        """Park until one condition after the other was met: what `wait` in a loop does, in less time.

        Each wait is a step of its own, as in the loop; nothing says that all hold at one moment.

        Args:
            conditions: comparisons of own cells. All are checked before the first is waited for.
            consume: as for `wait`.

        """
        yield from waits(
            self.actor, conditions_of(self._home, conditions, self._world), self._number, consume=bool(consume)
        )
