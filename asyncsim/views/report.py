"""A report in words: the verdict first, then each finding with its two places and the line that replays it.

Plain text: a command may print it, a test may put it in its failure message.
"""

from __future__ import annotations

import linecache
import shlex
import textwrap
from typing import TYPE_CHECKING

from asyncsim.checking.record.locate import is_shipped
from asyncsim.checking.verdict.models import models_text
from asyncsim.machine.site import shown_path
from asyncsim.trace.finding import ATOMIC, PROVED, RACE, SUM
from asyncsim.trace.kinds import FETCHING, LANDING, with_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.case import Case
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.finding import Finding, Side

WIDTH = 100
SIDES_SHOWN = 8
_WIRES = LANDING | FETCHING
_HARM = {True: "harmful", False: "benign here", None: "not shown to be harmful"}
_ORDERED = (RACE, "signal-race", "unstable-wait", SUM, ATOMIC)
_BENIGN = "both orders give the same bits here, so no result shows it; it is still a race, and nothing is proved"


def report_text(
    report: Report, *, width: int = WIDTH, explain: bool = False, replay: Callable[[str, Kernel], str] | None = None
) -> str:
    """Return the whole report, with a line feed at its end.

    Args:
        report: of `check` or `explore`.
        explain: add the class of each cell, and how the order was found.
        width: where sentences wrap; lines to be pasted, and source lines, are never cut.
        replay: makes the command that replays a witness; None: `replay_line` does.

    """
    lines = [f"{report.verdict}  {case_text(report.case, report.models)}"]
    lines += wrapped(_scope(report), width, "  ")
    if report.case.kernel.any_right:
        lines += wrapped(f"a right result: {report.case.kernel.right_rule}", width, "  ")
    if report.verdict == PROVED:
        lines += wrapped(f"taken for granted: {report.granted}", width, "  ")
    for number, finding in enumerate(report.findings, 1):
        lines += ["", *finding_lines(number, finding, report.case.kernel, width, replay or replay_line)]
    if report.notes:
        lines.append("")
        for note in report.notes:
            lines += wrapped(f"note: {note}", width, "  ")
    if explain and report.explanation:
        lines.append("")
        for line in report.explanation:
            lines += wrapped(line, width, "  ")
    lines += ["", f"  {count_text(report.schedules, 'run')} in {report.seconds:.2f} s"]
    return "\n".join(lines) + "\n"


def case_text(case: Case, models: Sequence[str] = ()) -> str:
    """Name what is judged: the kernel, P, the calls and the memory models, and what was changed.

    Args:
        case: what is judged.
        models: by name; empty: the case's own.

    """
    edits = f", edited: {'; '.join(case.edits)}" if case.edits else ""
    memory = models_text(models or (case.memory,))
    return f"{case.kernel.ref}, P = {case.ranks}, {count_text(case.calls, 'call')}, {memory}{edits}"


def finding_title(finding: Finding) -> str:
    """Return a finding in a few words: ``WAR race, next call: 12 pairs, harmful``."""
    facts = []
    if finding.pairs > 1 or finding.kind == "race":
        facts.append(count_text(finding.pairs, _counted(finding)))
    if finding.harmful is not None or finding.kind in _ORDERED:
        facts.append(_HARM[finding.harmful])
    return f"{finding.title}: {', '.join(facts)}" if facts else finding.title


def _counted(finding: Finding) -> str:
    """Return what a finding counts: pairs of operations, places, or waiting actors."""
    if finding.kind in ("deadlock", "step-limit"):
        return "actor"
    return "pair" if len(finding.sides) == 2 else "place"  # noqa: PLR2004 - a pair


def replay_line(witness: str, kernel: Kernel) -> str:
    """Return the command that replays a witness, a token or a trace file.

    A kernel that does not come with asyncsim is named: a record alone runs no code.

    Args:
        witness: a token, or the path of a trace file.
        kernel: whose run it is.

    """
    named = "" if is_shipped(kernel.ref) else f" --kernel {shlex.quote(kernel.ref)}"
    return f"asyncsim replay {shlex.quote(witness)}{named}"


def source_line(kernel: Kernel, place: str) -> str:
    """Return the text of the source line ``file:line`` as a report shows it; empty if it cannot be read.

    Args:
        kernel: whose source file may be meant by the path.
        place: as a side of a finding names it; a path is read from the working directory.

    """
    shown, _, line = place.rpartition(":")
    own = kernel.program.__code__.co_filename
    file = own if shown_path(own, kernel.module) == shown else shown
    return linecache.getline(file, int(line)).strip() if line.isascii() and line.isdecimal() else ""


def _scope(report: Report) -> str:
    scope = f"{report.scope}; {report.later_calls}" if report.later_calls else report.scope
    return f"{scope} (interrupted)" if report.interrupted else scope


def finding_lines(
    number: int, finding: Finding, kernel: Kernel | None, width: int, replay: Callable[[str, Kernel], str] = replay_line
) -> Iterator[str]:
    """Yield a finding with its sides and the line that replays it; without a kernel, no source and no replay.

    Args:
        number: shown before its title, from 1.
        finding: what was found.
        kernel: None: not known, as of a trace from elsewhere.
        width: of the lines, in characters; what could be pasted is longer if it must be.
        replay: gives the line that replays a witness of a kernel.

    """
    yield f"{number}. {finding_title(finding)}"
    if finding.window is not None:
        yield from _row("memory", finding.window, width)
    for label, side in zip(_labels(finding), finding.sides, strict=False):
        yield from _side(label, side, kernel, width)
    if len(finding.sides) > SIDES_SHOWN:
        yield from _row("", f"and {len(finding.sides) - SIDES_SHOWN} more", width)
    yield from _row("why", finding.why, width)
    shown = finding.shown or (_BENIGN if finding.harmful is False else "")
    if shown not in finding.why:
        yield from _row("shown", shown, width)
    if finding.trace is not None:
        yield f"{_label('trace')}{finding.trace}"
    witness = finding.token or finding.trace
    if witness is not None and kernel is not None:
        yield f"{_label('replay')}{replay(witness, kernel)}"


def _labels(finding: Finding) -> list[str]:
    """Return what each side is called: a race has a first and a second, in the order of the fair run."""
    if len(finding.sides) == 2 and finding.kind in _ORDERED:  # noqa: PLR2004 - as above
        return ["first", "second"]
    return ["at"] * min(len(finding.sides), SIDES_SHOWN)


def _side(label: str, side: Side, kernel: Kernel | None, width: int) -> Iterator[str]:
    phase = f", {side.phase}" if side.phase else ""
    what = with_place(side.op, side.region).rstrip()
    issued = ", issued at" if side.op in _WIRES else ""
    yield from _row(label, f"{_task_text(side)}, call {side.call}{phase}: {what}{issued}", width)
    if side.at:
        yield f"{_label('')}{side.at[0]}" + "".join(f", inside it {inner}" for inner in side.at[1:])
        text = "" if kernel is None else source_line(kernel, side.at[0])
        if text:
            yield f"{_label('')}    {text}"


def _task_text(side: Side) -> str:
    """Name the task: a landing is its issuer's."""
    task = side.actor.partition(">")[0]
    return f"rank {side.rank}" if task == str(side.rank) else f"stream {task} of rank {side.rank}"


def _label(label: str) -> str:
    return f"   {label:<8}"


def _row(label: str, text: str, width: int) -> Iterator[str]:
    """Put a label before a text of one or more lines, each wrapped."""
    for line in text.splitlines():
        first, *rest = wrapped(line, width, _label(""))
        yield _label(label) + first.strip()
        yield from rest
        label = ""


def wrapped(text: str, width: int, indent: str) -> list[str]:
    """Return the lines of a text, each with this indent; nothing that could be pasted is cut.

    Args:
        text: without line feeds of its own.
        width: in characters, with the indent.
        indent: spaces.

    """
    filled = textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return filled or [indent.rstrip()]


def count_text(number: int, word: str) -> str:
    """Return a number with its noun: ``1 run``, ``2 runs``.

    Args:
        number: how many.
        word: the noun in the singular; an s makes its plural.

    """
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
