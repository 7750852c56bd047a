"""``asyncsim record``: one run of a kernel as a trace, written while it goes on."""

from __future__ import annotations

from pathlib import Path

import click

from asyncsim.checking.record.locate import locate
from asyncsim.cli.completion import complete_kernels, complete_schedulers
from asyncsim.cli.options import Options, shared_options
from asyncsim.cli.outputs import check_outputs
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.live import Live
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.jsonl import LiveTrace
from asyncsim.views.report import case_text, count_text


@click.command("record")
@click.argument("kernel", metavar="KERNEL", shell_complete=complete_kernels)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--scheduler", metavar="NAME[:arg=value]", default="fifo", show_default=True, shell_complete=complete_schedulers,
    help="Who goes next.",
)  # fmt: skip
@shared_options
def record_command(kernel: str, file: Path, *, scheduler: str, options: Options) -> None:
    """Run a kernel once and write its trace to FILE, line by line: killed, it is whole up to its last line.

    FILE may end in .gz or .zst. Nothing is judged; `asyncsim explain FILE` does that.

    \b
    Example:
        asyncsim record reduce_scatter:builtin run.jsonl -P 4 --scheduler random:seed=3
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if len(options.ranks) > 1:
        raise click.UsageError("a trace is of one P")
    if file.suffix == ".py":
        raise MisuseError(f"FILE {file}: a trace is not a Python file; let it end in .jsonl, .jsonl.gz or .jsonl.zst")
    case = Case(locate(kernel), options.ranks[0], options.calls, options.memory, options.seed)
    check_outputs({"FILE": file}, kernels=[case.kernel])
    with LiveTrace(file, case.header(scheduler)) as live:
        try:
            trace = simulate(case, Live(make(scheduler), live.step), record=scheduler).trace
        except KernelError as error:
            if error.trace is not None:
                live.finish(error.trace.footer)
            raise
        assert trace is not None  # noqa: S101 - for the type checker: it was recorded,
        assert trace.footer is not None  # noqa: S101 - to its end
        live.finish(trace.footer)
    steps = count_text(len(trace.events), "step")
    click.echo(f"recorded {steps} of {case_text(case)}: {trace.footer.ending}\ntrace    {file}")
