"""The report of a check, as data: verdict, its scope, findings, notes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.finding import ATOMIC, PROVED, RACE, REFUTED, SUM

if TYPE_CHECKING:
    from asyncsim.analysis.analyse import Analysis
    from asyncsim.machine.case import Case
    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Finding

GRANTED = "the kernel depends on nothing but its inputs, its windows and its signals"
"""What every proof takes for granted."""
WHOLE = "what one operation writes lands whole (ldst:atom=1 or nic:atom=1 lets it land in pieces)"
"""What a proof under a model that is late takes for granted besides, if no atom is named."""


HARMFUL, ALL = "harmful", "all"
RACES = (HARMFUL, ALL)
"""Which races refute: those that are shown to be harmful, or all that some schedule has."""
RACING = (RACE, "signal-race", "unstable-wait", SUM, ATOMIC)
"""The kinds of findings that are meant by that."""


def check_races(races: object) -> None:
    """Raise a `MisuseError` if this says nothing of which races refute."""
    if races not in RACES:
        raise MisuseError(f"races={races!r}; give 'harmful', or 'all': then benign races refute, too")


def counting(report: Report, races: str) -> Report:
    """Return a report in which so many races refute; the scope says so where it makes the verdict another one.

    Args:
        report: left as it is.
        races: "harmful": those that are shown to be so; or "all".

    """
    others = sum(finding.kind in RACING and not finding.harmful for finding in report.findings)
    if races == HARMFUL or not others or report.refuted:
        return report
    which = (
        "a race that is not shown to be harmful counts"
        if others == 1
        else (f"{others} races that are not shown to be harmful count")
    )
    return replace(report, verdict=REFUTED, scope=f"{which} all the same (races: all); {report.scope}")


@dataclass(slots=True)
class Report:
    """What `check` or `explore` says of a case.

    Args:
        case: what was judged.
        verdict: one of `VERDICTS`.
        scope: what the verdict rests on, as a sentence: "one run of 200 steps; holds for every schedule".
        findings: the harmful ones first.
        notes: remarks that are no findings ("equal within tolerance, not bit for bit").
        schedules: how many runs were made, the reference run included.
        steps: of the reference run.
        seconds: the whole check took.
        interrupted: Ctrl-C ended it early; the verdict is of what was done.
        explanation: the class of each cell, and how the order was found; for who asks for it.
        one_run: one run and its analysis decided, with witnesses but without exploring other schedules.
        later: of PROVED, how far it reaches beyond the calls that were judged, as the end of a sentence; else empty.
        proof: of PROVED, the run and what the analysis said of it: what a certificate is made of; None if it was
            judged under several memory models.
        models: the memory models that the verdict is of; by default the case's.
        late_words: the kernel's author says when something is there: put, non-blocking, relaxed, fence or quiet.

    """

    case: Case
    verdict: str
    scope: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    schedules: int = 1
    steps: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    one_run: bool = False
    explanation: list[str] = field(default_factory=list)
    later: str = ""
    proof: tuple[Trace, Analysis] | None = field(default=None, repr=False, compare=False)
    models: tuple[str, ...] = ()
    late_words: bool = False

    def __post_init__(self) -> None:
        """Name the model of the case, if nothing else is said."""
        self.models = self.models or (self.case.memory,)

    @property
    def granted(self) -> str:
        """What a proof takes for granted, under the models that it is of."""
        return f"{GRANTED}; {WHOLE}" if {"ldst", "nic"} & set(self.models) else GRANTED

    @property
    def refuted(self) -> bool:
        """Whether something harmful was found."""
        return self.verdict == REFUTED

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this report."""
        case = self.case
        return {
            "kernel": case.kernel.ref, "ranks": case.ranks, "calls": case.calls, "memory": case.memory,
            "models": list(self.models),
            "verdict": self.verdict, "steps": self.steps, "seconds": round(self.seconds, 6),
            "findings": [finding.to_json() for finding in self.findings],
            "scope": self.scope, "notes": self.notes, "schedules": self.schedules, "one_run": self.one_run,
            "interrupted": self.interrupted, "later_calls": self.later or None,
            "granted": self.granted if self.verdict == PROVED else None,
        }  # fmt: skip
