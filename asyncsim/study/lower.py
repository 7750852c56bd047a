"""What a call becomes: the primitives that one rank executes, and the credits that its cells gain and lose.

It is read off one recorded fair run, so a composite shows what it does, not what its source looks like.
Two kernels can be laid side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Any

from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.cells import ADDING, ATOMIC_ADD, SYMBOLS, UPDATES
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import COMPARING, EFFECTS, NOTIFYING, SEEING
from asyncsim.trace.op import change_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Event, Site, Trace

SAME, CHANGED, LEFT, RIGHT = "=", "~", "<", ">"
"""Both have it; both, with another amount or place; only the left one; only the right one."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """One operation of the rank.

    Args:
        text: what it does: ``notify signal[0, 0]@1 += 1``.
        phase: the labels that held, from the outside in; empty if none did.
        at: the author's line, then the line inside a composite.
        actor: the rank, or one of its streams.
        short: what it does, without the places within a window or signal: ``notify signal += 1``.
        key: what it is: two kernels are aligned by this.

    """

    text: str
    phase: str
    at: Site
    actor: str
    short: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """Primitives in a row, from one site and all of one sort."""

    count: int
    first: Primitive


@dataclass(slots=True)
class Credits:
    """What one cell of the rank went through in the call.

    Args:
        cell: which: ``signal[1, 0]@0``.
        signal: the signal it belongs to.
        start: its value before the call.
        changes: (rank, change) in the order of the run; a Set is written ``:= 0``, an add ``+1``.
        waits: what it was compared with, as ``>= 1``.
        left: its value after the call.

    """

    cell: str
    signal: str
    start: int
    changes: list[tuple[int, str]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    left: int = 0

    @property
    def sum(self) -> str:
        """The changes as a sum: ``+1 +1 -2 = 0``; the start value first, if it is not zero."""
        first = [str(self.start)] if self.start else []
        return f"{' '.join([*first, *(change for _, change in self.changes)])} = {self.left}"

    @property
    def gained(self) -> int:
        """How many credits came: N, for a cell that counts those of one peer."""
        return sum(int(change) for _, change in self.changes if change.startswith("+"))


@dataclass(slots=True, eq=False)
class Lowered:
    """One call of a kernel on one rank.

    Args:
        kernel: which.
        ranks: P.
        rank: whose primitives these are.
        call: which call, from 0.
        primitives: in the order of the rank; those of its streams as they came in the fair run.
        cells: of the rank, those that were touched; in the order in which they were.
        pending: the operations that it had not done when the run ended, if it hangs.

    """

    kernel: Kernel
    ranks: int
    rank: int
    call: int
    primitives: list[Primitive]
    cells: list[Credits]
    pending: list[Primitive]

    @property
    def groups(self) -> list[Repeated]:
        """The primitives, those of one sort from one site as one."""

        def sort(step: Primitive) -> tuple[Any, ...]:
            return step.actor, step.phase, step.at, step.short, step.key

        runs = (list(run) for _, run in groupby(self.primitives, sort))
        return [Repeated(len(run), run[0]) for run in runs]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "kernel": self.kernel.ref, "ranks": self.ranks, "rank": self.rank, "call": self.call,
            "primitives": [_json(step) for step in self.primitives],
            "cells": [
                {
                    "cell": cell.cell, "start": cell.start, "left": cell.left, "waits": cell.waits,
                    "changes": [{"rank": rank, "change": change} for rank, change in cell.changes],
                }
                for cell in self.cells
            ],
            "stands_at": [_json(step) for step in self.pending],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A line of two kernels side by side; `mark` is `SAME`, `CHANGED`, `LEFT` or `RIGHT`."""

    mark: str
    left: Repeated | None
    right: Repeated | None


def lower(kernel: Kernel, *, ranks: int = 4, rank: int = 0, call: int = 0, seed: int = 0) -> Lowered:
    """Run a kernel once, in fair turn, and return what one call of it becomes on one rank.

    Args:
        kernel: the kernel.
        ranks: P.
        rank: whose primitives; 0 to P - 1.
        call: which call, from 0; those before it are run too.
        seed: of the inputs.

    Raises:
        KernelError: the kernel raised.
        MisuseError: there is no such rank or call.

    """
    if not 0 <= rank < ranks:
        raise MisuseError(f"there is no rank {rank}; the ranks are 0 to {ranks - 1}")
    if call < 0:
        raise MisuseError(f"there is no call {call}; calls count from 0")
    trace = simulate(Case(kernel, ranks, call + 1, seed=seed), Fifo(), record="fifo").recorded
    own = [event for event in trace.events if event.op.actor.rank == rank and event.call == call]
    pending = [event for event in trace.footer.pending if event.op.actor.rank == rank] if trace.footer else []
    return Lowered(
        kernel, ranks, rank, call, [_primitive(event) for event in own], _credits(trace, rank, call),
        [_primitive(event) for event in pending],
    )  # fmt: skip


def side_by_side(left: Lowered, right: Lowered) -> list[Row]:
    """Align two calls, group by group, so that as much as possible stands beside its like.

    Args:
        left: one call of a kernel on one rank.
        right: another one.

    """
    a, b = left.groups, right.groups
    matcher = SequenceMatcher(None, [group.first.key for group in a], [group.first.key for group in b], autojunk=False)
    rows: list[Row] = []
    for _, low, high, start, stop in matcher.get_opcodes():
        if high - low == stop - start and [g.first.key for g in a[low:high]] == [g.first.key for g in b[start:stop]]:
            rows += [Row(_mark(one, other), one, other) for one, other in zip(a[low:high], b[start:stop], strict=True)]
        else:
            rows += [Row(LEFT, group, None) for group in a[low:high]]
            rows += [Row(RIGHT, None, group) for group in b[start:stop]]
    return rows


def credit_sums(cells: Sequence[Credits]) -> Iterator[tuple[str, list[Credits]]]:
    """Yield (signal, cells) for cells that went through the same: they differ in place and peer only."""
    alike: dict[tuple[str, str], list[Credits]] = {}
    for cell in cells:
        alike.setdefault((cell.signal, cell.sum), []).append(cell)
    for (signal, _), same in alike.items():
        yield signal, same


def _mark(one: Repeated, other: Repeated) -> str:
    return SAME if (one.count, one.first.short) == (other.count, other.first.short) else CHANGED


def _primitive(event: Event) -> Primitive:
    op = event.op
    home = op.actor.rank
    windows = [access.region.window + _peer_suffix(access.region.owner == home) for access in op.accesses]
    names = windows + ([op.cell.signal + _peer_suffix(op.cell.owner == home)] if op.cell is not None else [])
    sign = "-" if op.amount < 0 else "+"
    key = (op.kind, *names, op.how, sign)
    return Primitive(str(op), event.phase, event.at, op.actor.name, _without_places(event), key)


def _peer_suffix(own: bool) -> str:  # noqa: FBT001 - of this page
    return "" if own else "@peer"


def _without_places(event: Event) -> str:
    """Write an operation without its places: what is left is the same for all peers."""
    op = event.op
    if op.cell is None:
        windows = [access.region.window for access in op.accesses]
        return " ".join([op.kind, " to ".join(dict.fromkeys(windows)) or op.link]).rstrip()
    where = "own " if op.kind in NOTIFYING and op.cell.owner == op.actor.rank else ""
    if op.kind in COMPARING:
        consuming = " and subtract" if op.consume else f" and {_change(event)}" if op.update else ""
        return f"{op.kind} {op.cell.signal} {SYMBOLS[op.how]} {op.amount}{consuming}"
    if op.kind in SEEING:
        return f"{op.kind} {op.cell.signal}"
    return f"{op.kind} {where}{op.cell.signal} {_change(event)}"


def _change(event: Event) -> str:
    how, amount = change_by(event.op) or (ATOMIC_ADD, 0)
    return f"{amount:+d}" if how in ADDING else f"{UPDATES[how].symbol} {amount}"


def _credits(trace: Trace, rank: int, call: int) -> list[Credits]:
    """Follow the cells of a rank through the run, and keep what the given call did to them."""
    cells: dict[int, Credits] = {}
    for event in _on_cells(trace.events, rank):
        op = event.op
        cell = op.cell
        assert cell is not None  # noqa: S101 - for the type checker: only operations on cells come here
        start = trace.header.world.start_of(cell)
        known = cells.setdefault(cell.slot, Credits(str(cell), cell.signal, start, left=start))
        if op.kind in COMPARING and event.call == call:
            known.waits.append(f"{SYMBOLS[op.how]} {op.amount}")
        if (made := change_by(op)) is not None:
            change = _change(event)
            known.left = cell.wrapped(EFFECTS[op.kind](known.left, op)[0])
            if event.call == call:
                known.changes.append((op.actor.rank, change))
            elif not known.changes:
                known.start = known.left
            elif made[0] in ADDING:  # of an earlier call, and it came late: it is no credit of this one
                known.start += int(change)
    return [cell for cell in cells.values() if cell.changes or cell.waits]


def _on_cells(events: Iterable[Event], rank: int) -> Iterator[Event]:
    return (event for event in events if event.op.cell is not None and event.op.cell.owner == rank)


def _json(step: Primitive) -> dict[str, Any]:
    return {"op": step.text, "phase": step.phase or None, "at": list(step.at), "actor": step.actor}
