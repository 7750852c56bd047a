"""``asyncsim list``: the kernels that come with asyncsim."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import click

from asyncsim.checking.record.locate import all_kernels
from asyncsim.cli.judge import width
from asyncsim.views.report import wrapped
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PIPED = 10_000
"""As wide as what is no terminal: a program reads the table."""


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
    table = table_text(("kernel", "must give", "what it is"), rows)
    fits = max(map(len, table.splitlines())) <= shutil.get_terminal_size((PIPED, 0)).columns
    click.echo(table.rstrip("\n") if fits else "\n".join(_blocks(rows)))


def _blocks(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Yield the lines of a list for a terminal that is too narrow for the table; a name is never cut."""
    for name, finds, about in rows:
        yield name
        yield from wrapped(about, width(), "    ")
        if finds != "nothing":
            yield from wrapped(f"must give {finds}", width(), "    ")
