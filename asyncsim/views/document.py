"""A short document of headings, sentences and tables: as plain text, Markdown, or one HTML page that needs no other.

Parts of a line can be marked: with a star in plain text, bold in Markdown, a coloured ground in HTML.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Marked:
    """A text that stands out."""

    text: str


Line = tuple[str | Marked, ...]
"""Texts one after another."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a section; the first of a document is its title."""

    text: str


@dataclass(frozen=True, slots=True)
class Sentences:
    """A paragraph, a line a sentence."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a head, and rows of as many cells."""

    head: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]


Block = Heading | Sentences | Table

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
_STYLE = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "table{border-collapse:collapse}th,td{border:1px solid #bbb;padding:.3em .7em;text-align:left}"
    "td{font-family:monospace}th{background:#eee}mark{background:#ffd54a;font-weight:bold}"
)


def document_text(blocks: Sequence[Block]) -> str:
    """Return the document as plain text, with a line feed at its end."""
    parts = []
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(block.text + "\n")
        elif isinstance(block, Sentences):
            parts.append("".join(_line(line, str, "{}*".format) + "\n" for line in block.lines))
        else:
            rows = [[_line(cell, str, "{}*".format) for cell in row] for row in block.rows]
            parts.append(table_text(block.head, rows))
    return "\n".join(parts)


def document_markdown(blocks: Sequence[Block]) -> str:
    """Return the document as Markdown, with a line feed at its end."""
    parts = []
    for number, block in enumerate(blocks):
        if isinstance(block, Heading):
            parts.append(f"{'##' if number else '#'} {_escaped(block.text)}\n")
        elif isinstance(block, Sentences):
            parts.append("".join(f"{_line(line, _escaped, '**{}**'.format)}\n" for line in block.lines))
        else:
            rows = [[_escaped(name) for name in block.head], ["---"] * len(block.head)]
            rows += [[_line(cell, _escaped, "**{}**".format) for cell in row] for row in block.rows]
            parts.append("".join(f"| {' | '.join(row)} |\n" for row in rows))
    return "\n".join(parts)


def document_html(blocks: Sequence[Block]) -> str:
    """Return the document as one HTML page, with a line feed at its end."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "")
    start = '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    parts = [start, f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"]
    for number, block in enumerate(blocks):
        if isinstance(block, Heading):
            level = 2 if number else 1
            parts.append(f"<h{level}>{html.escape(block.text)}</h{level}>\n")
        elif isinstance(block, Sentences):
            lines = "<br>\n".join(_line(line, html.escape, "<mark>{}</mark>".format) for line in block.lines)
            parts.append(f"<p>{lines}</p>\n")
        else:
            parts.append(_html_table(block))
    return "".join([*parts, "</body>\n</html>\n"])


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_line(cell, html.escape, '<mark>{}</mark>'.format)}</td>" for cell in row) + "</tr>\n"
        for row in table.rows
    )
    return f"<table>\n<tr>{head}</tr>\n{rows}</table>\n"


def _line(line: Line, plain: Callable[[str], str], marked: Callable[[str], str]) -> str:
    return "".join(marked(plain(part.text)) if isinstance(part, Marked) else plain(part) for part in line)


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\1", text)
