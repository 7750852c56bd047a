"""``asyncsim check``: prove or refute, from one run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncsim.checking.record.interrupts import lasting_deafness
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.explore import MOST_RUNS
from asyncsim.cli.certify import write_certificate
from asyncsim.cli.completion import complete_kernels
from asyncsim.cli.field import show_field
from asyncsim.cli.judge import judge_all
from asyncsim.cli.numbers import Whole
from asyncsim.cli.options import RANKS, Options, engine_option, races_option, shared_options_of_check
from asyncsim.cli.outputs import check_outputs
from asyncsim.cli.room import room_watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.checking.verdict.explore import Progress
    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine


@click.command("check")
@click.argument("kernels", metavar="KERNEL...", nargs=-1, shell_complete=complete_kernels)
@click.option("--all", "corpus", type=click.Choice(["field"]), help="Judge a whole corpus against what it must give.")
@click.option("--explain", is_flag=True, help="Say for each cell why counting its credits was enough, or why not.")
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a proof that `asyncsim certify` checks; of one kernel at one P.",
)
@click.option(
    "--budget", type=Whole(min=0, max=MOST_RUNS), metavar="N",
    help="How many executions may be explored where one run does not decide; 0: none.  "
    "[default: a few seconds' worth, at most 2000]",
)  # fmt: skip
@races_option
@engine_option
@shared_options_of_check
@click.pass_context
def check_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context,
    kernels: tuple[str, ...],
    *,
    corpus: str | None,
    explain: bool,
    certificate: Path | None,
    budget: int | None,
    races: str,
    engine: Engine | None,
    options: Options,
) -> None:
    """Prove or refute a kernel from one run.

    KERNEL is module:name, the short name of a kernel that `asyncsim list` shows, or file.py:name.

    At several P, a line tells the verdict of each, and one report is shown in full: the first that refutes, else
    the one that says least. A P that the kernel refuses is told, and left out.

    Time and memory grow with the operations of one run: from 32 ranks on it takes at most 400 bytes an
    operation and 56 MB, if windows and inputs are small. At 1024 ranks, two calls of reduce_scatter:builtin are
    14.7 million operations: 5.9 GB at most.
    Who watches is shown how far it is; Ctrl-C ends it early and reports what was found until then.

    \b
    Examples:
        asyncsim check reduce_scatter:builtin
        asyncsim check reduce_scatter:no_post_barrier -P 2,3,4,8 --save witnesses
        asyncsim check my_kernels.py:all_reduce -d 0,1 --calls 1 --json
        asyncsim check my_kernels.py:spin --calls 1 --budget 50000
        asyncsim check --all field
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if corpus is not None:
        if kernels or certificate is not None:
            raise click.UsageError(
                "--all judges a corpus, each case as it is meant; give it no kernel or --certificate"
            )
        ctx.exit(show_field(seed=options.seed, as_json=options.json))
    if not kernels:
        raise click.UsageError(
            "which kernel? Give one: asyncsim check reduce_scatter:builtin (asyncsim list shows all)"
        )
    if certificate is not None and not options.chosen:
        options = replace(options, ranks=RANKS)
    if certificate is not None and (len(kernels) > 1 or len(options.ranks) > 1):
        raise click.UsageError("--certificate is of one kernel at one P")
    reports: list[Report] = []

    def judge(kernel: Kernel, ranks: int, progress: Callable[[Progress], None] | None) -> Report:
        check_outputs({"--certificate": certificate}, kernels=[kernel])
        with room_watched(progress) as told:
            report = check(
                kernel,
                ranks=ranks,
                calls=options.calls,
                memory=options.memory,
                seed=options.seed,
                engine=engine,
                budget=budget,
                races=races,
                save=options.save,
                progress=told,
            )
        reports.append(report)
        return report

    with lasting_deafness():  # once Ctrl-C has ended a check, another must not lose its report
        status = judge_all(kernels, options, judge, explain=explain)
    if certificate is not None:
        write_certificate(reports[0], certificate)
    ctx.exit(status)
