"""What accesses each kind of operation has in a trace: how many, of which mode, at whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.op import GET, LOAD, POLL, PUT, PUT_SIGNAL, REMOTE_LOAD, REMOTE_STORE, STORE
from asyncsim.trace.region import ADD, READ

if TYPE_CHECKING:
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access

COPIES = (GET, PUT, PUT_SIGNAL)
"""A source and a target."""
SINGLE = (LOAD, REMOTE_LOAD, STORE, REMOTE_STORE, POLL)
"""One access."""


def fault_of(op: Op) -> str:
    """Say what is wrong with the accesses of an operation; nothing: empty."""
    return _copy_fault(op) if op.kind in COPIES else _single_fault(op)


def _single_fault(op: Op) -> str:
    if len(op.accesses) != 1:
        return f"{len(op.accesses)} accesses; it has one"
    access = op.accesses[0]
    if (access.mode == READ) != (op.kind in (LOAD, REMOTE_LOAD, POLL)):
        return f"the mode {access.mode} does not fit"
    if op.kind != POLL and (access.region.owner == op.actor.rank) != (op.kind in (LOAD, STORE)):
        return f"{access.region} is not where this kind goes: remote is a peer's, the others the rank's own"
    return _add_fault(access)


def _copy_fault(op: Op) -> str:
    if len(op.accesses) != 2 and not (op.kind != GET and len(op.accesses) == 1):  # noqa: PLR2004 - source and target
        return f"{len(op.accesses)} accesses; it has a source and a target"
    target = op.accesses[-1]
    if op.kind == GET and target.region.owner != op.actor.rank:
        return f"the target {target.region} is a peer's"
    if op.kind != PUT and target.mode == ADD:
        return "only a put or a store adds"
    if len(op.accesses) == 1:
        return "it writes nothing" if target.mode == READ else _add_fault(target)
    return _source_fault(op, op.accesses[0], target)


def _source_fault(op: Op, source: Access, target: Access) -> str:
    if source.mode != READ:
        return "the first access, the source, is not a read"
    if op.kind != GET and source.region.owner != op.actor.rank:
        return f"the source {source.region} is a peer's"
    if source.region.shape != target.region.shape or source.region.dtype != target.region.dtype:
        return "source and target differ in shape or dtype"
    same = source.region.slot == target.region.slot and source.region.spans == target.region.spans
    if target.mode != ADD and (target.mode == READ) != same:
        return "a copy reads its target exactly when it is the source"
    return _add_fault(target)


def _add_fault(access: Access) -> str:
    return "booleans cannot be added" if access.mode == ADD and access.region.dtype.kind == "b" else ""
