"""``asyncsim table``: a collective in numbers that can be followed by eye."""

from __future__ import annotations

from pathlib import Path

import click

from asyncsim.cli.options import Whole
from asyncsim.cli.outputs import check_outputs
from asyncsim.study.worked import COLLECTIVES, OPS
from asyncsim.study.worked_inputs import DTYPES, RANKS, SIZE, Asked, worked_example
from asyncsim.views.worked import FORMATS, worked_text


@click.command("table")
@click.argument("collective", type=click.Choice(COLLECTIVES))
@click.option("-P", "--ranks", type=Whole(min=1), help=f"How many ranks.  [default: the file's, or {RANKS}]")
@click.option("--size", type=Whole(min=0), help=f"Elements a rank.  [default: the file's, or {SIZE}]")
@click.option("--op", type=click.Choice(list(OPS)), help="The operator.  [default: sum]")
@click.option("--set", "settings", multiple=True, metavar="R,I=NUMBER", help="Set element I of rank R's input.")
@click.option("--then", type=click.Choice(["all_gather"]), help="Gather what a reduce_scatter gives.")
@click.option(
    "--input",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A .npy or .csv file, one row a rank.  [default: powers of ten]",
)
@click.option("--dtype", type=click.Choice(DTYPES), help="What the numbers are.  [default: int64; float64 for avg]")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to a file.")
def table_command(  # noqa: PLR0913 - one argument an option
    collective: str,
    *,
    ranks: int | None,
    size: int | None,
    op: str | None,
    settings: tuple[str, ...],
    then: str | None,
    file: Path | None,
    dtype: str | None,
    form: str,
    out: Path | None,
) -> None:
    """Show a collective in numbers: inputs, contributions, results.

    It is run on the simulated machine, and compared with numpy.

    \b
    Examples:
        asyncsim table reduce_scatter --ranks 3
        asyncsim table reduce_scatter --ranks 3 --set 2,5=601
        asyncsim table reduce_scatter --then all_gather
        asyncsim table all_reduce --input gradients.csv --format html --out table.html
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    check_outputs({"--out": out}, reads=[file])
    asked = Asked(
        collective=collective, ranks=ranks, size=size, op=op, settings=settings, then=then, file=file, dtype=dtype
    )
    text = worked_text(worked_example(asked), form=form, source=file.name if file else "")
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
