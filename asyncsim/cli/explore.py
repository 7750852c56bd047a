"""``asyncsim explore``: run many schedules, and see whether one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from asyncsim.checking.explore import RUNS, Progress, explore
from asyncsim.cli.judge import judge_all
from asyncsim.cli.options import Options, engine_option, shared_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.checking.report import Report
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine


@click.command("explore")
@click.argument("kernels", metavar="KERNEL...", nargs=-1, required=True)
@click.option("--scheduler", metavar="NAME[:arg=value]", help="Who goes next, such as random or pct:depth=3.")
@click.option("--runs", type=click.IntRange(min=1), default=RUNS, show_default=True, help="How many schedules.")
@engine_option
@shared_options
@click.pass_context
def explore_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context, kernels: tuple[str, ...], *, scheduler: str | None, runs: int, engine: Engine, options: Options
) -> None:
    """Run a kernel under many schedules.

    What survives them is not proved; `asyncsim check` proves. Ctrl-C ends it early and reports what
    was found until then.

    \b
    Examples:
        asyncsim explore reduce_scatter:no_post_barrier --runs 500 --seed 7
        asyncsim explore my_kernels.py:all_reduce --scheduler random --runs 10000 --save witnesses
    """  # noqa: D301 - click keeps the lines after a backspace as they are

    def judge(kernel: Kernel, ranks: int, progress: Callable[[Progress], None] | None) -> Report:
        return explore(
            kernel,
            ranks=ranks,
            calls=options.calls,
            memory=options.memory,
            seed=options.seed,
            scheduler=scheduler,
            engine=engine,
            runs=runs,
            save=options.save,
            progress=progress,
        )

    ctx.exit(judge_all(kernels, options, judge))
