"""Why a run does not end: who goes round in circles, at which line, on what, and who does not move meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from asyncsim.analysis.deadlock import TOLD, line_of, listed, says
from asyncsim.trace.cells import SYMBOLS
from asyncsim.trace.finding import Finding, Side
from asyncsim.trace.kinds import LOADING, POLLING, SIGNALLING, TESTING, WAITING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.event import Event

_LOOKS = TESTING | LOADING | POLLING
_OFTEN = 3


def endless(streams: Streams) -> Finding:
    """Return the one finding of a run that met the limit of steps.

    Its second half is looked at: who did one operation there again and again spins.
    """
    steps = len(streams.trace.events)
    half = steps // 2
    spins: list[tuple[Place, int]] = []
    still: list[Place] = []
    for number, stream in enumerate(streams.events):
        done = [(index, event) for index, event in enumerate(stream) if event.step is not None and event.step >= half]
        if (found := _spin(number, done)) is not None:
            spins.append(found)
        elif not done and stream and streams.is_pending((number, len(stream) - 1)):
            still.append((number, len(stream) - 1))
    # Who only looks tells more of why it does not end than who does other things in its loop.
    spins.sort(key=lambda each: (streams.event(each[0]).op.kind not in _LOOKS, each[0]))
    told = [*_spinning(streams, spins, steps - half), *_standing(streams, still)]
    why = ";\n".join(told) or "it goes on and on, and nothing in it is done again and again"
    sides = tuple(Side.of(streams.event(place), place[1]) for place in [*(place for place, _ in spins), *still])
    return Finding(
        "step-limit", why, pairs=max(len(spins), 1), harmful=True, sides=sides,
        shown=f"it did not end within {steps} steps",
    )  # fmt: skip


def _spin(number: int, done: list[tuple[int, Event]]) -> tuple[Place, int] | None:
    """Return the last time of what an actor did most often, looks first, and how often; None if nothing repeats."""
    times = Counter(str(event.op) for _, event in done)
    if not times:
        return None
    looks = {str(event.op) for _, event in done if event.op.kind in _LOOKS}
    most = max(times, key=lambda text: (times[text] >= _OFTEN and text in looks, times[text]))
    last = next(index for index, event in reversed(done) if str(event.op) == most)
    return ((number, last), times[most]) if times[most] >= _OFTEN else None


def _spinning(streams: Streams, spins: list[tuple[Place, int]], steps: int) -> Iterator[str]:
    for place, times in spins[:TOLD]:
        event = streams.event(place)
        op = event.op
        seen = f", which holds {event.have}" if op.kind in TESTING else ""
        often = f"{times} times in the last {steps} steps"
        yield f"{op.actor.title} spins{line_of(event)}: '{op}'{seen}, {often}{_writer(streams, event)}"
    if len(spins) > TOLD:
        yield f"so do {listed([streams.actors[place[0]].title for place, _ in spins[TOLD:]])}"


def _writer(streams: Streams, event: Event) -> str:
    """Say who changed last what a test looks at."""
    cell = event.op.cell
    if event.op.kind not in TESTING or cell is None:
        return ""
    wrote = [
        each
        for each in streams.trace.events
        if each.op.cell is not None and each.op.cell.slot == cell.slot and each.op.kind in SIGNALLING
    ]
    return f"; {says(wrote[-1])} wrote it last" if wrote else "; nobody has written it"


def _standing(streams: Streams, still: list[Place]) -> Iterator[str]:
    for place in still[:TOLD]:
        event = streams.event(place)
        op = event.op
        what = f"at '{op}'"
        if op.kind in WAITING:
            what = f"and waits for {op.cell} {SYMBOLS[op.how]} {op.amount} (have {event.have})"
        yield f"{op.actor.title} did nothing meanwhile: it stands{line_of(event)} {what}"
    if len(still) > TOLD:
        yield f"neither did {listed([streams.actors[place[0]].title for place in still[TOLD:]])}"
