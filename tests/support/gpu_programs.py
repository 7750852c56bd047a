"""Random programs with orders, scopes and fences: four families, each in four modes of ordering.

*monotone*: adds of 1 and waits for at least so many; *protocols*: those of `sync_programs`; *random*: soups of all
synchronising operations; *in one order*: steps that signals hold together, of which many are relaxed.
"""

from __future__ import annotations

import random

import sync_programs
from gpu_toy import ACQUIRE, BLOCK, BOTH, RANK, RELAXED, RELEASE, WORLD, Program, Step, default_order
from sync_programs import PROTOCOLS, SOUPS
from sync_toy import LOAD, STORE, Op

FAMILIES = ("monotone", "protocols", "random", "in one order")
SYNCHRONISED, FENCES, ONE_SCOPE, SCOPES = "all acq_rel", "relaxed and fences", "one scope a cell", "scopes at random"
MODES = (SYNCHRONISED, FENCES, ONE_SCOPE, SCOPES)
MOST = 9
"""Operations without fences."""
MEETINGS = 0.25
"""In so many of the programs some actors meet at a barrier."""

Streams = list[list[Op]]


def _add(cell: int, amount: int = 1) -> Op:
    return Op(cell, update="+=", operand=amount)


def _wait(cell: int, value: int = 1) -> Op:
    return Op(cell, how=">=", value=value, blocks=True)


def _data(rng: random.Random, elements: int) -> Op:
    return Op(rng.randrange(elements), data=rng.choice((LOAD, STORE)))


def _monotone(rng: random.Random) -> Streams:
    actors: Streams = [[] for _ in range(rng.choice((2, 2, 3, 3, 4)))]
    cells, elements = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2))
    for _ in range(rng.randint(4, MOST)):
        kind, cell = rng.random(), rng.randrange(cells)
        op = _data(rng, elements) if kind < 0.4 else _add(cell) if kind < 0.7 else _wait(cell, rng.choice((1, 1, 1, 2)))
        rng.choice(actors).append(op)
    return actors


def _protocol(rng: random.Random) -> Streams:
    family = rng.choice([name for name in PROTOCOLS if "arrival" not in name])
    program = sync_programs.random_program(family, rng)
    actors = [list(ops) for ops in program.actors if ops]
    while sum(map(len, actors)) > MOST:
        max(actors, key=len).pop()
    return actors


def _soup(rng: random.Random) -> Streams:
    program = sync_programs.random_program(rng.choice([*SOUPS]), rng)
    actors = [[op for op in ops if not op.always] for ops in program.actors]
    return [ops for ops in actors if ops]


def _in_one_order(rng: random.Random) -> Streams:
    actors: Streams = [[] for _ in range(rng.choice((2, 3, 3)))]
    cells, elements = rng.choice((1, 2, 3)), rng.choice((1, 1, 2))
    given = [0] * cells
    last = rng.randrange(len(actors))
    while sum(map(len, actors)) < MOST - 2:
        actor = rng.randrange(len(actors))
        if actor != last and rng.random() < 0.9:
            cell = rng.randrange(cells)
            given[cell] += 1
            actors[last].append(_add(cell))
            actors[actor].append(_wait(cell, given[cell]))
        actors[actor].append(_work(rng, cells, elements, given))
        last = actor
    return [ops for ops in actors if ops]


def _work(rng: random.Random, cells: int, elements: int, given: list[int]) -> Op:
    """Return what an actor does when it is its turn; mostly data, now and then another kind of update."""
    kind, cell = rng.random(), rng.randrange(cells)
    if kind < 0.6:
        return _data(rng, elements)
    if kind < 0.7:
        return Op(cell, gives="value")
    if kind < 0.8:
        given[cell] += 1
        return Op(cell, update="+=", operand=1, gives=rng.choice(("", "value")))
    if kind < 0.9:
        given[cell] = max(given[cell], 2)
        return Op(cell, update=rng.choice((":=", "max")), operand=given[cell])
    return Op(cell, how=rng.choice(("<=", ">=", "==")), value=given[cell], blocks=True)


_DRAWS = dict(zip(FAMILIES, (_monotone, _protocol, _soup, _in_one_order), strict=True))


def random_program(family: str, mode: str, rng: random.Random) -> Program:
    """Draw a program of a family, with orders and scopes of a mode."""
    actors = [ops for ops in _DRAWS[family](rng) if ops] or [[_add(0)]]
    cells = 1 + max((op.place for ops in actors for op in ops if not op.data), default=-1)
    scoped = mode in (ONE_SCOPE, SCOPES)
    homes = tuple((rng.randrange(2), rng.randrange(2)) if scoped else (actor, 0) for actor in range(len(actors)))
    of_cell = [rng.choice((BLOCK, RANK, RANK, WORLD)) if scoped else WORLD for _ in range(cells)]
    steps: list[tuple[Step, ...]] = []
    for ops in actors:
        own: list[Step] = []
        for op in ops:
            own += _fences(rng, mode, of_cell)
            own.append(_step(rng, mode, op, of_cell))
        steps.append(tuple(own))
    if len(steps) > 1 and rng.random() < MEETINGS:
        rounds = rng.choice((1, 1, 1, 2))
        for actor in rng.sample(range(len(steps)), rng.choice((2, 2, len(steps)))):
            for _ in range(rounds):
                steps[actor] = _with_barrier(rng, steps[actor])
    starts = tuple(rng.choice((0, 0, 0, 1)) if family == "random" else 0 for _ in range(cells))
    return Program(tuple(steps), homes, starts)


def _with_barrier(rng: random.Random, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    at = rng.randint(0, len(steps))
    return (*steps[:at], Step(None, barrier=0), *steps[at:])


def _step(rng: random.Random, mode: str, op: Op, of_cell: list[str]) -> Step:
    order = default_order(op)
    if op.data:
        return Step(op, order)
    if mode != SYNCHRONISED and rng.random() < 0.45:
        order = RELAXED
    elif op.update and (op.how or op.gives) and mode != SYNCHRONISED:
        order = rng.choice((BOTH, BOTH, ACQUIRE, RELEASE))
    scope = of_cell[op.place]
    if mode == SCOPES and rng.random() < 0.5:
        scope = rng.choice((BLOCK, RANK, WORLD))
    return Step(op, order, scope)


def _fences(rng: random.Random, mode: str, of_cell: list[str]) -> list[Step]:
    if mode == SYNCHRONISED or rng.random() > 0.15:
        return []
    scope = rng.choice(of_cell) if mode != SCOPES and of_cell else rng.choice((BLOCK, RANK, WORLD))
    return [Step(None, rng.choice((ACQUIRE, RELEASE, BOTH)), scope if mode in (ONE_SCOPE, SCOPES) else WORLD)]


def program_number(family: str, mode: str, number: int) -> Program:
    """Return always the same program for the same family, mode and number."""
    return random_program(family, mode, random.Random(f"{family} {mode} {number}"))  # noqa: S311 - dice, no secret


__all__ = ["FAMILIES", "MODES", "program_number"]
