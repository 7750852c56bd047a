"""``asyncsim triton``: run a script that drives Triton kernels on simulated ranks, then judge it."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

import click

from asyncsim.checking.record.replay import replay
from asyncsim.cli.guest import GUEST_SETTINGS, guest_options, replayed_text
from asyncsim.cli.judge import coloured, width
from asyncsim.cli.outputs import check_outputs
from asyncsim.cli.progress import progress_bar
from asyncsim.frontends.triton.program import BUDGET, SHRINK_STEPS
from asyncsim.frontends.triton.script import TritonScript
from asyncsim.machine.case import Case
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import AsyncsimError, KernelError
from asyncsim.trace.late import model_of
from asyncsim.trace.token import read_record
from asyncsim.views.report import report_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from asyncsim.checking.verdict.report import Report

BAD_INPUT = 2
MOST = 16
"""Ranks; each is interpreted."""


def _ranks(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        found = tuple(int(word) for word in value.split(","))
    except ValueError:
        found = ()
    if not found or not value.isascii() or any(not 1 <= each <= MOST for each in found):
        raise click.BadParameter(f"{value!r} does not name numbers from 1 to {MOST}, as in 2,4")
    return found


@click.command("triton", context_settings=GUEST_SETTINGS)
@click.option(
    "-P", "--ranks", callback=_ranks, default="2", show_default=True, metavar="N[,N…]", help="How many ranks."
)  # fmt: skip
@click.option("--budget", type=click.IntRange(min=0), default=BUDGET, show_default=True, metavar="N",
              help="How many executions may be explored, if need be.")  # fmt: skip
@click.option("--races", type=click.Choice(["all", "harmful"]), default="all", show_default=True,
              help="Which data races refute; PTX defines the result of none.")  # fmt: skip
@guest_options(
    schedule="The schedule of the first run.", seed="Of the run.", reports="the reports", program="it", memory="gpu",
)  # fmt: skip
@click.pass_context
def triton_command(  # noqa: PLR0913, PLR0917 - one argument an option
    ctx: click.Context, ranks: tuple[int, ...], budget: int, races: str, scheduler: str, memory: str, seed: int,
    save: Path | None, json_file: Path | None, recorded: str | None, script: str, arguments: Sequence[str],
) -> None:  # fmt: skip
    """Run a script that drives Triton kernels as it is, without a GPU, then prove or refute its synchronisation.

    Every rank runs the script whole, its kernels by Triton's own interpreter; CUDA's lines mean the CPU. Symmetric
    memory is torch's (`torch.distributed._symmetric_memory`) or Iris'. Each program instance is a stream, each memory
    access one operation, under the memory model of GPUs. Small sizes show what large ones do: two tiles a block, and
    one.

    The exit status is 0 if nothing harmful was found, 1 if the script is refuted, or fails; 2 for wrong use.

    \b
    Examples:
        asyncsim triton one_shot.py
        asyncsim triton -P 2,4 ring.py --blocks 2
    """  # noqa: D301 - click reads the backspace
    make(scheduler, seed=seed)
    model_of(memory)
    check_outputs({"--json": json_file}, reads=[script, recorded])
    record = None if recorded is None else read_record(recorded)
    if record is not None:
        ranks, memory, seed = (record.header.ranks,), record.header.memory, record.header.seed
    program = TritonScript(script, arguments)
    reports: list[Report] = []
    status, error = 0, ""
    with program.answered():
        for number in ranks:
            try:
                kernel = program.kernel(number, memory=memory, seed=seed)
            except KernelError as failed:
                click.echo(program.printed, nl=False)
                error = f"P = {number}: {failed}"
                click.echo(f"asyncsim: {error}", err=True)
                status = BAD_INPUT if isinstance(failed.__cause__, AsyncsimError) else 1
                break
            if not reports:
                click.echo(program.printed, nl=False)
            if record is not None:
                with redirect_stdout(StringIO()):
                    text, shown = replayed_text(replay(record, kernel), Case(kernel, number, 1, memory, seed))
                click.echo(text, nl=False)
                ctx.exit(int(shown))
            with progress_bar(f"{script}, P = {number}") as progress, redirect_stdout(StringIO()):
                report = program.judge(
                    kernel, number, memory=memory, seed=seed, scheduler=scheduler, budget=budget, races=races,
                    save=save, shrinking=SHRINK_STEPS, progress=progress,
                )  # fmt: skip
            reports.append(report)
            sys.stdout.flush()
            click.echo(
                coloured(report_text(report, width=width(), replay=_replay_line(number, script, arguments))), nl=False
            )
            status = max(status, int(report.refuted))
    if json_file is not None:
        told = {"script": script, "status": status, "error": error, "reports": [each.to_json() for each in reports]}
        json_file.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    ctx.exit(status)


def _replay_line(ranks: int, script: str, arguments: Sequence[str]) -> Callable[[str, object], str]:
    def line(witness: str, _kernel: object) -> str:
        return shlex.join(["asyncsim", "triton", "-P", str(ranks), "--replay", witness, script, *arguments])

    return line
