"""What a trace says of its kernel, in the words of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.study.explain import ANALYSIS
from asyncsim.views.report import WIDTH, count_text, finding_lines, wrapped

if TYPE_CHECKING:
    from asyncsim.study.explain import Explanation


def explanation_text(explained: Explanation, *, width: int = WIDTH, cells: bool = False) -> str:
    """Return the whole explanation, with a line feed at its end.

    Args:
        explained: what the trace says.
        width: where sentences wrap.
        cells: add the class of each cell.

    """
    header = explained.header
    count = len(explained.findings)
    heading = explained.verdict or (count_text(count, "finding") if count else "no finding")
    edits = f", edited: {'; '.join(header.edits)}" if header.edits else ""
    calls = count_text(header.calls, "call")
    lines = [f"{heading}  {header.kernel}, P = {header.world.ranks}, {calls}, {header.memory}{edits}"]
    lines += wrapped(explained.scope, width, "  ")
    for number, (finding, source) in enumerate(zip(explained.findings, explained.said_by, strict=True), 1):
        lines += ["", *finding_lines(number, finding, None, width)]
        lines.append(
            f"   {'said by':<8}{source}{'; no run has shown it yet' * (source == ANALYSIS and not finding.harmful)}"
        )
    if explained.notes:
        lines.append("")
        for note in explained.notes:
            lines += wrapped(f"note: {note}", width, "  ")
    if cells and explained.explanation:
        lines.append("")
        for line in explained.explanation:
            lines += wrapped(line, width, "  ")
    return "\n".join(lines) + "\n"
