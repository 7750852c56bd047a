"""What an operation does to memory when its turn comes, under sequential consistency.

An effect happens whole, at its own step, for everybody. `asyncsim.machine.wires` has the models
under which it lands later.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

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
from asyncsim.trace.region import ADD

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


def _load(memory: Memory, op: Op) -> Tile:
    return memory.read(op.accesses[0].region)


def _store(memory: Memory, op: Op) -> None:
    access = op.accesses[0]
    if access.mode == ADD:
        memory.add(access.region, op.payload)
    else:
        memory.write(access.region, op.payload)


def _copy(memory: Memory, op: Op) -> Tile:
    """Get and put: the last access is the destination; before it, if it is in a window, the source."""
    target = op.accesses[-1]
    tile: Tile = op.payload if op.payload is not None else memory.read(op.accesses[0].region)
    if target.mode == ADD:
        memory.add(target.region, tile)
    elif target.mode != "read":  # a copy of elements onto themselves only reads
        memory.write(target.region, tile)
    return tile


def _notify(memory: Memory, op: Op) -> None:
    assert op.cell is not None  # noqa: S101 - for the type checker: Rank makes no notify without a cell
    change_cell(memory, op.cell, op.how, op.amount)


def change_cell(memory: Memory, cell: Cell, how: str, amount: int) -> None:
    """Add to a cell, or set it.

    Raises:
        CellOverflow: it would leave its range, and its signal does not wrap.

    """
    value = amount if how == SET else memory.cells[cell.slot] + amount
    if not cell.low <= value <= cell.high:
        if not cell.wrap:
            raise CellOverflow
        value = cell.wrapped(value)
    memory.cells[cell.slot] = value


def _wait(memory: Memory, op: Op) -> int | None:
    return consume(memory, op) if op.consume else None


def consume(memory: Memory, op: Op) -> int:
    """Subtract what a consuming wait waited for, and return what the cell held before."""
    assert op.cell is not None  # noqa: S101 - as above
    seen = memory.cells[op.cell.slot]
    change_cell(memory, op.cell, ATOMIC_ADD, -op.amount)
    return seen


def _put_signal(memory: Memory, op: Op) -> Tile:
    tile = _copy(memory, op)
    _notify(memory, op)
    return tile


def _nothing(memory: Memory, op: Op) -> None:
    """Fence and quiet have nothing to order; start, join and sync concern the gate alone."""


def _test(memory: Memory, op: Op) -> bool:
    assert op.cell is not None  # noqa: S101 - as above
    return COMPARE[op.how](memory.cells[op.cell.slot], op.amount)


EFFECTS: dict[str, Callable[[Memory, Op], Any]] = {
    LOAD: _load,
    REMOTE_LOAD: _load,
    STORE: _store,
    REMOTE_STORE: _store,
    GET: _copy,
    PUT: _copy,
    NOTIFY: _notify,
    WAIT: _wait,
    TEST: _test,
    PUT_SIGNAL: _put_signal,
    POLL: _load,
    FENCE: _nothing,
    QUIET: _nothing,
    START: _nothing,
    JOIN: _nothing,
    SYNC: _nothing,
}


def satisfied(op: Op, tile: Tile) -> bool:
    """Say whether a poll may go on.

    Its predicate is the kernel's, but this is nobody's turn. Where it raises, the poll goes on: `Rank.poll`
    then asks once more, and the exception comes out of the kernel that it belongs to, at its line.
    """
    try:
        return bool(op.payload(tile))
    except Exception:  # noqa: BLE001 - raised again in its own place
        return True


class Immediate:
    """The effects of operations under ``sc``: whole, at their own step, for everybody.

    Args:
        memory: the values.

    """

    late = False

    def __init__(self, memory: Memory) -> None:
        """Act on `memory`."""
        self._memory = memory
        self.table = {kind: partial(effect, memory) for kind, effect in EFFECTS.items()}

    def passes(self, op: Op) -> bool:
        """Say whether a wait, poll or quiet can go on now."""
        if op.cell is not None:
            return COMPARE[op.how](self._memory.cells[op.cell.slot], op.amount)
        if op.kind == POLL:
            return satisfied(op, self._memory.peek(op.accesses[0].region))
        return True

    def seen(self, op: Op) -> int:
        """Return the value of an operation's cell, which is the same for everybody."""
        assert op.cell is not None  # noqa: S101 - for the type checker: the caller knows
        return self._memory.cells[op.cell.slot]

    def fresh(self) -> Sequence[Op]:
        """Nothing ever lands later."""
        return ()
