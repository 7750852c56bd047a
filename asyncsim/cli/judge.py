"""Judging kernels one after the other: print each report as it comes, leave with the worst status."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import click

from asyncsim.checking.locate import locate
from asyncsim.checking.report import REFUTED, SURVIVED
from asyncsim.cli.progress import progress_bar
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.token import Token, encode
from asyncsim.views.report import replay_line, report_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.checking.explore import Progress
    from asyncsim.checking.report import Report
    from asyncsim.cli.options import Options
    from asyncsim.machine.kernel import Kernel

    Judge = Callable[[Kernel, int, Callable[[Progress], None] | None], Report]

WIDEST = 110
_INTERRUPTED = 130
FAIR = "fifo"
_COLOURS = {REFUTED: "red", SURVIVED: "yellow"}


def judge_all(names: Sequence[str], options: Options, judge: Judge, *, explain: bool = False) -> int:
    """Judge each kernel at each P.

    Ctrl-C ends the one under way with what was found until then, and leaves out those after it.

    Args:
        names: the kernels, as the user names them.
        options: how.
        judge: makes the report of one kernel at one P.
        explain: print why the theory applies, cell by cell.

    Returns:
        The exit status: 1 if one of the reports refutes; else 130 if Ctrl-C left something undecided; else 0.

    Raises:
        KeyboardInterrupt: Ctrl-C came before there was anything to report.
        KernelError: a kernel raises under the schedule that all others are compared with; the message replays it.

    """
    cases = [(kernel, ranks) for kernel in map(locate, names) for ranks in options.ranks]
    reports: list[Report] = []
    where = ""
    for kernel, ranks in cases:
        try:
            with progress_bar(f"{kernel.ref}, P = {ranks}") as progress:
                report = judge(kernel, ranks, progress)
        except KernelError as error:
            raise _unjudged(error, kernel) from error
        except KeyboardInterrupt as error:
            if not reports:
                raise
            where = str(error)
            break
        reports.append(report)
        if not options.json:
            click.echo(
                "\n" * (len(reports) > 1) + coloured(report_text(report, width=width(), explain=explain)), nl=False
            )
        if report.interrupted:
            break
    if len(reports) < len(cases):
        ended = f"interrupted {where}".rstrip()
        click.echo(f"asyncsim: {ended}; {len(cases) - len(reports)} of {len(cases)} were not judged", err=True)
    if options.json:
        objects = [report.to_json() for report in reports]
        click.echo(json.dumps(objects[0] if len(cases) == 1 else objects, indent=2))
    if any(report.refuted for report in reports):
        return 1
    undecided = len(reports) < len(cases) or any(
        report.interrupted and report.verdict == SURVIVED for report in reports
    )
    return _INTERRUPTED if undecided else 0


def _unjudged(error: KernelError, kernel: Kernel) -> KernelError:
    """Say under which schedule a kernel raised. One that was used wrongly has to be mended, not replayed."""
    trace = error.trace
    if trace is None or isinstance(error.__cause__, MisuseError):
        return error
    scheduler = trace.header.scheduler
    which = f"the fair one, {scheduler}" if scheduler == FAIR else scheduler
    token = encode(Token.of(trace.header, trace.choices, ending=STOPPED))
    text = (
        f"{error}\n  no verdict: it raises under the schedule that all others are compared with "
        f"({which}), after step {len(trace.choices)}; under others it may not\n"
        f"  replay  {replay_line(token, kernel)}"
    )
    return KernelError(text, rank=error.rank, call=error.call, trace=trace)


def coloured(text: str) -> str:
    """Colour the verdict that a report starts with; click drops the colour where nobody can see it."""
    verdict, gap, rest = text.partition("  ")
    return click.style(verdict, fg=_COLOURS.get(verdict, "green"), bold=True) + gap + rest


def width() -> int:
    """Return how wide a report may be: as the terminal is, within reason."""
    return min(shutil.get_terminal_size((WIDEST, 0)).columns, WIDEST)
