"""A report as a fragment of HTML, for notebooks: the verdict, and a card a finding, in the colours around it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from asyncsim.views.report import case_text, finding_title, replay_line, source_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.finding import Finding

_CARD = "border: 1px solid; border-radius: 6px; padding: 0.5em 0.8em; margin: 0.5em 0; max-width: 60em"
_CODE = "white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.2em 0"


def report_html(report: Report) -> str:
    """Return the report as HTML without scripts, links or images; all text of the author's is escaped.

    Args:
        report: of `check` or `explore`.

    """
    scope = f"{report.scope}; {report.later_calls}" if report.later_calls else report.scope
    parts = [f"<div><b>{report.verdict}</b> {escape(case_text(report.case, report.models))}<br>{escape(scope)}"]
    parts += ["".join(_card(number, finding, report.case.kernel)) for number, finding in enumerate(report.findings, 1)]
    parts += [f"<p>note: {escape(note)}</p>" for note in report.notes]
    return "\n".join([*parts, "</div>"])


def _card(number: int, finding: Finding, kernel: Kernel) -> Iterator[str]:
    yield f'<div style="{_CARD}"><b>{number}. {escape(finding_title(finding))}</b>'
    for side in finding.sides:
        yield f"<div>rank {side.rank}, call {side.call}: {escape(side.op)} {escape(side.region)}"
        for place in side.at[:1]:
            yield f'<pre style="{_CODE}">{escape(place)}\n    {escape(source_line(kernel, place))}</pre>'
        yield "</div>"
    yield f"<div>{escape(finding.why)}</div>"
    if finding.shown and finding.shown not in finding.why:
        yield f"<div>{escape(finding.shown)}</div>"
    witness = finding.trace or finding.token
    if witness is not None:
        line = escape(replay_line(witness, kernel))
        yield f'<details><summary>replay</summary><pre style="{_CODE}">{line}</pre></details>'
    yield "</div>"
