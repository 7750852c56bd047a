"""``asyncsim certify``: check a certificate; and what ``asyncsim check --certificate`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncsim.analysis.certificate import certificate
from asyncsim.certify import RejectedError, UnreadableError, certify
from asyncsim.certify.reading import read
from asyncsim.checking.record.claim import certificate_mismatch
from asyncsim.checking.record.locate import locate
from asyncsim.cli.completion import complete_kernels
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.certify import Certified
    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel

REJECTED, UNREADABLE = 1, 2


@click.command("certify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--kernel", "name", metavar="KERNEL", shell_complete=complete_kernels,
    help="Run this kernel once, to see that the operations of FILE are its own.",
)  # fmt: skip
@click.pass_context
def certify_command(ctx: click.Context, file: Path, *, name: str | None) -> None:
    """Check the certificate of a proof, without trusting what made it.

    FILE was written by `asyncsim check --certificate FILE`. It lists operations, and what is accepted is a
    statement about these. Which kernel they are of is what FILE says: no kernel is run. With --kernel it is,
    once, and its name, its source and every operation must be those of FILE. Exit status 0: accepted; 1: it
    proves nothing, or nothing about that kernel; 2: it is not a certificate.

    \b
    Example:
        asyncsim check reduce_scatter:builtin --certificate builtin.jsonl
        asyncsim certify builtin.jsonl
        asyncsim certify builtin.jsonl --kernel reduce_scatter:builtin
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    try:
        with file.open(encoding="utf-8") as opened:
            lines = list(opened)
        found = certify(lines)
    except (UnreadableError, UnicodeDecodeError) as error:
        reason = "not text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        click.echo(f"asyncsim: {file} is not a certificate: {reason}", err=True)
        ctx.exit(UNREADABLE)
    except RejectedError as error:
        click.echo(f"{click.style('REJECTED', fg='red', bold=True)}  {file} proves nothing: {error}")
        ctx.exit(REJECTED)
    kernel = None if name is None else locate(name)
    if kernel is not None:
        certified = read(lines)
        denied = certificate_mismatch(
            certified.header, [stream for _, stream in certified.streams], kernel, steps=found.steps
        )  # fmt: skip
        if denied:
            reject = click.style("REJECTED", fg="red", bold=True)
            click.echo(f"{reject}  {file} proves nothing about {kernel.ref}: {denied}")
            ctx.exit(REJECTED)
    click.echo(_accepted_text(found, kernel))


def _accepted_text(found: Certified, kernel: Kernel | None = None) -> str:
    """Return what an accepted certificate certifies, of a kernel that was run and issues its operations, if any."""
    calls = f"{found.calls} call{'s' if found.calls > 1 else ''}"
    about = f"{found.kernel} (source {found.source}), {calls}, inputs of seed {found.seed}"
    return (
        f"{click.style('ACCEPTED', fg='green', bold=True)}  every schedule of the operations listed, "
        f"of {found.ranks} ranks, memory {found.memory}, takes the same steps with the same values\n"
        f"{found.steps} steps were replayed; {found.cuts} cuts of {found.actors} integers hold {found.holds} events\n"
    ) + (
        f"it says that they are those of {about}; that was not checked: --kernel NAME does it"
        if kernel is None
        else f"they are those of {about}: {kernel.ref} was run once, and issues them"
    )


def write_certificate(report: Report, file: Path) -> None:
    """Write the certificate of a report, and say so; or say why there is none.

    What is written has passed the checker, so `asyncsim certify` accepts the file.

    Args:
        report: of a check.
        file: written over if it is there; left alone if there is not a certificate.

    """
    if report.proof is None:
        several = len(report.models) > 1
        why = "of several models; name one of them with --memory" if several else "and this is " + report.verdict
        click.echo(f"asyncsim: no certificate: only what is PROVED under one memory model has one, {why}", err=True)
        return
    try:
        lines = certificate(*report.proof)
    except MisuseError as error:
        click.echo(f"asyncsim: no certificate: {error}", err=True)
        return
    try:
        found = certify(lines)
    except RejectedError as error:
        click.echo(f"asyncsim: no certificate: its checker does not follow this proof ({error})", err=True)
        return
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    click.echo(f"asyncsim: {file} certifies it with {found.cuts} cuts; check it with asyncsim certify {file}", err=True)
