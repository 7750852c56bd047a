"""What an operation does to memory when its turn comes, under sequential consistency.

An effect happens whole, at its own step, for everybody. `asyncsim.machine.wires` has the models
under which it lands later.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from asyncsim.trace.guest import is_ctrl_c
from asyncsim.trace.op import (
    ATOMIC_ADD,
    FENCE,
    GET,
    JOIN,
    LOAD,
    NOTIFY,
    POLL,
    PUT,
    PUT_SIGNAL,
    QUIET,
    REMOTE_LOAD,
    REMOTE_STORE,
    SET,
    START,
    STORE,
    SYNC,
    TEST,
    WAIT,
)  # fmt: skip
from asyncsim.trace.region import ADD, READ

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.memory import Memory, Tile
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Cell

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Gt": operator.gt,
    "Ge": operator.ge,
    "Lt": operator.lt,
    "Le": operator.le,
}


class CellOverflow(Exception):  # noqa: N818 - not an error of the caller: the run ends with a finding
    """A cell would leave its integer range, and its signal was not declared ``wrap=True``."""


def change_cell(memory: Memory, cell: Cell, how: str, amount: int) -> None:
    """Add to a cell, or set it.

    Args:
        memory: of the run.
        cell: the cell that is changed.
        how: `AtomicAdd` or `Set`.
        amount: what is added or set; may be negative.

    Raises:
        CellOverflow: it would leave its range, and its signal does not wrap.

    """
    value = amount if how == SET else memory.cells[cell.slot] + amount
    if not cell.low <= value <= cell.high:
        if not cell.wrap:
            raise CellOverflow
        value = cell.wrapped(value)
    memory.cells[cell.slot] = value


def consume(memory: Memory, op: Op) -> int:
    """Subtract what a consuming wait waited for, and return what the cell held before.

    Args:
        memory: of the run.
        op: a wait that has passed.

    """
    assert op.cell is not None  # noqa: S101 - for the type checker: a wait has a cell
    seen = memory.cells[op.cell.slot]
    change_cell(memory, op.cell, ATOMIC_ADD, -op.amount)
    return seen


def satisfied(op: Op, tile: Tile) -> bool:
    """Say whether a poll may go on.

    Its predicate is the kernel's, but this is nobody's turn. Where it raises, the poll goes on: `Rank.poll`
    then asks once more, and the exception comes out of the kernel that it belongs to, at its line.

    Args:
        op: the poll; its payload is the predicate.
        tile: what it reads now.

    """
    try:
        return bool(op.payload(tile))
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        return True  # raised again in its own place


class Immediate:
    """The effects of operations under ``sc``: whole, at their own step, for everybody.

    Args:
        memory: the values.

    """

    late = False

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._cells = memory.cells
        self._read = memory.read
        self._write = memory.write

    @property
    def table(self) -> dict[str, Callable[[Op], Any]]:
        """What an operation of each kind does; made when asked, or memory would wait for the garbage collector."""
        return {
            LOAD: self._load,
            REMOTE_LOAD: self._load,
            STORE: self._store,
            REMOTE_STORE: self._store,
            GET: self._copy,
            PUT: self._copy,
            NOTIFY: self._notify,
            WAIT: self._wait,
            TEST: self.passes,
            PUT_SIGNAL: self._put_signal,
            POLL: self._load,
            FENCE: _nothing,
            QUIET: _nothing,
            START: _nothing,
            JOIN: _nothing,
            SYNC: _nothing,
        }

    def passes(self, op: Op) -> bool:
        """Say whether a wait, poll or quiet can go on now."""
        if op.cell is not None:
            return COMPARE[op.how](self._cells[op.cell.slot], op.amount)
        if op.kind == POLL:
            return satisfied(op, self.peek(op))
        return True

    def seen(self, op: Op) -> int:
        """Return the value of an operation's cell, which is the same for everybody."""
        assert op.cell is not None  # noqa: S101 - for the type checker: the caller knows
        return self._cells[op.cell.slot]

    def peek(self, op: Op) -> Tile:
        """Return what a poll looks at, which is the same for everybody."""
        return self._memory.peek(op.accesses[0].region)

    def fresh(self) -> Sequence[Op]:
        """Nothing ever lands later."""
        return ()

    def _load(self, op: Op) -> Tile:
        read = self._read  # called as ``self._read(...)``, what an instance holds takes longer to find
        return read(op.accesses[0].region)

    def _store(self, op: Op) -> None:
        access = op.accesses[0]
        if access.mode == ADD:
            self._memory.add(access.region, op.payload)
        else:
            write = self._write
            write(access.region, op.payload)

    def _copy(self, op: Op) -> Tile:
        """Get and put: the last access is the destination; before it, if it is in a window, the source."""
        target = op.accesses[-1]
        tile: Tile = op.payload if op.payload is not None else self._read(op.accesses[0].region)
        if target.mode == ADD:
            self._memory.add(target.region, tile)
        elif target.mode != READ:  # a copy of elements onto themselves only reads
            self._write(target.region, tile)
        return tile

    def _notify(self, op: Op) -> None:
        cell, cells = op.cell, self._cells
        assert cell is not None  # noqa: S101 - for the type checker: a notify has a cell
        if op.how != SET:  # as `change_cell` does, here without a call: every other step is one of these
            value = cells[cell.slot] + op.amount
            if cell.low <= value <= cell.high:
                cells[cell.slot] = value
                return
        change_cell(self._memory, cell, op.how, op.amount)

    def _put_signal(self, op: Op) -> Tile:
        tile = self._copy(op)
        self._notify(op)
        return tile

    def _wait(self, op: Op) -> int | None:
        return consume(self._memory, op) if op.consume else None


def _nothing(op: Op) -> None:
    """Fence and quiet have nothing to order; start, join and sync concern the gate alone."""
