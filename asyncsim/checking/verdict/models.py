"""The default memory model: under which models a kernel is judged follows from its operations.

A kernel that stores, loads, notifies and waits is judged under ``sc``. One that says when writes land (put, a put
with signal, non-blocking, relaxed, fence, quiet) is judged under ``ldst`` and ``nic``, too, and one that says an order
or a scope under ``gpu``: see `asyncsim.trace.late.models_said`. It is proved if it is proved under each of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.trace.finding import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from asyncsim.checking.verdict.report import Report

AUTO = "auto"


async def check_under_each_model(judge: Callable[[str], Awaitable[Report]]) -> Report:
    """Judge a kernel under ``sc``, and under each model that its words belong to.

    The first model that refutes it, or shows that it depends on outside state, ends it; so does Ctrl-C.

    Args:
        judge: judges it under one model.

    Returns:
        One report: of the refuting model, else of the weakest verdict, with what all of them say.

    """
    reports = [await judge("sc")]
    for model in reports[0].models_said:
        if reports[-1].refuted or reports[-1].interrupted or _has_hidden_state(reports[-1]):
            break
        reports.append(await judge(model))
    return _combined(reports)


def _has_hidden_state(report: Report) -> bool:
    """Return whether the kernel is known to depend on more than its inputs and memory: then no other run proves it."""
    return any(finding.kind == "hidden-state" for finding in report.findings)


def models_text(models: Sequence[str]) -> str:
    """Name memory models: ``sc``, ``sc and ldst``, ``sc, ldst and nic``."""
    *others, last = models
    return f"{', '.join(others)} and {last}" if others else last


def _combined(reports: Sequence[Report]) -> Report:
    """Make one report of several, each of another model; the sum of their work."""
    if len(reports) == 1:
        return reports[0]
    worst = max(reports, key=lambda report: VERDICTS.index(report.verdict))
    others = [report for report in reports if report is not worst]
    models = tuple(report.case.memory for report in reports)
    alike = len({report.later_calls for report in reports}) == 1
    known = {(finding.title, finding.window) for finding in worst.findings}
    return replace(
        worst,
        models=(worst.case.memory,) if worst.refuted else models,
        scope=worst.scope if worst.refuted else "; ".join(f"under {r.case.memory}, {r.scope}" for r in reports),
        findings=worst.findings + [f for r in others for f in r.findings if (f.title, f.window) not in known],
        notes=_notes(worst, others),
        schedules=sum(report.schedules for report in reports),
        one_run=all(report.one_run for report in reports),
        interrupted=any(report.interrupted for report in reports),
        later_calls=worst.later_calls if alike else "",
        proof=None,  # a certificate is of one model
    )


def _notes(worst: Report, others: Sequence[Report]) -> list[str]:
    notes = list(dict.fromkeys(note for report in (worst, *others) for note in report.notes))
    for verdict in dict.fromkeys(report.verdict for report in others):
        if verdict != worst.verdict:
            models = [report.case.memory for report in others if report.verdict == verdict]
            notes.append(f"{verdict} under {models_text(models)}")
    return notes
