"""``asyncsim shmemrun``: run a one-sided script as it is on simulated processes, then judge it."""

from __future__ import annotations

import json
import shlex
import sys
import traceback
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.record.replay import replay
from asyncsim.cli.guest import GUEST_SETTINGS, guest_options, replayed_text
from asyncsim.cli.judge import coloured, width
from asyncsim.cli.options import Whole
from asyncsim.cli.outputs import check_outputs
from asyncsim.cli.progress import progress_bar
from asyncsim.frontends.mpi.module import script as mpi_script
from asyncsim.frontends.shmem.module import script as shmem_script
from asyncsim.machine.case import Case
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import AsyncsimError, KernelError, MisuseError
from asyncsim.trace.late import model_of
from asyncsim.trace.token import read_record
from asyncsim.views.report import report_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from asyncsim.checking.verdict.report import Report
    from asyncsim.guest.script import Script

BAD_INPUT = 2
MOST = 64
"""Processes; each pair of them meets by cells of its own."""


def _command(name: str, made: Callable[[str, Sequence[str]], Script], about: str) -> click.Command:
    @click.command(name, context_settings=GUEST_SETTINGS, help=about)
    @click.option(
        "-n", "-np", "ranks", type=Whole(min=1, max=MOST), default=2, show_default=True, metavar="P",
        help="How many processes.",
    )  # fmt: skip
    @click.option(
        "--races", type=click.Choice(["all", "harmful"]), default="all", show_default=True,
        help="Which races refute; in these interfaces any race is a mistake.",
    )  # fmt: skip
    @click.option(
        "--budget", type=Whole(min=0), metavar="N", help="How many executions may be explored, if need be."
    )  # fmt: skip
    @guest_options(
        schedule="The schedule whose results the script sees.", seed="Of the run.", reports="the report",
        program="it", memory="nic",
    )  # fmt: skip
    @click.pass_context
    def command(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - one an option
        ctx.exit(_run(name, made, **options))

    return command


def _run(  # noqa: PLR0913 - one argument an option
    name: str, made: Callable[[str, Sequence[str]], Script], *, script: str, arguments: Sequence[str], ranks: int,
    races: str, budget: int | None, scheduler: str, memory: str, seed: int, save: Path | None,
    json_file: Path | None, recorded: str | None,
) -> int:  # fmt: skip
    make(scheduler, seed=seed)
    model_of(memory)
    check_outputs({"--json": json_file}, reads=[script, recorded])
    record = None if recorded is None else read_record(recorded)
    if record is not None:
        if record.header.ranks != ranks:
            raise MisuseError(f"the record is of {record.header.ranks} ranks; give -n {record.header.ranks}")
        memory, seed = record.header.memory, record.header.seed
    program = made(script, arguments)
    report: Report | None = None
    with program.answered():
        try:
            program.follow(ranks, memory=memory, seed=seed)
        except KernelError as error:
            click.echo(program.printed, nl=False)
            click.echo(f"asyncsim: {error}", err=True)
            status = BAD_INPUT if isinstance(error.__cause__, AsyncsimError) or _in_a_call(error.__cause__) else 1
            _write(json_file, script, status, None, str(error))
            return status
        click.echo(program.printed, nl=False)
        if record is not None:
            with redirect_stdout(StringIO()):
                again = replay(record, program.kernel())
                text, failed = replayed_text(again, Case(program.kernel(), ranks, 1, memory, seed))
            click.echo(text, nl=False)
            return int(failed)
        with progress_bar(f"{script}, P = {ranks}") as progress:
            report = program.judge(
                ranks, memory=memory, seed=seed, scheduler=scheduler, races=races, budget=budget, save=save,
                progress=progress,
            )  # fmt: skip
    status = int(report.refuted)

    def replayed(witness: str, _kernel: object) -> str:
        return shlex.join(["asyncsim", name, "-n", str(ranks), "--replay", witness, script, *arguments])

    sys.stdout.flush()
    click.echo(coloured(report_text(report, width=width(), replay=replayed)), nl=False)
    _write(json_file, script, status, report, "")
    return status


def _in_a_call(error: BaseException | None) -> bool:
    """Say whether an error came out of a call of the interface, which cannot do with what it was given."""
    if not isinstance(error, TypeError | ValueError | AttributeError | OverflowError):
        return False
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(module.startswith("asyncsim.frontends.") for module in modules)


def _write(file: Path | None, script: str, status: int, report: Report | None, error: str) -> None:
    if file is not None:
        told = {"script": script, "status": status, "error": error, "report": report and report.to_json()}
        file.write_text(json.dumps(told, indent=2) + "\n", "utf-8")


shmemrun_command = _command(
    "shmemrun",
    shmem_script,
    """Run a script of shmem4py as it is, then prove or refute that it synchronises as OpenSHMEM asks.

    The script prints what it prints in one run. Then it is judged whole: puts and gets, atomics, waits, locks, and
    what it reads and writes in place in symmetric arrays. Any race refutes.

    The exit status is 0 if nothing was found, 1 if the script is refuted, or fails; 2 for wrong use, such as an array
    that is not symmetric, or was freed.

    \b
    Examples:
        asyncsim shmemrun -n 4 halo.py
        asyncsim shmemrun -n 2 --budget 20000 lock.py
    """,
)
mpirun_command = _command(
    "mpirun",
    mpi_script,
    """Run a script of mpi4py that uses windows as it is, then prove or refute that it synchronises as MPI asks.

    The script prints what it prints in one run. Then it is judged whole: puts, gets and accumulates in their epochs,
    locks, messages, and what it reads and writes in place in arrays that are exposed. Any race refutes.

    The exit status is 0 if nothing was found, 1 if the script is refuted, or fails; 2 for wrong use, such as an
    access outside of an epoch, and for what is not followed.

    \b
    Examples:
        asyncsim mpirun -n 4 stencil.py
        asyncsim mpirun -n 2 --budget 20000 counter.py
    """,
)
