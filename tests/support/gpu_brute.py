"""The oracle for order and scope: every execution of a program is tried, also those that are no interleavings.

Updates without a result land late, each once for all; what reads without changing may get an older version, but none
older than the newest that its actor knows; happens-before is program order and what a release and an acquire order
whose scopes include each other. It shares no code with asyncsim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_toy import WORLD
from sync_brute import COMPARE, UPDATE
from sync_toy import ANSWER, NOTHING, STORE, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_toy import Program

Pair = frozenset[tuple[int, int]]
Clock = tuple[int, ...]
"""Of each actor, how many of its operations are known."""


class Spot(NamedTuple):
    """A release: by whom, with which scope, what is known there, and the versions that were seen by then."""

    actor: int
    scope: str
    clock: Clock
    floors: tuple[int, ...]


class Version(NamedTuple):
    """What a cell holds after an update, and the releases that are seen with it."""

    value: int
    actor: int
    index: int
    scope: str
    spots: frozenset[Spot]


class Late(NamedTuple):
    """An update that has not landed."""

    index: int
    spots: frozenset[Spot]


class State(NamedTuple):
    """A state: positions, versions of each cell, and of each actor what is late, known, seen, fenced and was got.

    `met` has of each barrier that was passed, by an actor and its step there, what all knew when they had come.
    """

    at: tuple[int, ...]
    cells: tuple[tuple[Version, ...], ...]
    late: tuple[tuple[Late, ...], ...]
    clocks: tuple[Clock, ...]
    floors: tuple[tuple[int, ...], ...]
    fences: tuple[frozenset[Spot], ...]
    unfenced: tuple[frozenset[Spot], ...]
    got: tuple[tuple[int, ...], ...]
    met: frozenset[tuple[int, int, Clock, tuple[int, ...]]]


class Truth(NamedTuple):
    """All that brute force knows of a program.

    Args:
        ends: in how many ways positions, cells and results can come out.
        hangs: some execution does not come to all ends.
        races: pairs of conflicting data accesses that some execution does not order.
        scopes: pairs of operations on a cell, one an update, whose scopes do not include each other, likewise.
        states: how many states there are.

    """

    ends: int
    hangs: bool
    races: frozenset[Pair]
    scopes: frozenset[Pair]
    states: int


def explore(program: Program, *, limit: int = 60_000) -> Truth | None:
    """Try every execution; None: there are more than `limit` states."""
    actors = len(program.actors)
    nothing: frozenset[Spot] = frozenset()
    start = State(
        (0,) * actors, tuple((Version(value, -1, -1, "", nothing),) for value in program.starts), ((),) * actors,
        ((0,) * actors,) * actors, ((0,) * len(program.starts),) * actors, (nothing,) * actors, (nothing,) * actors,
        ((),) * actors, frozenset(),
    )  # fmt: skip
    seen, stack = {start}, [start]
    ends: set[object] = set()
    races: set[Pair] = set()
    scopes: set[Pair] = set()
    hangs = False
    lengths = tuple(map(len, program.actors))
    while stack:
        state = stack.pop()
        after = [each for actor in range(actors) for each in _after(program, state, actor)]
        if not after:
            ends.add((state.at, tuple(cell[-1].value for cell in state.cells), state.got))
            hangs |= state.at != lengths
        for actor, steps in enumerate(program.actors):
            if state.at[actor] < len(steps):
                _meet(program, state, actor, races, scopes)
        for new in after:
            if new not in seen:
                seen.add(new)
                stack.append(new)
        if len(seen) > limit:
            return None
    return Truth(len(ends), hangs, frozenset(races), frozenset(scopes), len(seen))


def _put(tuple_: tuple, at: int, value: object) -> tuple:
    return (*tuple_[:at], value, *tuple_[at + 1 :])


def _after(program: Program, state: State, actor: int) -> Iterator[State]:
    """Yield the states after what an actor, or what it left to land, can do next."""
    for late in state.late[actor]:
        if _lands(program, state, actor, late):
            state_ = state._replace(
                late=_put(state.late, actor, tuple(each for each in state.late[actor] if each is not late))
            )
            yield _updated(program, state_, actor, late)
    if state.at[actor] < len(program.actors[actor]):
        for _, new in _done(program, state, actor):
            at = state.at[actor]
            clock = _put(new.clocks[actor], actor, at + 1)
            yield new._replace(at=_put(new.at, actor, at + 1), clocks=_put(new.clocks, actor, clock))


def _before(program: Program, actor: int, index: int) -> int:
    """Return the operation of the actor before which all of its own must have landed, for an update to take effect."""
    steps = program.actors[actor]
    if steps[index].releases and steps[index].scope == WORLD:
        return index
    full = [n for n in range(index) if steps[n].op is None and steps[n].releases and steps[n].scope == WORLD]
    return max(full, default=0)


def _lands(program: Program, state: State, actor: int, late: Late) -> bool:
    steps = program.actors[actor]
    before = _before(program, actor, late.index)
    return not any(
        other.index < late.index and (other.index < before or steps[other.index].op.place == steps[late.index].op.place)
        for other in state.late[actor]
    )


def _updated(program: Program, state: State, actor: int, late: Late) -> State:
    """Return the state after an update has taken effect, for all."""
    index, spots = late
    step = program.actors[actor][index]
    op = step.op
    cell = state.cells[op.place]
    last = cell[-1]
    if step.hands_on and last.actor >= 0 and program.include(actor, step.scope, last.actor, last.scope):
        spots |= last.spots
    version = Version(UPDATE[op.update](last.value, op.operand), actor, index, step.scope, spots)
    floors = _put(state.floors, actor, _put(state.floors[actor], op.place, len(cell)))
    return state._replace(cells=_put(state.cells, op.place, (*cell, version)), floors=floors)


def _done(program: Program, state: State, actor: int) -> Iterator[tuple[int, State]]:
    """Yield what the actor's next operation can lead to; the version it sees, or -1, comes first."""
    at = state.at[actor]
    steps = program.actors[actor]
    step = steps[at]
    op = step.op
    if op is not None and op.data:
        yield -1, state
        return
    if step.barrier >= 0:
        yield from ((-1, new) for new in _meeting(program, state, actor))
        return
    if op is None:
        yield from ((-1, new) for new in _fenced(program, state, actor))
        return
    if step.is_pure:
        spots = state.fences[actor]
        if step.releases:
            spots |= {_spot(state, actor, at, step.scope)}
        yield -1, state._replace(late=_put(state.late, actor, (*state.late[actor], Late(at, spots))))
        return
    before = _before(program, actor, at) if step.updates else 0
    if any(late.index < before or steps[late.index].op.place == op.place for late in state.late[actor]):
        return
    cell = state.cells[op.place]
    clock = state.clocks[actor]
    known = [n for n, each in enumerate(cell) if each.actor >= 0 and clock[each.actor] > each.index]
    floor = max(state.floors[actor][op.place], *known, 0) if known else state.floors[actor][op.place]
    for n in range(len(cell) - 1 if step.updates else floor, len(cell)):
        yield from ((n, new) for new in _on_version(program, state, actor, n))


def _fenced(program: Program, state: State, actor: int) -> Iterator[State]:
    at = state.at[actor]
    step = program.actors[actor][at]
    new: State | None = state
    if step.acquires:
        new = _joined(program, state, actor, step.scope, state.unfenced[actor])
    if new is not None and step.releases:
        spot = _spot(new, actor, at, step.scope)
        new = new._replace(fences=_put(new.fences, actor, new.fences[actor] | {spot}))
    if new is not None:
        yield new


def _meeting(program: Program, state: State, actor: int) -> Iterator[State]:
    """Yield the state after an actor goes on from a barrier: it knows what all knew that came, and that has landed."""
    parties = program.meeting(actor, state.at[actor])
    first = min(parties)
    known = [(clock, floors) for one, index, clock, floors in state.met if (one, index) == (first, parties[first])]
    if not known:
        if any(state.at[other] != index or index == len(program.actors[other]) for other, index in parties.items()):
            return
        clocks, floors = ([each[other] for other in parties] for each in (state.clocks, state.floors))
        known = [(tuple(map(max, zip(*clocks, strict=True))), tuple(map(max, zip(*floors, strict=True))))]
    clock, floor = known[0]
    if any(late.index < clock[other] for other, lates in enumerate(state.late) if other != actor for late in lates):
        return
    yield state._replace(
        clocks=_put(state.clocks, actor, clock), floors=_put(state.floors, actor, floor),
        met=state.met | {(first, parties[first], clock, floor)},
    )  # fmt: skip


def _on_version(program: Program, state: State, actor: int, n: int) -> Iterator[State]:
    at = state.at[actor]
    step = program.actors[actor][at]
    op, version = step.op, state.cells[step.op.place][n]
    holds = not op.how or COMPARE[op.how](version.value, op.value)
    if op.blocks and not holds:
        return
    new = state._replace(floors=_put(state.floors, actor, _put(state.floors[actor], op.place, n)))
    if version.actor >= 0 and program.include(actor, step.scope, version.actor, version.scope):
        if step.acquires:
            joined = _joined(program, new, actor, step.scope, version.spots)
            if joined is None:
                return
            new = joined
        new = new._replace(unfenced=_put(new.unfenced, actor, new.unfenced[actor] | version.spots))
    if step.updates and holds:
        spots = new.fences[actor]
        if step.releases:
            spots |= {_spot(new, actor, at, step.scope)}
        new = _updated(program, new, actor, Late(at, spots))
    gives: tuple[int, ...] = {NOTHING: (), ANSWER: (int(holds),), VALUE: (version.value,)}[op.gives]
    yield new._replace(got=_put(new.got, actor, new.got[actor] + gives))


def _spot(state: State, actor: int, at: int, scope: str) -> Spot:
    return Spot(actor, scope, _put(state.clocks[actor], actor, at + 1), state.floors[actor])


def _joined(program: Program, state: State, actor: int, scope: str, spots: frozenset[Spot]) -> State | None:
    """Return the state after an acquire; None: what it acquires has not landed yet."""
    clock, floors = state.clocks[actor], state.floors[actor]
    for spot in spots:
        if program.include(actor, scope, spot.actor, spot.scope):
            clock = tuple(map(max, clock, spot.clock))
            floors = tuple(map(max, floors, spot.floors))
    for other, lates in enumerate(state.late):
        if other != actor and any(late.index < clock[other] for late in lates):
            return None
    return state._replace(clocks=_put(state.clocks, actor, clock), floors=_put(state.floors, actor, floors))


def _meet(program: Program, state: State, actor: int, races: set[Pair], scopes: set[Pair]) -> None:
    """Note what the actor's next operation races with, of what was done before; its own acquire counts."""
    at = state.at[actor]
    step = program.actors[actor][at]
    if step.op is None:
        return
    earlier = [
        (other, index)
        for other, position in enumerate(state.at)
        if other != actor
        for index in range(position)
        if _conflict(program, (actor, at), (other, index))
    ]
    if not earlier:
        return
    for _, new in _done(program, state, actor):
        for other, index in earlier:
            if new.clocks[actor][other] <= index:
                if step.op.data:
                    races.add(frozenset(((actor, at), (other, index))))
                elif _has_updated(program, new, actor, at) or _has_updated(program, new, other, index):
                    scopes.add(frozenset(((actor, at), (other, index))))


def _has_updated(program: Program, state: State, actor: int, index: int) -> bool:
    """Say whether an operation that was done has changed its cell, or will: what compares first may not."""
    step = program.actors[actor][index]
    return step.is_pure or any((each.actor, each.index) == (actor, index) for each in state.cells[step.op.place])


def _conflict(program: Program, x: tuple[int, int], y: tuple[int, int]) -> bool:
    """Say whether two operations race unless something orders them."""
    one, other = (program.actors[actor][index] for actor, index in (x, y))
    if one.op is None or other.op is None or one.op.place != other.op.place:
        return False
    if one.op.data and other.op.data:
        return STORE in (one.op.data, other.op.data)
    if one.op.data or other.op.data or not (one.updates or other.updates):
        return False
    return not program.include(x[0], one.scope, y[0], other.scope)
