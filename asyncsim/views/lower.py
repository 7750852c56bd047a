"""What a call becomes, in words: one kernel by phase and site, or two side by side."""

from __future__ import annotations

from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING

from asyncsim.study.lower import CHANGED, LEFT, RIGHT, SAME, credit_sums, side_by_side
from asyncsim.views.report import source_line
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.study.lower import Credits, Lowered, Primitive, Repeated

_LEGEND = f"{SAME} the same, {CHANGED} another number, {LEFT} only on the left, {RIGHT} only on the right"


def lower_text(lowered: Lowered) -> str:
    """Return the primitives of one call by phase and site, then its credits; with a line feed at its end."""
    lines = [f"{_title(lowered)}: {_count(len(lowered.primitives), 'primitive')}"]
    for phase, steps in groupby(lowered.primitives, lambda step: step.phase):
        lines += ["", phase or "(no phase)", *_sites(lowered, list(steps))]
    if lowered.pending:
        lines += ["", "and there it stands, for ever", *_sites(lowered, lowered.pending)]
    lines += ["", "credits"]
    rows = [(cell.cell, cell.sum, _givers(cell, lowered.rank), ", ".join(cell.waits) or "-") for cell in lowered.cells]
    text = "\n".join(lines) + "\n"
    return text + (_indented(table_text(("cell", "value", "from", "waited for"), rows)) if rows else "  none\n")


def diff_text(left: Lowered, right: Lowered) -> str:
    """Return two calls side by side, a line for each sort of primitive of a site; with a line feed at its end.

    Args:
        left: one call of a kernel on one rank; its P, call and rank are named in the title.
        right: another one.

    """
    names = [_name(lowered) for lowered in (left, right)]
    rows: list[tuple[str, ...]] = [
        (_phase(row.left, row.right), _group(row.left), _site(left, row.left), row.mark, _group(row.right),
         _site(right, row.right))
        for row in side_by_side(left, right)
    ]  # fmt: skip
    rows += _credit_rows(left.cells, right.cells)
    head = ("phase", names[0], _file(left), "", names[1], _file(right))
    title = f"P = {left.ranks}, call {left.call} on rank {left.rank}: {_LEGEND}"
    return f"{title}\n\n{table_text(head, rows)}"


def _title(lowered: Lowered) -> str:
    return f"{lowered.kernel.ref}, P = {lowered.ranks}: call {lowered.call} on rank {lowered.rank}"


def _name(lowered: Lowered) -> str:
    """Return the short name of a kernel: ``reduce_scatter:hand``."""
    return lowered.kernel.ref.removeprefix("kernels.")


def _sites(lowered: Lowered, steps: Sequence[Primitive]) -> Iterator[str]:
    """Write primitives below the source lines they come from."""
    for (author, actor), run in groupby(steps, lambda step: (step.at[0], step.actor)):
        stream = "" if actor == str(lowered.rank) else f"stream {actor}: "
        yield f"  {stream}{author}  {source_line(lowered.kernel, author)}".rstrip()
        for inner, within in groupby(run, lambda step: step.at[1:]):
            yield from (f"    inside it {place}" for place in inner)
            yield from (f"      {step.text}" for step in within)


def _givers(cell: Credits, rank: int) -> str:
    givers = dict.fromkeys("itself" if giver == rank else f"rank {giver}" for giver, _ in cell.changes)
    return ", ".join(givers) or "-"


def _phase(left: Repeated | None, right: Repeated | None) -> str:
    phases = dict.fromkeys(group.first.phase or "-" for group in (left, right) if group is not None)
    return " | ".join(phases)


def _group(group: Repeated | None) -> str:
    return "" if group is None else f"{group.count} {group.first.short}"


def _site(lowered: Lowered, group: Repeated | None) -> str:
    """Write a site short: the line alone if it is in the kernel's own file, which stands in the head."""
    if group is None:
        return ""
    author, *inner = group.first.at
    file, _, line = author.rpartition(":")
    own = PurePath(file).name == _file(lowered)
    return ", ".join([f":{line}" if own else PurePath(author).name, *(PurePath(place).name for place in inner)])


def _file(lowered: Lowered) -> str:
    """Return the name of the file the kernel's program stands in."""
    return PurePath(lowered.kernel.program.__code__.co_filename).name


def _credit_rows(left: Sequence[Credits], right: Sequence[Credits]) -> Iterator[tuple[str, ...]]:
    """Yield a line for the cells that go through the same, on either side."""
    sides = [[(signal, cells) for signal, cells in credit_sums(side)] for side in (left, right)]
    for number in range(max(map(len, sides))):
        one, other = (side[number] if number < len(side) else None for side in sides)
        texts = [("", "") if part is None else _credit_texts(*part) for part in (one, other)]
        mark = LEFT if other is None else RIGHT if one is None else SAME if texts[0] == texts[1] else CHANGED
        yield ("credits", *texts[0], mark, *texts[1])


def _credit_texts(signal: str, cells: Sequence[Credits]) -> tuple[str, str]:
    return f"{_count(len(cells), 'cell')} of {signal}, N = {cells[0].gained}", cells[0].sum


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
