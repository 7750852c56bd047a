"""``asyncsim list``: the kernels that come with asyncsim."""

from __future__ import annotations

import json

import click

from asyncsim.checking.record.locate import all_kernels
from asyncsim.views.table import table_text


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print an array of JSON objects.")
def list_command(*, as_json: bool) -> None:
    """Show the kernels that come with asyncsim, and what each must give.

    What a kernel must give is meant for two calls back to back.

    \b
    Examples:
        asyncsim list
        asyncsim list --json
    """  # noqa: D301 - click keeps the lines after a backspace as they are
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
