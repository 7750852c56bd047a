"""``asyncsim lower``: the primitives that a call becomes."""

from __future__ import annotations

import json

import click

from asyncsim.checking.record.locate import locate
from asyncsim.cli.completion import complete_kernels
from asyncsim.cli.options import Whole
from asyncsim.study.lower import lower
from asyncsim.views.lower import diff_text, lower_text

TWO = 2


@click.command("lower")
@click.argument("kernels", metavar="KERNEL...", nargs=-1, required=True, shell_complete=complete_kernels)
@click.option("--diff", is_flag=True, help="Lay two kernels side by side.")
@click.option("--rank", type=Whole(min=0), default=0, show_default=True, help="Whose primitives.")
@click.option("--call", type=Whole(min=0), default=0, show_default=True, help="Which call, from 0.")
@click.option("-P", "--ranks", type=Whole(min=1), default=4, show_default=True, help="How many ranks.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Of the inputs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object for one kernel, else an array.")
def lower_command(  # noqa: PLR0913 - one argument an option
    kernels: tuple[str, ...], *, diff: bool, rank: int, call: int, ranks: int, seed: int, as_json: bool
) -> None:
    """Show what a call becomes: the primitives of one rank, and the credits of its cells.

    They are read off a recorded run in fair turn.

    \b
    Examples:
        asyncsim lower reduce_scatter:builtin --rank 1 -P 4
        asyncsim lower --diff reduce_scatter:hand reduce_scatter:builtin
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if diff and len(kernels) != TWO:
        raise click.UsageError(f"--diff lays two kernels side by side; {len(kernels)} given")
    made = [lower(locate(name), ranks=ranks, rank=rank, call=call, seed=seed) for name in kernels]
    if as_json:
        objects = [lowered.to_json() for lowered in made]
        click.echo(json.dumps(objects[0] if len(objects) == 1 else objects, indent=2))
    elif diff:
        click.echo(diff_text(*made), nl=False)
    else:
        click.echo("\n".join(lower_text(lowered) for lowered in made), nl=False)
