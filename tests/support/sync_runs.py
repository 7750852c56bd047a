"""Runs of toy programs of any synchronising operations, as traces: played by the oracle, or made by the machine."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sync_brute import COMPARE, replay, start_of, step
from sync_toy import LOAD, NOTHING

from asyncsim.machine.case import Case
from asyncsim.machine.kernel import Kernel
from asyncsim.machine.simulate import simulate
from asyncsim.trace.cells import Change
from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.event import COMPLETE, DEADLOCK, Event, Footer, Header, Trace
from asyncsim.trace.kinds import (
    ARRIVE,
    ATOMIC,
    COMPARE_EXCHANGE,
    NOTIFY,
    READ_CELL,
    REMOTE_LOAD,
    REMOTE_STORE,
    TEST,
    WAIT,
)
from asyncsim.trace.kinds import LOAD as DO_LOAD
from asyncsim.trace.kinds import STORE as DO_STORE
from asyncsim.trace.op import Op as Operation
from asyncsim.trace.op import SyncOp
from asyncsim.trace.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sync_brute import State
    from sync_toy import Op, Program

    from asyncsim.machine.rank import Rank
    from asyncsim.trace.region import Cell
    from asyncsim.trace.world import Actor, WindowView

HOWS = dict(zip(("==", "!=", ">", ">=", "<", "<="), ("Eq", "Ne", "Gt", "Ge", "Lt", "Le"), strict=True))
UPDATES = {"+=": "AtomicAdd", ":=": "Set", "|=": "Or", "&=": "And", "^=": "Xor", "max": "Max", "min": "Min"}


def memory_of(program: Program) -> tuple[Window | Signal, ...]:
    """Return what a program touches: its elements, and a signal of one cell for each of its cells."""
    data = Window("data", (max(len(program.elements), 1),), np.int64, initialised=True)
    cells = (
        Signal(f"cell{number}", (1,), f"int{program.bits}", start=start, wrap=True)
        for number, start in enumerate(program.starts)
    )
    return (data, *cells)


def kind_of(op: Op) -> str:
    """Return the kind of a synchronising operation."""
    if op.always:
        return ARRIVE
    if op.is_cas:
        return COMPARE_EXCHANGE
    if op.how:
        return WAIT if op.blocks else TEST
    if op.gives == NOTHING:
        return NOTIFY
    return ATOMIC if op.update else READ_CELL


def operation(program: Program, world: World, actor: int, op: Op) -> Operation:
    """Return what a rank stands at the gate with."""
    who = world.actors[actor]
    views = world.views(actor)
    if op.data:
        own = program.elements[op.place] == actor
        region = views[0].at(program.elements[op.place])[op.place]
        kind = (DO_LOAD if own else REMOTE_LOAD) if op.data == LOAD else (DO_STORE if own else REMOTE_STORE)
        return Operation(who, kind, region.reads if op.data == LOAD else region.writes)
    cell = views[1 + op.place].at(program.cells[op.place])[0]
    kind = kind_of(op)
    how, amount = (HOWS[op.how], op.value) if op.how else (UPDATES.get(op.update, ""), op.operand)
    update, operand = (UPDATES[op.update], op.operand) if op.how and op.update else ("", 0)
    return SyncOp(
        who, kind, cell=cell, how=how, amount=amount, update=update, operand=operand,
        result=op.blocks and op.gives != NOTHING,
    )  # fmt: skip


Lasts = dict[tuple[int, int], list[int]]
"""Who arrives last where: by the cell and the value that the last one finds there, of one meeting after the other."""


def played(program: Program, seed: int) -> tuple[Trace, State]:
    """Play a program by dice, and return the trace of it and where it ended."""
    run = played_with(program, seed, {})
    assert run is not None
    return run


def in_calls(program: Program, calls: int) -> Program | None:
    """Return what a program does so often, thresholds and Sets growing by what a call adds to a cell.

    None: a call by itself may not come to its end, so that nobody knows what it adds.
    """
    trace, end = played(program, 0)
    if trace.footer is None or trace.footer.ending != COMPLETE:
        return None
    grows = [after - before for before, after in zip(program.starts, end.cells, strict=True)]

    def later(op: Op, call: int) -> Op:
        if op.data:
            return op
        more = call * grows[op.place]
        level = op.update in (":=", "max", "min")
        return replace(op, value=op.value + more if op.how else 0, operand=op.operand + more if level else op.operand)

    return replace(
        program, actors=tuple(tuple(later(op, n) for n in range(calls) for op in ops) for ops in program.actors)
    )


def played_call_by_call(program: Program, calls: int, seed: int) -> Trace | None:
    """Play a program that `in_calls` made, nobody beginning a call before all have ended the last; None: it hangs."""
    lengths = [len(ops) // calls for ops in program.actors]
    run = played_with(program, seed, {}, lengths)
    if run is None or run[0].footer is None or run[0].footer.ending != COMPLETE:
        return None
    trace = run[0]
    trace.header.calls = calls
    at: Counter[str] = Counter()
    for event in trace.events:
        name = event.op.actor.name
        event.call = event.op.call = at[name] // lengths[int(name)]
        at[name] += 1
    return trace


def played_with(program: Program, seed: int, lasts: Lasts, lengths: Sequence[int] = ()) -> tuple[Trace, State] | None:
    """Play a program by dice, but so that these actors arrive last; return None if that cannot be.

    With `lengths` nobody begins its next so many operations before all have ended theirs.
    """
    rng = random.Random(seed)  # noqa: S311 - dice, no secret
    world = World(len(program.actors), memory_of(program))
    header = Header("toy", "", world, 1, "sc", 0, "dice")
    state = start_of(program)
    events: list[Event] = []
    ops = [[operation(program, world, actor, op) for op in ops] for actor, ops in enumerate(program.actors)]
    ended: Counter[tuple[int, int]] = Counter()
    while ready := [actor for actor in range(len(ops)) if step(program, state, actor) is not None]:
        ready = [actor for actor in ready if not _is_early(program, state, actor, lasts, ended)]
        if lengths:
            call = min(at // n for at, n in zip(state.positions, lengths, strict=True) if n)
            ready = [actor for actor in ready if state.positions[actor] < (call + 1) * lengths[actor]]
        if not ready:
            return None
        actor = rng.choice(ready)
        if _ends(program, state, actor):
            ended[_meeting(program, state, actor)] += 1
        after = step(program, state, actor)
        assert after is not None
        op, now = ops[actor][state.positions[actor]], program.actors[actor][state.positions[actor]]
        have = None if now.data else (after[0] if op.kind == NOTIFY else state).cells[now.place]
        value = after[0].memory[now.place].to_bytes(8, "little") if now.data else None
        events.append(Event(len(events), op, 0, "", ("toy.py:1",), value, have))
        state = after[0]
    pending = [
        Event(None, ops[actor][at], 0, "", ("toy.py:1",), None, state.cells[program.actors[actor][at].place])
        for actor, at in enumerate(state.positions)
        if at < len(ops[actor])
    ]
    ending = DEADLOCK if pending else COMPLETE
    return Trace(header, events, Footer(ending, [], pending)), state


def unordered(program: Program) -> Trace:
    """Return a trace with all operations of a program, actor by actor, as if nothing had to wait: of no run."""
    world = World(len(program.actors), memory_of(program))
    ops = [operation(program, world, actor, op) for actor, ops in enumerate(program.actors) for op in ops]
    events = [Event(step, op, 0, "", ("toy.py:1",), None, 0) for step, op in enumerate(ops)]
    return Trace(Header("toy", "", world, 1, "sc", 0, "dice"), events, Footer(COMPLETE, [], []))


def _ends(program: Program, state: State, actor: int) -> bool:
    """Say whether an actor is about to arrive as the last."""
    op = program.actors[actor][state.positions[actor]]
    return op.always and state.cells[op.place] == op.value


def _meeting(program: Program, state: State, actor: int) -> tuple[int, int]:
    op = program.actors[actor][state.positions[actor]]
    return op.place, op.value


def _is_early(program: Program, state: State, actor: int, lasts: Lasts, ended: Counter[tuple[int, int]]) -> bool:
    """Say whether an actor would arrive in the wrong place: the last one too early, or another one as the last."""
    op = program.actors[actor][state.positions[actor]]
    meeting = _meeting(program, state, actor)
    last = lasts.get(meeting, [])
    if not op.always or ended[meeting] >= len(last):
        return False
    return _ends(program, state, actor) == (actor != last[ended[meeting]])


class _Dice:
    """Chooses among the ready operations with equal chances."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - dice, no secret

    def begin(self, actors: Sequence[Actor]) -> None:
        """Need to know nothing of the run."""

    def choose(self, ready: Sequence[Operation]) -> Operation:
        """Return one of them."""
        return self._rng.choice(ready)


def kernel_of(program: Program, *, words: bool = False) -> Kernel:
    """Make a kernel of a program: operation i of actor a is step i of that rank's stream; it returns what they gave.

    With `words` its cells are words of windows, which begin with 0.
    """
    memory = memory_of(program)
    if words:
        cells = (Window(signal.name, (1,), f"int{program.bits}", initialised=True) for signal in memory[1:])
        memory = (memory[0], *cells)
    return Kernel(run_program, memory=memory, params={"program": program, "words": words})


async def run_program(rank: Rank, data: WindowView, *cells: Any, program: Program, words: bool) -> list[int]:
    """Do what the program says of this rank."""
    got: list[int] = []
    last = False
    for index, op in enumerate(program.actors[rank.id]):
        if op.only and not last:
            continue
        if op.data:
            place = data.at(program.elements[op.place])[op.place]
            if op.data == LOAD:
                value = int(await rank.load(place))
                got += [] if op.only else [value]
            else:
                await rank.store(place, program.writes(rank.id, index))
        else:
            place = cells[op.place].at(program.cells[op.place])
            gives = await _synchronise(rank, place.word[0] if words else place[0], op)
            last = bool(gives) if op.always else last
            got += [] if gives is None or op.only or not op.gives else [int(gives)]
    return got


_RESULTS = {
    "AtomicAdd": "fetch_add", "Set": "exchange", "Or": "fetch_or", "And": "fetch_and", "Xor": "fetch_xor",
    "Max": "fetch_max", "Min": "fetch_min",
}  # fmt: skip


async def _synchronise(rank: Rank, cell: Cell, op: Op) -> int | None:  # noqa: PLR0911 - one for each kind
    kind = kind_of(op)
    condition: Any = COMPARE[op.how](cell, op.value) if op.how else None
    update = UPDATES.get(op.update, "")
    if kind == ARRIVE:
        return await rank.arrive(cell, of=op.value + 1)
    if kind == COMPARE_EXCHANGE:
        return await rank.compare_exchange(cell, op.value, op.operand)
    if kind == TEST:
        return await rank.test(condition)
    if kind == WAIT:
        then = Change(update, op.operand) if update else None
        if op.gives:
            return await rank.wait_value(condition, then=then)
        await rank.wait(condition, then=then)
        return None
    if kind == NOTIFY:
        await rank.notify(cell, op.operand, update)
        return None
    if kind == READ_CELL:
        return await rank.read(cell)
    return await getattr(rank, _RESULTS[update])(cell, op.operand)


def made(program: Program, seed: int, *, words: bool = False) -> tuple[Trace, State]:
    """Run a program on the machine, and check that it gives what the oracle gives on the same path."""
    case = Case(kernel_of(program, words=words), ranks=len(program.actors), calls=1, memory="sc")
    run = simulate(case, _Dice(seed), record=f"random:seed={seed}")
    assert run.trace is not None
    final = replay(program, map(int, run.choices))
    unfinished = final.positions != tuple(map(len, program.actors))
    assert run.ending == (DEADLOCK if unfinished else COMPLETE), program
    for rank, output in enumerate(run.outputs[0]):
        assert not isinstance(output, list) or tuple(output) == final.got[rank], (
            f"results differ from the oracle's: {program}"
        )
    return run.trace, final
