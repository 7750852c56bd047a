"""What a test requires of a report, and the error that says in which way a report does not meet it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.finding import EXHAUSTED, HAZARDS, KINDS, NEXT_CALL, PROVED, REFUTED, SAME_CALL, SURVIVED, Expected
from asyncsim.views.report import case_text, finding_title, report_text

if TYPE_CHECKING:
    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel

LEVELS = {
    "proved": (PROVED,),
    "exhausted": (PROVED, EXHAUSTED),
    "survived": (PROVED, EXHAUSTED, SURVIVED),
    "refuted": (REFUTED,),
}
"""The verdicts that meet each level."""

Finds = str | Expected | Sequence[str | Expected]
"""What must be found: "WAR", "WAR, next call", "deadlock", an `Expected`, or several of these."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is asked of a verdict.

    Args:
        level: one of `LEVELS`.
        finds: of "refuted", the harmful findings that there must be; empty: any.

    """

    level: str = "proved"
    finds: tuple[Expected, ...] = ()

    @classmethod
    def of(cls, level: str | None = None, finds: Finds | None = None) -> Requirement:
        """Make one of what a test says; findings without a level ask for "refuted".

        Args:
            level: one of `LEVELS`; None: "refuted" if findings are named, else "proved".
            finds: the findings that there must be, and no others; None: any.

        Raises:
            MisuseError: there is no such level or finding, or the two do not fit each other.

        """
        expected = _expected(finds)
        chosen = level if level is not None else "refuted" if expected else "proved"
        if not isinstance(chosen, str) or chosen not in LEVELS:
            raise MisuseError(f"require={chosen!r}; give one of {', '.join(map(repr, LEVELS))}")
        if expected and chosen != "refuted":
            raise MisuseError(f"require={chosen!r} leaves no room for finds={finds!r}; findings go with 'refuted'")
        return cls(chosen, expected)

    @classmethod
    def declared_by(cls, kernel: Kernel) -> Requirement:
        """Ask for what the kernel itself declares: its known findings, or a proof."""
        return cls.of(finds=kernel.finds or None)

    def unmet(self, report: Report) -> str:
        """Say in which way the report is not what is required; empty if it is."""
        if report.verdict not in LEVELS[self.level]:
            return f"{_either(LEVELS[self.level])} is required, and it is {report.verdict}"
        if report.interrupted:
            return "the check was interrupted"
        harmful = [finding for finding in report.findings if finding.harmful]
        ranks = report.case.ranks if report.case.calls == 2 else None  # noqa: PLR2004 - counts of pairs are of two calls
        missing = [str(one) for one in self.finds if not any(one.matches(found, ranks) for found in harmful)]
        if missing:
            found = "; ".join(map(finding_title, harmful))
            return f"it is {report.verdict}, but not by {' and '.join(missing)}: what was found is {found}"
        return ""


class VerdictError(AssertionError):
    """A report that is not what a test requires.

    As a text it is the sentence and the whole report. The pytest plugin shows the report in a section
    of its own, and makes the text `brief`: the sentence, and what was found in a few words each.

    Args:
        report: the report.
        why: the sentence that says what is required instead.

    """

    def __init__(self, report: Report, why: str) -> None:
        super().__init__(why)
        self.report = report
        self.why = why
        self.brief = False
        self.replays_here = False
        """Whether pytest can run the witness again in the test that failed."""

    def __str__(self) -> str:
        head = f"{self.why}: {case_text(self.report.case)}"
        if self.brief:
            return "\n".join([head, *(f"  {finding_title(finding)}" for finding in self.report.findings)])
        return f"{head}\n\n{report_text(self.report)}"


def _either(verdicts: Sequence[str]) -> str:
    return " or ".join(verdicts)


def _expected(finds: Finds | None) -> tuple[Expected, ...]:
    if finds is None:
        return ()
    given = (finds,) if isinstance(finds, str | Expected) else finds
    if not isinstance(given, Sequence):
        raise MisuseError(f"finds={finds!r}; name a finding, such as 'WAR, next call' or 'deadlock', or give a list")
    if not given:
        raise MisuseError(f"finds={finds!r}; name a finding, or leave finds out")
    return tuple(map(_one, given))


def _one(found: object) -> Expected:
    """Read one finding; a text has the words of a report's title."""
    if isinstance(found, Expected):
        return found
    name, _, scope = str(found).partition(",")
    name, scope = name.strip().removesuffix(" race"), scope.strip()
    if not isinstance(found, str) or name not in (*HAZARDS, *KINDS) or scope not in ("", SAME_CALL, NEXT_CALL):
        known = ", ".join((*HAZARDS, *KINDS))
        raise MisuseError(f"finds={found!r}; a finding is one of {known}; {SAME_CALL!r} or {NEXT_CALL!r} may follow")
    hazard = name if name in HAZARDS else None
    return Expected("race" if hazard else name, hazard, scope or None)
