"""An audit in words: a table of what each part of the synchronisation guards, its witnesses, the repair."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from asyncsim.checking.verdict.models import models_text
from asyncsim.study.audit import CREDITS
from asyncsim.trace.edit import NARROW, RELAX
from asyncsim.trace.finding import PROVED, REFUTED
from asyncsim.views.report import (
    WIDTH,
    case_text,
    count_text,
    finding_title,
    replay_line,
    source_line,
    wrapped,
)  # fmt: skip
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.machine.kernel import Kernel
    from asyncsim.study.audit import AuditReport, PartAudit, Protection
    from asyncsim.study.repair import Repair

SOURCE_WIDTH = 46


def audit_text(audited: AuditReport, *, width: int = WIDTH) -> str:
    """Return the whole audit, with a line feed at its end.

    Args:
        audited: what was found.
        width: where sentences wrap; lines to be pasted are never cut.

    """
    witnesses: list[tuple[str, str]] = []
    kernel = audited.report.case.kernel
    lines = [f"{audited.report.verdict}  {case_text(audited.report.case)}", *_standing(audited, width), ""]
    if audited.rows:
        rows = [line for row in audited.rows for line in _row(row, kernel, witnesses)]
        lines += table_text(("part", "guards", "count", "witness"), _aligned(rows)).splitlines()
    elif not audited.interrupted:
        lines.append("  it has no barrier, wait or notify: there is nothing to take away")
    for number, (shown, token) in enumerate(witnesses, 1):
        first, *rest = wrapped(shown, width, "    ")
        lines += ["", f"{number:>2}{first[2:]}", *rest, f"    {replay_line(token, kernel)}"]
    lines += _repairs(audited, width)
    if audited.interrupted:
        lines += ["", "  interrupted: what is missing here was not judged"]
    lines += ["", f"  {count_text(len(audited.rows), 'part')} in {audited.seconds:.2f} s"]
    return "\n".join(lines) + "\n"


def _standing(audited: AuditReport, width: int) -> Iterator[str]:
    """Return how the kernel stands before anything is taken away."""
    if audited.report.verdict == PROVED:
        yield from wrapped(f"as it stands: {audited.report.scope}", width, "  ")
        yield from _notes(audited, width)
        return
    for finding in audited.report.findings:
        yield from wrapped(f"as it stands: {finding_title(finding)}", width, "  ")
    if not audited.report.findings:
        yield from wrapped(f"as it stands: {audited.report.scope}", width, "  ")
    yield from _notes(audited, width)
    calls = audited.report.case.calls
    if calls > 1:
        yield from wrapped(f"for one call it is {audited.once.verdict}", width, "  ")
    yield from wrapped("a part guards what goes wrong without it and does not go wrong with it", width, "  ")


def _notes(audited: AuditReport, width: int) -> Iterator[str]:
    for note in audited.report.notes:
        yield from wrapped(f"note: {note}", width, "  ")


def _row(row: PartAudit, kernel: Kernel, witnesses: list[tuple[str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the lines of one part: on the left where it stands, on the right what goes wrong without it."""
    left = _left(row, kernel)
    right = []
    for report, token in zip(row.reports, row.tokens, strict=True):
        guards = [guard for guard in row.guards if guard.calls == report.case.calls]
        for guard in guards:
            witnesses.append((_shown(row, guard), guard.finding.token or token))
            right.append((_guard(row, guard), str(guard.pairs), str(len(witnesses))))
        last = report is row.reports[-1]
        if not guards and (not row.guards if last else report.verdict == PROVED and not row.redundant):
            witnesses.append((_nothing_shown(row, last=last), token))
            right.append((_nothing(row, last=last), "", str(len(witnesses))))
    for site, facts in zip_longest(left, right):
        yield (site or "", *(facts or ("", "", "")))


def _left(row: PartAudit, kernel: Kernel) -> list[str]:
    own, *inner = row.part.site
    source = source_line(kernel, own)
    lines = [f"{row.part.kind:<8} {own}"]
    if source:
        lines.append(f"{'':<8} {source if len(source) <= SOURCE_WIDTH else source[: SOURCE_WIDTH - 1] + '…'}")
    return lines + [f"{'':<8} in {line}" for line in inner]


def _guard(row: PartAudit, guard: Protection) -> str:
    """Return in a few words what goes wrong."""
    harm = {True: "", False: " (benign here)", None: " (not shown to be harmful)"}[guard.finding.harmful]
    if guard.what == CREDITS:
        return f"credits: some are left over{harm}"
    if guard.when == "within a later call" and row.part.kind == CREDITS:
        return f"{guard.what}: the next call's wait passes early{harm}"
    phases = {finding.sides[-1].phase for finding in guard.findings if finding.sides}
    words = f"{guard.what} {guard.when}".rstrip()
    if guard.when == "against the next call" and len(phases) == 1 and "" not in phases:
        words += f"'s {phases.pop()}"
    return words + harm


def _nothing(row: PartAudit, *, last: bool) -> str:
    if not last:
        return "nothing within one call"
    if row.redundant:
        return f"nothing: {_WEAKER.get(row.part.edit.what, ('redundant', ''))[0]}"
    if row.proved:
        return "the mistake: without it the kernel is PROVED"
    verdict = row.reports[-1].verdict
    return "nothing more than goes wrong with it" if verdict == REFUTED else f"nothing was found: {verdict}"


def _nothing_shown(row: PartAudit, *, last: bool) -> str:
    if last and not row.redundant:
        return f"nothing more goes wrong. {_without(row).rstrip(',')}: {row.reports[-1].scope}"
    return f"nothing goes wrong. {_without(row)} this run is right, and from it all others are proved right"


def _shown(row: PartAudit, guard: Protection) -> str:
    return f"{_guard(row, guard)}. {_without(row)} {guard.finding.shown or guard.finding.why}"


_WEAKER = {RELAX: ("it may be relaxed", "Relaxed,"), NARROW: ("it may be narrower", "In a narrower scope,")}
"""What is said where weaker is enough, and where it is not."""


def _without(row: PartAudit) -> str:
    return _WEAKER.get(row.part.edit.what, ("", "Without it"))[1]


def _aligned(rows: Sequence[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    return [
        (part, guards, count.rjust(len("count")), witness.rjust(len("witness")))
        for part, guards, count, witness in rows
    ]


def _repairs(audited: AuditReport, width: int) -> Iterator[str]:
    """Return what makes it right, with the change as `patch` takes it."""
    if not audited.repairs:
        if audited.refuted and not audited.interrupted:
            reason = f"; {audited.unrepaired}" if audited.unrepaired else ""
            yield from ("", *wrapped(f"repair  no change was found that makes it right{reason}", width, ""))
        return
    best, *others = audited.repairs
    under = f" under {models_text(best.report.models)}" if best.report.models != audited.report.models else ""
    between = f", {best.between}" if best.between else ""
    yield from ("", *wrapped(f"repair  {best.report.verdict}{under} with {best.words}{between}", width, ""))
    yield from wrapped(_cost(best), width, "        ")
    if best.fails:
        yield from wrapped(f"it is not right on {' and '.join(map(str, best.fails))} ranks", width, "        ")
    changed = {"as good as before": best.siblings, "not judged": best.unjudged}
    for state, names in changed.items():
        was = "is" if len(names) == 1 else "are"
        if names:
            yield from wrapped(f"it changes {', '.join(names)}, too, which {was} {state}", width, "        ")
    yield from ("", *best.diff.splitlines())
    if others:
        yield from ("", *wrapped(f"as good: {'; '.join(other.words for other in others)}", width, "        "))


def _cost(repair: Repair) -> str:
    if repair.operations <= 0:
        return "it adds no operation"
    added = count_text(repair.operations, "operation")
    return f"it adds {added} to a run"
