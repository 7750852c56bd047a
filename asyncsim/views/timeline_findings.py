"""The findings of a trace's footer, and the steps of the trace that are their sides.

A footer can come from anywhere. A field that is missing, or of another type than ours have, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from asyncsim.trace.finding import ATOMIC, RACE, SUM
from asyncsim.trace.kinds import with_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.event import Event, Trace

_MOST_SIDES = 64
_MOST_PLACES = 64
"""Of an operation that is done over and over, so many of its steps are tried as a side."""


@dataclass(frozen=True, slots=True)
class FooterSide:
    """One side of a finding.

    Args:
        text: the task, the call and the operation, in one line.
        at: the source line, as far as it is told.
        step: the step of the trace that it is; None if it is none: it was still pending, or is no operation.

    """

    text: str
    at: str
    step: int | None


@dataclass(frozen=True, slots=True)
class FooterFinding:
    """A finding as a footer tells it.

    Args:
        title: in a few words: ``WAR race, next call``.
        facts: how many pairs, and whether it is harmful.
        why, shown: the sentences that explain it.
        sides: of a race the two, in the order of the fair run.
        ordered: it is about the order of its two sides.

    """

    title: str
    facts: str
    why: str
    shown: str
    sides: tuple[FooterSide, ...]
    ordered: bool

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of this trace that are its sides, in the order of the sides."""
        return tuple(side.step for side in self.sides if side.step is not None)


def footer_findings(trace: Trace) -> tuple[FooterFinding, ...]:
    """Return the findings that a trace tells of; none of one that was broken off."""
    if trace.footer is None:
        return ()
    return tuple(_finding(item, trace.events) for item in trace.footer.findings)


def _text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _number(item: dict[str, Any], key: str) -> int | None:
    value = item.get(key)
    return value if type(value) is int else None


def _finding(item: dict[str, Any], events: Sequence[Event]) -> FooterFinding:
    hazard, scope, kind = _text(item, "hazard"), _text(item, "scope"), _text(item, "kind")
    title = f"{hazard} race" if hazard else kind
    listed = item.get("sides")
    sides = [side for side in listed if isinstance(side, dict)][:_MOST_SIDES] if isinstance(listed, list) else []
    ordered = len(sides) == 2 and kind in (RACE, "signal-race", "unstable-wait", SUM, ATOMIC)  # noqa: PLR2004
    return FooterFinding(
        f"{title}, {scope}" if scope else title,
        _facts(item, pairs=ordered),
        _text(item, "why"),
        _text(item, "shown"),
        _located(sides, events),
        ordered,
    )


def _facts(item: dict[str, Any], *, pairs: bool) -> str:
    facts = []
    count = _number(item, "pairs")
    if count is not None and pairs:
        facts.append(f"{count} pair" if count == 1 else f"{count} pairs")
    harmful = item.get("harmful")
    if isinstance(harmful, bool):
        facts.append("harmful" if harmful else "benign here")
    return ", ".join(facts)


def _located(sides: Sequence[dict[str, Any]], events: Sequence[Event]) -> tuple[FooterSide, ...]:
    """Find the sides among the steps: of those that fit, the ones that lie closest together."""
    places = [_places(side, events) or [None] for side in sides]
    pair = len(places) == 2  # noqa: PLR2004 - as it says
    best = min(product(*places), key=_distance) if pair else tuple(found[0] for found in places)
    return tuple(_side(side, step) for side, step in zip(sides, best, strict=True))


def _distance(pair: tuple[int | None, ...]) -> int:
    a, b = pair
    return 0 if a is None or b is None else abs(a - b)


def _places(side: dict[str, Any], events: Sequence[Event]) -> list[int | None]:
    actor, call, kind, region = _text(side, "actor"), _number(side, "call"), _text(side, "op"), _text(side, "region")
    line = f"{_text(side, 'file')}:{_number(side, 'line')}"
    own = [event for event in events if event.op.actor.name == actor and event.call == call]
    if kind == "return":  # what came out wrong was made by its rank's last step of the call
        return [own[-1].step] if own else []
    same = [event for event in own if event.op.kind == kind]
    exact = [event for event in same if (event.at[0] if event.at else "") == line] or (
        same if not side.get("file") else []
    )
    there = [event.step for event in exact if not region or region in _regions(event)]
    return list(there[-_MOST_PLACES:])


def _regions(event: Event) -> list[str]:
    op = event.op
    return [str(op.cell), *(str(access.region) for access in op.accesses), op.link]


def _side(side: dict[str, Any], step: int | None) -> FooterSide:
    actor, rank, call = _text(side, "actor"), _number(side, "rank"), _number(side, "call")
    task_title = f"rank {rank}" if actor in ("", str(rank)) else f"{actor} of rank {rank}"
    phase = _text(side, "phase")
    kind, region = _text(side, "op"), _text(side, "region")
    what = with_place(kind, region) if kind and region else kind or region
    file, line = _text(side, "file"), _number(side, "line")
    at = file + (f":{line}" if line is not None else "")
    composite = _text(side, "composite")
    return FooterSide(
        f"{task_title}, call {call}{f', {phase}' if phase else ''}: {what}",
        f"{at} in {composite}" if composite else at,
        step,
    )
