"""Random toy programs in families, as a seeded generator and as a Hypothesis strategy; and toy programs as kernels."""

from __future__ import annotations

import random
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from brute import COMPARE
from hypothesis import strategies as st
from protocols import protocol
from toy import ADD, COMPARING, COPY, COPY_ADD, LOAD, NOTIFY, ON_DATA, POLL, SET, STORE, TAKE, TEST, WAIT, Op, Program

from asyncsim.machine.kernel import Kernel
from asyncsim.trace.declare import Signal, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView, WindowView


@dataclass(frozen=True, slots=True)
class Family:
    """What the operations of a program are drawn from, one as likely as another.

    Args:
        kinds: kinds of operations; name one twice to have it more often.
        compares: comparisons of waits and tests.
        adds: what others add to a cell.
        own: what its owner adds.
        expected: what a wait compares with.
        starts: start values of cells.
        ranks: how many.
        total: at most so many operations over all ranks and calls.
        cells: how many a rank owns.
        hub: only rank 0 owns cells and waits; all others notify it.
        bits, wrap, floats, calls: as of `Program`.

    """

    kinds: tuple[str, ...]
    _: KW_ONLY
    compares: tuple[str, ...] = (">=",)
    adds: tuple[int, ...] = (1, 1, 2)
    own: tuple[int, ...] = (-1, -1, 1)
    expected: tuple[int, ...] = (1, 1, 2)
    starts: tuple[int, ...] = (0, 0, 0, 1)
    ranks: tuple[int, ...] = (2, 2, 3)
    total: int = 13
    cells: int = 1
    hub: bool = False
    bits: int = 32
    wrap: bool = False
    floats: bool = False
    calls: int = 1


MOST_ELEMENTS = 7
IN_DATA = 0.7
"""How often a cell becomes an element that is polled."""
EARLY = 0.8
"""How often a wait that comes too early gives way to a notify."""

_DATA = (LOAD, STORE, LOAD, STORE, ADD, COPY)
_SYNC = (NOTIFY, NOTIFY, NOTIFY, WAIT, WAIT, WAIT)
_PLAIN = (*_DATA, *_SYNC)
_EVERY = ("==", "!=", ">", ">=", "<", "<=")
_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
_ANY = (1, 1, 2, -1)
_EITHER = (1, 1, -1, -1, 2)

SOUPS: dict[str, Family] = {
    "adds": Family(_PLAIN),
    "two calls": Family(_PLAIN, total=14, calls=2),
    "anybody subtracts": Family(_PLAIN, adds=_ANY),
    "sets": Family((*_PLAIN, SET), expected=(1, 2, 3)),
    "equal": Family(_PLAIN, compares=("==", "==", ">=")),
    "every comparison": Family((*_PLAIN, SET), compares=_EVERY, expected=(0, 1, 2)),
    "every comparison, anybody subtracts": Family(_PLAIN, compares=_EVERY, adds=_ANY, expected=(0, 1, 2)),
    "counting down": Family(
        _PLAIN, compares=("<=", "<=", "<"), adds=(-1, -1, -2), own=(1, 1, -1), expected=(-1, -1, -2, 0)
    ),
    "both directions": Family(_PLAIN, compares=_EVERY, adds=_EITHER, own=_EITHER, expected=(-1, 0, 0, 1)),
    "both directions, few cells": Family(
        (*_PLAIN, NOTIFY, SET, TAKE), compares=_EVERY, adds=_EITHER, own=_EITHER, expected=(-1, 0, 0, 1), hub=True
    ),
    "polls": Family((*_DATA, STORE, STORE, NOTIFY, WAIT, POLL, POLL, POLL)),
    "consuming waits": Family((*_PLAIN, TAKE, TAKE, TAKE)),
    "consuming, compared": Family((*_DATA, *_SYNC, TAKE, TAKE), compares=_EVERY, expected=(1, 1, 2, 0, -1)),
    "set flags": Family((*_DATA, SET, SET, SET, WAIT, WAIT, WAIT), compares=(">=", "=="), expected=(1, 2)),
    "tests": Family((*_PLAIN, TEST, TEST), compares=(">=", ">=", "==")),
    "one shared cell": Family((*_PLAIN, WAIT), ranks=(3,), adds=(1,), expected=(1, 2, 2, 3), own=(-1, 1)),
    "hub": Family((*_PLAIN, NOTIFY, LOAD), ranks=(3,), hub=True, expected=(1, 2, 2, 3), own=(-1, -1, 1)),
    "hub, set and consumed": Family((*_PLAIN, NOTIFY, SET, TAKE), ranks=(3,), hub=True, expected=(1, 2, 3)),
    "two cells": Family((*_PLAIN, NOTIFY, WAIT), cells=2, ranks=(2,)),
    "wrapping": Family(_PLAIN, bits=8, wrap=True, starts=(124, 126, -128, 0), expected=(125, 127, -128, -127)),
    "overflow": Family((*_PLAIN, TAKE), bits=8, starts=(125, 126, -128), expected=(126, 127, -127), adds=(1, 2, 60)),
    "float sums": Family((ADD, ADD, LOAD, COPY_ADD, *_SYNC), floats=True),
}
"""Any operations in any order: most of these programs race or hang."""

_STYLES: dict[str, dict[str, Any]] = {
    "protocol": {},
    "protocol, broken": {"broken": True},
    "protocol, given back": {"style": "give back"},
    "protocol, given back, broken": {"style": "give back", "broken": True},
    "protocol, consumed": {"style": "take"},
    "protocol, consumed, broken": {"style": "take", "broken": True},
    "protocol, set flags": {"style": "set"},
    "protocol, set flags, broken": {"style": "set", "broken": True},
    "protocol, equal": {"style": "equal"},
    "protocol, equal, broken": {"style": "equal", "broken": True},
    "protocol, shared cell": {"shared": True},
    "protocol, shared cell, given back": {"shared": True, "style": "give back"},
    "protocol, shared cell, broken": {"shared": True, "broken": True},
    "protocol, two calls": {"style": "give back", "calls": 2},
    "protocol, two calls, broken": {"style": "take", "calls": 2, "broken": True},
    "protocol, near the limit": {"bits": 8, "start": 124},
}


def mirrored(program: Program) -> Program:
    """Return the program with all its cells upside down: a wait for more becomes one for less."""
    actors = tuple(
        tuple(
            op
            if op.on_data
            else replace(op, value=-op.value, how=_MIRRORED.get(op.how, op.how) if op.kind in COMPARING else op.how)
            for op in ops
        )
        for ops in program.actors
    )
    return replace(program, actors=actors, starts=tuple(-start for start in program.starts))


def in_data(program: Program, rng: random.Random) -> Program:
    """Return the program with some of its cells as elements: who notified stores, who waited polls for that store."""
    numbers = [number for number, _ in enumerate(op for ops in program.actors for op in ops)]
    numbered = list(zip(numbers, (op for ops in program.actors for op in ops), strict=True))
    elements, cells = list(program.elements), range(len(program.cells))
    became: dict[int, int] = {}
    used = {op.place for _, op in numbered if op.kind == WAIT}
    for cell in cells:
        if cell in used and len(elements) < MOST_ELEMENTS and rng.random() < IN_DATA:
            became[cell] = len(elements)
            elements.append(program.cells[cell])
    stores = {cell: [n + 1 for n, op in numbered if op.kind == NOTIFY and op.place == cell] for cell in became}

    def changed(op: Op) -> Op:
        if op.on_data or op.place not in became:
            return op
        place = became[op.place]
        if op.kind != WAIT:
            return Op(STORE if op.kind == NOTIFY else LOAD, place)
        order = stores[op.place]
        if not 0 < op.value <= len(order):
            return Op(POLL, place, how="!=", value=rng.choice((0, *numbers)))
        how = rng.choice((">=", ">=", "==", "!=" if op.value == 1 else ">="))
        return Op(POLL, place, how=how, value=0 if how == "!=" else order[op.value - 1])

    actors = tuple(tuple(map(changed, ops)) for ops in program.actors)
    return replace(program, actors=actors, elements=tuple(elements))


def _flags_in_data(rng: random.Random, **style: Any) -> Program:
    return in_data(protocol(rng, **style), rng)


def _upside_down(rng: random.Random) -> Program:
    return mirrored(protocol(rng, **_STYLES[rng.choice([name for name in _STYLES if "limit" not in name])]))


PROTOCOLS: dict[str, Callable[[random.Random], Program]] = {
    **{name: partial(protocol, **options) for name, options in _STYLES.items()},
    "protocol, any, upside down": _upside_down,
    "protocol, flags in data": _flags_in_data,
    "protocol, flags in data, broken": partial(_flags_in_data, broken=True),
}
"""Programs made from an order that works, with notify after store and wait before load."""

FAMILIES: tuple[str, ...] = (*SOUPS, *PROTOCOLS)


def random_program(family: str, rng: random.Random) -> Program:
    """Draw a program of this family."""
    return PROTOCOLS[family](rng) if family in PROTOCOLS else _soup(SOUPS[family], rng)


def program_number(family: str, number: int) -> Program:
    """Return always the same program for the same family and number."""
    return random_program(family, random.Random(f"{family} {number}"))  # noqa: S311 - dice, no secret


def programs(families: tuple[str, ...] = FAMILIES) -> st.SearchStrategy[Program]:
    """Return the Hypothesis strategy of programs: the same generator, with Hypothesis rolling the dice."""
    dice = st.randoms(use_true_random=False)
    return st.builds(random_program, st.sampled_from(families), dice)


def _soup(family: Family, rng: random.Random) -> Program:
    ranks = rng.choice(family.ranks)
    elements = tuple(rng.randrange(ranks) for _ in range(rng.choice((1, 2, 2))))
    cells = tuple(rank for rank in range(1 if family.hub else ranks) for _ in range(family.cells))
    actors: list[list[Op]] = [[] for _ in range(ranks)]
    sent = set()
    for _ in range(rng.randint(6, family.total) // family.calls):
        actor = rng.randrange(ranks)
        op = _op(family, rng, actor, elements, cells)
        if op.kind in (WAIT, TAKE) and op.place not in sent and rng.random() < EARLY:
            # Nobody would come past a wait for what nobody has sent: let another rank send first.
            other = (actor + rng.randrange(1, ranks)) % ranks
            op = Op(NOTIFY, op.place, value=rng.choice(family.adds))
            actor = other
        sent.update([op.place] if op.kind in (NOTIFY, SET) else [])
        actors[actor].append(op)
    return Program(
        tuple(map(tuple, actors)), elements=elements, cells=cells,
        starts=tuple(rng.choice(family.starts) for _ in cells),
        bits=family.bits, wrap=family.wrap, floats=family.floats, calls=family.calls,
    )  # fmt: skip


def _op(family: Family, rng: random.Random, actor: int, elements: tuple[int, ...], cells: tuple[int, ...]) -> Op:
    kind = rng.choice(family.kinds)
    if kind == POLL:
        value = rng.choice((0, 0, *range(1, family.total)))
        return Op(POLL, rng.randrange(len(elements)), how=rng.choice(_EVERY), value=value)
    if kind in ON_DATA:
        place, source = rng.randrange(len(elements)), rng.randrange(len(elements))
        if kind == COPY and actor not in (elements[place], elements[source]):
            kind = LOAD  # the machine copies only to or from the own rank
        if kind == COPY_ADD and actor != elements[source]:
            kind = ADD  # and adds only from the own rank
        return Op(kind, place, source=source if kind in (COPY, COPY_ADD) else 0)
    if kind in (NOTIFY, SET):
        place = rng.randrange(len(cells))
        amounts = family.own if cells[place] == actor else family.adds
        return Op(kind, place, value=rng.choice(amounts if kind == NOTIFY else (0, 1, 2)))
    own = [cell for cell, owner in enumerate(cells) if owner == actor]
    if not own:
        return Op(LOAD, 0)
    return Op(kind, rng.choice(own), how=rng.choice(family.compares), value=rng.choice(family.expected))


def kernel_of(program: Program) -> Kernel:
    """Make a kernel of a program: operation i of actor a is step i of that rank's stream.

    A rank returns what its loads and tests gave.
    """
    dtype = np.float32 if program.floats else np.int64
    data = Window("data", (len(program.elements),), dtype, initialised=True)
    cells = (
        Signal(f"cell{number}", (1,), f"int{program.bits}", start=start, wrap=program.wrap)
        for number, start in enumerate(program.starts)
    )
    return Kernel(run_program, memory=(data, *cells), params={"program": program})


async def run_program(rank: Rank, data: WindowView, *cells: SignalView, program: Program) -> list[Any]:
    """Do what the program says of this rank."""
    ops = program.actors[rank.id]
    loaded: list[Any] = []
    for index, op in enumerate(ops):
        if op.on_data:
            await _touch(rank, data, op, program, rank.call * len(ops) + index, loaded)
        else:
            await _signal(rank, cells[op.place], op, program, loaded)
    return loaded


async def _touch(  # noqa: PLR0913, PLR0917 - one operation, with all it needs
    rank: Rank, data: WindowView, op: Op, program: Program, index: int, loaded: list[Any]
) -> None:
    place = data.at(program.elements[op.place])[op.place]
    if op.kind == LOAD:
        loaded.append(await rank.load(place))
    elif op.kind == POLL:
        loaded.append(await rank.poll(place, lambda x: COMPARE[op.how](program.writer(int(x)), op.value)))
    elif op.kind in (STORE, ADD):
        await rank.store(place, program.writes(rank.id, index), atomic="add" if op.kind == ADD else None)
    else:
        source = data.at(program.elements[op.source])[op.source]
        if op.kind == COPY_ADD:
            await rank.put(place, source, atomic="add")
        elif program.elements[op.place] == rank.id:
            await rank.get(place, source)
        else:
            await rank.put(place, source)


async def _signal(rank: Rank, signal: SignalView, op: Op, program: Program, loaded: list[Any]) -> None:
    cell = signal.at(program.cells[op.place])[0]
    if op.kind in (NOTIFY, SET):
        await rank.notify(cell, op.value, "AtomicAdd" if op.kind == NOTIFY else "Set")
        return
    condition: Any = COMPARE[op.how](cell, op.value)
    if op.kind == TEST:
        loaded.append(await rank.test(condition))
    else:
        await rank.wait(condition, consume=op.kind == TAKE)
