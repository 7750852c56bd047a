"""Stages: what a check is doing and how far it is, and how much memory it takes at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.machine.course import COMPACT_RANKS
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Case
    from asyncsim.trace.world import Actor


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a check: a run, or what is done with one.

    The choices are those of the run itself, which grow while it goes on. So a step costs nothing for it:
    an observer reads `steps` now and then, from any thread.

    Args:
        name: what it is, as it stands behind "in the": "reference run", "analysis", "second run".
        compact: the runs that are recorded are kept in columns.
        choices: of the run that is under way; None: what goes on is no run, or many.
        total: of how many steps the run will be, about, or is, if it is over; None: not known.

    """

    name: str
    compact: bool
    choices: Sequence[Actor] | None = None
    total: int | None = None

    @property
    def steps(self) -> int:
        """How many steps the run has by now; 0 if there is none."""
        return 0 if self.choices is None else len(self.choices)

    @property
    def where(self) -> str:
        """Where the check is: ``in the second run, after 1,234,567 steps``."""
        if self.choices is not None:
            return f"in the {self.name}, after {self.steps:,} step{'' if self.steps == 1 else 's'}"
        return f"in the {self.name}" if self.total is None else f"in the {self.name} of {self.total:,} steps"


COMPACT_STEP = 400
"""Bytes a step where runs are kept in columns: some 60 of each run, and the regions, cells and values that it names."""
EVENT_STEP = 1800
"""Bytes a step where runs are kept as events, objects of several hundred bytes each."""
BESIDE = 56_000_000
"""Bytes besides: what is imported late, room that the allocator keeps, and the runs of a few calls more that look
whether a proof reaches farther, which are made where they are short."""


def is_compact(case: Case) -> bool:
    """Return whether the recorded runs of a case are kept in columns; with wires they never are."""
    return case.ranks >= COMPACT_RANKS and not model_of(case.memory).late


def footprint(steps: int, *, compact: bool) -> int:
    """Return how many bytes a check takes at most, over those that the process had before.

    Large windows, inputs and results come on top of it.

    Args:
        steps: of the reference run.
        compact: see `is_compact`.

    """
    return BESIDE + steps * (COMPACT_STEP if compact else EVENT_STEP)
