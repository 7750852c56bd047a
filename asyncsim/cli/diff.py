"""``asyncsim diff``: where two traces first differ, and what follows from it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from asyncsim.study.compare import compare_traces
from asyncsim.study.explain import read_run
from asyncsim.views.diff import comparison_text

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("diff")
@click.argument("left", metavar="A", type=_FILE)
@click.argument("right", metavar="B", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def diff_command(ctx: click.Context, left: Path, right: Path, *, as_json: bool) -> None:
    """Say where two traces first differ, and what follows from it: whose steps, which values, which outputs.

    Exit status 0: they are of the same run; 1: they differ; 2: one of them is no trace.

    \b
    Example:
        asyncsim diff witnesses/race.jsonl witnesses/race.shrunk.jsonl
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    surveys = [read_run(path) for path in (left, right)]
    for path, survey in zip((left, right), surveys, strict=True):
        if survey.cut:
            click.echo(f"asyncsim: {path} is not whole: {survey.cut}; compared as far as it goes", err=True)
    one, other = (survey.trace for survey in surveys)
    found = compare_traces(one, other)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=2))
    else:
        text = comparison_text(found, one, other, (str(left), str(right)))
        # What came out of a file cannot steer the terminal.
        click.echo("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text), nl=False)
    ctx.exit(int(not found.same))
