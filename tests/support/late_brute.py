"""The oracle for late memory and streams: every interleaving of steps and landings of a toy program.

It shares no code with asyncsim: neither the machine's wires nor the analysis, both of which it is there
to judge. What lands late, and in which order it may, stands in `late_rules`.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from late_rules import FETCH, LAND, SIGNAL, STEP, Layout
from late_toy import (
    COMPARING,
    COPIES,
    FENCE,
    JOIN,
    LOAD,
    NOTIFY,
    POLL,
    QUIET,
    RANK_QUIET,
    START,
    SYMBOLS,
    SYNC,
    TAKE,
    TEST,
    WRITING,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from late_rules import Landing, Pair, Rules, Step
    from late_toy import Op, Program

_OPERATORS = (operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le)
COMPARE = dict(zip(SYMBOLS, _OPERATORS, strict=True))

Pending = tuple[tuple[int, int | None], ...]
"""The landings under way that a rank issued, oldest first: which, and what it carries (None: not fetched yet)."""
State = tuple[tuple[Any, ...], tuple[Pending, ...]]
"""Flat: positions, elements, cells, one slot for each load or test; and what is under way, by rank."""


class Final(NamedTuple):
    """A state that nobody can leave: nothing is under way any more.

    Args:
        positions: how many operations each actor has done.
        memory: the elements.
        counters: the cells.
        loaded: what each actor's loads and tests gave, in its order; None where it did not get so far.

    """

    positions: tuple[int, ...]
    memory: tuple[int, ...]
    counters: tuple[int, ...]
    loaded: tuple[tuple[int | None, ...], ...]


class Truth(NamedTuple):
    """All that brute force knows of a program.

    Args:
        finals: every state a run can end in, and one way to get there.
        deadlocks: how many of them are deadlocks.
        races: the pairs of transitions that conflict and can both be next.
        states: how many states there are.

    """

    finals: dict[Final, list[Step]]
    deadlocks: int
    races: frozenset[Pair]
    states: int


class TooManyStatesError(Exception):
    """The program is too large to be explored."""


def explore(program: Program, rules: Rules, *, limit: int = 1_000_000) -> Truth:
    """Try every interleaving.

    Raises:
        TooManyStatesError: there are more than `limit` states.

    """
    toy = _Toy(program, rules)
    bit = {step: 1 << number for number, step in enumerate(toy.layout.touches)}
    ends: dict[Final, list[Step]] = {}
    together: set[int] = set()
    stack = [toy.start]
    came_from: dict[State, tuple[State, Step] | None] = {toy.start: None}
    while stack:
        state = stack.pop()
        mask = 0
        stuck = True
        for step, reached in toy.moves(state):
            stuck = False
            mask |= bit.get(step, 0)
            if reached not in came_from:
                came_from[reached] = state, step
                stack.append(reached)
        together.add(mask)
        if stuck:
            ends[toy.final(state)] = _way(came_from, state)
        if len(came_from) > limit:
            raise TooManyStatesError
    pairs = {pair: sum(bit[step] for step in pair) for pair in toy.layout.conflicts()}
    races = {pair for pair, both in pairs.items() if any(mask & both == both for mask in together)}
    lengths = tuple(map(len, program.streams))
    deadlocks = sum(end.positions != lengths for end in ends)
    return Truth(ends, deadlocks, frozenset(races), len(came_from))


def interleavings(program: Program, rules: Rules) -> int:
    """Count the runs that a program has."""
    toy = _Toy(program, rules)
    known: dict[State, int] = {}

    def count(state: State) -> int:
        if state not in known:
            known[state] = sum(count(reached) for _, reached in toy.moves(state)) or 1
        return known[state]

    return count(toy.start)


def follow(program: Program, rules: Rules, way: Iterable[Step]) -> Final:
    """Make these transitions, one after the other, and return where they end.

    Raises:
        AssertionError: one of them was not possible, or another one still is at the end.

    """
    toy = _Toy(program, rules)
    state = toy.start
    for step in way:
        moves = dict(toy.moves(state))
        assert step in moves, f"{step} is not possible, only {list(moves)}: {program}"
        state = moves[step]
    assert not list(toy.moves(state)), f"somebody could go on: {program}"
    return toy.final(state)


def _way(came_from: dict[State, tuple[State, Step] | None], state: State) -> list[Step]:
    """Return the transitions that lead to a state."""
    way = []
    while (before := came_from[state]) is not None:
        state, step = before
        way.append(step)
    return way[::-1]


class _Toy:
    """A program under a memory model."""

    def __init__(self, program: Program, rules: Rules) -> None:
        self.program = program
        self.rules = rules
        self.layout = layout = Layout(program, rules)
        self.landings = layout.landings
        self.streams = program.streams
        self.rank_of = [rank for rank, _ in program.actors]
        self.actor_at = {actor: number for number, actor in enumerate(program.actors)}
        self.memory = len(self.streams)
        self.cells = self.memory + len(program.elements)
        ops = [(actor, index, op) for actor, ops in enumerate(self.streams) for index, op in enumerate(ops)]
        answering = [(actor, index) for actor, index, op in ops if op.kind in (LOAD, POLL, TEST)]
        values = (*(0,) * self.cells, *program.starts)
        self.slots = {place: len(values) + number for number, place in enumerate(answering)}
        self.start: State = ((*values, *(None,) * len(answering)), ((),) * len(program.ranks))

    def final(self, state: State) -> Final:
        """Describe a state that nobody can leave."""
        s, pending = state
        assert not any(pending), f"something never lands: {self.program}"
        loaded = tuple(
            tuple(s[slot] for (who, _), slot in self.slots.items() if who == actor) for actor in range(self.memory)
        )
        values = slice(self.cells, self.cells + len(self.program.cells))
        return Final(s[: self.memory], s[self.memory : self.cells], s[values], loaded)

    def moves(self, state: State) -> Iterator[tuple[Step, State]]:
        """Yield every transition that is possible, and where it leads."""
        old, under_way = state
        for actor, ops in enumerate(self.streams):
            index = old[actor]
            if index < len(ops):
                s, pending = list(old), list(under_way)
                if self._step(actor, index, ops[index], s, pending):
                    s[actor] = index + 1
                    yield (actor, index, STEP), (tuple(s), tuple(pending))
        for rank, own in enumerate(under_way):
            for at, (number, value) in enumerate(own):
                landing = self.landings[number]
                if not self._may_go(own, at):
                    continue
                s, pending = list(old), list(under_way)
                if value is None:
                    assert landing.source is not None
                    fetched = self._view(landing.source, landing.issue[0], s, pending)
                    pending[rank] = (*own[:at], (number, fetched), *own[at + 1 :])
                    yield (*landing.issue, FETCH), (tuple(s), tuple(pending))
                else:
                    pending[rank] = own[:at] + own[at + 1 :]
                    self._land(landing, value, s)
                    yield (*landing.issue, SIGNAL if landing.on_cell else LAND), (tuple(s), tuple(pending))

    def _may_go(self, own: Pending, at: int) -> bool:
        number, value = own[at]
        landing = self.landings[number]
        needed = landing.fetched_after if value is None else landing.after
        if needed and any(other in needed for other, _ in own):
            return False
        if value is None or landing.on_cell:
            return True
        before = (self.landings[other] for other, _ in own[:at])
        return not any(other.local and other.place == landing.place for other in before)  # L6

    def _land(self, landing: Landing, value: int, s: list[Any]) -> None:
        at = (self.cells if landing.on_cell else self.memory) + landing.place
        s[at] = s[at] + value if landing.adds else value

    def _step(self, actor: int, index: int, op: Op, s: list[Any], pending: list[Pending]) -> bool:
        """Let an actor do its next operation; say whether it can."""
        if self.program.actors[actor][1] and not self._is_started(actor, s):
            return False
        if op.kind in (LOAD, POLL, *COMPARING):
            look = self._compare if op.kind in COMPARING else self._look
            return look(actor, index, op, s, pending)
        if op.kind in WRITING or op.kind == NOTIFY:
            self._issue(actor, index, op, s, pending)
        elif op.kind in (QUIET, RANK_QUIET):
            under_way = [number for number, _ in pending[self.rank_of[actor]]]
            return not any(op.kind == RANK_QUIET or n in self.layout.awaited[actor, index] for n in under_way)
        elif op.kind == JOIN:
            child = self.actor_at[self.rank_of[actor], op.place]
            return bool(s[child] == len(self.streams[child]))
        elif op.kind == SYNC:
            return self._have_come(actor, index, s)
        else:
            assert op.kind in (FENCE, START)
        return True

    def _look(self, actor: int, index: int, op: Op, s: list[Any], pending: list[Pending]) -> bool:
        seen = s[self.slots[actor, index]] = self._view(op.place, actor, s, pending)
        return op.kind == LOAD or bool(COMPARE[op.how](self.program.writer(seen), op.value))

    def _compare(self, actor: int, index: int, op: Op, s: list[Any], pending: list[Pending]) -> bool:
        own = [
            self.landings[number]
            for number, _ in pending[self.rank_of[actor]]
            if self.landings[number].issue[0] == actor and self.landings[number].on_cell
        ]
        own = [landing for landing in own if landing.place == op.place]
        seen = s[self.cells + op.place]
        if self.rules.forwarding:
            for landing in (each for each in own if not each.seen_late):
                seen = seen + landing.amount if landing.adds else landing.amount
        holds = COMPARE[op.how](seen, op.value)
        if op.kind == TEST:
            s[self.slots[actor, index]] = int(holds)
            return True
        if op.kind == TAKE and holds:
            if self.rules.place_order and not all(landing.adds for landing in own):
                return False  # it acts at once, and must not overtake an own Set
            s[self.cells + op.place] -= op.value
        return bool(holds)

    def _issue(self, actor: int, index: int, op: Op, s: list[Any], pending: list[Pending]) -> None:
        rank = self.rank_of[actor]
        fixed = self._view(op.source, actor, s, pending) if op.kind in COPIES else 0
        if op.kind in WRITING and op.kind not in COPIES:
            fixed = self.program.writes(actor, index)
        for number in self.layout.issued[actor, index]:
            landing = self.landings[number]
            value = landing.amount if landing.on_cell else fixed
            if not self.rules.late:
                self._land(landing, value, s)
            else:
                pending[rank] += ((number, value if landing.source is None else None),)

    def _view(self, element: int, actor: int, s: list[Any], pending: list[Pending]) -> int:
        """Return an element in the eyes of an actor."""
        value: int = s[self.memory + element]
        for number, carried in pending[self.rank_of[actor]]:
            landing = self.landings[number]
            if landing.on_cell or landing.place != element or landing.source is not None:
                continue  # a copy that is under way is seen by nobody
            assert carried is not None
            if landing.local or (self.rules.forwarding and landing.issue[0] == actor):
                value = value + carried if landing.adds else carried
        return value

    def _is_started(self, actor: int, s: list[Any]) -> bool:
        rank, stream = self.program.actors[actor]
        parent = self.actor_at[rank, 0]
        return any(op.kind == START and op.place == stream for op in self.streams[parent][: s[parent]])

    def _have_come(self, actor: int, index: int, s: list[Any]) -> bool:
        """Say whether every stream of the rank stands at its sync of the same number, or is past it."""
        meeting = sum(op.kind == SYNC for op in self.streams[actor][:index])
        for (rank, stream), other in self.actor_at.items():
            if rank == self.rank_of[actor]:
                syncs = [at for at, op in enumerate(self.streams[other]) if op.kind == SYNC]
                if meeting >= len(syncs) or s[other] < syncs[meeting]:
                    return False
                if stream and not self._is_started(other, s):
                    return False
        return True
