"""A timeline in lines of text: one column a lane, one line a step, as wide as the reader has room.

The lines are pieces of text with a role each; the caller gives the roles their colours, or none.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.cells import SYMBOLS
from asyncsim.trace.kinds import WAITING
from asyncsim.views.timeline import group_of, title_of
from asyncsim.views.timeline_contents import read_by, written_by
from asyncsim.views.timeline_orders import orders_of, value_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from asyncsim.views.timeline import Timeline

Piece = tuple[str, str]
"""A text and its role: a group of operations, or title, bad, mark, dim, plain."""
Line = list[Piece]

GLYPHS = {
    "load": "○", "store": "■", "copy": "◆", "notify": "▲", "wait": "▽", "landing": "◇", "order": "•",
}  # fmt: skip
_PARKED, _ALIVE, _MARK = "┊", "│", "▶"
_ASCII = str.maketrans({
    "○": "o", "■": "#", "◆": "%", "▲": "^", "▽": "v", "◇": "*", "•": "+", "┊": ":", "│": "|", "▶": ">",
    "⋮": ":", "…": "~", "←": "<", "→": ">", "└": "`",
})  # fmt: skip
_ALL, _AROUND, _LAST = 64, 12, 40
_GAP = "  "
_COLUMNS, _WIDEST, _LEAST = 5, 48, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What of a timeline is shown.

    Args:
        first, last: the steps, both included; None: from the start, to the end. If neither is given and the
            run is long, the steps around the findings are shown.
        ranks: these ranks' lanes; None: all, or as many as there is room for.

    """

    first: int | None = None
    last: int | None = None
    ranks: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    step: int
    columns: tuple[str, ...]


def timeline_lines(timeline: Timeline, selection: Selection, *, width: int) -> Iterator[Line]:
    """Yield the lines: what was run, the steps, and what was found, none wider than `width` if that can be.

    Args:
        timeline: of the trace.
        selection: which steps and ranks to show.
        width: in characters.

    """
    steps = _steps(timeline, selection)
    lanes = _lanes(timeline, selection, steps, width)
    yield from _head(timeline, width)
    yield []
    yield from _table(timeline, steps, lanes, width)
    hidden = len(timeline.lanes) - len(lanes)
    if hidden:
        text = f"{hidden} of {len(timeline.lanes)} lanes are not shown; --ranks chooses, --html FILE shows all"
        yield from _wrapped(text, width, "dim", "")
    yield from _pending(timeline, width)
    for number, _ in enumerate(timeline.findings):
        yield []
        yield from _finding(timeline, number, width)


def plain(text: str, *, ascii_only: bool = False) -> str:
    """Return a text without what could steer a terminal; in ASCII if it can show nothing else.

    Args:
        text: from a trace or a kernel, with anything in it.
        ascii_only: write what is not ASCII as Python escapes it, signs of the drawing by others.

    """
    if ascii_only:
        text = text.translate(_ASCII)
    if text.isprintable() and not ascii_only:
        return text
    return "".join(c if c.isprintable() and (c.isascii() or not ascii_only) else ascii(c)[1:-1] for c in text)


def _head(timeline: Timeline, width: int) -> Iterator[Line]:
    header, footer = timeline.trace.header, timeline.trace.footer
    calls = "1 call" if header.calls == 1 else f"{header.calls} calls"
    title = f"{header.kernel}, P = {header.world.ranks}, {calls}, {header.memory}"
    verdict = "" if footer is None or footer.verdict is None else footer.verdict
    if len(verdict) + len(_GAP) + len(title) <= width:
        yield [(verdict + _GAP if verdict else "", "bad"), (title, "title")]
    else:
        yield from _wrapped(verdict, width, "bad", "")
        yield from _wrapped(title, width, "title", "")
    ending = "broken off" if footer is None else footer.ending
    text = f"{len(timeline.events)} steps, {ending}; scheduled by {header.scheduler}, seed {header.seed}"
    yield from _wrapped(text, width, "dim", "")


def _steps(timeline: Timeline, selection: Selection) -> list[int]:
    total = len(timeline.events)
    if selection.first is not None or selection.last is not None or total <= _ALL:
        last = total - 1 if selection.last is None else selection.last
        chosen = set(range(selection.first or 0, min(last + 1, total)))
    else:
        marked = [step for finding in timeline.findings for step in finding.steps]
        chosen = {
            near for step in marked for near in range(step - _AROUND, step + _AROUND + 1) if 0 <= near < total
        } or set(range(total - _LAST, total))
    if selection.ranks is not None:
        chosen = {step for step in chosen if timeline.lanes[timeline.lane_of[step]].rank in selection.ranks}
    return sorted(chosen)


def _lanes(timeline: Timeline, selection: Selection, steps: Sequence[int], width: int) -> list[int]:
    """Return the lanes that are shown: all if there is room, else those that matter most, in their order."""
    lanes = [n for n, lane in enumerate(timeline.lanes) if selection.ranks is None or lane.rank in selection.ranks]
    room = max(4, (width - 44) // 2)
    if len(lanes) <= room:
        return lanes
    marked = [timeline.lane_of[step] for finding in timeline.findings for step in finding.steps]
    busy = dict.fromkeys([*marked, *(timeline.lane_of[step] for step in steps)])
    return sorted([lane for lane in [*busy, *lanes] if lane in lanes][:room])


def _table(timeline: Timeline, steps: Sequence[int], lanes: Sequence[int], width: int) -> Iterator[Line]:
    marks = _marks(timeline)
    passes = timeline.waits_released()
    rows = [_Row(step, _columns(timeline, step, passes)) for step in steps]
    lead = max(7, len(str(len(timeline.events))) + 3)
    widths = _widths(rows, width - lead - 2 * len(lanes) - 1)
    parked = _parked(timeline)
    yield from _lane_names(timeline, lanes, lead)
    before = -1
    for row in rows:
        if row.step != before + 1:
            yield _gap(row.step - before - 1, lead)
        before = row.step
        marked = row.step in marks
        start = f"{_MARK if marked else ' '}{row.step:>{lead - 2}} "
        text = _GAP.join(
            _cut(column, size).ljust(size) for column, size in zip(row.columns, widths, strict=False) if size
        )
        room = width - lead - 2 * len(lanes) - 1
        group = group_of(timeline.events[row.step].op.kind)
        yield [
            (start, "mark" if marked else "dim"),
            *_lane_marks(timeline, row.step, lanes, parked, marked=marked),
            (" " + _cut(text.rstrip(), room), "mark" if marked else group),
        ]
        for note in marks.get(row.step, ()):
            indent = lead + 2 * len(lanes) + 1
            yield [(" " * indent + _cut(f"└ {note}", width - indent), "bad")]
    rest = len(timeline.events) - before - 1
    if rest > 0:
        yield _gap(rest, lead)


def _gap(steps: int, lead: int) -> Line:
    count = "1 step" if steps == 1 else f"{steps} steps"
    return [(" " * (lead - 2) + f"⋮ {count} not shown", "dim")]


def _lane_names(timeline: Timeline, lanes: Sequence[int], lead: int) -> Iterator[Line]:
    """Write the names of the lanes downwards, so that long ones cost no width."""
    names = [timeline.lanes[lane].name for lane in lanes]
    tall = max(map(len, names), default=0)
    for row in range(tall):
        title = "rank" if row == 0 else ""
        yield [(title.rjust(lead - 1) + " ", "dim"), ("".join(name.ljust(tall)[row] + " " for name in names), "title")]


def _lane_marks(
    timeline: Timeline, step: int, lanes: Sequence[int], parked: Sequence[list[tuple[int, int]]], *, marked: bool
) -> Iterator[Piece]:
    for lane in lanes:
        if lane == timeline.lane_of[step]:
            group = group_of(timeline.events[step].op.kind)
            yield GLYPHS[group] + " ", "mark" if marked else group
        elif any(start < step < stop for start, stop in parked[lane]):
            yield _PARKED + " ", "wait"
        else:
            yield _ALIVE + " ", "dim"


def _parked(timeline: Timeline) -> list[list[tuple[int, int]]]:
    """Return, for each lane, between which steps its task stood at a wait that could not pass."""
    found: list[list[tuple[int, int]]] = [[] for _ in timeline.lanes]
    for step, event in enumerate(timeline.events):
        by = timeline.released[step]
        if event.op.kind in WAITING and by is not None and by > timeline.arrived[step]:
            found[timeline.lane_of[step]].append((timeline.arrived[step], by + 1))
    last: dict[str, int] = {event.op.actor.name: step for step, event in enumerate(timeline.events)}
    places = {lane.name: number for number, lane in enumerate(timeline.lanes)}
    for event in timeline.pending:
        name = event.op.actor.name
        if name in places:
            found[places[name]].append((last.get(name, -1), len(timeline.events)))
    return found


def _columns(timeline: Timeline, step: int, passes: dict[int, list[int]]) -> tuple[str, ...]:
    """Return what is said of a step, the most important first."""
    event = timeline.events[step]
    op = event.op
    task_title = op.actor.name if op.actor.name != str(op.actor.rank) else f"rank {op.actor.rank}"
    return (
        f"{task_title}: {op}",
        "; ".join(_notes(timeline, step, passes)),
        f"call {event.call}",
        event.phase,
        " in ".join(event.at),
    )


def _notes(timeline: Timeline, step: int, passes: dict[int, list[int]]) -> Iterator[str]:
    event = timeline.events[step]
    read, written = read_by(event), written_by(event)
    access = read or written
    if event.op.kind in WAITING:
        by = timeline.released[step]
        yield f"← step {by}, rank {timeline.events[by].op.actor.rank}" if by is not None else "held from the start"
    elif event.have is not None:
        value = event.have if timeline.after[step] is None else timeline.after[step]
        yield f"= {value}"
    if step in passes:
        yield f"→ {_list(passes[step])}"
    if access is not None and event.data is not None:
        yield value_text(event.data, access.region.dtype)
    if event.unwritten:
        yield "nobody had written it"


def _list(steps: Sequence[int]) -> str:
    shown = ", ".join(map(str, steps[:3])) + (", …" if len(steps) > 3 else "")  # noqa: PLR2004 - as many as are shown
    return f"lets step {shown} pass" if len(steps) == 1 else f"lets steps {shown} pass"


def _widths(rows: Sequence[_Row], room: int) -> list[int]:
    """Return the widths of the columns: what there is no room for is cut, and left out if little would be seen."""
    widths: list[int] = []
    for number in range(_COLUMNS):
        natural = min(max((len(row.columns[number]) for row in rows), default=0), _WIDEST)
        left = room - sum(widths) - len(_GAP) * len(widths)
        if widths and left < min(natural, _LEAST):
            break
        widths.append(max(min(natural, left), 0))
    return widths


def _marks(timeline: Timeline) -> dict[int, list[str]]:
    """Return what is said at the steps that are sides of a finding."""
    found: dict[int, list[str]] = {}
    for number, finding in enumerate(timeline.findings, 1):
        for name, side in zip(("first", "second"), finding.sides, strict=False):
            if side.step is not None:
                text = f"{name} side of {number}. {finding.title}" if finding.ordered else f"{number}. {finding.title}"
                found.setdefault(side.step, []).append(text)
    return found


def _pending(timeline: Timeline, width: int) -> Iterator[Line]:
    if timeline.pending:
        yield []
        yield [("still at the gate when the run ended", "title")]
    for event in timeline.pending:
        op = event.op
        what = str(op)
        if event.need is not None and op.cell is not None:
            what = f"waits for {op.cell} {SYMBOLS[op.how]} {event.need}, and it is {event.have}"
        at = f"  {' in '.join(event.at)}" if event.at else ""
        text = f"{title_of(op.actor.name, op.actor.rank)}, call {event.call}: {what}{at}"
        yield from _wrapped(text, width, "wait", "  ")


def _finding(timeline: Timeline, number: int, width: int) -> Iterator[Line]:
    finding = timeline.findings[number]
    facts = f": {finding.facts}" if finding.facts else ""
    yield [(_cut(f"{number + 1}. {finding.title}{facts}", width), "bad")]
    for name, side in zip(("first  ", "second "), finding.sides, strict=False):
        step = "" if side.step is None else f"  (step {side.step})"
        yield from _wrapped(f"{name if finding.ordered else ''}{side.text}{step}", width, "plain", "   ")
        if side.at:
            yield from _wrapped(side.at, width, "dim", "          ")
    if finding.why:
        yield from _wrapped(finding.why, width, "plain", "   ")
    if finding.shown and finding.shown not in finding.why:
        yield from _wrapped(finding.shown, width, "plain", "   ")
    orders = orders_of(timeline, finding)
    if orders is None:
        return
    for title, turns in (("as run", orders.run), ("the other order", orders.other)):
        if turns:
            yield [("   " + title, "title")]
        for turn in turns:
            yield from _wrapped(f"{turn.what}  {turn.outcome}", width, "plain", "     ")
    yield from _wrapped(orders.note, width, "dim", "   ")


def _wrapped(text: str, width: int, role: str, indent: str) -> Iterable[Line]:
    """Return the lines of a text; what is longer than a line by itself is cut into lines too."""
    lines = textwrap.wrap(
        " ".join(text.split()), max(width, 20), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return [[(line, role)] for line in lines]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
