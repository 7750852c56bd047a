"""Judging kernels one after the other: print each report as it comes, leave with the worst status."""

from __future__ import annotations

import json
import linecache
import re
import shutil
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.record.locate import locate
from asyncsim.cli.progress import progress_bar
from asyncsim.trace.errors import KernelError, MisuseError, RefusedError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import REFUTED, SURVIVED, VERDICTS
from asyncsim.trace.guest import author_place
from asyncsim.trace.token import Token, encode
from asyncsim.views.report import case_text, finding_title, replay_line, report_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.checking.verdict.explore import Progress
    from asyncsim.checking.verdict.report import Report
    from asyncsim.cli.options import Options
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.errors import AsyncsimError

    Judge = Callable[[Kernel, int, Callable[[Progress], None] | None], Report]

WIDEST = 110
_BAD_INPUT, _INTERRUPTED = 2, 130
_RAISES = re.compile(r"\b(raise|assert)\b")
_REPLAY = "\n  no verdict"
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
        The exit status: 1 if one of the reports refutes; else 2 if a kernel failed at one of several P; else 130 if
        Ctrl-C left something undecided; else 0.

    Raises:
        KeyboardInterrupt: Ctrl-C came before there was anything to report.
        KernelError: a kernel raises under the schedule that all others are compared with; the message replays it.
        MisuseError: a kernel cannot be run at any P that was asked for.

    """
    judging = _Judging(options, judge, explain=explain)
    kernels = [locate(name) for name in names]
    for kernel in kernels:
        judging.judge_at_each_size(kernel)
        if judging.ended:
            break
    judging.close(len(kernels) * len(options.ranks))
    return judging.status


class _Judging:
    """Judges kernels, and prints what there is to say."""

    def __init__(self, options: Options, judge: Judge, *, explain: bool) -> None:
        self.ended = False
        self._options = options
        self._judge = judge
        self._explain = explain
        self._reports: list[Report] = []
        self._objects: list[dict[str, Any]] = []
        self._failed = False
        self._where = ""
        self._not_judged = self._missing = 0

    def judge_at_each_size(self, kernel: Kernel) -> None:
        """Judge a kernel at each P; at several, in a line each, and one of them in full."""
        several = len(self._options.ranks) > 1
        if several and self._reports and not self._options.json:
            click.echo()
        own: list[Report] = []
        errors: list[AsyncsimError] = []
        lines: list[str] = []
        for ranks in self._options.ranks:
            try:
                report = self._judge_at(kernel, ranks)
            except (KernelError, MisuseError) as error:
                if not several:
                    raise
                errors.append(error)
                lines.append(self._not_judged_line(kernel, ranks, error))
                continue
            if report is not None:
                own.append(report)
                lines.append(coloured(_short_line(report)))
            if own and several:
                self._print_lines(lines)
            if self.ended:
                break
        if errors and not own and not self.ended:
            raise errors[0]
        self._print_lines(lines if several else [])
        if own and not self._options.json:
            self._print(own, apart=len(self._reports) > 1)

    def _print_lines(self, lines: list[str]) -> None:
        """Print lines, unless JSON is asked for, and take them off the list."""
        for line in lines if not self._options.json else ():
            click.echo(line)
        lines.clear()

    def _judge_at(self, kernel: Kernel, ranks: int) -> Report | None:
        """Judge a kernel at one P; None if Ctrl-C came before there was anything to report of it."""
        try:
            with progress_bar(f"{kernel.ref}, P = {ranks}") as progress:
                report = self._judge(kernel, ranks, progress)
        except KernelError as error:
            raise _unjudged(error, kernel) from error.__cause__
        except KeyboardInterrupt as error:
            if not self._reports:
                raise
            self.ended, self._where = True, str(error)
            return None
        self._reports.append(report)
        self._objects.append(report.to_json())
        self.ended = report.interrupted
        return report

    def _print(self, reports: Sequence[Report], *, apart: bool) -> None:
        """Print one report in full: the first that refutes; else the last of those that say least."""
        weakest = max(VERDICTS.index(report.verdict) for report in reports)
        same = [report for report in reports if VERDICTS.index(report.verdict) == weakest]
        shown = same[0] if same[0].refuted else same[-1]
        text = coloured(report_text(shown, width=width(), explain=self._explain))
        click.echo("\n" * apart + text, nl=False)

    def _not_judged_line(self, kernel: Kernel, ranks: int, error: AsyncsimError) -> str:
        """Return a line on a P that a kernel cannot be judged at; it is no failure if the kernel says so itself."""
        refused = refuses(error)
        self._not_judged += 1
        self._failed = self._failed or not refused
        word = "refused" if refused else "failed"
        self._objects.append({"kernel": kernel.ref, "ranks": ranks, "verdict": None, word: str(error)})
        return f"not judged  {kernel.ref}, P = {ranks}: {word}: {str(error).partition(_REPLAY)[0]}"

    def close(self, cases: int) -> None:
        """Report what was not judged, and print the JSON if it is asked for."""
        missing = cases - len(self._reports) - self._not_judged
        if missing:
            ended = f"interrupted {self._where}".rstrip()
            click.echo(f"asyncsim: {ended}; {missing} of {cases} were not judged", err=True)
        if self._options.json:
            click.echo(json.dumps(self._objects[0] if cases == 1 else self._objects, indent=2))
        self._missing = missing

    @property
    def status(self) -> int:
        if any(report.refuted for report in self._reports):
            return 1
        if self._failed:
            return _BAD_INPUT
        cut = any(report.interrupted and report.verdict == SURVIVED for report in self._reports)
        return _INTERRUPTED if cut or self._missing else 0


def _short_line(report: Report) -> str:
    found = "; ".join(map(finding_title, report.findings))
    return f"{report.verdict}  {case_text(report.case, report.models)}{f': {found}' if found else ''}"


def refuses(error: AsyncsimError) -> bool:
    """Return whether a kernel, or a declaration or composite of its, says itself that it is not made for this P."""
    cause = error.__cause__
    if cause is None or isinstance(cause, RefusedError):
        return not isinstance(error, KernelError) or cause is not None
    place = author_place(cause)
    return place is not None and _RAISES.search(linecache.getline(*place)) is not None


def _unjudged(error: KernelError, kernel: Kernel) -> KernelError:
    """Add under which schedule a kernel raised, unless it has to be mended before it can be replayed."""
    trace = error.trace
    if trace is None or isinstance(error.__cause__, MisuseError):
        return error
    scheduler = trace.header.scheduler
    which = f"the fair one, {scheduler}" if scheduler == FAIR else scheduler
    token = encode(Token.of(trace.header, trace.choices, ending=STOPPED))
    text = (
        f"{error}{_REPLAY}: it raises under the schedule that all others are compared with "
        f"({which}), after step {len(trace.choices)}; under others it may not\n"
        f"  replay  {replay_line(token, kernel)}"
    )
    return KernelError(text, rank=error.rank, call=error.call, trace=trace)


def coloured(text: str) -> str:
    """Colour the verdict that a report starts with; click drops the colour where it cannot be seen."""
    verdict, gap, rest = text.partition("  ")
    return click.style(verdict, fg=_COLOURS.get(verdict, "green"), bold=True) + gap + rest


def width() -> int:
    """Return how wide a report may be: as the terminal is, within reason."""
    return min(shutil.get_terminal_size((WIDEST, 0)).columns, WIDEST)
