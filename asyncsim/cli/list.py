"""``asyncsim list``: the kernels that come with asyncsim."""

from __future__ import annotations

import json

import click

from asyncsim.checking.record.locate import all_kernels
from asyncsim.cli.field import show_field
from asyncsim.views.table import table_text


@click.command("list")
@click.option("--field", is_flag=True, help="Judge the corpus of real mistakes.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of JSON objects.")
@click.pass_context
def list_command(ctx: click.Context, *, field: bool, as_json: bool) -> None:
    """Show the kernels that come with asyncsim, and what each must give.

    What a kernel must give is meant for two calls back to back.

    \b
    Examples:
        asyncsim list
        asyncsim list --field
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if field:
        ctx.exit(show_field(as_json=as_json))
    kernels = all_kernels()
    if as_json:
        objects = [
            {"kernel": kernel.ref, "about": kernel.first_line, "finds": [str(expected) for expected in kernel.finds]}
            for kernel in kernels.values()
        ]
        click.echo(json.dumps(objects, indent=2))
        return
    rows = [
        (name, "; ".join(map(str, kernel.finds)) or "nothing", kernel.first_line) for name, kernel in kernels.items()
    ]
    click.echo(table_text(("kernel", "must give", "what it is"), rows), nl=False)
