"""``asyncsim audit``: what each barrier, wait and notify of a kernel is for."""

from __future__ import annotations

import json

import click

from asyncsim.checking.record.locate import locate
from asyncsim.cli.completion import complete_kernels
from asyncsim.cli.judge import coloured, width
from asyncsim.cli.options import Options, shared_options_and_auto
from asyncsim.cli.progress import progress_bar
from asyncsim.study.audit import AuditReport, audit
from asyncsim.views.audit import audit_text


@click.command("audit")
@click.argument("kernels", metavar="KERNEL...", nargs=-1, required=True, shell_complete=complete_kernels)
@click.option("--fine", is_flag=True, help="Go through the notifies and waits inside each barrier, too.")
@shared_options_and_auto
@click.pass_context
def audit_command(ctx: click.Context, kernels: tuple[str, ...], *, fine: bool, options: Options) -> None:
    """Say what each barrier of a kernel is for.

    Each barrier, wait and notify is taken away in turn, and the kernel judged again, over one call and
    over several. What goes wrong then is what that part guards, with a schedule that shows it; if
    nothing does, the part is redundant.

    For a refuted kernel it looks for the cheapest change of its source that makes it PROVED: a release, another
    neighbour, a line moved, a fence, a quiet, a sync of streams, a credit, a barrier. It prints the change as
    `patch -p0` takes it.

    The exit status is that of the kernel as it stands: 1 if it is refuted.

    \b
    Examples:
        asyncsim audit reduce_scatter:builtin
        asyncsim audit reduce_scatter:no_post_barrier -P 3
        asyncsim audit my_kernels.py:all_reduce --fine --json
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    cases = [(kernel, ranks) for kernel in map(locate, kernels) for ranks in options.ranks]
    done: list[AuditReport] = []
    for kernel, ranks in cases:
        with progress_bar(f"{kernel.ref}, P = {ranks}") as progress:
            audited = audit(
                kernel, ranks=ranks, calls=options.calls, memory=options.memory, seed=options.seed,
                fine=fine, save=options.save, progress=progress,
            )  # fmt: skip
        done.append(audited)
        if not options.json:
            click.echo("\n" * (len(done) > 1) + coloured(audit_text(audited, width=width())), nl=False)
        if audited.interrupted:
            break
    if len(done) < len(cases):
        click.echo(f"asyncsim: interrupted; {len(cases) - len(done)} of {len(cases)} were not audited", err=True)
    if options.json:
        objects = [audited.to_json() for audited in done]
        click.echo(json.dumps(objects[0] if len(cases) == 1 else objects, indent=2))
    ctx.exit(int(any(audited.refuted for audited in done)))
