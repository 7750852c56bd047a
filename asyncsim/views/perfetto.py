"""A timeline as Chrome trace events, which ui.perfetto.dev and chrome://tracing open.

Processes are ranks, threads are lanes (a task, or all landings of a task). Each step is a slice, each phase a
slice around its steps, each time that a task stood at a wait a slice before the wait; a flow leads from what
made a wait's condition true to the wait; findings are instants. Time is the virtual time of the run, if the
scheduler had a clock; else a step takes one microsecond.

Source: "Trace Event Format", Google, the JSON array in an object under "traceEvents".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from asyncsim.trace.kinds import WAITING
from asyncsim.views.timeline import group_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.views.timeline import Timeline

_MICRO = 1e6
_MOST_TEXT = 500


def perfetto_text(timeline: Timeline) -> str:
    """Return the whole file: one JSON object, an event a line."""
    lines = (json.dumps(event, ensure_ascii=True, separators=(",", ":")) for event in perfetto_events(timeline))
    return '{"displayTimeUnit":"ns","traceEvents":[\n' + ",\n".join(lines) + "\n]}\n"


def perfetto_events(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield the events, those of one thread in the order of their begin, an outer slice before an inner one."""
    places = _Places(timeline)
    yield from _names(timeline, places)
    yield from _phases(timeline, places)
    for step in range(len(timeline.events)):
        yield from _step(timeline, places, step)
    yield from _flows(timeline, places)
    yield from _findings(timeline, places)


class _Places:
    """Where each step stands: process, thread, begin and duration, in microseconds."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        events = timeline.events
        # A clock that is missing somewhere, or goes back, is none: the time of steps serves.
        times = [event.time for event in events if event.time is not None]
        self.virtual = bool(events) and len(times) == len(events) and times == sorted(times)
        self.begin: list[float] = []
        self.length: list[float] = []
        ends: dict[int, float] = {}
        for step, event in enumerate(events):
            lane = timeline.lane_of[step]
            if self.virtual:
                end = (event.time or 0.0) * _MICRO
                # Wires share a lane and overlap; a landing is then a moment.
                begin = end if timeline.lanes[lane].wires else ends.get(lane, 0.0)
                ends[lane] = end
                self.begin.append(begin)
                self.length.append(end - begin)
            else:
                self.begin.append(float(step))
                self.length.append(1.0)

    def of(self, lane: int) -> dict[str, int]:
        """Return process and thread: neither is 0, which means "idle", and no two threads share a number."""
        return {"pid": self._timeline.lanes[lane].rank + 1, "tid": self._timeline.trace.header.world.ranks + lane + 1}

    def middle(self, step: int) -> float:
        """Return a moment inside a step's slice."""
        return self.begin[step] + self.length[step] / 2


def _names(timeline: Timeline, places: _Places) -> Iterator[dict[str, Any]]:
    ranks: set[int] = set()
    for number, lane in enumerate(timeline.lanes):
        where = places.of(number)
        if lane.rank not in ranks:
            ranks.add(lane.rank)
            about = {"ph": "M", **where, "ts": 0}
            yield {"name": "process_name", **about, "args": {"name": f"rank {lane.rank}"}}
            yield {"name": "process_sort_index", **about, "args": {"sort_index": lane.rank}}
        yield {"name": "thread_name", "ph": "M", **where, "ts": 0, "args": {"name": lane.title}}
        yield {"name": "thread_sort_index", "ph": "M", **where, "ts": 0, "args": {"sort_index": number}}


def _phases(timeline: Timeline, places: _Places) -> Iterator[dict[str, Any]]:
    """Yield a slice around each stretch of a task's steps in one phase of one call."""
    open_: dict[int, tuple[str, int, int, int]] = {}
    for step, event in enumerate(timeline.events):
        lane = timeline.lane_of[step]
        if timeline.lanes[lane].wires:
            continue
        begun = open_.get(lane)
        if begun is not None and begun[:2] == (event.phase, event.call):
            open_[lane] = (*begun[:3], step)
            continue
        if begun is not None:
            yield from _phase(places, lane, begun)
        open_[lane] = (event.phase, event.call, step, step)
    for lane, begun in open_.items():
        yield from _phase(places, lane, begun)


def _phase(places: _Places, lane: int, stretch: tuple[str, int, int, int]) -> Iterator[dict[str, Any]]:
    phase, call, first, last = stretch
    if phase:
        begin, end = places.begin[first], places.begin[last] + places.length[last]
        yield {
            "name": _cut(phase), "cat": "phase", "ph": "X", **places.of(lane), "ts": begin, "dur": end - begin,
            "args": {"call": call},
        }  # fmt: skip


def _step(timeline: Timeline, places: _Places, step: int) -> Iterator[dict[str, Any]]:
    event = timeline.events[step]
    op = event.op
    where = places.of(timeline.lane_of[step])
    arrived = timeline.arrived[step]
    released = timeline.released[step]
    if not places.virtual and op.kind in WAITING and released is not None and released > arrived:
        begin = places.begin[arrived] + places.length[arrived] if arrived >= 0 else 0.0
        end = places.begin[released] + places.length[released]
        about = {"name": f"stands at wait {op.cell}", "cat": "parked", "ph": "X"}
        yield {**about, **where, "ts": begin, "dur": end - begin, "args": {"released by step": released}}
    args: dict[str, Any] = {"step": step, "call": event.call, "actor": op.actor.name, "op": _cut(str(op))}
    if event.phase:
        args["phase"] = _cut(event.phase)
    if event.at:
        args["at"] = _cut(" in ".join(event.at))
    if event.have is not None:
        args["cell"] = str(event.have)
    yield {
        "name": op.kind, "cat": group_of(op.kind), "ph": "X", **where, "ts": places.begin[step],
        "dur": places.length[step], "args": args,
    }  # fmt: skip


def _flows(timeline: Timeline, places: _Places) -> Iterator[dict[str, Any]]:
    """Yield the two ends of each arrow; an end binds to the slice around its moment."""
    for number, (step, by) in enumerate(enumerate(timeline.released), 1):
        if by is None:
            continue
        about = {"name": "releases", "cat": "release", "id": number}
        yield {**about, "ph": "s", **places.of(timeline.lane_of[by]), "ts": places.middle(by)}
        yield {**about, "ph": "f", "bp": "e", **places.of(timeline.lane_of[step]), "ts": places.middle(step)}


def _findings(timeline: Timeline, places: _Places) -> Iterator[dict[str, Any]]:
    for number, finding in enumerate(timeline.findings, 1):
        args = {"why": _cut(finding.why), "shown": _cut(finding.shown)}
        about = {"name": _cut(f"{number}. {finding.title}"), "cat": "finding", "ph": "i", "args": args}
        for step in finding.steps:
            yield {**about, "s": "t", **places.of(timeline.lane_of[step]), "ts": places.middle(step)}
        if not finding.steps:
            last = len(timeline.events) - 1
            yield {**about, "s": "g", **places.of(0), "ts": places.middle(last) if last >= 0 else 0.0}


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"
