"""``asyncsim explore``: run many schedules, and see whether one fails."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncsim.checking.record.interrupts import interrupts_stay_masked
from asyncsim.checking.verdict.explore import BUDGET, MOST_JOBS, MOST_RUNS, RUNS, Progress, explore
from asyncsim.checking.workers.pool import cores
from asyncsim.cli.completion import complete_kernels, complete_schedulers
from asyncsim.cli.judge import judge_all
from asyncsim.cli.options import Options, Whole, engine_option, races_option, shared_options, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine


def _jobs(ctx: click.Context, param: click.Parameter, value: str) -> int:  # noqa: ARG001 - click's signature
    """Return a number of processes, with the cores of this machine in the place of 0 or auto."""
    if value in ("0", "auto"):
        return cores()
    jobs = whole(value)
    if jobs is None or not 0 < jobs <= MOST_JOBS:
        raise click.BadParameter(
            f"{value!r} is not a number of processes; give an integer such as 4, at most {MOST_JOBS}, or auto"
        )
    return jobs


@contextmanager
def _dask_executor(address: str | None) -> Iterator[tuple[Executor, int] | None]:
    """Yield an executor on a Dask cluster and how many threads its workers have; None without an address."""
    if address is None:
        yield None
        return
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise click.UsageError(
            "--dask needs the package distributed, which is not installed; pip install 'asyncsim[dask]'"
        ) from None
    try:
        client = distributed.Client(address)
    except (OSError, ValueError) as error:
        raise click.UsageError(
            f"--dask {address}: no scheduler of Dask's answers there ({error}); start one with: dask scheduler"
        ) from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise click.UsageError(f"--dask {address}: the cluster has no workers; start some: dask worker {address}")
        yield client.get_executor(), threads


@click.command("explore")
@click.argument("kernels", metavar="KERNEL...", nargs=-1, required=True, shell_complete=complete_kernels)
@click.option(
    "--scheduler", metavar="NAME[:arg=value]", shell_complete=complete_schedulers,
    help="Who goes next, such as random or pct:depth=3.",
)  # fmt: skip
@click.option("--runs", type=Whole(min=1, max=MOST_RUNS), default=RUNS, show_default=True, help="How many schedules.")
@click.option(
    "--jobs",
    callback=_jobs,
    metavar="N|auto",
    default="1",
    show_default=True,
    help="How many processes run them; 0 or auto: one a core. The report is the same.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run them on a Dask cluster, such as tcp://host:8786, that has the same kernel files.",
)
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep a journal in this file, and go on from what it holds. One kernel, one P.",
)
@click.option(
    "--behaviours/--no-behaviours",
    default=True,
    show_default=True,
    help="Count the different orders of conflicting operations that were seen; costs about a tenth.",
)
@click.option(
    "--exhaustive", is_flag=True, help="Run every inequivalent execution instead; without --scheduler and --resume."
)
@click.option(
    "--budget", type=Whole(min=1, max=MOST_RUNS), default=BUDGET, show_default=True,
    help="How many executions --exhaustive may take.",
)  # fmt: skip
@races_option
@engine_option
@shared_options
@click.pass_context
def explore_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context,
    kernels: tuple[str, ...],
    *,
    scheduler: str | None,
    runs: int,
    jobs: int,
    dask: str | None,
    resume: Path | None,
    behaviours: bool,
    exhaustive: bool,
    budget: int,
    races: str,
    engine: Engine | None,
    options: Options,
) -> None:
    """Run a kernel under many schedules.

    What survives them is not proved; `asyncsim check` proves. Ctrl-C ends it early and reports what
    was found until then; with --resume the same command goes on from there. Where not too much can
    happen, --exhaustive runs all that can, and says so.

    \b
    Examples:
        asyncsim explore reduce_scatter:no_post_barrier --runs 500 --seed 7
        asyncsim explore my_kernels.py:all_reduce --scheduler random --runs 10000 --save witnesses
        asyncsim explore reduce_scatter:hand --runs 1000000 --jobs auto --resume hand.journal
        asyncsim explore reduce_scatter:hand --runs 1000000 --dask tcp://10.0.0.1:8786
        asyncsim explore all_reduce:mesh --exhaustive --jobs auto
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if resume is not None and len(kernels) * len(options.ranks) > 1:
        raise click.UsageError("--resume is the journal of one exploration; give one kernel and one P")
    if dask is not None and jobs != 1:
        raise click.UsageError("--jobs and --dask both say what runs the schedules; give one of them")

    with interrupts_stay_masked(), _dask_executor(dask) as cluster:
        executor, workers = (None, jobs) if cluster is None else cluster

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
                jobs=workers,
                executor=executor,
                resume=resume,
                behaviours=behaviours,
                save=options.save,
                progress=progress,
                exhaustive=exhaustive,
                budget=budget,
                races=races,
            )

        status = judge_all(kernels, options, judge)
    ctx.exit(status)
