"""What an operation does to memory when its turn comes: this file is the memory model.

Under ``sc``, the only model so far, an effect happens whole, at its own step, for everybody.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from asyncsim.trace.op import GET, LOAD, NOTIFY, PUT, REMOTE_LOAD, REMOTE_STORE, SET, STORE, TEST, WAIT
from asyncsim.trace.region import ADD

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.machine.memory import Memory, Tile
    from asyncsim.trace.op import Op

MODELS = ("sc",)

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
    cell = op.cell
    assert cell is not None  # noqa: S101 - for the type checker: Rank makes no notify without a cell
    value = op.amount if op.how == SET else memory.cells[cell.slot] + op.amount
    _put_cell(memory, op, value)


def _put_cell(memory: Memory, op: Op, value: int) -> None:
    cell = op.cell
    assert cell is not None  # noqa: S101 - as above
    if not cell.low <= value <= cell.high:
        if not cell.wrap:
            raise CellOverflow
        value = cell.wrapped(value)
    memory.cells[cell.slot] = value


def _wait(memory: Memory, op: Op) -> None:
    if op.consume:
        assert op.cell is not None  # noqa: S101 - as above
        _put_cell(memory, op, memory.cells[op.cell.slot] - op.amount)


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
}
