"""Signals that are notified and that nobody waits for: mostly a credit that was forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim.trace.columns import KIND, Columns
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.op import NOTIFY, PUT_SIGNAL, TEST, WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Run
    from asyncsim.trace.event import Event

_TELL, _ASK = (NOTIFY, PUT_SIGNAL), (WAIT, TEST)


def unawaited(run: Run) -> list[str]:
    """Say of each signal that ranks notify at peers, and whose cells nobody waits for or tests, that it is so.

    Args:
        run: recorded; of one that did not come to its end nothing is said.

    """
    if run.ending != COMPLETE or run.trace is None:
        return []
    events = run.trace.events
    told, asked = _by_columns(events) if isinstance(events, Columns) else _by_event(events)
    return [
        f"signal {signal} is notified, first at {at}, and nobody waits for it or tests it"
        for signal, at in told.items()
        if signal not in asked
    ]


def _by_event(events: Sequence[Event]) -> tuple[dict[str, str], set[str]]:
    """Return the signals that are notified at peers, each with the first line, and those that are asked."""
    told: dict[str, str] = {}
    asked = set()
    for event in events:
        cell = event.op.cell
        if cell is not None and event.op.kind in _TELL and cell.owner != event.op.actor.rank:
            told.setdefault(cell.signal, event.at[0])
        elif cell is not None and event.op.kind in _ASK:
            asked.add(cell.signal)
    return told, asked


def _by_columns(events: Columns) -> tuple[dict[str, str], set[str]]:
    """Return the same of columns."""
    steps = events.steps
    tells = np.flatnonzero(np.isin(steps.kind, [KIND[kind] for kind in _TELL]))
    slots, numbers = np.unique(steps.cell[tells], return_inverse=True)
    owners = np.array([events.cells[int(slot)].owner for slot in slots], int)[numbers]
    ranks = np.array([actor.rank for actor in events.actors], int)[steps.actor[tells]]
    tells = tells[owners != ranks]
    told: dict[str, str] = {}
    for first in sorted(np.unique(steps.cell[tells], return_index=True)[1]):
        step = int(tells[first])
        at = events.wheres[int(steps.where[step])][1]
        told.setdefault(events.cells[int(steps.cell[step])].signal, at[0])
    asks = np.isin(steps.kind, [KIND[kind] for kind in _ASK])
    return told, {events.cells[int(slot)].signal for slot in np.unique(steps.cell[asks])}
