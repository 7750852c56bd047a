"""``asyncsim torchrun``: run a torch.distributed script on simulated ranks, then judge what it called."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.record.replay import replay
from asyncsim.cli.guest import GUEST_SETTINGS, guest_options, replayed_text
from asyncsim.cli.judge import coloured, width
from asyncsim.cli.options import Whole
from asyncsim.cli.outputs import check_outputs
from asyncsim.cli.progress import progress_bar
from asyncsim.frontends.torch_dist.script import exit_status, failure_text, run_script
from asyncsim.machine.case import Case
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.token import read_record
from asyncsim.views.report import replay_line, report_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from asyncsim.checking.verdict.report import Report
    from asyncsim.frontends.torch_dist.launch import Launched
    from asyncsim.trace.event import Trace
    from asyncsim.trace.token import Token

MOST_THREADS = 1024
"""A thread a rank; no system likes many more."""


@click.command("torchrun", context_settings=GUEST_SETTINGS)
@click.option(
    "-n", "--nproc-per-node", "--nproc_per_node", "ranks", type=Whole(min=1, max=MOST_THREADS),
    default=2, show_default=True,
    metavar="P", help="How many ranks.",
)  # fmt: skip
@click.option("--prefix", is_flag=True, help="Put the rank before each line that the script prints.")
@guest_options(
    schedule="Which schedule is run.",
    seed="Of random numbers that the script does not seed.",
    reports="the report",
    program="its calls",
)
@click.pass_context
def torchrun_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context,
    script: str,
    arguments: tuple[str, ...],
    *,
    ranks: int,
    prefix: bool,
    scheduler: str,
    memory: str,
    seed: int,
    save: Path | None,
    json_file: Path | None,
    recorded: str | None,
) -> None:
    """Run an unmodified torch.distributed script, a thread a rank, and judge its collectives.

    The script runs once. Then everything that it called runs again as one kernel, on memory that is used
    again and again, and is proved or refuted. With torch installed,
    touching a tensor between async_op=True and wait() is a race that stops the script.

    The exit status is the script's own if it fails; else 1 if its calls are refuted, 0 if they are not.

    \b
    Examples:
        asyncsim torchrun -n 2 train.py
        asyncsim torchrun -n 4 --prefix train.py --epochs 3
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    check_outputs({"--json": json_file}, reads=[script, recorded])
    record = None if recorded is None else read_record(recorded)
    if record is not None:
        memory, seed = _asked(record, ranks)
    launched = run_script(
        script, arguments, ranks=ranks, memory=memory, scheduler=scheduler, seed=seed, prefix=prefix
    )  # fmt: skip
    click.echo(failure_text(launched), err=True, nl=False)
    session = launched.session
    session.check_ran()
    status = exit_status(launched)
    if session.raced is not None and not status:
        click.echo(f"asyncsim: {session.raced}", err=True)
        status = 1
    report = None
    if status:
        click.echo(f"asyncsim: not judged: the script failed, after {_collectives(session.collectives)}", err=True)
    elif record is not None:
        status = _replay(record, launched)
    elif session.idle:
        click.echo(f"asyncsim: {script} called no collective; there is nothing to judge")
    else:
        with progress_bar(f"{script}, P = {ranks}") as progress:
            report = launched.check(save=save, progress=progress)
        status = int(report.refuted)
        click.echo(coloured(_report_text(report, script, arguments)), nl=False)
    if json_file is not None:
        json_file.write_text(json.dumps(_object(launched, report, status), indent=2) + "\n", "utf-8")
    ctx.exit(status)


def _collectives(number: int) -> str:
    return f"{number} collective{'s' * (number != 1)}"


def _report_text(report: Report, script: str, arguments: Sequence[str]) -> str:
    """Return the report; its witnesses are replayed by this command, since only a run of the script knows its calls."""
    text = report_text(report, width=width())
    case = report.case
    for finding in report.findings:
        if finding.token is not None:
            command = ["asyncsim", "torchrun", "-n", str(case.ranks), "--replay", finding.token, script, *arguments]
            text = text.replace(replay_line(finding.token, case.kernel), shlex.join(command))
    return text


def _object(launched: Launched, report: Report | None, status: int) -> dict[str, Any]:
    session = launched.session
    told: dict[str, Any] = {} if report is None else report.to_json()
    return {
        "script": launched.path,
        "status": status,
        "collectives": session.collectives,
        "mismatch": session.broken,
        "race": session.raced,
        "errors": {
            str(rank): f"{type(error).__name__}: {error}"
            for rank, error in enumerate(launched.errors)
            if error is not None
        },
        "report": told or None,
    }


# ---- replay


def _asked(record: Token | Trace, ranks: int) -> tuple[str, int]:
    """Return the memory model and the seed that were recorded."""
    run = record.header
    if run.ranks != ranks:
        raise MisuseError(f"the record is of {run.ranks} ranks, and -n says {ranks}; give -n {run.ranks}")
    return run.memory, run.seed


def _replay(record: Token | Trace, launched: Launched) -> int:
    """Do a recorded run of the script's calls again, and show what it showed; return the exit status."""
    kernel = launched.kernel(launched.memory)
    again = replay(record, kernel, max_steps=launched.max_steps)
    case = Case(kernel, launched.session.ranks, 1, launched.memory, launched.seed, launched.max_steps)
    text, failed = replayed_text(again, case)
    click.echo(text, nl=False)
    if again.source_changed:
        click.echo("asyncsim: it agrees to the end; but the script has changed", err=True)
        return 2
    return int(failed)
