"""The oracle for any synchronising operation: every interleaving is tried. It shares no code with asyncsim."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple

from sync_toy import ANSWER, LOAD, NOTHING, STORE, SYMBOLS, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sync_toy import Op, Program

_OPERATORS = (operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le)
COMPARE = dict(zip(SYMBOLS, _OPERATORS, strict=True))
UPDATE = {
    "+=": operator.add, ":=": lambda _, v: v, "|=": operator.or_, "&=": operator.and_, "^=": operator.xor,
    "max": max, "min": min,
}  # fmt: skip

Pair = frozenset[tuple[int, int]]
"""Two operations, each as (actor, index in the actor's stream)."""


class State(NamedTuple):
    """A state of a program.

    Args:
        positions: how many operations each actor has done.
        memory: the elements.
        cells: their values.
        got: what each actor's loads and synchronising operations gave, in its order.
        last: of each actor, whether its last arrival told it that it is the last.

    """

    positions: tuple[int, ...]
    memory: tuple[int, ...]
    cells: tuple[int, ...]
    got: tuple[tuple[int, ...], ...]
    last: tuple[bool, ...]


class Truth(NamedTuple):
    """All that brute force knows of a program.

    Args:
        finals: every state a run can end in.
        hangs: some of them are deadlocks.
        races: the pairs of data accesses that conflict and can both be next.
        leaves: some cell can leave its range.
        states: how many states there are.

    """

    finals: frozenset[State]
    hangs: bool
    races: frozenset[Pair]
    leaves: bool
    states: int

    @property
    def ends(self) -> int:
        """In how many ways positions and cells can come out."""
        return len({(end.positions, end.cells) for end in self.finals})


def start_of(program: Program) -> State:
    """Return the state in which a program begins."""
    nothing: tuple[int, ...] = ()
    ranks = len(program.actors)
    start = State((0,) * ranks, (0,) * len(program.elements), program.starts, (nothing,) * ranks, (False,) * ranks)
    for actor in range(ranks):
        start = _past_what_is_left_out(program, start, actor)
    return start


def _past_what_is_left_out(program: Program, state: State, actor: int) -> State:
    """Let an actor that was not the last go past what the last one alone does: that is no step."""
    ops, at = program.actors[actor], state.positions[actor]
    while not state.last[actor] and at < len(ops) and ops[at].only:
        at += 1
    return state._replace(positions=(*state.positions[:actor], at, *state.positions[actor + 1 :]))


def step(program: Program, state: State, actor: int) -> tuple[State, bool] | None:
    """Let an actor do its next operation.

    Returns:
        The state after it, and whether a cell left its range; None: it must wait, or has done all.

    """
    at = state.positions[actor]
    if at == len(program.actors[actor]):
        return None
    op = program.actors[actor][at]
    memory, cells, last, left = state.memory, state.cells, state.last, False
    gives: tuple[int, ...] = ()
    if op.data == LOAD:
        gives = (memory[op.place],)
    elif op.data == STORE:
        memory = (*memory[: op.place], program.writes(actor, at), *memory[op.place + 1 :])
    else:
        now = cells[op.place]
        holds = not op.how or COMPARE[op.how](now, op.value)
        if op.blocks and not holds:
            return None
        gives = {NOTHING: (), ANSWER: (int(holds),), VALUE: (now,)}[op.gives]
        if op.update and (holds or op.always):
            new = UPDATE[op.update](now, op.operand)
            low, high = program.range
            left = not low <= new <= high
            cells = (*cells[: op.place], (new - low) % (1 << program.bits) + low, *cells[op.place + 1 :])
        if op.always:
            last = (*last[:actor], holds, *last[actor + 1 :])
    positions = (*state.positions[:actor], at + 1, *state.positions[actor + 1 :])
    got = state.got if op.only else (*state.got[:actor], state.got[actor] + gives, *state.got[actor + 1 :])
    return _past_what_is_left_out(program, State(positions, memory, cells, got, last), actor), left


def explore(program: Program, *, limit: int = 200_000) -> Truth:
    """Try every interleaving.

    Raises:
        RuntimeError: there are more than `limit` states.

    """
    start = start_of(program)
    seen, stack = {start}, [start]
    finals, leaves = set(), False
    while stack:
        state = stack.pop()
        after = [each for actor in range(len(program.actors)) if (each := step(program, state, actor)) is not None]
        if not after:
            finals.add(state)
        for new, left in after:
            leaves |= left
            if new not in seen:
                seen.add(new)
                stack.append(new)
        if len(seen) > limit:
            raise RuntimeError(f"more than {limit} states: {program}")
    lengths = tuple(map(len, program.actors))
    hangs = any(end.positions != lengths for end in finals)
    return Truth(frozenset(finals), hangs, _races(program, {state.positions for state in seen}), leaves, len(seen))


def replay(program: Program, choices: Iterable[int]) -> State:
    """Run one interleaving to its end, and return where it ends.

    Raises:
        AssertionError: an operation was chosen that must wait, or somebody could still go on at the end.

    """
    state = start_of(program)
    for actor in choices:
        after = step(program, state, actor)
        assert after is not None, (
            f"rank {actor} did operation {state.positions[actor]}, for which it must wait: {program}"
        )
        state, _ = after
    for actor in range(len(program.actors)):
        assert step(program, state, actor) is None, f"rank {actor} could go on: {program}"
    return state


def conflict(a: Op, b: Op) -> bool:
    """Say whether the two touch one element, and one of them stores."""
    return bool(a.data and b.data) and a.place == b.place and STORE in (a.data, b.data)


def _races(program: Program, reached: set[tuple[int, ...]]) -> frozenset[Pair]:
    """Return the conflicting pairs that are next in one of these positions: a data access never has to wait."""
    found: set[Pair] = set()
    for a, first in enumerate(program.actors):
        for b in range(a + 1, len(program.actors)):
            second = program.actors[b]
            for i, j in {(at[a], at[b]) for at in reached}:
                if i < len(first) and j < len(second) and conflict(first[i], second[j]):
                    found.add(frozenset(((a, i), (b, j))))
    return frozenset(found)
