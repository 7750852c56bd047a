"""The recorder: an observer that turns every step of a run into one event."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.columns import Columns
from asyncsim.trace.digest import check_nesting
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import Collective, Event
from asyncsim.trace.kinds import CARRYING, POLLING
from asyncsim.trace.landing import index_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.machine.memory import Memory, Tile
    from asyncsim.machine.rank import Rank
    from asyncsim.machine.site import Sites
    from asyncsim.trace.event import Site
    from asyncsim.trace.op import Op


class Place:
    """Where one actor is: its rank, its call, and the coroutine it is suspended in.

    While an edit makes it do something that its program does not, `inserted` says where that stands;
    `last` is then where the program came to last. `holder` and `lines` are what `Sites` found there.
    """

    __slots__ = ("call", "coroutine", "holder", "inserted", "last", "lines", "rank")

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self.call = 0
        self.coroutine: Any = None
        self.holder: Any = None
        self.lines: dict[int, Site] = {}
        self.inserted: Site | None = None
        self.last: Site = ()


class Recorder:
    """Keeps the events of a run.

    Args:
        memory: looked at, never touched.
        seen: says what value an operation's cell has in the eyes of its actor.
        peek: says what a poll looks at, likewise.
        places: where each actor is, by its order.
        sites: shared by the runs of a case, so that each line is looked up once.
        late: there are wires; a landing is noted with the place of its issue.
        compact: keep columns, for a run of very many steps; without wires only.
        lines: look for the lines that operations come from.

    """

    def __init__(  # noqa: PLR0913 - what it looks at, and how it keeps it
        self,
        memory: Memory,
        seen: Callable[[Op], int],
        peek: Callable[[Op], Tile],
        places: Mapping[int, Place],
        sites: Sites,
        *,
        late: bool,
        compact: bool = False,
        lines: bool = True,
    ) -> None:
        self._events: list[Event] = []
        self._columns = Columns() if compact and not late else None
        self.collectives: list[Collective] = []
        self.clock: Callable[[], float] | None = None
        """Tells the virtual time of the step that was just taken, in seconds, if the scheduler has any."""
        self.told: Callable[[Event], None] | None = None
        """Is told of each event as it happens, if the scheduler asks for it: to write a trace while it grows."""
        self._issues: dict[tuple[str, int], Event] = {}
        self._counts: dict[int, int] = {}
        self._late = late
        self._unwritten = 0
        self._cells = memory.cells
        self._found = memory.unwritten
        self._seen = seen
        self._peek = peek
        self._places = places
        self._sites = sites
        self._site: Callable[[Place], Site] = sites.at if lines else _nowhere

    def __call__(self, op: Op, outcome: Any) -> None:  # noqa: ANN401, C901 - any outcome; in every step
        """Note a step that was just taken."""
        actor = op.actor
        if actor.wire:
            call, phase, at = self._where(op)
        else:  # as `_where` says, here without a call: this runs in every step that is recorded
            place = self._places[actor.order]
            rank = place.rank
            call, phase, at = place.call, rank.phase_name, place.inserted or self._site(place)
        data: bytes | None = None
        have: int | None = None
        if op.accesses and (op.cell is None or op.kind in CARRYING):
            tile = op.payload if outcome is None else outcome
            if tile is not None:
                data = tile.tobytes()
        cell = op.cell
        if cell is not None:
            # What has a result, or is a wait that changes its cell, has changed it by now, and says what it saw.
            known = outcome.__class__ is int
            have = outcome if known else self._seen(op) if self._late or op.accesses else self._cells[cell.slot]
        unwritten = len(self._found) > self._unwritten
        if unwritten:
            self._unwritten = len(self._found)
        time = None if self.clock is None else self.clock()
        if self._columns is not None:
            self._columns.take(op, call, phase, at, data, have, unwritten, time)
            if self.told is not None:
                self.told(self._columns[-1])
            return
        events = self._events
        event = Event(len(events), op, call, phase, at, data, have, unwritten, time)
        events.append(event)
        if self.told is not None:
            self.told(event)
        if self._late and not actor.wire:
            count = self._counts.get(actor.order, 0)
            self._counts[actor.order] = count + 1
            if op.deferred:
                self._issues[actor.name, count] = event

    @property
    def events(self) -> Sequence[Event]:
        """The events so far."""
        return self._events if self._columns is None else self._columns

    def pending(self, op: Op) -> Event:
        """Describe an operation that still stands at the gate; of a poll, with what it refuses."""
        have = None if op.cell is None else self._seen(op)
        data = self._peek(op).tobytes() if op.kind in POLLING else None
        return Event(None, op, *self._where(op), data, have)

    def _where(self, op: Op) -> tuple[int, str, Site]:
        """Return the call, the phase and the source lines of an operation; of a landing, those of its issue."""
        if op.actor.wire:
            issue = self._issues[op.actor.name.partition(">")[0], index_of(op.actor.name)]
            return issue.call, issue.phase, issue.at
        place = self._places[op.actor.order]
        rank = place.rank
        return place.call, rank.phase_name, place.inserted or self._site(place)

    def collective(self, rank: Rank, name: str, facts: Mapping[str, Any]) -> None:
        """Note that a task, which runs just now, takes part in a collective.

        Args:
            rank: of the task.
            name: of the collective, not empty.
            facts: what must be the same on all members, by name.

        Raises:
            MisuseError: the name is no text or empty, or a fact is something else than a text, a number, a dtype,
                None, or a tuple of these.

        """
        if not isinstance(name, str) or not name:
            raise MisuseError(f"rank {rank.actor.rank}: collective({name!r}); a collective is named by a short text")
        for key, value in facts.items():
            check_nesting(value, f"rank {rank.actor.rank}: collective(..., {key}=...)")
        said = tuple(sorted((key, _fact(rank, key, value)) for key, value in facts.items()))
        at = self._sites.here(sys._getframe(2))  # noqa: SLF001 - the caller of `Rank.collective`, which called this
        actor = rank.actor
        call = self._places[actor.order].call
        self.collectives.append(Collective(actor.name, actor.rank, rank.group, rank.members, call, name, said, at))


def _nowhere(_: Place) -> Site:
    return ()


def _fact(rank: Rank, key: str, value: Any) -> str:  # noqa: ANN401 - refused if it is no fact
    """Write a fact, the same in every process."""
    if value.__class__ is str:
        return value
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, tuple | list):
        return f"({', '.join(_fact(rank, key, part) for part in value)})"
    if value is None or isinstance(value, str | int | float | np.generic):
        return str(value)
    raise MisuseError(
        f"rank {rank.actor.rank}: collective(..., {key}={type(value).__name__}); "
        "a fact is a text, a number, a dtype, or a tuple of these"
    )
