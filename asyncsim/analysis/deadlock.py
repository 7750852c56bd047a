"""Why a run that hangs hangs: of each blocked actor the line, the place, the value seen, and who keeps it waiting.

What is said of the future is taken from a look beyond the hang (`Beyond`): the operations that those who are
blocked would have done next, had nobody to wait. Without it, as with a trace from elsewhere, less is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.analysis.lost import changes_of, loss_of, value_after
from asyncsim.trace.cells import ADDING, APPLY, COMPARE, RISING, SYMBOLS
from asyncsim.trace.conflict import present_accesses
from asyncsim.trace.finding import Finding, Side
from asyncsim.trace.kinds import JOINING, LANDING, MEETING, POLLING, QUIETING, WAITING
from asyncsim.trace.op import change_by
from asyncsim.trace.region import READ, WRITE, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncsim.analysis.streams import Place, Streams
    from asyncsim.trace.event import Event
    from asyncsim.trace.region import Access, Region

NOT_SENT, NEVER_SENT, TOO_FEW, UNKNOWN = "not sent yet", "never sent", "too few were sent", "not there"
NOBODY_WILL = "nobody will write it"
TOLD = 8
"""So many blocked actors are told of one by one; of more, those that wait at the same line together."""
_ELEMENTS = 4


@dataclass(frozen=True, slots=True)
class Beyond:
    """What those who are blocked would have done next, had nobody to wait.

    Args:
        events: in some order.
        whole: all of them came to their end.
        accepts: says whether a poll would have taken these bytes.

    """

    events: Sequence[Event] = ()
    whole: bool = False
    accepts: Callable[[Event, bytes], bool] = lambda *_: False


def deadlock(streams: Streams, beyond: Beyond | None = None) -> Finding:
    """Return the one finding of a run that ended with everybody blocked.

    Args:
        streams: of the run.
        beyond: what the blocked would have done next; None: not known.

    """
    told = _Hang(streams, beyond or Beyond())
    blocked = told.blocked
    sides = tuple(Side.of(streams.event(place), place[1]) for place in blocked)
    names = {name for place in blocked if (name := _memory(streams.event(place))) is not None}
    # Pairs count what is blocked: the actors.
    return Finding(
        "deadlock", ";\n".join(told.sentences()), window=names.pop() if len(names) == 1 else None, pairs=len(blocked),
        harmful=True, sides=sides, shown=f"{len(blocked)} of {len(streams.actors)} actors wait for ever",
    )  # fmt: skip


def line_of(event: Event) -> str:
    """Return `` at file:line``, or nothing where the line is not known."""
    return f" at {event.at[0]}" if event.at and event.at[0] else ""


def says(event: Event) -> str:
    """Return an operation with who does it, and where: ``rank 1's 'notify c[0]@0 += 1' at x.py:7``."""
    return f"{event.op.actor.title}'s '{event.op}'{line_of(event)}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names in a row, the first few of many.

    Args:
        names: at least one.
        most: so many are named, and the others counted.

    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


class _Hang:
    """One hang under examination; says of each blocked actor whom it waits for, and keeps that for the cycle."""

    def __init__(self, streams: Streams, beyond: Beyond) -> None:
        self.streams = streams
        self.blocked: list[Place] = [
            (number, len(stream) - 1)
            for number, stream in enumerate(streams.events)
            if stream and streams.is_pending((number, len(stream) - 1))
        ]
        self._beyond = beyond
        self._number = {streams.actors[number].name: number for number, _ in self.blocked}
        self._waits_for: dict[int, list[int]] = {}

    def sentences(self) -> Iterator[str]:
        """Say of each blocked actor, or of those that wait at one line together, why it waits; then the cycle."""
        alike: dict[tuple[object, ...], list[Place]] = {}
        for place in self.blocked:
            event = self.streams.event(place)
            key = (event.at, event.op.kind) if len(self.blocked) > TOLD else place
            alike.setdefault(key, []).append(place)
        for places in alike.values():
            first, *others = [self._sentence(place) for place in places]
            names = [self.streams.actors[number].title for number, _ in places[1:]]
            yield f"{first}; so {'does' if len(names) == 1 else 'do'} {listed(names)}" if others else first
        if cycle := self._cycle():
            yield cycle

    def _sentence(self, place: Place) -> str:
        event = self.streams.event(place)
        op, who = event.op, event.op.actor.title
        line = line_of(event)
        if op.cell is not None and op.kind in WAITING:
            asked = f"{op.cell} {SYMBOLS[op.how]} {op.amount}"
            return f"{who} waits{line} for {asked} (have {event.have}, need {_need(event)}): {self._of_cell(place)}"
        if op.kind in JOINING:
            self._keeps(place, [op.link])
            return f"{who} waits{line} to join stream {op.link}, which waits itself"
        if op.kind in MEETING:
            return f"{who} waits{line} at a stream barrier {self._of_barrier(place)}"
        if op.kind in POLLING:
            return f"{who} polls {op.accesses[0].region}{line}, and {self._of_poll(place)}"
        if op.kind in QUIETING:
            before = f" before its last {op.amount} copies" if op.amount else ""
            return f"{who} waits{line} until all that it wrote{before} has landed, and something cannot land"
        return f"{who} stands{line} at '{op}', which cannot go on"

    def _of_cell(self, place: Place) -> str:
        """Say why a wait is not satisfied: what was lost, and who might still write."""
        wait = self.streams.event(place)
        changes = changes_of(self.streams, wait)
        lost = loss_of(self.streams, wait, changes)
        reason, future = self._future(place, lambda event: _helps(wait, event))
        if lost is not None:
            return f"{lost[0]}: {says(lost[1])} {lost[2]}; {future}"
        past = f"{says(changes[-1])} left it at {value_after(changes[-1])}" if changes else "nobody has written it"
        if changes and reason == NEVER_SENT and wait.op.how in RISING:
            reason = TOO_FEW
        return f"{reason}: {past}; {future}"

    def _of_barrier(self, place: Place) -> str:
        op = self.streams.event(place).op
        come = {
            event.op.actor.name
            for stream in self.streams.events
            for event in stream
            if event.op.kind in MEETING and event.op.link == op.link
        }
        absent = [
            self.streams.actors[number].name
            for number, _ in self.blocked
            if self.streams.actors[number].rank == op.actor.rank and self.streams.actors[number].name not in come
        ]
        self._keeps(place, absent)
        titles = [self.streams.actors[self._number[name]].title for name in absent]
        rest = f"{listed(titles)} {_waits(titles)} elsewhere" if titles else "nobody else of this rank is left"
        return f"to which {len(come)} of {op.amount} streams have come; {rest}"

    def _of_poll(self, place: Place) -> str:
        """Say what a poll refuses, who wrote it, what it would have taken, and who might still write."""
        poll = self.streams.event(place)
        region = poll.op.accesses[0].region
        writes = self._writes(poll)
        value = _value(poll.data, region)
        refuses = f"its predicate refuses what is there{f', {value}' if value else ''}"
        last = writes[-1] if writes else None
        wrote = (
            f"{says(last)} wrote there last, in step {last.step}" if last is not None else "nobody has written there"
        )
        taken = next((each for each in reversed(writes[:-1]) if self._would_take(poll, each)), None)
        missed = ""
        if taken is not None:
            before = f"which {says(taken)} wrote before, in step {taken.step}"
            missed = f"; it would have taken {_value(taken.data, region)}, {before}"
        _, future = self._future(
            place, lambda event: event.op.kind not in LANDING and _meets(event.op.accesses[-1:], region)
        )
        return f"{refuses}: {wrote}{missed}; {future}"

    def _writes(self, poll: Event) -> list[Event]:
        """Return what was written where a poll looks, in the order of the run."""
        region, rank = poll.op.accesses[0].region, poll.op.actor.rank
        return [
            event
            for event in self.streams.trace.events
            if event.op.accesses and _meets(present_accesses(event.op, own=event.op.actor.rank == rank), region)
        ]

    def _would_take(self, poll: Event, write: Event) -> bool:
        target = write.op.accesses[-1]
        same = target.mode == WRITE and target.region.spans == poll.op.accesses[0].region.spans
        return same and isinstance(write.data, bytes) and self._beyond.accepts(poll, write.data)

    def _future(self, place: Place, helps: Callable[[Event], bool]) -> tuple[str, str]:
        """Say who might still do what a blocked actor waits for: in a word, and in a clause."""
        streams, actor = self.streams, self.streams.event(place).op.actor
        would = [event for event in self._beyond.events if helps(event)]
        others = {event.op.actor.name: event for event in reversed(would) if event.op.actor.order != actor.order}
        if here := {name: event for name, event in others.items() if name in self._number}:
            others = here  # and not streams that have not begun
        if others:
            self._keeps(place, list(others))
            first = min(others.values(), key=lambda event: event.op.actor.order)
            more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
            return NOT_SENT, f"{first.op.actor.title} would write it{line_of(first)}{more}, but {self._stands(first)}"
        left = [streams.actors[number] for number, _ in self.blocked if number != place[0]]
        if not left:
            gone = [each.title for each in streams.actors if each is not actor and not each.wire]
            have = "has" if len(gone) == 1 else "have"
            done = f"{listed(gone)} {have} finished" if gone else "there is nobody else"
            return NEVER_SENT, f"{NOBODY_WILL} any more: {done}"
        titles = [each.title for each in left]
        if not self._beyond.whole:
            return UNKNOWN, f"{listed(titles)} {_waits(titles)} too; what would be written after that is not known"
        if would:
            return NEVER_SENT, f"{NOBODY_WILL} but {actor.title} itself{line_of(would[0])}, after this wait"
        return NEVER_SENT, f"{NOBODY_WILL}, not even if {listed(titles)} had not to wait"

    def _stands(self, event: Event) -> str:
        return "waits itself" if event.op.actor.name in self._number else "has not begun"

    def _keeps(self, place: Place, names: Sequence[str]) -> None:
        """Note who keeps an actor waiting: those with these names; of a stream that has not begun, who starts it."""
        found = []
        for name in names:
            while name not in self._number and "." in name:
                name = name.rpartition(".")[0]  # noqa: PLW2901 - up to who is there
            if name in self._number:
                found.append(self._number[name])
        self._waits_for[place[0]] = found

    def _cycle(self) -> str:
        """Return a shortest cycle of waits as a sentence; empty if there is none."""
        best: list[int] = []
        for start in self._waits_for:
            came: dict[int, int] = {}
            row = [start]
            while row and start not in came and not (best and len(came) > len(self.blocked)):
                here = row.pop(0)
                for there in self._waits_for.get(here, ()):
                    if there not in came:
                        came[there] = here
                        row.append(there)
            if start in came:
                path = [start]
                while came[path[-1]] != start:
                    path.append(came[path[-1]])
                if not best or len(path) < len(best):
                    best = [start, *reversed(path[1:])]
        if len(best) < 2:  # noqa: PLR2004 - of one actor it is told above
            return ""
        names = [self.streams.actors[number].title for number in [*best, best[0]]]
        shown = [*names[:TOLD], "…", names[-1]] if len(names) > TOLD + 1 else names
        return f"a cycle of waits: {shown[0]} waits for {', which waits for '.join(shown[1:])}"


def _need(wait: Event) -> int:
    return wait.op.amount + (wait.op.how == "Gt") - (wait.op.how == "Lt")


def _waits(names: Sequence[str]) -> str:
    return "waits" if len(names) == 1 else "wait"


def _memory(event: Event) -> str | None:
    """Return the signal or window that a blocked operation is about."""
    if event.op.cell is not None:
        return event.op.cell.signal
    return event.op.accesses[0].region.window if event.op.accesses else None


def _helps(wait: Event, event: Event) -> bool:
    """Say whether an operation brings a cell nearer to what a wait waits for."""
    op, cell = event.op, wait.op.cell
    change = change_by(op)
    if op.cell is None or cell is None or op.cell.slot != cell.slot or op.kind in LANDING or change is None:
        return False
    have, how = wait.have or 0, wait.op.how
    update, gain = change
    if update not in ADDING:
        return COMPARE[how](APPLY[update](have, gain), wait.op.amount)
    rising = how in RISING or (how == "Eq" and have < wait.op.amount)
    return gain != 0 if how == "Ne" else gain > 0 if rising else gain < 0


def _meets(accesses: Sequence[Access], region: Region) -> bool:
    """Say whether one of these accesses changes memory in a region."""
    return any(
        access.mode != READ and access.region.slot == region.slot and spans_overlap(access.region.spans, region.spans)
        for access in accesses
    )


def _value(data: object, region: Region) -> str:
    """Write what was seen in a region: a number, or the first few of a tile; nothing where it was not kept."""
    if not isinstance(data, bytes):
        return ""
    values = np.frombuffer(data, region.dtype).tolist()
    if not region.shape and len(values) == 1:
        return str(values[0])
    return f"[{', '.join(map(str, values[:_ELEMENTS]))}{', …' if len(values) > _ELEMENTS else ''}]"
