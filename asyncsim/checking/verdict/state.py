"""The state of a check under way: what it has found, which stage it is in, and whether Ctrl-C came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.checking.record.interrupts import InterruptMask
from asyncsim.checking.record.stage import Stage, is_compact
from asyncsim.checking.search.tally import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.machine.course import Begun
    from asyncsim.trace.finding import Finding
    from asyncsim.trace.world import Actor


class CheckState:
    """What all parts of a check share.

    Args:
        case: what is checked.
        on_progress: called when a stage begins, and by `report_progress`.

    Attributes:
        findings: so far.
        notes: remarks that are not findings.
        schedules: how many runs were begun.
        interrupted: Ctrl-C came.
        stage: the present one; None: a part that reports its own progress.

    """

    def __init__(self, case: Case, on_progress: Callable[[Progress], None] | None) -> None:
        """Start with nothing found."""
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.schedules = 0
        self.interrupted = False
        self.stage: Stage | None = None
        self._compact = is_compact(case)
        self._on_progress = on_progress
        self._mask = InterruptMask()

    @property
    def refuted(self) -> bool:
        """Whether something harmful was found."""
        return any(finding.harmful for finding in self.findings)

    @property
    def where(self) -> str:
        """The stage in words; empty if there is none."""
        return "" if self.stage is None else self.stage.where

    def begin_stage(self, name: str, *, total: int | None = None) -> None:
        """Begin a stage that is not a run.

        Args:
            name: see `Stage`.
            total: the length in steps of the run that it is about.

        """
        self._enter(Stage(name, self._compact, None, total))

    def begin_run(self, name: str, *, total: int | None = None) -> Begun:
        """Return a callback that is given the choices of a run, and then begins its stage.

        Args:
            name: see `Stage`.
            total: how many steps it will have; None: not known.

        """

        def begin(choices: Sequence[Actor]) -> None:
            self._enter(Stage(name, self._compact, choices, total))

        return begin

    def end_stage(self) -> None:
        """End the stage: what follows reports its own progress."""
        self.stage = None

    def report_progress(self) -> None:
        """Report how many runs were made, and how many findings there are."""
        if self._on_progress is not None:
            self._on_progress(Progress(self.schedules, self.schedules, len(self.findings), stage=self.stage))

    def interrupt(self) -> None:
        """Note that Ctrl-C came, and ignore further ones, which would lose what was found."""
        self.interrupted = True
        self._on_progress = None  # the callback may be what interrupted the check
        self._mask.begin()

    def close(self) -> None:
        """End the stage, and let Ctrl-C interrupt again."""
        self.end_stage()
        self._mask.end()

    def _enter(self, stage: Stage) -> None:
        self.stage = stage
        self.report_progress()
