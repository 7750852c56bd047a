"""Stages: what a check is doing, and how far it is; for who watches it, and for who interrupts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.world import Actor


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a check: a run, or what is done with one.

    The choices are those of the run itself, which grow while it goes on. So a step costs nothing for it:
    who wants to know how far the run is looks at `steps` now and then, from any thread.

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
        """Say where the check is: ``in the second run, after 1,234,567 steps``."""
        if self.choices is not None:
            return f"in the {self.name}, after {self.steps:,} step{'' if self.steps == 1 else 's'}"
        return f"in the {self.name}" if self.total is None else f"in the {self.name} of {self.total:,} steps"
