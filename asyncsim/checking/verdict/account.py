"""The account of a check: what it has found by now, what it is doing, and that Ctrl-C came."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from asyncsim.checking.record.interrupts import Deaf
from asyncsim.checking.record.stage import Stage, is_compact
from asyncsim.checking.search.tally import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.machine.course import Begun
    from asyncsim.trace.finding import Finding
    from asyncsim.trace.world import Actor


class Account:
    """One record for all parts of a check.

    Args:
        case: what is judged.
        told: is called when a stage begins, and by `tell`.

    Attributes:
        findings: so far.
        notes: remarks that are no findings.
        schedules: how many runs were begun.
        interrupted: Ctrl-C came.
        stage: what goes on; None: something that tells its own progress.

    """

    def __init__(self, case: Case, told: Callable[[Progress], None] | None) -> None:
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.schedules = 0
        self.interrupted = False
        self.stage: Stage | None = None
        self._compact = is_compact(case)
        self._told = told
        self._deaf = Deaf()

    @property
    def refuted(self) -> bool:
        """Whether something harmful was found."""
        return any(finding.harmful for finding in self.findings)

    @property
    def where(self) -> str:
        """What goes on, in words; empty if there is no stage."""
        return "" if self.stage is None else self.stage.where

    def begin(self, name: str, *, total: int | None = None) -> None:
        """Begin a stage that is no run.

        Args:
            name: see `Stage`.
            total: of how many steps the run is that it is about.

        """
        self._enter(Stage(name, self._compact, None, total))

    def run(self, name: str, *, total: int | None = None) -> Begun:
        """Return what takes the choices of a run, and begins its stage.

        Args:
            name: see `Stage`.
            total: how many steps it will have; None: not known.

        """
        return partial(self._run, name, total)

    def leave(self) -> None:
        """Leave the stage: what comes tells its own progress."""
        self.stage = None

    def tell(self) -> None:
        """Tell what was done and found by now."""
        if self._told is not None:
            self._told(Progress(self.schedules, self.schedules, len(self.findings), stage=self.stage))

    def interrupt(self) -> None:
        """Note that Ctrl-C came, and be deaf to further ones, which would lose what was found."""
        self.interrupted = True
        self._told = None  # who watched may be what interrupted it
        self._deaf.begin()

    def close(self) -> None:
        """Hear Ctrl-C again, and let go of the last run."""
        self.leave()
        self._deaf.end()

    def _run(self, name: str, total: int | None, choices: Sequence[Actor]) -> None:
        self._enter(Stage(name, self._compact, choices, total))

    def _enter(self, stage: Stage) -> None:
        self.stage = stage
        self.tell()
