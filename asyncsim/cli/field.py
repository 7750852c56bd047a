"""The field corpus: real mistakes, judged in their buggy and in their fixed form, against what is expected."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.verdict.check import check
from asyncsim.trace.finding import PROVED, REFUTED
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class FormJudged:
    """One form of one case, and what was found in it.

    Args:
        number: of the case: "F01".
        title: the mistake.
        form: "buggy" or "fixed".
        expected: the finding that it must give, in words; "nothing" for a fixed form.
        report: what `check` says at the P, calls and memory model that show the case.
        right: it is as expected: refuted with a harmful finding of that kind, or without any finding.

    """

    number: str
    title: str
    form: str
    expected: str
    report: Report
    right: bool

    @property
    def found(self) -> str:
        """The findings, in words."""
        return "; ".join(dict.fromkeys(finding.title for finding in self.report.findings)) or NOTHING

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this form."""
        return {
            "name": f"{self.number} {self.title}", "form": self.form, "kernel": self.report.case.kernel.ref,
            "expected": self.expected, "found": self.found, "verdict": self.report.verdict,
            "one_run": self.report.one_run, "as_expected": self.right,
        }  # fmt: skip


def judge_field(seed: int = 0) -> Iterator[FormJudged]:
    """Judge both forms of every case of ``kernels.field``, in order."""
    for case in importlib.import_module("kernels.field").CASES:
        report = _check(case, case.buggy, seed)
        said = f"{report.findings} {report.notes}"
        harmful = [finding for finding in report.findings if finding.harmful and case.expected.matches(finding)]
        right = report.verdict == REFUTED and bool(harmful) and case.words in said
        yield FormJudged(case.number, case.title, "buggy", str(case.expected), report, right)
        report = _check(case, case.fixed, seed)
        right = report.verdict == case.proof and not report.findings
        yield FormJudged(case.number, case.title, "fixed", NOTHING, report, right)


def _check(case: Any, kernel: Kernel, seed: int) -> Report:  # noqa: ANN401 - a FieldCase, which stands outside the package
    return check(kernel, ranks=case.ranks, calls=case.calls, memory=case.memory, seed=seed)


def show_field(*, seed: int = 0, as_json: bool = False) -> int:
    """Judge the corpus, print it, and return the exit status: 0 if every form is as expected.

    Args:
        seed: as of `asyncsim.check`.
        as_json: print a JSON list of the forms, instead of a table.

    """
    forms: list[FormJudged] = []
    for judged in judge_field(seed):
        forms.append(judged)
        if not as_json and not judged.right:
            click.echo(f"{judged.number} {judged.form}: expected {judged.expected}, found {judged.found}", err=True)
    if as_json:
        click.echo(json.dumps([judged.to_json() for judged in forms], indent=2))
    else:
        click.echo(table_text(("case", "mistake", "expected", "found", "fixed"), _rows(forms)), nl=False)
        click.echo("\n" + _counts(forms))
    return int(not all(judged.right for judged in forms))


def _rows(forms: list[FormJudged]) -> list[tuple[str, ...]]:
    pairs = zip(forms[::2], forms[1::2], strict=True)
    return [
        (buggy.number, buggy.title, buggy.expected, f"{buggy.report.verdict}: {buggy.found}", fixed.report.verdict)
        for buggy, fixed in pairs
    ]


def _counts(forms: list[FormJudged]) -> str:
    buggy, fixed = forms[::2], forms[1::2]
    one_run = sum(a.report.one_run and b.report.one_run for a, b in zip(buggy, fixed, strict=True))
    proved = sum(judged.report.verdict == PROVED for judged in fixed)
    return (
        f"{sum(judged.right for judged in buggy)} of {len(buggy)} buggy forms REFUTED with the expected finding, "
        f"{sum(judged.right for judged in fixed)} of {len(fixed)} fixed forms without any finding ({proved} PROVED); "
        f"{one_run} of {len(buggy)} cases were decided from one run in both forms, without exploration"
    )
