"""A timeline as one page of HTML that needs nothing else: no network, no library, no server.

The page holds the run as JSON in columns, one number a step and column; what steps have in common (operations,
phases, source lines, values) stands once. A page of the bytes compressed was tried: it is
smaller, and opens later. Its scripts draw what is visible and go through the run; they stand
beside this file, under ``page/``. What comes out of a trace cannot become markup or script: the JSON is written
without ``<``, ``>`` and ``&``, the scripts make text nodes only, and a content security policy lets nothing run
but these scripts, by their hash, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import SYMBOLS
from asyncsim.trace.event import Digest
from asyncsim.trace.kinds import WAITING
from asyncsim.trace.layout import WindowLayout
from asyncsim.trace.values import INLINE, dtype_name
from asyncsim.views.timeline import GROUPS, group_of, title_of
from asyncsim.views.timeline_contents import read_by, written_by
from asyncsim.views.timeline_orders import OrderedOperation, elements_text, orders_of, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.event import Event
    from asyncsim.trace.region import Access
    from asyncsim.trace.world import World
    from asyncsim.views.timeline import Timeline
    from asyncsim.views.timeline_contents import Data
    from asyncsim.views.timeline_findings import FooterFinding


PAGE = Path(__file__).parent / "page"
SCRIPTS = ("run.js", "canvas.js", "tables.js", "cards.js", "main.js")
_MOST_TEXT = 600
_REPEATING = ("lane", "call", "phase", "site", "have", "after", "bare", "value", "put", "released")
"""Columns in which neighbours are often the same; they are written as runs."""
_EXACT = 1 << 53
"""Larger integers do not survive in a script; they are texts."""


def page_text(timeline: Timeline, other: Timeline | None = None, *, title: str = "The other run") -> str:
    """Return the page.

    Args:
        timeline: the run.
        other: another run, shown beside it step by step: of a race, the other order.
        title: what the other run is called.

    """
    style = (PAGE / "page.css").read_text("utf-8")
    script = '"use strict";\n(() => {\n' + "".join((PAGE / name).read_text("utf-8") for name in SCRIPTS) + "})();\n"
    runs = [page_data(timeline, "" if other is None else "As run")]
    if other is not None:
        runs.append(page_data(other, title))
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"
    parts = {
        "POLICY": policy,
        "TITLE": _escaped(_cut(f"{timeline.trace.header.kernel}, asyncsim")),
        "STYLE": style,
        "DATA": json_text(runs),
        "SCRIPT": script,
    }
    page = (PAGE / "page.html").read_text("utf-8")
    head, *rest = page.split("{{")
    return head + "".join(parts[name] + text for name, text in (part.split("}}", 1) for part in rest))


def json_text(value: object) -> str:
    """Return JSON that can stand inside a script element whatever its texts hold."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _runs_of(column: Sequence[Any]) -> list[Any]:
    """Return a column as [value, how often, value, how often, …]."""
    return [part for value, same in groupby(column) for part in (value, sum(1 for _ in same))]


def page_data(timeline: Timeline, title: str = "") -> dict[str, Any]:
    """Return what the page knows of a run, as a JSON value; `title` stands over it.

    Args:
        timeline: of the trace.
        title: empty: none; cut if it is long.

    """
    header, footer = timeline.trace.header, timeline.trace.footer
    columns = _Columns(timeline)
    return {
        "title": _cut(title),
        "kernel": _cut(header.kernel),
        "facts": _facts(timeline),
        "verdict": None if footer is None else footer.verdict,
        "ending": "broken off" if footer is None else footer.ending,
        "lanes": [[lane.title, lane.rank, int(lane.wires)] for lane in timeline.lanes],
        "groups": GROUPS,
        "findings": [_finding(timeline, finding) for finding in timeline.findings],
        "pending": [_pending(timeline, event) for event in timeline.pending],
        **columns.tables(),
    }


def _facts(timeline: Timeline) -> list[list[str]]:
    header = timeline.trace.header
    facts = [
        ["ranks", str(header.world.ranks)], ["calls", str(header.calls)], ["memory", header.memory],
        ["seed", str(header.seed)], ["schedule", _cut(header.scheduler)], ["steps", str(len(timeline.events))],
        ["recorded by", f"asyncsim {_cut(header.version)}"],
    ]  # fmt: skip
    return facts + [["edited", _cut(edit)] for edit in header.edits]


def _finding(timeline: Timeline, finding: FooterFinding) -> dict[str, Any]:
    orders = orders_of(timeline, finding)
    return {
        "title": _cut(finding.title),
        "facts": finding.facts,
        "why": _cut(finding.why),
        "shown": _cut(finding.shown) if finding.shown not in finding.why else "",
        "ordered": finding.ordered,
        "sides": [[_cut(side.text), _cut(side.at), -1 if side.step is None else side.step] for side in finding.sides],
        "orders": None if orders is None else [_turns(orders.run), _turns(orders.other), orders.note],
    }


def _turns(turns: Sequence[OrderedOperation]) -> list[list[Any]]:
    return [[turn.step, _cut(turn.what), turn.outcome] for turn in turns]


def _pending(timeline: Timeline, event: Event) -> list[Any]:
    op = event.op
    names = {lane.name: number for number, lane in enumerate(timeline.lanes)}
    what = str(op)
    if op.kind in WAITING and op.cell is not None:
        what = f"waits for {op.cell} {SYMBOLS[op.how]} {event.need}, and it is {event.have}"
    task, wire, _ = op.actor.name.partition(">")
    return [names[task + wire], f"{title_of(op.actor.name, op.actor.rank)}, call {event.call}: {_cut(what)}"]


class _Table:
    """Values that stand once, with a number each, in the order in which they first came."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: object, row: object = None) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.rows)
            self.rows.append(key if row is None else row)
        return found


class _Columns:
    """The steps of a run in columns."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._ops, self._phases, self._sites = _Table(), _Table(), _Table()
        self._values, self._cells, self._kinds = _Table(), _Table(), _Table()
        self._words: dict[str, list[Any]] = {}
        """Windows whose elements are cells, as rows of the table of signals."""
        self._places = Places(timeline.trace.header.world)
        self._cell_slots: dict[int, int] = {}
        self._rows = [self._row(step, event) for step, event in enumerate(timeline.events)]

    def tables(self) -> dict[str, Any]:
        names = ("lane", "op", "call", "phase", "site", "value", "put", "have", "after", "released", "arrived", "bare")
        columns: dict[str, Any] = dict(zip(names, zip(*self._rows, strict=True), strict=True)) if self._rows else {}
        columns = {name: list(columns.get(name, ())) for name in names}
        columns |= {name: _runs_of(columns[name]) for name in _REPEATING}
        times = [event.time for event in self._timeline.events]
        known = [time for time in times if time is not None]
        world = self._timeline.trace.header.world
        return {
            "columns": columns,
            "time": times if len(known) == len(times) > 0 and known == sorted(known) else None,
            "kinds": self._kinds.rows, "ops": self._ops.rows,
            "phases": [_cut(text) for text in self._phases.rows],
            "sites": [_cut(text) for text in self._sites.rows], "values": self._values.rows,
            "cells": self._cells.rows,
            "signals": [
                *([each.name, list(each.shape), _number(each.start)] for each in world.signals),
                *self._words.values(),
            ],
            **self._places.tables(),
        }  # fmt: skip

    def _row(self, step: int, event: Event) -> tuple[Any, ...]:
        timeline = self._timeline
        read, written = read_by(event), written_by(event)
        access = written or read or (event.op.accesses[-1] if event.op.accesses else None)
        released = timeline.released[step]
        return (
            timeline.lane_of[step],
            self._op(event, read, written),
            event.call,
            self._phases.number(event.phase),
            self._sites.number(" in ".join(event.at)),
            -1 if access is None or event.data is None else self._value(event.data, access),
            -1 if written is None else self._value(timeline.contents.data(step), written),
            _number(event.have),
            _number(timeline.after[step]),
            0 if released is None else step - released,
            step - timeline.arrived[step],
            int(event.unwritten),
        )

    def _op(self, event: Event, read: Access | None, written: Access | None) -> int:
        op = event.op
        key = (
            op.actor.name, op.kind, op.how, op.amount, op.consume, op.late, op.relaxed, op.link, op.said,
            None if op.cell is None else op.cell.slot,
            tuple((at.region.window, at.region.slot, at.region.box, at.region.part, at.mode) for at in op.accesses),
        )  # fmt: skip
        kind = self._kinds.number(op.kind, [GROUPS.index(group_of(op.kind)), op.kind])
        text = _cut(str(op).removeprefix(op.kind))
        row: list[Any] = [kind, text, self._cell(event), self._places.number(read), self._places.number(written)]
        if op.actor.name != str(op.actor.rank):
            row.append(op.actor.name)
        return self._ops.number(key, row)

    def _cell(self, event: Event) -> int:
        cell = event.op.cell
        if cell is None:
            return -1
        known = self._cell_slots.get(cell.slot)
        if known is None:
            signal = self._signal(cell.signal)
            known = self._cells.number(cell.slot, [signal, cell.owner, list(cell.index)])
            self._cell_slots[cell.slot] = known
        return known

    def _signal(self, name: str) -> int:
        """Return the number of a signal; windows whose elements are cells come behind the signals."""
        world = self._timeline.trace.header.world
        found = next((number for number, each in enumerate(world.signals) if each.name == name), None)
        if found is not None:
            return found
        if name not in self._words:
            window = next(each for each in world.windows if each.name == name)
            self._words[name] = [name, list(window.shape), 0]
        return len(world.signals) + list(self._words).index(name)

    def _value(self, data: Data, access: Access) -> int:
        dtype = access.region.dtype
        key = (dtype, data)
        if isinstance(data, bytes) and len(data) <= INLINE * dtype.itemsize:
            return self._values.number(key, elements_text(data, dtype))
        text = "not in the trace" if data is None else value_text(data, dtype)
        return self._values.number(key, text if not isinstance(data, Digest) else value_text(data, dtype))


def _number(value: int | None) -> int | str | None:
    return value if value is None or -_EXACT < value < _EXACT else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_MOST_PIECES = 64
"""A region of more pieces than this is shown as the whole range that it lies in."""


class Places:
    """The places of a run, each numbered when it is first touched.

    Args:
        world: of the run.

    """

    def __init__(self, world: World) -> None:
        self._world = world
        layouts = [each for each in world.layouts.values() if isinstance(each, WindowLayout)]
        self._views = [each for each in layouts if each.over is not None]
        self._view_numbers = {each.name: number for number, each in enumerate(self._views)}
        self._windows = {each.first_slot: number for number, each in enumerate(world.windows)}
        self._units = {each.first_slot: each.dtype.itemsize for each in world.windows}
        for view in self._views:
            self._units[view.first_slot] = min(self._units[view.first_slot], view.dtype.itemsize)
        self._places: dict[int, int] = {}
        self._rows: list[list[int]] = []
        self._accesses: dict[object, int] = {}
        self._access_rows: list[list[Any]] = []

    def tables(self) -> dict[str, Any]:
        """Return the tables.

        ``windows``: name, shape, dtype, start, units an element. ``views``: name, shape, dtype, number of the
        window, units an element. ``places``: number of the window, owner. ``accesses``: number of the place,
        runs of units, and, if it was through a view, the number of that.
        """
        return {
            "windows": [
                [each.name, list(each.shape), dtype_name(each.dtype), _start(each), self._size(each)]
                for each in self._world.windows
            ],
            "views": [
                [each.name, list(each.shape), dtype_name(each.dtype), self._windows[each.first_slot], self._size(each)]
                for each in self._views
            ],
            "places": self._rows,
            "accesses": self._access_rows,
        }

    def number(self, access: Access | None) -> int:
        """Return the number of an access; -1 for none."""
        if access is None:
            return -1
        region = access.region
        key = (region.window, region.slot, region.spans)
        found = self._accesses.get(key)
        if found is None:
            found = self._accesses[key] = len(self._access_rows)
            first = region.slot - region.owner
            unit = self._units[first]
            runs = [[low // unit, high // unit] for low, high in region.spans]
            if len(runs) > _MOST_PIECES:
                runs = [[runs[0][0], runs[-1][1]]]
            row: list[Any] = [self._lane_key(region.slot, self._windows[first], region.owner), runs]
            if region.window in self._view_numbers:
                row.append(self._view_numbers[region.window])
            self._access_rows.append(row)
        return found

    def _lane_key(self, slot: int, window: int, owner: int) -> int:
        found = self._places.get(slot)
        if found is None:
            found = self._places[slot] = len(self._rows)
            self._rows.append([window, owner])
        return found

    def _size(self, layout: WindowLayout) -> int:
        return layout.dtype.itemsize // self._units[layout.first_slot]


def _start(layout: WindowLayout) -> str:
    """Return what a window held when the run began."""
    delayed = "0" if layout.dirty is None else str(layout.dirty)
    return delayed if layout.initialised else f"{delayed}, unwritten"
