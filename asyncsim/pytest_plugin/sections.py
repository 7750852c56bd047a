"""The section of a failed test: the report in words, the files saved, and the lines that replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.pytest_plugin.naming import can_be_named, pytest_line, shown
from asyncsim.testing.requirement import VerdictError
from asyncsim.views.report import report_text

if TYPE_CHECKING:
    import pytest

    from asyncsim.checking.verdict.report import Report


def shorten(error: BaseException) -> VerdictError | None:
    """Find the verdict behind a failure, and let its message leave the report to the section."""
    found = _verdict(error)
    if found is not None:
        found.brief = True
    return found


def section_text(error: VerdictError, item: pytest.Item) -> str:
    """Return the report, with paths from where pytest was started, and how to replay each finding in pytest.

    Args:
        error: holds the report.
        item: the test that failed.

    """
    report = error.report
    kernel = report.case.kernel
    named = can_be_named(kernel)
    files = [
        None if found.trace is None else shown(Path(found.trace), item.config).as_posix() for found in report.findings
    ]
    if named:
        told = [found.with_(trace=file) for found, file in zip(report.findings, files, strict=True)]
    else:
        # A kernel that is made within a function cannot be named to the command: only pytest gets there.
        told = [found.with_(trace=None, token=None) for found in report.findings]
    lines = [report_text(replace(report, findings=told))]
    if not named and any(files):
        lines += ["  saved:", *(f"  {number}. {file}" for number, file in enumerate(files, 1) if file)]
    if error.replays_here and any(found.token for found in report.findings):
        lines.append("  to run a witness again in this test, and nothing else:")
        lines += [f"  {numbers}. {pytest_line(item, token)}" for token, numbers in _tokens(report).items()]
    return "\n".join(lines) + "\n" * (len(lines) > 1)


def _tokens(report: Report) -> dict[str, str]:
    """Return the numbers of the findings by their token: one run may show several."""
    numbers: dict[str, list[str]] = {}
    for number, found in enumerate(report.findings, 1):
        if found.token is not None:
            numbers.setdefault(found.token, []).append(str(number))
    return {token: ", ".join(listed) for token, listed in numbers.items()}


def _verdict(error: BaseException | None) -> VerdictError | None:
    """Return the verdict within groups of exceptions, which trio makes, and below what pytest shows."""
    if error is None or isinstance(error, VerdictError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_verdict, error.exceptions)), None)
    return _verdict(error.__cause__ or error.__context__)
