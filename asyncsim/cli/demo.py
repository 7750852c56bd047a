"""``asyncsim demo``: what a barrier is for, measured; and one race, shown in full."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.explore import Progress
from asyncsim.cli.judge import coloured, width
from asyncsim.cli.progress import progress_bar
from asyncsim.trace.finding import PROVED
from asyncsim.views.report import report_text
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.checking.verdict.report import Report

KERNELS = (
    "reduce_scatter:hand",
    "reduce_scatter:hand_no_epilogue",
    "reduce_scatter:builtin",
    "reduce_scatter:no_post_barrier",
    "reduce_scatter:mpi_in_place",
    "reduce_scatter:whole_window_in_place",
    "all_reduce:no_post_barrier",
    "reduce_scatter:double_buffer",
)
RANKS = (2, 3, 4)
CALLS = (1, 2)
SHOWN = ("reduce_scatter:no_post_barrier", 4, 2)

_INTRODUCTION = """\
Eight programs, at 2, 3 and 4 ranks, called once and twice back to back on the same memory.
A cell is what one run of each says of all its schedules: `clean` is proved; `WAR 12` is 12 pairs
of a read and a later write that nothing orders. (Names without a module are of reduce_scatter.)
"""
_BETWEEN = """\
An ordinary run of any of them is right. Here is one of the races, with a schedule that shows it:
"""


@click.command("demo")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the trace of the witness to this folder.",
)
@click.pass_context
def demo_command(ctx: click.Context, *, save: Path | None) -> None:
    """Show what asyncsim finds in eight programs, and one race in full.

    The exit status is 0 if each gives what it is known to give.

    \b
    Examples:
        asyncsim demo
        asyncsim demo --save witnesses
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    reports = _judge(save)
    rows = []
    surprises = []
    for name in KERNELS:
        own = {(ranks, calls): reports[name, ranks, calls] for calls in CALLS for ranks in RANKS}
        wrong = [f"{name}, P = {key[0]}, calls = {key[1]}" for key, report in own.items() if not as_expected(report)]
        rows.append((name.removeprefix("reduce_scatter:"), *map(cell_text, own.values()), "no" if wrong else "yes"))
        surprises += wrong
    head = (
        "kernel",
        *(f"{calls} call{'s' * (calls > 1)}, P={ranks}" for calls in CALLS for ranks in RANKS),
        "as known",
    )
    click.echo(_INTRODUCTION)
    click.echo(table_text(head, rows))
    click.echo(_BETWEEN)
    click.echo(coloured(report_text(reports[SHOWN], width=width())), nl=False)
    for surprise in surprises:
        click.echo(f"asyncsim: not as known: {surprise}", err=True)
    ctx.exit(int(bool(surprises)))


def _judge(save: Path | None) -> Mapping[tuple[str, int, int], Report]:
    """Check every kernel of the table at every P, for every number of calls."""
    keys = [(name, ranks, calls) for name in KERNELS for calls in CALLS for ranks in RANKS]
    reports: dict[tuple[str, int, int], Report] = {}
    with progress_bar("demo") as progress:
        for name, ranks, calls in keys:
            key = (name, ranks, calls)
            reports[key] = check(locate(name), ranks=ranks, calls=calls, save=save if key == SHOWN else None)
            if reports[key].interrupted:
                raise KeyboardInterrupt
            if progress is not None:
                progress(Progress(len(reports), len(keys), sum(report.refuted for report in reports.values())))
    return reports


def cell_text(report: Report) -> str:
    """Return a report in a few words: ``clean``, or kinds with how many pairs."""
    counts: dict[str, int] = {}
    for finding in report.findings:
        word = f"{finding.hazard or finding.kind}{'' if finding.harmful else ' (benign)'}"
        counts[word] = counts.get(word, 0) + finding.pairs
    if counts:
        return ", ".join(f"{word} {count}" for word, count in counts.items())
    return "clean" if report.verdict == PROVED else report.verdict


def as_expected(report: Report) -> bool:
    """Return whether a report is what its kernel is known to give.

    What a kernel is known to give is meant for two calls; of these, one call may show any or none,
    but nothing else.
    """
    case = report.case
    known = case.kernel.finds
    foreign = [finding for finding in report.findings if not any(expected.matches(finding) for expected in known)]
    if foreign or (not report.findings and report.verdict != PROVED):
        return False
    if case.calls == 1:
        return True
    return all(any(expected.matches(found, case.ranks) for found in report.findings) for expected in known)
