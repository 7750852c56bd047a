"""``asyncsim bench``: what asyncsim costs on this machine, as ratios."""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

import click

from asyncsim.cli.outputs import check_outputs
from asyncsim.study.figures import FULL, QUICK, Figure, questions
from asyncsim.views.figures import figures_json, figures_markdown, figures_text


@click.command("bench")
@click.option("--quick", is_flag=True, help="Measure less: a few seconds, smaller P, rougher figures.")
@click.option("--markdown", is_flag=True, help="Print a table of Markdown.")
@click.option(
    "--json",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the figures to a file, too.",
)
def bench_command(*, quick: bool, markdown: bool, file: Path | None) -> None:
    """Measure what asyncsim costs here, as ratios in one run.

    Ratios of processor times, which are taken in turn: absolute times mean nothing on a shared machine.
    Nothing but asyncsim is needed. The whole takes some minutes.

    \b
    Examples:
        asyncsim bench --quick
        asyncsim bench --json figures.json
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    check_outputs({"--json": file})
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} processors {platform.machine()}",
        "Python": platform.python_version(),
        "trio": version("trio"),
        "load": _load(),
    }
    figures: list[Figure] = []
    for question, measure in questions(QUICK if quick else FULL):
        click.echo(f"{question} …", err=True)
        figures += measure()
    click.echo((figures_markdown if markdown else figures_text)(figures, facts), nl=False)
    if file is not None:
        file.write_text(json.dumps(figures_json(figures, facts), indent=2) + "\n", encoding="utf-8")


def _load() -> str:
    """Return how many processes wanted a processor in the last minute; a question mark where this is not known."""
    try:
        return f"{os.getloadavg()[0]:.1f}"
    except (AttributeError, OSError):  # no such thing on this system
        return "?"
