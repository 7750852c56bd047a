"""What memory held at each step, told from the events of a trace alone: no kernel runs.

A trace keeps the data of each step, up to 16 elements in full and more as a digest. So the contents of a
region are known as far as the steps that wrote it are, and otherwise it is known which steps those are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.event import Digest
from asyncsim.trace.kinds import CHANGING, COPYING, EFFECTS, EXCHANGING, READING, WRITING
from asyncsim.trace.op import change_by
from asyncsim.trace.region import ADD, READ
from asyncsim.trace.values import INLINE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.layout import WindowLayout
    from asyncsim.trace.region import Access, Region, Spans

Data = bytes | Digest | None
"""Bytes, the digest of bytes that the trace does not hold, or None: not even that is known."""

START = -1
"""The writer of what was there when the run began."""
_FAR = 1024
"""So many writes to a window are gone back through for what an add was added to; further back it is not known."""


@dataclass(frozen=True, slots=True)
class RegionContents:
    """What a region holds.

    Args:
        data: its elements in row-major order, as far as the trace tells.
        writers: the steps that wrote them, the latest first; `START` for what no step wrote.

    """

    data: Data
    writers: tuple[int, ...]


def written_by(event: Event) -> Access | None:
    """Return the access by which a step changes memory for all ranks; None if it changes none.

    Under a memory model that is late that is the landing, not the operation that it belongs to.
    """
    op = event.op
    if op.deferred or op.kind not in WRITING or not op.accesses or op.accesses[-1].mode == READ:
        return None
    return op.accesses[-1]


def read_by(event: Event) -> Access | None:
    """Return the access by which a step reads memory; None if it reads none."""
    op = event.op
    copies = op.kind in COPYING and not (op.late and op.deferred)
    if op.accesses and (op.kind in READING or (copies and op.accesses[0].mode == READ)):
        return op.accesses[0]
    return None


def cells_after(trace: Trace) -> list[int | None]:
    """Return, for each step, the value that its cell has after it; None for a step that changes no cell."""
    values: dict[int, int] = {}
    world = trace.header.world
    found: list[int | None] = []
    for event in trace.events:
        op, after = event.op, None
        if op.cell is not None:
            if op.kind in CHANGING - EXCHANGING and not op.deferred:
                after = event.have
            elif not op.deferred and change_by(op) is not None:  # what it saw may hold own credits under way
                before = values.get(op.cell.slot, world.start_of(op.cell))
                after = op.cell.wrapped(EFFECTS[op.kind](before, op)[0])
            if after is not None:
                values[op.cell.slot] = after
        found.append(after)
    return found


class Contents:
    """The history of every window.

    Args:
        trace: the run.

    """

    def __init__(self, trace: Trace) -> None:
        """Go through the steps once, and add up what was added."""
        # By slot: a window that is over another one starts as that one does.
        self._layouts: dict[int, WindowLayout] = {window.first_slot: window for window in trace.header.world.windows}
        self._writes: dict[int, list[tuple[int, Spans]]] = {}
        self._data: dict[int, Data] = {}
        for step, event in enumerate(trace.events):
            access = written_by(event)
            if access is None:
                continue
            data: Data = event.data
            if access.mode == ADD:
                data = sum_of(access.region, self.before(access.region, step, far=_FAR).data, data)
            self._data[step] = data
            self._writes.setdefault(access.region.slot, []).append((step, access.region.spans))

    def data(self, step: int) -> Data:
        """Return what the region that a step wrote holds after it: of an add, the sum."""
        return self._data[step]

    def before(
        self,
        region: Region,
        step: int,
        *,
        without: Collection[int] = (),
        after: Sequence[tuple[int, Access, Data]] = (),
        far: int | None = None,
    ) -> RegionContents:
        """Return what a region holds just before a step.

        Args:
            region: the region, or a piece of one.
            step: the step.
            without: steps that are taken not to have happened.
            after: writes that are taken to have happened since: their steps, places and data.
            far: how many writes are gone back through at most; None: all.

        """
        known: dict[int, int] = {}
        writers: list[int] = []
        left = region.spans
        whole: Data = None
        for writer, spans, data in islice(self._latest(region.slot, step, without, after), far):
            common = _both(left, spans)
            if not common:
                continue
            writers.append(writer)
            whole = _as_seen(region, data) if spans == region.spans and left == region.spans else None
            if isinstance(data, bytes):
                _note(known, common, spans, data)
            left = _without(left, spans)
            if not left:
                break
        if left and (far is None or len(self._writes.get(region.slot, ())) < far):
            writers.append(START)
            _note_start(known, left, self._layouts[region.slot - region.owner], INLINE * region.dtype.itemsize)
        return RegionContents(whole or _assembled(region, known), tuple(writers))

    def _latest(
        self, slot: int, step: int, without: Collection[int], after: Sequence[tuple[int, Access, Data]]
    ) -> Iterable[tuple[int, Spans, Data]]:
        for writer, access, data in reversed(after):
            if access.region.slot == slot:
                yield writer, access.region.spans, data
        for writer, spans in reversed(self._writes.get(slot, ())):
            if writer < step and writer not in without:
                yield writer, spans, self._data[writer]


def sum_of(region: Region, base: Data, data: Data) -> Data:
    """Return a region's elements plus `data`, in its dtype; None where one of them is not known.

    Args:
        region: its dtype is that of both.
        base: the elements before.
        data: what is added to them, as many elements.

    """
    if not isinstance(base, bytes) or not isinstance(data, bytes) or len(base) != len(data):
        return None
    with np.errstate(all="ignore"):
        total: np.ndarray[Any, Any] = np.frombuffer(base, region.dtype) + np.frombuffer(data, region.dtype)
    return total.astype(region.dtype).tobytes()


def _as_seen(region: Region, data: Data) -> Data:
    """Return what a region holds after all of it was written, perhaps as elements of another size."""
    return Digest(data.hex, _elements_of(region)) if isinstance(data, Digest) else data


def _elements_of(region: Region) -> int:
    """Return how many elements a region, or a piece of one, has."""
    return prod(region.shape) if region.part is None else region.part[1] - region.part[0]


def _both(a: Spans, b: Spans) -> Spans:
    """Return the bytes that two span lists share."""
    found = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low < high:
            found.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def _without(a: Spans, b: Spans) -> Spans:
    found = []
    j = 0
    for start, high in a:
        low = start
        while j < len(b) and b[j][1] <= low:
            j += 1
        at = j
        while at < len(b) and b[at][0] < high:
            if b[at][0] > low:
                found.append((low, b[at][0]))
            low = b[at][1]
            at += 1
        if low < high:
            found.append((low, high))
    return tuple(found)


def _note(known: dict[int, int], common: Spans, spans: Spans, data: bytes) -> None:
    """Note the bytes of a write that no step has written since."""
    at = 0
    for low, high in spans:
        for start, stop in common:
            for byte in range(max(low, start), min(high, stop)):
                known[byte] = data[at + byte - low]
        at += high - low


def _note_start(known: dict[int, int], left: Spans, layout: WindowLayout, most: int) -> None:
    """Note what was there when the run began, unless a seed made it, or it is more than so many bytes."""
    size = layout.dtype.itemsize
    if layout.dirty == "random" or sum(high - low for low, high in left) > most:
        return
    element = np.array(0 if layout.dirty is None else layout.dirty).astype(layout.dtype).tobytes()
    for low, high in left:
        known.update((byte, element[byte % size]) for byte in range(low, high))


def _assembled(region: Region, known: dict[int, int]) -> bytes | None:
    if _elements_of(region) > INLINE or _elements_of(region) * region.dtype.itemsize > len(known):
        return None
    found = [known.get(byte) for low, high in region.spans for byte in range(low, high)]
    return None if None in found else bytes(byte for byte in found if byte is not None)
