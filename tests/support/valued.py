"""Small programs of operations on cells that give values, or wait at a peer: drawn at random, and run two ways.

On the machine, as a kernel; and by an oracle of a few lines that tries every interleaving and shares no code with it.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.machine.case import Case
from asyncsim.machine.kernel import Kernel
from asyncsim.trace.cells import Change
from asyncsim.trace.declare import Signal, Window

if TYPE_CHECKING:
    import random

DATA = Window("data", (1,), np.int64, initialised=True)
CELL = Signal("cell", (1,), np.int32)
WORD = Window("cell", (1,), np.int32, initialised=True)
COMPARISONS = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Gt": operator.gt,
    "Ge": operator.ge,
    "Lt": operator.lt,
    "Le": operator.le,
}
UPDATES = {
    "AtomicAdd": operator.add, "Set": lambda _, new: new, "And": operator.and_, "Or": operator.or_,
    "Xor": operator.xor, "Min": min, "Max": max,
}  # fmt: skip
METHODS = {
    "AtomicAdd": "fetch_add", "Set": "exchange", "And": "fetch_and", "Or": "fetch_or", "Xor": "fetch_xor",
    "Min": "fetch_min", "Max": "fetch_max",
}  # fmt: skip
KINDS = (
    "load", "store", "store", "notify", "notify", "notify", "atomic", "read", "cas", "wait", "wait", "take", "then",
    "then", "value", "test",
)  # fmt: skip


def draw(rng: random.Random, most: int, *, actors: int = 2, words: bool = False):
    """Draw a program, for each rank a list of (kind, owner, how, value, condition); words are loaded and stored."""
    programs = [[] for _ in range(actors)]
    hows = rng.sample(list(UPDATES), rng.randint(1, 2)) + ["AtomicAdd"] * rng.randint(0, 2)
    for _ in range(rng.randint(3, most)):
        condition = (rng.choice(("Ge", "Ge", "Eq", "Ne", "Lt", "Gt", "Le")), rng.choice((0, 1, 1, 2)))
        step = (
            rng.choice(KINDS + ("look", "poke", "poke") * words),
            rng.randrange(2),
            rng.choice(hows),
            rng.choice((1, 1, 2, 3, -1, 0)),
            condition,
        )
        rng.choice(programs).append(step)
    return programs


def case_of(programs, memory: str = "sc", *, words: bool = False) -> Case:
    """Make a case of a program; `words`: its cells are words of a window."""
    made = Kernel(run_drawn, memory=(DATA, WORD if words else CELL), params={"programs": programs})
    return Case(made, ranks=len(programs), calls=1, memory=memory)


async def run_drawn(rank, data, cell, *, programs):  # noqa: C901, PLR0912 - one branch a kind
    """Do what is drawn for this rank; return what it saw."""
    seen = []
    for kind, owner, how, value, (compare, amount) in programs[rank.id]:
        place = cell.at(owner).word[0] if hasattr(cell, "word") else cell.at(owner)[0]
        condition = place._condition(compare, amount)
        if kind == "load":
            seen.append(int(await rank.load(data.at(owner)[0])))
        elif kind == "store":
            await rank.store(data.at(owner)[0], value)
        elif kind == "look":
            seen.append(int(await rank.load(cell.at(owner)[0])))
        elif kind == "poke":
            await rank.store(cell.at(owner)[0], value)
        elif kind == "notify":
            await rank.notify(place, value, how)
        elif kind == "atomic":
            seen.append(await getattr(rank, METHODS[how])(place, value, order="relaxed" if value == 3 else None))
        elif kind == "read":
            seen.append(await rank.read(place))
        elif kind == "cas":
            seen.append(await rank.compare_exchange(place, amount, value))
        elif kind == "wait":
            await rank.wait(condition)
        elif kind == "take":
            await rank.wait(condition, consume=True)
        elif kind == "then":
            await rank.wait(condition, then=Change(how, value), order="acq_rel" if value == 2 else None)
        elif kind == "value":
            seen.append(await rank.wait_value(condition))
        else:
            seen.append(await rank.test(condition))
    return seen


def ends(programs):
    """Return every end of a program under sequential consistency: positions, what each saw, data, cells."""
    start = ((0,) * len(programs), ((),) * len(programs), (0, 0), (0, 0))
    known, found, left = {start}, set(), [start]
    while left:
        state = left.pop()
        after = [new for actor in range(len(programs)) if (new := _step(programs, state, actor)) is not None]
        if not after:
            found.add(state)
        for new in after:
            if new not in known:
                known.add(new)
                left.append(new)
    return found


def _step(programs, state, actor):
    """Return the state after an actor's next operation; None if it cannot go on."""
    at, seen, data, cells = state
    if at[actor] == len(programs[actor]):
        return None
    kind, owner, how, value, (compare, amount) = programs[actor][at[actor]]
    held = cells[owner]
    holds = COMPARISONS[compare](held, amount)
    if kind in ("wait", "take", "then", "value") and not holds:
        return None
    gives = {"load": data[owner], "look": held, "atomic": held, "read": held, "cas": held, "value": held, "test": holds}
    if kind in gives:
        seen = _with(seen, actor, (*seen[actor], gives[kind]))
    if kind == "store":
        data = _with(data, owner, value)
    elif kind == "poke":
        cells = _with(cells, owner, value)
    elif kind in ("notify", "atomic", "then"):
        cells = _with(cells, owner, UPDATES[how](held, value))
    elif kind == "cas" and held == amount:
        cells = _with(cells, owner, value)
    elif kind == "take":
        cells = _with(cells, owner, held - amount)
    return _with(at, actor, at[actor] + 1), seen, data, cells


def _with(values, at, new):
    return (*values[:at], new, *values[at + 1 :])
