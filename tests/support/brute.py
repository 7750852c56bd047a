"""The oracle: what a toy program can do, found by trying every interleaving.

It shares no code with asyncsim, neither with its machine nor with its analysis, and knows nothing
of frontiers or clocks: it steps, remembers the states it has seen, and looks at them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from toy import ADD, COPY, LOAD, NOTIFY, POLL, SET, STORE, SYMBOLS, TAKE, TEST, WAIT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toy import Op, Program

_OPERATORS = (operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le)
COMPARE = dict(zip(SYMBOLS, _OPERATORS, strict=True))

State = tuple[Any, ...]
"""Flat, because hashing one tuple is cheap: positions, elements, cells, then one slot for each load or test."""
Step = Callable[[list[Any]], bool | None]
"""Changes the state and says True; says False, with nothing changed, if it must wait; None if the run ends there."""
Pair = frozenset[tuple[int, int]]
"""Two operations, each as (actor, index in the actor's stream)."""


class Final(NamedTuple):
    """A state that nobody can leave.

    Args:
        positions: how many operations each actor has done.
        memory: the elements.
        counters: the cells.
        loaded: what each actor's loads and tests gave, in its order; None where it did not get so far.
        overflow: a cell left its range here, in a program that does not wrap: this is no resting place.

    """

    positions: tuple[int, ...]
    memory: tuple[float, ...]
    counters: tuple[int, ...]
    loaded: tuple[tuple[float | None, ...], ...]
    overflow: bool = False


class Truth(NamedTuple):
    """All that brute force knows of a program.

    Args:
        finals: every state a run can end in.
        deadlocks: how many of them are deadlocks.
        races: the pairs of data accesses that conflict and can both be next.
        sums: the pairs of atomic adds to one element that can both be next.
        erasures: the pairs of changes of one cell, one a Set, that differ and can both be next.
        leaves: some cell can leave its range.
        states: how many states there are.

    """

    finals: frozenset[Final]
    deadlocks: int
    races: frozenset[Pair]
    sums: frozenset[Pair]
    erasures: frozenset[Pair]
    leaves: bool
    states: int


def explore(program: Program, *, limit: int = 2_000_000) -> Truth:
    """Try every interleaving.

    Raises:
        RuntimeError: there are more than `limit` states.

    """
    toy = _Toy(program)
    ends: set[Final] = set()
    stack = [toy.start]
    seen = {toy.start}
    while stack:
        state = stack.pop()
        stuck = True
        for actor, steps in enumerate(toy.code):
            at = state[actor]
            if at == len(steps):
                continue
            after = list(state)
            passed = steps[at](after)
            if passed is False:
                continue
            stuck = False
            if passed is None:
                ends.add(toy.final(after, overflow=True))
                continue
            after[actor] = at + 1
            reached = tuple(after)
            if reached not in seen:
                seen.add(reached)
                stack.append(reached)
        if stuck:
            ends.add(toy.final(state))
        if len(seen) > limit:
            raise RuntimeError(f"more than {limit} states: {program}")
    ranks = len(toy.code)
    races, sums, erasures = _meetings(program, {state[:ranks] for state in seen})
    lengths = tuple(map(len, program.streams))
    deadlocks = sum(end.positions != lengths and not end.overflow for end in ends)
    return Truth(frozenset(ends), deadlocks, races, sums, erasures, toy.left, len(seen))


def replay(program: Program, choices: Iterable[int]) -> Final:
    """Run one interleaving to its end, and return where it ends.

    Raises:
        AssertionError: an operation was chosen that must wait, or somebody could still go on at the end.

    """
    toy = _Toy(program)
    state = list(toy.start)
    for actor in choices:
        at = state[actor]
        passed = toy.code[actor][at](state)
        assert passed is not False, f"rank {actor} did operation {at}, for which it must wait: {program}"
        if passed is None:
            return toy.final(state, overflow=True)
        state[actor] = at + 1
    for actor, steps in enumerate(toy.code):
        at = state[actor]
        assert at == len(steps) or steps[at](list(state)) is False, f"rank {actor} could go on: {program}"
    return toy.final(state)


def conflict(a: Op, b: Op) -> bool:
    """Say whether the two touch one element and are neither both reads nor both atomic adds."""
    return any(x == y and not m == n != "w" for x, m in a.accesses for y, n in b.accesses)


def both_add(a: Op, b: Op) -> bool:
    """Say whether both add to one element."""
    return any(x == y and m == n == "a" for x, m in a.accesses for y, n in b.accesses)


def may_erase(a: Op, b: Op) -> bool:
    """Say whether both change one cell, and one of them sets it."""
    kinds = {a.kind, b.kind}
    return SET in kinds <= {SET, NOTIFY} and a.place == b.place and (a.kind, a.value) != (b.kind, b.value)


def _meetings(program: Program, reached: set[State]) -> tuple[frozenset[Pair], ...]:
    """Return the conflicting, the adding and the erasing pairs that are next in one of these positions.

    A data access never has to wait: that it is next is that it can go. Polls do wait, and are no data accesses.
    """
    streams = program.streams
    races: set[Pair] = set()
    sums: set[Pair] = set()
    erasures: set[Pair] = set()
    ranks = range(len(streams))
    for a in ranks:
        for b in range(a + 1, len(streams)):
            for i, j in {(at[a], at[b]) for at in reached}:
                if i == len(streams[a]) or j == len(streams[b]):
                    continue
                one, other = streams[a][i], streams[b][j]
                pair = frozenset(((a, i), (b, j)))
                if conflict(one, other):
                    races.add(pair)
                if both_add(one, other):
                    sums.add(pair)
                if may_erase(one, other):
                    erasures.add(pair)
    return frozenset(races), frozenset(sums), frozenset(erasures)


class _Toy:
    """A program made into steps on flat states."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.low, self.high = program.range
        self.left = False
        ranks = len(program.actors)
        self.memory = slice(ranks, ranks + len(program.elements))
        self.cells = slice(self.memory.stop, self.memory.stop + len(program.cells))
        slot = self.cells.stop
        self.loaded: list[slice] = []
        self.code: list[list[Step]] = []
        for actor, ops in enumerate(program.streams):
            first = slot
            steps = []
            for index, op in enumerate(ops):
                steps.append(self._step(op, program.writes(actor, index), slot))
                slot += op.kind in (LOAD, POLL, TEST)
            self.code.append(steps)
            self.loaded.append(slice(first, slot))
        nothing = (None,) * (slot - self.cells.stop)
        self.start: State = (*(0,) * ranks, *(0,) * len(program.elements), *program.starts, *nothing)

    def final(self, state: list[Any] | State, *, overflow: bool = False) -> Final:
        s = tuple(state)
        loaded = tuple(s[part] for part in self.loaded)
        return Final(s[: self.memory.start], s[self.memory], s[self.cells], loaded, overflow)

    def _step(self, op: Op, value: float, slot: int) -> Step:
        return self._data_step(op, value, slot) if op.on_data else self._cell_step(op, slot)

    def _data_step(self, op: Op, value: float, slot: int) -> Step:
        at = self.memory.start + op.place
        source = self.memory.start + op.source
        add = _add_floats if self.program.floats else operator.add

        holds = COMPARE[op.how]
        writer = self.program.writer

        def step(s: list[Any]) -> bool:
            if op.kind == POLL and not holds(writer(s[at]), op.value):
                return False
            if op.kind in (LOAD, POLL):
                s[slot] = s[at]
            elif op.kind == STORE:
                s[at] = value
            elif op.kind == COPY:
                s[at] = s[source]
            else:
                s[at] = add(s[at], value if op.kind == ADD else s[source])
            return True

        return step

    def _cell_step(self, op: Op, slot: int) -> Step:
        at = self.cells.start + op.place
        amount = op.value
        holds = COMPARE[op.how]

        def step(s: list[Any]) -> bool | None:
            if op.kind == TEST:
                s[slot] = holds(s[at], amount)
                return True
            if op.kind == NOTIFY:
                return self._put(s, at, s[at] + amount)
            if op.kind == SET:
                s[at] = amount
                return True
            if not holds(s[at], amount):
                return False
            assert op.kind in (WAIT, TAKE)
            return True if op.kind == WAIT else self._put(s, at, s[at] - amount)

        return step

    def _put(self, s: list[Any], at: int, value: float) -> bool | None:
        if not self.low <= value <= self.high:
            self.left = True
            if not self.program.wrap:
                return None
            value = (value - self.low) % (1 << self.program.bits) + self.low
        s[at] = value
        return True


def _add_floats(a: float, b: float) -> float:
    return float(np.float32(a) + np.float32(b))
