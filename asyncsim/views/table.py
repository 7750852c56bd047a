"""Tables in plain text: columns that line up, whatever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table, a line a row, with a rule under the head and a line feed at the end.

    Args:
        head: a title a column.
        rows: each of as many cells as the head.

    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, rule, *rows)
    )
    return "".join(line.rstrip() + "\n" for line in lines)
