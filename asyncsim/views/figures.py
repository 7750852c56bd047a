"""Figures as text, as a table of Markdown, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncsim.study.figures import Figure

HEAD = ("figure", "of", "ratio", "wanted", "made of")


def figures_text(figures: Sequence[Figure], facts: Mapping[str, str]) -> str:
    """Return the figures in columns, under a line of what they were measured on.

    Args:
        figures: what was measured.
        facts: of the machine and the run, by name.

    """
    return f"{_told(facts)}\n\n{table_text(HEAD, [_row(figure) for figure in figures])}"


def figures_markdown(figures: Sequence[Figure], facts: Mapping[str, str]) -> str:
    """Return the figures as a table of Markdown, under a line of what they were measured on.

    Args:
        figures: what was measured.
        facts: of the machine and the run, by name.

    """
    lines = [HEAD, ("---",) * len(HEAD), *map(_row, figures)]
    return f"{_told(facts)}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def figures_json(figures: Sequence[Figure], facts: Mapping[str, str]) -> dict[str, Any]:
    """Return the figures as JSON: the facts, and of each figure its parts, its bound, and whether it is met.

    Args:
        figures: what was measured.
        facts: of the machine and the run, by name; each becomes a key beside "figures".

    """
    return {**facts, "figures": [{**asdict(figure), "met": figure.met} for figure in figures]}


def _told(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {fact}" for name, fact in facts.items())


def _row(figure: Figure) -> tuple[str, ...]:
    wanted = figure.wanted if figure.met else f"{figure.wanted} (missed)"
    return (figure.what, figure.where, f"{figure.ratio:.2f}", wanted, figure.detail)
