"""Worked examples in words: inputs, contributions, results; what changed, and what did not."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.reduce import ReduceOp
from asyncsim.study.worked import ROOT, chunks_of
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from asyncsim.collectives.reduce import Tile
    from asyncsim.study.worked import Change, Worked


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
    return _MARKDOWN.sub(r"\\\1", text)


FORMATS = ("text", "markdown", "html")
_WRITERS: dict[str, Callable[[Sequence[Block]], str]] = {
    "text": document_text,
    "markdown": document_markdown,
    "html": document_html,
}
_NAMES = {
    ReduceOp.Sum: "sum",
    ReduceOp.Avg: "average",
    ReduceOp.Prod: "product",
    ReduceOp.Min: "minimum",
    ReduceOp.Max: "maximum",
}
_SOME = 8
"""So many differences are told one by one."""
_ROUNDED = "Each rank reduces its own number first, then its peers' ascending; rounding depends on that order."

Index = tuple[int, int]


def worked_text(worked: Worked, *, form: str = "text", source: str = "") -> str:
    """Return a worked example in one of `FORMATS`, with a line feed at its end; `source` names the inputs' file.

    Args:
        worked: the example.
        form: "text", or another of `FORMATS`.
        source: empty: the inputs come from no file.

    """
    return _WRITERS[form](list(_blocks(worked, source)))


def _blocks(worked: Worked, source: str) -> Iterator[Block]:
    yield Heading(_title(worked))
    yield Heading(f"Inputs, from {source}" if source else "Inputs")
    yield _inputs(worked)
    if worked.op is not None:
        yield Heading("Contributions, rank 0's first")
        yield _contributions(worked, worked.op)
    yield Heading("Results")
    yield _results(worked)
    if worked.compared:
        yield Sentences(tuple(_changes(worked)))
    if worked.gathered:
        yield Heading("Then all_gather")
        yield _table_of(worked.gathered, worked.gathered_changed)
        yield Sentences(tuple(_gathered(worked)))
    yield Sentences(tuple(_notes(worked)))


def _title(worked: Worked) -> str:
    op = "" if worked.op is None else f", {_NAMES[worked.op]}"
    ranks, size = _count(worked.ranks, "rank"), _count(worked.size, "element")
    return f"{worked.collective}: {ranks}, {size} a rank{op}, {worked.dtype}"


# Tables.


def _inputs(worked: Worked) -> Table:
    chunks = chunks_of(worked.collective, worked.ranks)
    whole = worked.collective not in ("reduce_scatter", "all_to_all")
    head = ("rank", "input") if whole else ("rank", *(f"for rank {c}" for c in range(chunks)))
    marked = _places(worked.inputs_changed)
    rows = []
    for rank, x in enumerate(worked.inputs):
        cuts = [x.size] if whole else [worked.size] * chunks
        rows.append(((str(rank),), *_cells(x, cuts, rank, marked)))
    return Table(head, tuple(rows))


def _results(worked: Worked) -> Table:
    if worked.collective not in ("all_gather", "all_to_all"):
        return _table_of(worked.outputs, worked.changed)
    marked = _places(worked.changed)
    head = ("rank", *(f"from rank {s}" for s in range(worked.ranks)))
    rows = (
        ((str(rank),), *_cells(y, [worked.size] * worked.ranks, rank, marked)) for rank, y in enumerate(worked.outputs)
    )
    return Table(head, tuple(rows))


def _table_of(arrays: Sequence[Tile], changed: Sequence[Change]) -> Table:
    marked = _places(changed)
    return Table(
        ("rank", "gets"), tuple(((str(rank),), *_cells(y, [y.size], rank, marked)) for rank, y in enumerate(arrays))
    )


def _contributions(worked: Worked, op: ReduceOp) -> Table:
    same = worked.collective == "all_reduce" and len({y.tobytes() for y in worked.outputs}) == 1
    given, changed = _places(worked.inputs_changed), _places(worked.changed)
    rows = []
    for rank in range(1 if same else worked.ranks):
        for index, result in enumerate(worked.outputs[rank]):
            terms = [_number(worked.inputs[r][i], (r, i) in given) for r, i in worked.terms(rank, index)]
            shown = _number(result, (rank, index) in changed)
            rows.append((("all" if same else str(rank),), (f"[{index}]",), (*_formula(op, terms), " = ", shown)))
    return Table(("rank", "element", "contributions"), tuple(rows))


def _formula(op: ReduceOp, terms: Sequence[str | Marked]) -> Line:
    sign = " * " if op is ReduceOp.Prod else ", " if op in (ReduceOp.Min, ReduceOp.Max) else " + "
    joined = _joined(terms, sign)
    if op in (ReduceOp.Min, ReduceOp.Max):
        return (f"{op.name.lower()}(", *joined, ")")
    return ("(", *joined, f") / {len(terms)}") if op is ReduceOp.Avg else joined


def _cells(x: Tile, sizes: Sequence[int], rank: int, marked: Collection[Index]) -> Iterator[Line]:
    """Yield an array as one list for each part."""
    start = 0
    for size in sizes:
        numbers = [_number(x[index], (rank, index) in marked) for index in range(start, start + size)]
        yield ("[", *_joined(numbers, ", "), "]")
        start += size


# Sentences.


def _changes(worked: Worked) -> Iterator[Line]:
    if not worked.inputs_changed:
        yield ("Set: the inputs are what they were.",)
    for one in worked.inputs_changed:
        yield (f"Set: element [{one.index}] of rank {one.rank}'s input is ", _to(one), f", and was {one.before}.")
    if not worked.changed:
        yield ("No result changes.",)
        return
    yield from _listed(
        worked.changed,
        lambda one: (f"Changed: rank {one.rank}'s element [{one.index}] is ", _to(one), f", and was {one.before}."),
    )
    yield ("Nothing else changes.",)


def _gathered(worked: Worked) -> Iterator[Line]:
    if worked.gathered_changed:
        elements = sorted({one.index for one in worked.gathered_changed})
        shown = ", ".join(f"[{index}]" for index in elements)
        yield (f"Changed: element{'s' * (len(elements) > 1)} {shown} on every rank; nothing else changes.",)
    whole = np.concatenate(worked.outputs).tobytes()
    moved = all(y.tobytes() == whole for y in worked.gathered)
    name = _NAMES[worked.op or ReduceOp.Sum]
    if moved:
        yield (f"Every rank has the full {name}. Nothing was reduced a second time: these are the results above.",)
    else:
        yield ("The gathered results are NOT those above: this is a bug of asyncsim.",)
    if not worked.against_all_reduce:
        yield ("An all_reduce of the same inputs gives the same, bit for bit.",)
        return
    yield ("An all_reduce of the same inputs gives the same but for bits: there each rank has an order of its own.",)
    yield from _listed(
        worked.against_all_reduce,
        lambda one: (f"On rank {one.rank} its element [{one.index}] is {one.before} instead of {one.after}.",),
    )


def _notes(worked: Worked) -> Iterator[Line]:
    if worked.op is ReduceOp.Avg:
        how = ", rounded down to a whole number" if worked.dtype.kind in "iu" else ""
        yield (f"avg is the sum divided by {worked.ranks}, the number of ranks{how}; the sum itself is --op sum.",)
    if worked.collective == "broadcast":
        yield (f"Rank {ROOT} is the root: only its input is sent.",)
    if worked.wrapped:
        yield (f"Integers wrap: the exact result does not fit {worked.dtype} everywhere.",)
        yield from _listed(
            worked.wrapped, lambda one: (f"Rank {one.rank}'s element [{one.index}] would be {one.before}.",)
        )
    if worked.op is not None and worked.dtype.kind not in "iu" and worked.op not in (ReduceOp.Min, ReduceOp.Max):
        yield from _order(worked)
    agreed = "numpy gives the same, bit for bit" if worked.agrees else "numpy gives something ELSE"
    yield (f"Run on the simulated machine; {agreed}.",)


def _order(worked: Worked) -> Iterator[Line]:
    other = "rank 0's result" if worked.collective == "all_reduce" else "the same reduction from rank 0 up"
    yield (_ROUNDED,)
    if not worked.order:
        yield (f"With these inputs no bit differs from {other}.",)
        return
    yield (f"So bits differ from {other}:",)
    yield from _listed(
        worked.order, lambda one: (f"rank {one.rank}'s element [{one.index}] is {one.after} instead of {one.before}.",)
    )


def _listed(changes: Sequence[Change], as_line: Callable[[Change], Line]) -> Iterator[Line]:
    yield from (as_line(one) for one in changes[:_SOME])
    if len(changes) > _SOME:
        yield (f"... and {len(changes) - _SOME} more.",)


# Words.


def _places(changes: Sequence[Change]) -> set[Index]:
    return {(one.rank, one.index) for one in changes}


def _number(value: Any, marked: bool) -> str | Marked:  # noqa: ANN401, FBT001 - a numpy scalar
    return Marked(str(value)) if marked else str(value)


def _to(one: Change) -> Marked:
    return Marked(str(one.after))


def _joined(parts: Sequence[str | Marked], sign: str) -> Line:
    line: list[str | Marked] = []
    for part in parts:
        line += [part] if not line else [sign, part]
    return tuple(line)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
