"""Values that a run is said to have read, and that nothing in it wrote: then the record is not whole.

Where no order matters, every read has one writer. If the bytes that it is said to have got are
others, an operation is missing from the record, or a place in it is wrong; what was concluded from
it is then of another kernel. Only what is known byte by byte is compared: digests are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.region import ADD, READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.region import Access

_FEW = 3
_SMALL = 1 << 12
"""Larger regions are not followed byte by byte: what they held is then unknown."""

_Bytes = dict[int, int]


def unexplained_reads(trace: Trace) -> list[str]:
    """Return a sentence for each of the first reads whose value does not follow from the steps before it.

    Args:
        trace: clean, and not of late memory: there a value lands elsewhere.

    """
    if trace.header.memory != "sc":
        return []
    known: dict[int, _Bytes] = {}
    odd = []
    for event in trace.events:
        access = event.op.accesses[0] if event.op.accesses else None
        if access is not None and access.mode == READ and _differs(known, access, event):
            line = f" at {event.at[0]}" if event.at and event.at[0] else ""
            odd.append(
                f"{event.op.actor.title}'s '{event.op}'{line} is said to get other bytes than the operations "
                "before it leave there: something is missing from this record"
            )
        for target in event.op.accesses:
            if target.mode in (WRITE, ADD):
                _write(known, target, event)
    rest = len(odd) - _FEW
    return [*odd[:_FEW], *([f"and {rest} more such reads"] if rest > 0 else [])]


def _places(access: Access) -> Iterator[int]:
    for start, stop in access.region.spans:
        yield from range(start, stop)


def _size(access: Access) -> int:
    return sum(stop - start for start, stop in access.region.spans)


def _differs(known: dict[int, _Bytes], access: Access, event: Event) -> bool:
    held = known.get(access.region.slot)
    data = event.data
    if not held or not isinstance(data, bytes) or len(data) != _size(access):
        return False
    return any(held.get(place, byte) != byte for place, byte in zip(_places(access), data, strict=True))


def _write(known: dict[int, _Bytes], access: Access, event: Event) -> None:
    slot, size = access.region.slot, _size(access)
    if size > _SMALL:
        known.pop(slot, None)
        return
    held = known.setdefault(slot, {})
    data = event.data
    if access.mode == WRITE and isinstance(data, bytes) and len(data) == size:
        held.update(zip(_places(access), data, strict=True))
    else:
        for place in _places(access):
            held.pop(place, None)
