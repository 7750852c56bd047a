"""Cost cards, and tables of algorithms, in words. Times in microseconds."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from asyncsim.analysis.cost import Cost
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.study.cost import Card
    from asyncsim.trace.price import Price

_BEST = " *"
_HIDDEN = (
    "reductions     do not all show in the events, so gamma stands for too few: name the phases of the others reduce\n"
)
_HEADS = {"received": "received B", "sent": "sent B", "reduced": "reduced B", "windows": "windows B"}


def card_text(card: Card) -> str:
    """Return a card: a line a rank, the total, the critical path, the lower bound; with a line feed at its end."""
    case, path = card.case, card.path
    calls = "1 call" if case.calls == 1 else f"{case.calls} calls"
    names = [part.name for part in fields(Cost)]
    rows = [(str(rank), *(str(getattr(made, name)) for name in names)) for rank, made in enumerate(card.ranks)]
    rows.append(("all", *(str(getattr(card.total, name)) for name in names)))
    head = ("rank", *(_HEADS.get(name, name) for name in names))
    return (
        f"{case.kernel.ref}, P = {case.ranks}, {calls}; N = {card.input_bytes} bytes of input a rank\n\n"
        f"{table_text(head, rows)}\n"
        f"critical path  {_micro(path.seconds)}: {path.messages} alpha + {path.moved} beta + {path.reduced} gamma\n"
        f"lower bound    {_bound(card)}\n"
        f"{'' if card.reductions_show else _HIDDEN}"
        f"               {_price_text(card.price)}\n"
    )


def _price_text(price: Price) -> str:
    """Return the prices with their units."""
    return (
        f"alpha = {price.alpha:g} s a message or notify, beta = {price.beta:g} s a byte moved, "
        f"gamma = {price.gamma:g} s a byte reduced"
    )


def comparison_text(name: str, cards: Mapping[tuple[int, int], Mapping[str, Card]]) -> str:
    """Return two tables, of time and of bytes, with a line for each P and size; the best of a line has a star.

    Args:
        name: of the collective.
        cards: for each (P, bytes of one rank's input) the card of each algorithm, by name; the algorithms are the
            same everywhere, and there is at least one line.

    """
    algorithms = list(next(iter(cards.values())))
    price = next(iter(next(iter(cards.values())).values())).price
    head = ("P", "N", *algorithms)
    times, received = [], []
    for (ranks, size), made in cards.items():
        seconds = {algorithm: made[algorithm].path.seconds for algorithm in algorithms}
        most = {algorithm: max(cost.received for cost in made[algorithm].ranks) for algorithm in algorithms}
        times.append(
            (str(ranks), str(size), *_starred({key: _micro(value) for key, value in seconds.items()}, seconds))
        )
        received.append((str(ranks), str(size), *_starred({key: str(value) for key, value in most.items()}, most)))
    return (
        f"{name}: the critical path of one call; N is the bytes of one rank's input, * the best\n"
        f"{_price_text(price)}\n\n{table_text(head, times)}\n"
        f"bytes received by the rank that receives most\n\n{table_text(head, received)}"
    )


def _starred(texts: Mapping[str, str], values: Mapping[str, float]) -> list[str]:
    best = min(values.values())
    return [text + (_BEST if values[key] == best else "") for key, text in texts.items()]


def _bound(card: Card) -> str:
    bound = card.bound
    if bound is None:
        return "not claimed: what collective this is, or with how many tasks a rank, is not known"
    seconds = bound.seconds(card.price) * card.case.calls
    times = f", {card.path.seconds / seconds:.2f} times as long" if seconds else ""
    return (
        f"{_micro(seconds)}{times}: {bound.collective} takes {bound.messages} alpha, {bound.moved:g} beta "
        f"or {bound.reduced:g} gamma a call, whichever is most"
    )


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us"
