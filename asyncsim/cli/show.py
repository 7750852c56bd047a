"""``asyncsim show``: see a recorded run, in the terminal, as one page, or in Perfetto."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncsim.checking.record.locate import locate
from asyncsim.cli.completion import complete_kernels
from asyncsim.cli.judge import width
from asyncsim.cli.options import Whole, whole
from asyncsim.cli.outputs import check_outputs
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.lenient import Lenient
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.jsonl import read_trace
from asyncsim.trace.world import MOST_RANKS
from asyncsim.views.perfetto import perfetto_text
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_lines import Selection, plain, timeline_lines
from asyncsim.views.timeline_orders import other_schedule, pair_of
from asyncsim.views.timeline_page import page_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Trace
    from asyncsim.views.timeline import Timeline
    from asyncsim.views.timeline_lines import Line

OTHER = "the other order"
"""What the header of a run in the other order names as its scheduler."""
_STYLES = {
    "load": "cyan", "store": "yellow", "copy": "bright_yellow", "notify": "green", "wait": "magenta",
    "landing": "blue", "order": "white", "title": "bold", "bad": "bold red", "mark": "bold red", "dim": "dim",
}  # fmt: skip


def _ranks(ctx: click.Context, param: click.Parameter, value: str | None) -> frozenset[int] | None:  # noqa: ARG001 - click's signature
    """Return the ranks of ``0,3-5``."""
    if value is None:
        return None
    chosen: set[int] = set()
    for selection in value.split(","):
        low, dash, high = selection.partition("-")
        first = whole(low)
        last = whole(high) if dash else first
        if first is None or last is None or "+" in selection:
            raise click.BadParameter(f"{value!r} is not a list of ranks; give integers, such as 0,3 or 0,4-7")
        chosen.update(range(first, min(last, MOST_RANKS) + 1))
    return frozenset(chosen)


_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("show")
@click.argument("trace", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--from", "first", type=Whole(min=0), metavar="STEP", help="The first step that is shown.")
@click.option("--to", "last", type=Whole(min=0), metavar="STEP", help="The last step that is shown.")
@click.option("--ranks", callback=_ranks, metavar="LIST", help="Show these ranks only: 0,3 or 0,4-7.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write one page that needs no network, to be looked through.")
@click.option("--perfetto", type=_FILE, metavar="FILE", help="Write a trace that ui.perfetto.dev opens.")
@click.option(
    "--other", type=click.Path(path_type=Path), metavar="TRACE", help="Another run, beside this one in the page."
)
@click.option(
    "--kernel", metavar="KERNEL", shell_complete=complete_kernels,
    help="Run the other order of the race with this kernel, as --other.",
)  # fmt: skip
def show_command(  # noqa: PLR0913 - one argument an option
    trace: Path,
    *,
    first: int | None,
    last: int | None,
    ranks: frozenset[int] | None,
    html: Path | None,
    perfetto: Path | None,
    other: Path | None,
    kernel: str | None,
) -> None:
    """See a recorded run: what each rank does when, which step lets a wait pass, and where the race is.

    A long run is shown around its findings; --from and --to choose. A trace is data: nothing is run
    but what you name with --kernel.

    \b
    Examples:
        asyncsim show witnesses/race.jsonl
        asyncsim show witnesses/race.jsonl --from 40 --to 80 --ranks 0,3
        asyncsim show witnesses/race.jsonl --html race.html --kernel my_kernels.py:all_reduce
        asyncsim show witnesses/race.jsonl --perfetto race.json
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if other is not None and kernel is not None:
        raise click.UsageError("--other is a run, and --kernel makes one; give one of them")
    if html is None and (other is not None or kernel is not None):
        raise click.UsageError("another run is shown beside this one in the page; say where it goes with --html FILE")
    judged = None if kernel is None else locate(kernel)
    check_outputs(
        {"--html": html, "--perfetto": perfetto}, reads=[trace, other], kernels=[] if judged is None else [judged]
    )
    timeline = timeline_of(read_trace(trace, partial=True))
    _check_part(timeline, first, last, ranks)
    if html is not None:
        html.write_text(_page(timeline, other, judged), encoding="utf-8")
        click.echo(f"wrote {html}")
    if perfetto is not None:
        perfetto.write_text(perfetto_text(timeline), encoding="utf-8")
        click.echo(f"wrote {perfetto}; open it in ui.perfetto.dev")
    if html is None and perfetto is None:
        _print(timeline_lines(timeline, Selection(first=first, last=last, ranks=ranks), width=width()))


def _page(timeline: Timeline, other: Path | None, kernel: Kernel | None) -> str:
    if kernel is not None:
        return page_text(timeline, timeline_of(_other_order(timeline, kernel)), title="The other order, run")
    if other is not None:
        return page_text(timeline, timeline_of(read_trace(other, partial=True)), title=other.name)
    return page_text(timeline)


def _check_part(timeline: Timeline, first: int | None, last: int | None, ranks: frozenset[int] | None) -> None:
    steps, count = len(timeline.events), timeline.trace.header.world.ranks
    if (first or 0) >= max(steps, 1) or (last is not None and last < (first or 0)):
        raise MisuseError(f"no such steps: the trace has the steps 0 to {steps - 1}, and --from is not after --to")
    if ranks is not None and max(ranks, default=0) >= count:
        raise MisuseError(f"--ranks names rank {max(ranks)}; the trace has the ranks 0 to {count - 1}")


def _other_order(timeline: Timeline, kernel: Kernel) -> Trace:
    """Run the other order of the first race of a trace."""
    pair = next((found for finding in timeline.findings if (found := pair_of(finding))), None)
    if pair is None:
        raise MisuseError("the trace tells of no race whose two sides are among its steps; there is no other order")
    header = timeline.trace.header
    case = Case(
        kernel, header.world.ranks, header.calls, header.memory, header.seed, edits=header.edits,
    )  # fmt: skip
    schedule = [(actor, 1) for actor in other_schedule(timeline, *pair)]
    try:
        other = simulate(case, Lenient(schedule), record=OTHER).recorded
    except KernelError as error:
        broken: Trace = error.trace
        return broken
    if other.footer is not None and timeline.trace.footer is not None:
        other.footer.findings = timeline.trace.footer.findings  # the same pair is marked in both
    return other


def _print(lines: Iterable[Line]) -> None:
    from rich import console, text  # noqa: PLC0415 - slow to import

    out = console.Console(soft_wrap=True, highlight=False, legacy_windows=False)
    ascii_only = "utf" not in (sys.stdout.encoding or "utf-8").lower()
    for line in lines:
        pieces = ((plain(selection, ascii_only=ascii_only), _STYLES.get(role, "")) for selection, role in line)
        out.print(text.Text.assemble(*pieces), soft_wrap=True, markup=False)
