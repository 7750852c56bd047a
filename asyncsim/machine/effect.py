"""What an operation does to memory when its turn comes, under sequential consistency.

An effect happens whole, at its own step, for everybody. `asyncsim.machine.wires` has the models
under which it lands later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import ATOMIC_ADD, COMPARE, SET
from asyncsim.trace.guest import is_ctrl_c
from asyncsim.trace.kinds import CARRYING, COPYING, EFFECTS, KINDS, NOTIFY, POLLING, READING, STORING, WAIT
from asyncsim.trace.op import Op
from asyncsim.trace.region import ADD, READ

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.memory import Memory, Tile
    from asyncsim.trace.region import Cell


class CellOverflow(Exception):  # noqa: N818 - not an error of the caller: the run ends with a finding
    """A cell would leave its integer range, and its signal was not declared ``wrap=True``."""


def change_cell(memory: Memory, op: Op, cell: Cell) -> Any:  # noqa: ANN401 - by kind
    """Do to a cell what the row of the operation's kind says, and return what its actor gets.

    Args:
        memory: of the run.
        op: an operation on a cell; a wait has passed.
        cell: its cell.

    Raises:
        CellOverflow: it would leave its range, and its signal does not wrap.

    """
    held = memory.held(cell)
    if cell.region is not None and op.how != SET:
        memory.note_read(cell.region)
    value, result = EFFECTS[op.kind](held, op)
    if not cell.low <= value <= cell.high:
        if not cell.wrap:
            raise CellOverflow
        value = cell.wrapped(value)
    memory.hold(cell, value)
    return result


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
        table: dict[str, Callable[[Op], Any]] = dict.fromkeys(KINDS, _nothing)
        table |= dict.fromkeys(READING, self._load)
        table |= dict.fromkeys(STORING, self._store)
        table |= dict.fromkeys(COPYING, self._copy)
        table |= dict.fromkeys(EFFECTS, self._change)
        table |= dict.fromkeys(CARRYING, self._copy_and_change)
        return table | {NOTIFY: self._notify, WAIT: self._wait}

    def passes(self, op: Op) -> bool:
        """Say whether a wait, poll or quiet can go on now."""
        if op.cell is not None:
            try:
                return COMPARE[op.how](self._cells[op.cell.slot], op.amount)
            except IndexError:  # it is a word, whose number is behind those of all counters
                return COMPARE[op.how](self._memory.held(op.cell), op.amount)
        if op.kind in POLLING:
            return satisfied(op, self.peek(op))
        return True

    def seen(self, op: Op) -> int:
        """Return the value of an operation's cell, which is the same for everybody."""
        assert op.cell is not None  # noqa: S101 - for the type checker: the caller knows
        return self._memory.held(op.cell)

    def peek(self, op: Op) -> Tile:
        """Return what a poll looks at, which is the same for everybody."""
        return self._memory.peek(op.accesses[0].region)

    def arrive(self, op: Op) -> None:
        """Nothing depends on who comes to a meeting: what each wrote is there."""

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

    def _change(self, op: Op) -> Any:  # noqa: ANN401 - by kind
        return change_cell(self._memory, op, op.cell)  # type: ignore[arg-type]  # the kind has a cell

    def _copy_and_change(self, op: Op) -> Tile:
        tile = self._copy(op)
        self._change(op)
        return tile

    # Every other step is a notify or a wait: here without the calls that their rows take.

    def _notify(self, op: Op) -> None:
        cell, cells = op.cell, self._cells
        assert cell is not None  # noqa: S101 - for the type checker: a notify has a cell
        if op.how == ATOMIC_ADD and cell.region is None:
            value = cells[cell.slot] + op.amount
            if cell.low <= value <= cell.high:
                cells[cell.slot] = value
                return
        self._change(op)

    def _wait(self, op: Op) -> int | None:
        return self._change(op) if op.consume or op.accesses or op.__class__ is not Op else None


def _nothing(op: Op) -> None:
    """Fence and quiet have nothing to order; start, join and sync concern the gate alone."""
