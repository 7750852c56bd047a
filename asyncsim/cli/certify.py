"""``asyncsim certify``: check a certificate; and what ``asyncsim check --certificate`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncsim.analysis.certificate import certificate
from asyncsim.certify import RejectedError, UnreadableError, certify

if TYPE_CHECKING:
    from asyncsim.certify import Certified
    from asyncsim.checking.report import Report

REJECTED, UNREADABLE = 1, 2


@click.command("certify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def certify_command(ctx: click.Context, file: Path) -> None:
    """Check the certificate of a proof, without trusting what made it.

    FILE was written by `asyncsim check --certificate FILE`. No kernel is run. Exit status 0: accepted;
    1: it proves nothing; 2: it is no certificate.

    \b
    Example:
        asyncsim check reduce_scatter:builtin --certificate builtin.jsonl
        asyncsim certify builtin.jsonl
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    try:
        with file.open(encoding="utf-8") as lines:
            found = certify(lines)
    except (UnreadableError, UnicodeDecodeError) as error:
        reason = "no text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        click.echo(f"asyncsim: {file} is no certificate: {reason}", err=True)
        ctx.exit(UNREADABLE)
    except RejectedError as error:
        click.echo(f"{click.style('REJECTED', fg='red', bold=True)}  {file} proves nothing: {error}")
        ctx.exit(REJECTED)
    click.echo(accepted_text(found))


def accepted_text(found: Certified) -> str:
    """Return what an accepted certificate certifies, in words."""
    calls = f"{found.calls} call{'s' if found.calls > 1 else ''}"
    return (
        f"{click.style('ACCEPTED', fg='green', bold=True)}  {found.kernel} (source {found.source})\n"
        f"every schedule of {found.ranks} ranks, {calls}, memory {found.memory}, inputs of seed {found.seed}, "
        "takes the same steps with the same values\n"
        f"{found.steps} steps were replayed; {found.cuts} cuts of {found.actors} integers hold {found.holds} events"
    )


def write_certificate(report: Report, file: Path) -> None:
    """Write the certificate of a report, and say so; or say why there is none.

    What is written has passed the checker, so nobody gets a file that `asyncsim certify` will not take.
    """
    if report.proof is None:
        click.echo(f"asyncsim: no certificate: only what is PROVED has one, and this is {report.verdict}", err=True)
        return
    lines = certificate(*report.proof)
    try:
        found = certify(lines)
    except RejectedError as error:
        click.echo(f"asyncsim: no certificate: its checker does not follow this proof ({error})", err=True)
        return
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    click.echo(f"asyncsim: {file} certifies it with {found.cuts} cuts; check it with asyncsim certify {file}", err=True)
