"""Operations with a result, waits on a peer's cell, updates of other kinds: what no theorem speaks of in late memory.

A run under a late model that has one is judged by exploration. The findings of a run itself (how it ends, what its
results are) stay. Under ``sc`` events are looked at one by one, where there is one: columns know nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim.trace.cells import ADDING, SET, UPDATES
from asyncsim.trace.columns import Columns, among, done_as
from asyncsim.trace.kinds import EXCHANGING, READ_CELL, SEEING
from asyncsim.trace.late import model_of
from asyncsim.trace.region import READ, spans_overlap

if TYPE_CHECKING:
    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.region import Access, Cell

_RESULTS = EXCHANGING | {READ_CELL}
_OTHER = frozenset(UPDATES) - ADDING - {SET}


def beyond(trace: Trace) -> list[str]:
    """Return why the theory does not apply to the operations of a run: of the first that it does not cover; or none.

    Args:
        trace: the run; operations that were pending at its end count, too.

    """
    if not model_of(trace.header.memory).late:
        return _written_words(trace)
    pending = () if trace.footer is None else trace.footer.pending
    events = trace.events
    if isinstance(events, Columns):
        at = first_beyond(events)
        found = [] if at is None else [events[at]]
    else:
        found = [event for event in events if _is_beyond(event)][:1]
    found += [event for event in pending if _is_beyond(event)]
    return [f"{event.op.actor.title} does what is judged by exploration alone: '{event.op}'" for event in found[:1]]


def _written_words(trace: Trace) -> list[str]:
    """Return a reason if a word that a run synchronises on is also written plainly: its value is then not followed."""
    events = trace.events
    ops = [event.op for event in (() if trace.footer is None else trace.footer.pending)]
    cells: list[Cell] = list(events.cells.values()) if isinstance(events, Columns) else []
    touched: list[tuple[Access, ...]] = list(events.places) if isinstance(events, Columns) else []
    if not isinstance(events, Columns):
        ops += [event.op for event in events]
    cells += [op.cell for op in ops if op.cell is not None]
    regions = {cell.slot: cell.region for cell in cells if cell.region is not None}
    touched += [op.accesses for op in ops] if regions else []
    world = trace.header.world
    for region in regions.values():
        if any(window.dirty == "random" and window.name == world.memory_of(region.window) for window in world.windows):
            return [f"{region} is a word, and its window holds anything at the start: exploration decides"]
    written = (access for accesses in touched for access in accesses if access.mode != READ and not access.word)
    for access in written if regions else ():
        for region in regions.values():
            if access.region.slot == region.slot and spans_overlap(access.region.spans, region.spans):
                return [f"{region} is a word, and {access.region} is written plainly: exploration decides"]
    return []


def _is_beyond(event: Event) -> bool:
    op = event.op
    if op.cell is None:
        return False
    if op.cell.region is not None:
        return True
    if op.kind in _RESULTS or op.how in _OTHER or op.update or op.result:
        return True
    return op.kind in SEEING and op.cell.owner != op.actor.rank


def first_beyond(columns: Columns) -> int | None:
    """Return the first step that is beyond, or that says more than its kind and may be; None: none is.

    Args:
        columns: of a run.

    """
    steps = columns.steps
    words = [slot for slot, cell in columns.cells.items() if cell.region is not None]
    odd = among(_RESULTS)[steps.kind] | done_as(_OTHER)[steps.how]
    if words:
        odd |= np.isin(steps.cell, words)
    elif columns.cells and among(SEEING)[np.unique(steps.kind)].any():
        owner = np.full(max(columns.cells) + 2, -1)
        owner[list(columns.cells)] = [cell.owner for cell in columns.cells.values()]
        rank = np.array([actor.rank for actor in columns.actors])
        odd |= among(SEEING)[steps.kind] & (owner[steps.cell] != rank[steps.actor])
    found = [int(at) for at in np.flatnonzero(odd)[:1]]
    found += [at for at in columns.saying if _is_beyond(columns[at])][:1]
    return min(found, default=None)
