"""``asyncsim delays``: the few delays that provoke a witness' failure on a real machine."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from asyncsim.cli.options import Whole
from asyncsim.cli.recorded import kernel_option, load, recorded_argument, warn_if_changed
from asyncsim.study.delays import BUDGET, provoke
from asyncsim.views.delays import DIALECTS, delays_code, delays_text


@click.command("delays")
@recorded_argument
@kernel_option
@click.option(
    "--code", "dialect", type=click.Choice(list(DIALECTS)), help="Add code to paste, for this kind of program."
)
@click.option(
    "--budget", type=Whole(min=1), default=BUDGET, show_default=True, metavar="N", help="How many runs may be made."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def delays_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context, recorded: str, *, name: str | None, dialect: str | None, budget: int, as_json: bool
) -> None:
    """Find the fewest delays that provoke a failure where all else runs as it comes.

    For a reproducer on the hardware: hold this rank at this line until the others can go no further. The delays are
    run here, under the fair scheduler, and fail as the witness does. The exit status is 1 if none were found.

    \b
    Examples:
        asyncsim delays witnesses/race.jsonl
        asyncsim delays witnesses/race.jsonl --code cuda
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    record = load(recorded, name)
    warn_if_changed(record)
    provoked = provoke(record.data, record.kernel, budget=budget)
    found, kinds = provoked.delays, sorted(provoked.kinds)
    if as_json:
        delays = None if found is None else [asdict(each) for each in found]
        click.echo(json.dumps({"fails": kinds, "delays": delays}, indent=2))
    elif found is None:
        click.echo(f"in {budget} runs no delays, at most three, were found that provoke: {', '.join(kinds)}")
    else:
        click.echo(f"{', '.join(kinds)}, with {delays_text(found)}", nl=False)
        if dialect is not None:
            click.echo("\n" + delays_code(found, dialect), nl=False)
    ctx.exit(int(found is None))
