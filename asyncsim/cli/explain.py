"""``asyncsim explain``: the report again, from a trace alone."""

from __future__ import annotations

import json
from pathlib import Path

import click

from asyncsim.study.explain import explain, read_run
from asyncsim.views.explain import explanation_text


@click.command("explain")
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--cells", is_flag=True, help="Add the class of each cell.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def explain_command(ctx: click.Context, trace: Path, *, cells: bool, as_json: bool) -> None:
    """Say what a trace says of its kernel; no kernel is run.

    The findings of its footer, and the analysis made anew from its steps. The trace may be broken off, or
    recorded elsewhere: by instrumenting a real kernel, with no order between the ranks. Exit status 1 if
    something is wrong, or may be.

    \b
    Examples:
        asyncsim explain witnesses/race.jsonl
        asyncsim explain recorded-on-the-cluster.jsonl.zst --json
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    explained = explain(read_run(trace))
    if as_json:
        click.echo(json.dumps(explained.to_json(), indent=2))
    else:
        text = explanation_text(explained, cells=cells)
        # What came out of a file cannot steer the terminal.
        click.echo("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text), nl=False)
    ctx.exit(int(explained.suspicious))
