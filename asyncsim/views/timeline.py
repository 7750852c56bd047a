"""The timeline of a trace: lanes, steps, which step released which wait, and where the findings are.

A model that knows nothing of how it is shown. The terminal (`timeline_lines`), the page
(`timeline_page`) and the Perfetto file (`perfetto`) are made from it. A trace is data: no code of the
kernel runs, and nothing that a footer says is believed to have a certain form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.cells import COMPARE
from asyncsim.trace.kinds import KINDS, WAITING
from asyncsim.trace.landing import index_of
from asyncsim.views.timeline_contents import Contents, cells_after
from asyncsim.views.timeline_findings import FooterFinding, footer_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.op import Op

GROUPS = ("load", "store", "copy", "notify", "wait", "landing", "order")
"""What the kinds of operations are coloured by."""


def group_of(kind: str) -> str:
    """Return what an operation of this kind is coloured by, one of `GROUPS`."""
    return KINDS[kind].group


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a timeline: a task, or all wires of a task (there is a wire a landing, too many for rows).

    Args:
        name: the actor, ``2`` or ``2.1``; of wires that of their task with a mark, ``2>``.
        rank: whose it is.
        title: what it is called in words.
        wires: it shows landings.

    """

    name: str
    rank: int
    title: str
    wires: bool


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A run, ready to be drawn. The lists have one entry a step.

    Args:
        trace: the run.
        lanes: ranks ascending, each with its streams; the landings of a task below it.
        lane_of: the lane of each step.
        arrived: the step after which its actor stood at the gate with it; -1: from the start. Of a landing,
            the step that issued it.
        released: of a wait that passed, the step that made its condition true; None for anything else,
            and for a condition that held when the run began.
        after: the value of its cell after a step that changes one.
        contents: what the windows held.
        findings: what the footer tells.

    """

    trace: Trace
    lanes: tuple[Lane, ...]
    lane_of: list[int]
    arrived: list[int]
    released: list[int | None]
    after: list[int | None]
    contents: Contents
    findings: tuple[FooterFinding, ...]

    @property
    def events(self) -> Sequence[Event]:
        """The steps."""
        return self.trace.events

    @property
    def pending(self) -> Sequence[Event]:
        """What stood at the gate at the end."""
        return () if self.trace.footer is None else self.trace.footer.pending

    def task_title(self, step: int) -> str:
        """Name the task of a step in words."""
        return title_of(self.events[step].op.actor.name, self.events[step].op.actor.rank)

    def waits_released(self) -> dict[int, list[int]]:
        """Return the waits that each step made true."""
        found: dict[int, list[int]] = {}
        for step, by in enumerate(self.released):
            if by is not None:
                found.setdefault(by, []).append(step)
        return found


def timeline_of(trace: Trace) -> Timeline:
    """Return the timeline of a trace, which may be one that was broken off."""
    events = trace.events
    lanes, places = _lanes(trace)
    after = cells_after(trace)
    return Timeline(
        trace,
        lanes,
        [places[_lane_name(event.op)] for event in events],
        _arrivals(events),
        _releases(trace, after),
        after,
        Contents(trace),
        footer_findings(trace),
    )


def title_of(actor: str, rank: int) -> str:
    """Name an actor in words: ``rank 2``, ``rank 2, stream 2.1``, ``rank 2, wire 2>7``.

    Args:
        actor: its name.
        rank: the rank that it belongs to.

    """
    if actor == str(rank):
        return f"rank {rank}"
    return f"rank {rank}, {'wire' if '>' in actor else 'stream'} {actor}"


def _lane_name(op: Op) -> str:
    task, wire, _ = op.actor.name.partition(">")
    return task + wire


def _lanes(trace: Trace) -> tuple[tuple[Lane, ...], dict[str, int]]:
    """Return the lanes, and where each is found by its name."""
    rank_of = {actor.name: actor.rank for actor in trace.header.world.actors}
    pending = () if trace.footer is None else trace.footer.pending
    for event in (*trace.events, *pending):
        rank_of.setdefault(_lane_name(event.op), event.op.actor.rank)
    names = sorted(rank_of, key=_lane_key)
    lanes = tuple(Lane(name, rank_of[name], _lane_title(name, rank_of[name]), name.endswith(">")) for name in names)
    return lanes, {name: number for number, name in enumerate(names)}


def _lane_title(name: str, rank: int) -> str:
    return f"landings {name[:-1]}" if name.endswith(">") else title_of(name, rank)


def _lane_key(name: str) -> tuple[tuple[tuple[int, str], ...], bool]:
    """Return where a lane stands: ``2`` before ``2>`` before ``2.1`` before ``2.proxy`` before ``10``."""
    parts = name.removesuffix(">").split(".")
    return tuple((int(part), "") if part.isdecimal() else (1 << 30, part) for part in parts), name.endswith(">")


def _arrivals(events: Sequence[Event]) -> list[int]:
    """Return, for each step, the step after which its actor stood at the gate with it."""
    last: dict[str, int] = {}
    steps_of: dict[str, list[int]] = {}
    arrived = []
    for step, event in enumerate(events):
        actor = event.op.actor
        if actor.wire and actor.name not in last:
            last[actor.name] = steps_of[actor.name.partition(">")[0]][index_of(actor.name)]
        arrived.append(last.get(actor.name, -1))
        last[actor.name] = step
        steps_of.setdefault(actor.name, []).append(step)
    return arrived


def _releases(trace: Trace, after: Sequence[int | None]) -> list[int | None]:
    """Return, for each wait, the step that made its condition true and since which it stayed true.

    From each wait its cell's history is followed back for as long as the condition held. Where it held
    for the same condition before, the answer of then is taken, so that long histories stay cheap.
    """
    histories: dict[int, list[tuple[int, int]]] = {}
    before: dict[tuple[int, str, int], tuple[int, int | None]] = {}
    world = trace.header.world
    found: list[int | None] = []
    for step, event in enumerate(trace.events):
        op, by = event.op, None
        if op.cell is not None:
            history = histories.setdefault(op.cell.slot, [])
            if op.kind in WAITING:
                key = (op.cell.slot, op.how, op.amount)
                start = world.start_of(op.cell)
                by = _since(history, COMPARE[op.how], op.amount, start, before.get(key, (0, None)))
                before[key] = (len(history), by)
            value = after[step]
            if value is not None:
                history.append((step, value))
        found.append(by)
    return found


def _since(
    history: Sequence[tuple[int, int]],
    holds: Callable[[int, int], bool],
    need: int,
    start: int,
    known: tuple[int, int | None],
) -> int | None:
    """Return the first of the last changes after all of which a condition holds; None if it always held.

    It is known that after so many of the changes it held, and since which one.
    """
    reached, by = known
    first = None
    for step, value in reversed(history[reached:]):
        if not holds(value, need):
            return first
        first = step
    return by if reached or holds(start, need) else first
