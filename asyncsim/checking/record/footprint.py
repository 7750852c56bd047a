"""The footprint of a check: how much memory it takes at most, by the length of its reference run.

Measured on both verdicts of the reduce-scatter, from 32 to 1,024 ranks, and on a double buffer, over what the process
had before (a test measures it again): a proof keeps two runs, a refutation one, its races, and the witness runs. At
1,024 ranks a proof took 360 bytes a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.machine.course import COMPACT_RANKS
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from asyncsim.machine.case import Case

COMPACT_STEP = 400
"""Bytes a step where runs are kept in columns: some 60 of each run, and the regions, cells and values that it names."""
EVENT_STEP = 1800
"""Bytes a step where runs are kept as events, objects of several hundred bytes each."""
BESIDE = 56_000_000
"""Bytes besides: what is imported late, room that the allocator keeps, and the runs of a few calls more that look
whether a proof reaches farther, which are made where they are short."""


def is_compact(case: Case) -> bool:
    """Say whether the recorded runs of a case are kept in columns; with wires they never are."""
    return case.ranks >= COMPACT_RANKS and not model_of(case.memory).late


def footprint(steps: int, *, compact: bool) -> int:
    """Return how many bytes a check takes at most, over those that the process had before.

    Large windows, inputs and results come on top of it.

    Args:
        steps: of the reference run.
        compact: see `is_compact`.

    """
    return BESIDE + steps * (COMPACT_STEP if compact else EVENT_STEP)
