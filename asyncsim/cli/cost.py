"""``asyncsim cost``: what a kernel moves, and how long it takes; which algorithm wins where."""

from __future__ import annotations

import json

import click

from asyncsim.checking.record.locate import locate
from asyncsim.cli.completion import complete_kernels
from asyncsim.cli.options import Amount, Whole, whole_list
from asyncsim.study.cost import ALGORITHMS, compare, cost
from asyncsim.trace.price import ALPHA, BETA, GAMMA, Price
from asyncsim.views.cost import card_text, comparison_text

RANKS = (4,)
SIZES = (1024, 65536, 1048576)


def _numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:  # noqa: ARG001 - click's
    """Return the positive integers of a list; empty if it is not given."""
    if value is None:
        return ()
    numbers = whole_list(value)
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"{value!r}; give integers of at least 1, such as 4 or 2,4,8")
    return numbers


@click.command("cost")
@click.argument("kernels", metavar="KERNEL...", nargs=-1, shell_complete=complete_kernels)
@click.option("--table", type=click.Choice(list(ALGORITHMS)), help="Lay the algorithms for a collective side by side.")
@click.option("-P", "--ranks", callback=_numbers, metavar="N[,N…]", help="How many ranks.  [default: 4]")
@click.option("--bytes", "sizes", callback=_numbers, metavar="N[,N…]", help="Of a table: bytes of one rank's input.")
@click.option("--calls", type=Whole(min=1), default=1, show_default=True, help="Of a card: calls back to back.")
@click.option("--alpha", type=Amount(min=0), default=ALPHA, show_default=True, help="Seconds a message.")
@click.option("--beta", type=Amount(min=0), default=BETA, show_default=True, help="Seconds a byte moved.")
@click.option("--gamma", type=Amount(min=0), default=GAMMA, show_default=True, help="Seconds a byte reduced.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Of the inputs.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of JSON objects, one a card.")
def cost_command(  # noqa: PLR0913 - one argument an option
    kernels: tuple[str, ...],
    *,
    table: str | None,
    ranks: tuple[int, ...],
    sizes: tuple[int, ...],
    calls: int,
    alpha: float,
    beta: float,
    gamma: float,
    seed: int,
    as_json: bool,
) -> None:
    """Show what a kernel moves, what it waits for, and its critical path beside the lower bound.

    A message of n bytes takes alpha + beta n seconds of the rank that issues it, a notify alpha. What is
    reduced is known by phases whose names begin with "reduce" or "halve", and by atomic adds.

    \b
    Examples:
        asyncsim cost reduce_scatter:builtin -P 4
        asyncsim cost --table all_reduce -P 2,4,8 --bytes 1024,1048576
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if bool(kernels) == bool(table):
        raise click.UsageError("give kernels for their cards, or --table for a table of algorithms")
    price = Price(alpha=alpha, beta=beta, gamma=gamma)
    if table is not None:
        compared = compare(table, price, ranks=ranks or RANKS, sizes=sizes or SIZES, seed=seed)
        cards = [card for row in compared.values() for card in row.values()]
        text = comparison_text(table, compared)
    else:
        cards = [
            cost(kernel, price, ranks=P, calls=calls, seed=seed)
            for kernel in map(locate, kernels)
            for P in ranks or RANKS
        ]
        text = "\n".join(map(card_text, cards))
    if as_json:
        click.echo(json.dumps([card.to_json() for card in cards], indent=2))
    else:
        click.echo(text, nl=False)
