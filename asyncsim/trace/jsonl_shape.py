"""What accesses each kind of operation has in a trace: how many, of which mode, at whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.kinds import ANY, COPYING, KINDS, OWN
from asyncsim.trace.region import ADD, READ

if TYPE_CHECKING:
    from asyncsim.trace.kinds import Touch
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access


def fault_of(op: Op) -> str:
    """Say what is wrong with the accesses of an operation; nothing: empty."""
    return _copy_fault(op) if op.kind in COPYING else _single_fault(op)


def _single_fault(op: Op) -> str:
    if len(op.accesses) != 1:
        return f"{len(op.accesses)} accesses; it has one"
    access, touch = op.accesses[0], KINDS[op.kind].touches[0]
    if (access.mode == READ) != (touch.mode == READ):
        return f"the mode {access.mode} does not fit"
    if not _is_there(op, access, touch):
        return f"{access.region} is not where this kind goes: remote is a peer's, the others the rank's own"
    return _add_fault(access, touch)


def _copy_fault(op: Op) -> str:
    source, target = KINDS[op.kind].touches
    if len(op.accesses) != 2 and not (source.optional and len(op.accesses) == 1):  # noqa: PLR2004 - source and target
        return f"{len(op.accesses)} accesses; it has a source and a target"
    last = op.accesses[-1]
    if not _is_there(op, last, target):
        return f"the target {last.region} is a peer's"
    if last.mode == ADD and not target.adds:
        return "only a put or a store adds"
    if len(op.accesses) == 1:
        return "it writes nothing" if last.mode == READ else _add_fault(last, target)
    return _source_fault(op, op.accesses[0], last)


def _is_there(op: Op, access: Access, touch: Touch) -> bool:
    return touch.at == ANY or (access.region.owner == op.actor.rank) == (touch.at == OWN)


def _source_fault(op: Op, source: Access, target: Access) -> str:
    if source.mode != READ:
        return "the first access, the source, is not a read"
    row, place = KINDS[op.kind].touches
    if not _is_there(op, source, row):
        return f"the source {source.region} is a peer's"
    if source.region.shape != target.region.shape or source.region.dtype != target.region.dtype:
        return "source and target differ in shape or dtype"
    same = source.region.slot == target.region.slot and source.region.spans == target.region.spans
    if target.mode != ADD and (target.mode == READ) != same:
        return "a copy reads its target exactly when it is the source"
    return _add_fault(target, place)


def _add_fault(access: Access, touch: Touch) -> str:
    if access.mode == ADD and not touch.adds:
        return f"the mode {access.mode} does not fit"
    return "booleans cannot be added" if access.mode == ADD and access.region.dtype.kind == "b" else ""
