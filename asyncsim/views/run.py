"""What one run showed, in words: the values that came out wrong, or which actor waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.machine.goldens import Predicate
from asyncsim.trace.cells import SYMBOLS
from asyncsim.views.report import source_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.checking.diagnose.compare import Difference
    from asyncsim.machine.case import Run
    from asyncsim.trace.event import Event
    from asyncsim.trace.finding import Finding

SHOWN = 8


def run_text(
    run: Run,
    findings: Sequence[Finding],
    differences: Sequence[tuple[int, int, Difference]],
    *,
    cut_short: bool = False,
) -> str:
    """Return what went wrong in a run, with a line feed at its end; or that nothing did.

    Args:
        run: recorded, if a hang is to be explained.
        findings: what is wrong with it.
        differences: (call, rank, difference) of each wrong result.
        cut_short: it was stopped because no more of it was recorded.

    """
    lines: list[str] = []
    if cut_short:
        lines.append(f"cut short: the record ends after {len(run.choices)} steps, and the run would go on from there")
    if not findings:
        lines.append("no failure until there" if cut_short else "no failure: no result is wrong, and nothing hangs")
    for finding in findings:
        if finding.kind == "wrong-result" and differences and isinstance(run.case.kernel.golden, Predicate):
            lines.append(f"{finding.kind}: the results of {len(differences)} of {run.case.calls} calls are refused")
            lines += _short([[f"  call {call}: {off.text}"] for call, _, off in differences])
            continue
        if finding.kind == "wrong-result" and differences:
            results = run.case.calls * run.case.ranks
            lines.append(f"{finding.kind}: {len(differences)} of {results} results are wrong")
            lines += _short([[f"  rank {rank}, call {call}: {off.text}"] for call, rank, off in differences])
            continue
        first, *more = finding.why.split("\n")
        lines.append(f"{finding.kind}: {first}")
        lines += [f"  {line}" for line in more]
        if finding.kind == run.ending:
            lines += _short([list(_standing(run, event)) for event in _pending(run)])
    return "\n".join(lines) + "\n"


def _short(entries: list[list[str]]) -> list[str]:
    """Return the lines of the first entries, and how many more there are."""
    rest = len(entries) - SHOWN
    return [line for entry in entries[:SHOWN] for line in entry] + ([f"  and {rest} more"] if rest > 0 else [])


def _pending(run: Run) -> Sequence[Event]:
    footer = run.trace.footer if run.trace is not None else None
    return footer.pending if footer is not None else ()


def _standing(run: Run, event: Event) -> Iterator[str]:
    """Return what an actor stands at: the cell, what it needs and what it has; and from which line."""
    op = event.op
    what = f"stands at {op}"
    if event.need is not None:
        what = f"waits for {op.cell} {SYMBOLS[op.how]} {event.need}, and it is {event.have}"
    phase = f", {event.phase}" if event.phase else ""
    yield f"  {op.actor.title}, call {event.call}{phase}: {what}"
    if event.at and event.at[0]:
        text = source_line(run.case.kernel, event.at[0])
        yield f"    {event.at[0]}" + (f": {text}" if text else "")
