"""What one run showed, in words: the values that came out wrong, or who waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.event import COMPLETE
from asyncsim.trace.region import SYMBOLS
from asyncsim.views.report import source_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.checking.outcome import Judge
    from asyncsim.machine.case import Run
    from asyncsim.trace.event import Event

SHOWN = 8


def run_text(run: Run, judge: Judge) -> str:
    """Return what went wrong in a run, with a line feed at its end; or that nothing did.

    Args:
        run: recorded, if a hang is to be explained.
        judge: says what is wrong with it.

    """
    findings = judge.findings(run)
    if not findings:
        return "no failure: the run is complete, and no result is wrong\n"
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.kind}: {finding.why}")
        if finding.kind == "wrong-result":
            lines += _short([f"  rank {rank}, call {call}: {off.text}" for call, rank, off in judge.differences(run)])
        elif finding.kind == run.ending:
            lines += _short([line for event in _pending(run) for line in _waiting(run, event)], 2 * SHOWN)
    return "\n".join(lines) + "\n"


def _short(lines: list[str], most: int = SHOWN) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"  and {len(lines) - most} lines more"]


def _pending(run: Run) -> list[Event]:
    footer = run.trace.footer if run.trace is not None else None
    return list(footer.pending) if footer is not None and run.ending != COMPLETE else []


def _waiting(run: Run, event: Event) -> Iterator[str]:
    """Say what an actor stands at: the cell, what it needs and what it has; and from which line."""
    op = event.op
    what = str(op)
    if event.need is not None:
        what = f"waits for {op.cell} {SYMBOLS[op.how]} {event.need}, and it is {event.have}"
    phase = f", {event.phase}" if event.phase else ""
    yield f"  rank {op.actor.rank}, call {event.call}{phase}: {what}"
    if event.at and event.at[0]:
        text = source_line(run.case.kernel, event.at[0])
        yield f"    {event.at[0]}" + (f": {text}" if text else "")
