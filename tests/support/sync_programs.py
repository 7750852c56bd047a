"""Random programs of any synchronising operations: soups of them (R), and protocols (P), sound or with a mistake.

Each family is a few lines: what is drawn for a soup, or one round of a protocol. A protocol's program is a few
rounds of its fragment between ranks drawn anew, with data stored before and loaded behind; most are then spoilt.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sync_toy import LOAD, STORE, SYMBOLS, UPDATES, VALUE, Op, Program, arrive, cas

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 10
"""Operations over all ranks."""

Streams = list[list[Op]]


def _update(cell: int, update: str, operand: int, **more: Any) -> Op:
    return Op(cell, update=update, operand=operand, **more)


def _wait(cell: int, how: str, value: int, update: str = "", operand: int = 0) -> Op:
    return Op(cell, how=how, value=value, blocks=True, update=update, operand=operand)


# Soups: kinds of operations, one as likely as another.

_Draw = "Callable[[random.Random, int], Op]"


def _adds(rng: random.Random, cell: int) -> Op:
    return _update(cell, "+=", rng.choice((1, 1, 2, -1)))


def _ups(rng: random.Random, cell: int) -> Op:
    return _update(cell, "+=", rng.choice((1, 1, 2)))


def _sets(rng: random.Random, cell: int) -> Op:
    return _update(cell, ":=", rng.choice((0, 1, 2)))


def _kinds(rng: random.Random, cell: int) -> Op:
    return _update(cell, rng.choice(UPDATES), rng.choice((0, 1, 2, 3)))


def _bits(rng: random.Random, cell: int) -> Op:
    return _update(cell, rng.choice(("|=", "|=", "&=", "max", "max", "min", "^=")), rng.choice((0, 1, 2, 3, -1)))


def _waits(rng: random.Random, cell: int) -> Op:
    return _wait(cell, rng.choice((">=", ">=", "==")), rng.choice((0, 1, 1, 2)))


def _compares(rng: random.Random, cell: int) -> Op:
    return _wait(cell, rng.choice(SYMBOLS), rng.choice((-1, 0, 0, 1, 1, 2)))


def _steps(rng: random.Random, cell: int) -> Op:
    how, value = rng.choice(("==", "==", ">=", "<=")), rng.choice((0, 1, 1, 2))
    update, operand = rng.choice(((":=", rng.choice((0, 1, 2))), ("+=", rng.choice((1, -1)))))
    return _wait(cell, how, value, update, operand)


def _stepping(rng: random.Random, cell: int) -> Op:
    how, value = rng.choice(SYMBOLS), rng.choice((0, 1, 2, 3))
    return _wait(cell, how, value, rng.choice(UPDATES), rng.choice((0, 1, 2, 3)))


def _results(rng: random.Random, cell: int) -> Op:
    return rng.choice((
        _update(cell, "+=", rng.choice((1, 1, -1)), gives=VALUE),
        _update(cell, ":=", rng.choice((0, 1, 2)), gives=VALUE),
        cas(cell, rng.choice((0, 1, 2)), rng.choice((0, 1, 2))),
        Op(cell, gives=VALUE),
        Op(cell, how=rng.choice(SYMBOLS), value=rng.choice((0, 1, 2)), gives="answer"),
        replace(_waits(rng, cell), gives=VALUE),
        arrive(cell, rng.choice((1, 2, 3))),
    ))  # fmt: skip


def _gets(rng: random.Random, cell: int) -> Op:
    return replace(_kinds(rng, cell), gives=rng.choice(("", VALUE)))


SOUPS: dict[str, tuple[Callable[[random.Random, int], Op], ...]] = {
    "R0 wait and set": (_ups, _sets, _waits, _steps, _steps),
    "R1 both directions": (_adds, _adds, _compares, _compares),
    "R2 results": (_ups, _sets, _waits, _results, _results),
    "R3 kinds of updates": (_bits, _bits, _kinds, _waits, _compares),
    "R4 all of it": (_adds, _sets, _bits, _gets, _compares, _steps, _stepping, _results),
}


def _soup(kinds: tuple[Callable[[random.Random, int], Op], ...], rng: random.Random) -> Program:
    ranks = rng.choice((2, 2, 2, 3, 3, 4))
    cells, elements = rng.choice((1, 1, 2)), rng.choice((1, 2))
    actors: Streams = [[] for _ in range(ranks)]
    for _ in range(rng.randint(3, MOST)):
        if rng.random() < 0.35:
            op = Op(rng.randrange(elements), data=rng.choice((LOAD, STORE)))
        else:
            op = rng.choice(kinds)(rng, rng.randrange(cells))
        rng.choice(actors).append(op)
    return _program(rng, actors, elements, cells, starts=(0, 0, 0, 1, 2))


def _program(rng: random.Random, actors: Streams, elements: int, cells: int, starts: tuple[int, ...] = (0,)) -> Program:
    ranks = len(actors)
    return Program(
        tuple(map(tuple, actors)),
        elements=tuple(rng.randrange(ranks) for _ in range(elements)),
        cells=tuple(rng.randrange(ranks) for _ in range(cells)),
        starts=tuple(rng.choice(starts) for _ in range(cells)),
    )


# Protocols: one round on a cell, from a to b, the n-th there; `others` are all other ranks. What is stored before it
# and loaded behind comes from the caller.


class Draft:
    """A protocol's program in the making."""

    def __init__(self, rng: random.Random) -> None:
        """Begin with nothing."""
        self.rng = rng
        self.ranks = rng.choice((2, 2, 3, 3, 4))
        self.actors: Streams = [[] for _ in range(self.ranks)]
        self.rounds: dict[int, int] = {}
        self.pairs: dict[int, tuple[int, int]] = {}
        self.credits: dict[int, int] = {}

    def add(self, actor: int, *ops: Op) -> None:
        """Append to an actor's stream."""
        self.actors[actor] += ops

    @property
    def size(self) -> int:
        """How many operations there are."""
        return sum(map(len, self.actors))

    def pair(self, cell: int) -> tuple[int, int]:
        """Return from whom to whom this cell goes: mostly the same in every round."""
        if cell not in self.pairs or self.rng.random() < 0.1:
            first, second = self.rng.sample(range(self.ranks), 2)
            self.pairs[cell] = (first, second)
        return self.pairs[cell]

    def round(self, cell: int) -> int:
        """Return the number of the next round on this cell."""
        self.rounds[cell] = self.rounds.get(cell, -1) + 1
        return self.rounds[cell]


def _channel(draft: Draft, cell: int) -> None:
    a, b = draft.pair(cell)
    draft.add(a, Op(0, data=STORE), _wait(cell, "==", 0, ":=", 1))
    draft.add(b, _wait(cell, "==", 1, ":=", 0), Op(0, data=LOAD))


def _flag(draft: Draft, cell: int) -> None:
    a, b = draft.pair(cell)
    draft.add(a, *([_wait(cell, "==", 0)] if draft.round(cell) else []), Op(0, data=STORE), _update(cell, ":=", 1))
    draft.add(b, _wait(cell, "==", 1), Op(0, data=LOAD), _update(cell, ":=", 0))


def _sequence(draft: Draft, cell: int) -> None:
    (a, b), n = draft.pair(cell), 2 * draft.round(cell)
    draft.add(a, _wait(cell, "==", n), Op(0, data=STORE), _update(cell, ":=", n + 1))
    draft.add(b, _wait(cell, "==", n + 1, *((":=", n + 2) if draft.rng.random() < 0.5 else ("+=", 1))))


def _countdown(draft: Draft, cell: int) -> None:
    (a, b), rng = draft.pair(cell), draft.rng
    others = [rank for rank in range(draft.ranks) if rank != b][: rng.choice((1, 2))]
    draft.add(b, _update(cell, "+=", len(others)) if rng.random() < 0.5 else _update(cell, ":=", len(others)))
    draft.add(b, *(_update(3, "+=", 1) for _ in others))
    for rank in others:
        draft.add(rank, _wait(3, ">=", 1), Op(0, data=STORE if rank == a else LOAD), _update(cell, "+=", -1))
    draft.add(b, _wait(cell, rng.choice(("==", "<=")), 0), Op(0, data=LOAD))


def _max(draft: Draft, cell: int) -> None:
    (a, b), n = draft.pair(cell), draft.round(cell) + 1
    draft.add(a, Op(n % 2, data=STORE), _update(cell, "max", n))
    draft.add(b, _wait(cell, draft.rng.choice((">=", ">=", "==")), n), Op(n % 2, data=LOAD))


def _mask(draft: Draft, cell: int) -> None:
    (_, b), rng = draft.pair(cell), draft.rng
    others = [rank for rank in range(draft.ranks) if rank != b]
    mask = 0
    for bit, rank in enumerate(others):
        mask |= 1 << bit
        draft.add(rank, Op(bit % 2, data=STORE), _update(cell, "|=", 1 << bit))
    draft.add(b, _wait(cell, rng.choice(("==", "==", ">=")), mask), Op(rng.randrange(2), data=LOAD))
    if rng.random() < 0.5:
        draft.add(b, _update(cell, "&=", 0) if rng.random() < 0.5 else _update(cell, "^=", mask))


def _index(draft: Draft, cell: int) -> None:
    (a, b), rng = draft.pair(cell), draft.rng
    draft.add(a, Op(0, data=STORE), _update(cell, "+=", 1, gives=VALUE))
    draft.credits[cell] = draft.credits.get(cell, 0) + 1
    draft.add(b, _wait(cell, ">=", draft.credits[cell]), Op(0, data=LOAD))
    if rng.random() < 0.5:
        draft.add(b, _update(cell, "+=", 1, gives=VALUE))
        draft.credits[cell] += 1


def _exchange(draft: Draft, cell: int) -> None:
    (a, b), n, rng = draft.pair(cell), draft.round(cell), draft.rng
    draft.add(
        a, Op(0, data=STORE), cas(cell, n, n + 1) if rng.random() < 0.6 else _update(cell, ":=", n + 1, gives=VALUE)
    )
    draft.add(b, _wait(cell, "==", n + 1) if rng.random() < 0.6 else replace(_wait(cell, ">=", n + 1), gives=VALUE))
    if rng.random() < 0.6:
        draft.add(b, Op(0, data=LOAD), cas(cell, n + 1, n + 1 + draft.rng.choice((0, 0, 1))))


def _window(draft: Draft, cell: int) -> None:
    (a, b), rng = draft.pair(cell), draft.rng
    width = rng.choice((0, 1, 1, 2))
    if rng.random() < 0.7:
        draft.add(a, _wait(cell, "<=", width))
    draft.add(a, Op(draft.round(cell) % 2, data=STORE), _update(cell, "+=", 1))
    draft.add(b, _wait(cell, ">=", 1, "+=", -1), Op(draft.rounds[cell] % 2, data=LOAD))


def _ticket(draft: Draft, cell: int) -> None:
    rng, n = draft.rng, draft.rounds.get(cell, 0)
    for rank in range(draft.ranks):
        draft.add(rank, *([Op(rank % 2, data=STORE)] if rng.random() < 0.6 else []), arrive(cell, draft.ranks + n))
    draft.rounds[cell] = n + draft.ranks
    if rng.random() < 0.5:
        draft.add(rng.randrange(draft.ranks), _wait(cell, "==", draft.ranks + n), Op(0, data=LOAD))


PROTOCOLS: dict[str, Callable[[Draft, int], None]] = {
    "P0 channel": _channel,
    "P1 flag": _flag,
    "P2 sequence numbers": _sequence,
    "P3 counting down": _countdown,
    "P4 max as round": _max,
    "P5 bits": _mask,
    "P6 fetch_add": _index,
    "P7 exchange": _exchange,
    "P8 window": _window,
    "P9 arrivals": _ticket,
}
MIXED = "P* mixed"
FAMILIES = (*SOUPS, *PROTOCOLS, MIXED)


def _protocol(family: str, rng: random.Random) -> Program:
    draft = Draft(rng)
    cells = rng.choice((1, 1, 2))
    fragments = list(PROTOCOLS.values()) if family == MIXED else [PROTOCOLS[family]]
    of_cell = [rng.choice(fragments) for _ in range(cells)]
    for _ in range(rng.choice((1, 2, 2, 3, 3))):
        if draft.size >= MOST - 2:
            break
        cell = rng.randrange(cells)
        of_cell[cell](draft, cell)
    actors = [list(ops) for ops in draft.actors]
    while sum(map(len, actors)) > MOST + 2:
        max(actors, key=len).pop()
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        _spoil(actors, rng)
    if rng.random() < 0.3:
        rng.choice(actors).insert(0, Op(0, data=rng.choice((LOAD, STORE))))
    return _program(rng, actors, 2, 4)


def _tickets(rng: random.Random) -> Program:
    """All arrive; the last one does something; then perhaps a barrier that it opens, or a second round."""
    ranks = rng.choice((2, 2, 3, 3, 4))
    actors: Streams = [[] for _ in range(ranks)]
    rounds = rng.choice((1, 1, 2)) if ranks < 4 else 1
    for n in range(rounds):
        alone = [Op(0, data=rng.choice((LOAD, STORE))), Op(1, data=rng.choice((LOAD, STORE)))][: rng.choice((1, 2))]
        opens = rng.random() < 0.6
        for rank, ops in enumerate(actors):
            ops.extend([Op(rank % 2, data=LOAD)] if rng.random() < 0.3 else [])
            ops.append(arrive(0, ranks, ""))
            ops.extend(replace(op, only=True) for op in (*alone, _update(0, ":=", 0)))
            ops.extend([_update(1, "+=", 1, only=True), _wait(1, ">=", n + 1)] if opens else [])
            ops.extend([Op(rng.randrange(2), data=LOAD)] if rng.random() < 0.4 else [])
    for _ in range(rng.choice((0, 0, 0, 1))):
        _spoil(actors, rng)
    return _program(rng, actors, 2, 4)


TICKETS = "T tickets"


def _spoil(actors: Streams, rng: random.Random) -> None:
    """Make one mistake: an operation dropped, moved, at another cell, or a constant one too large or too small."""
    filled = [ops for ops in actors if ops]
    if not filled:
        return
    ops = rng.choice(filled)
    at = rng.randrange(len(ops))
    mistake = rng.choice(("drop", "move", "cell", "value", "operand"))
    op = ops[at]
    if mistake == "drop" or op.data:
        del ops[at]
    if mistake == "move":
        if not op.data:
            del ops[at]
        ops.insert(rng.randrange(len(ops) + 1), op)
    elif mistake == "cell" and not op.data:
        ops[at] = replace(op, place=(op.place + 1) % 2)
    elif mistake == "value" and op.how:
        ops[at] = replace(op, value=op.value + rng.choice((-1, 1)))
    elif mistake == "operand" and op.update and not op.always:
        ops[at] = replace(op, operand=op.operand + rng.choice((-1, 1)))


def another(program: Program, rng: random.Random) -> Program:
    """Return a program with one operation another one, of as many: for whoever claims the one to be the other."""
    actors = [list(ops) for ops in program.actors]
    actor = rng.choice([number for number, ops in enumerate(actors) if ops])
    ops = actors[actor]
    at = rng.randrange(len(ops))
    op = ops[at]
    if rng.random() < 0.25 and at + 1 < len(ops):
        ops[at], ops[at + 1] = ops[at + 1], op
    elif op.data:
        ops[at] = replace(op, data=rng.choice((LOAD, STORE)), place=rng.randrange(len(program.elements)))
    elif op.how and rng.random() < 0.5:
        value = op.value + rng.choice((-1, 1))
        ops[at] = (
            replace(op, value=value) if op.always or op.is_cas else replace(op, value=value, how=rng.choice(SYMBOLS))
        )
    elif op.update and not (op.always or op.is_cas):
        ops[at] = rng.choice(
            (replace(op, operand=op.operand + rng.choice((-1, 1))), replace(op, update=rng.choice(UPDATES)))
        )
    else:
        ops[at] = replace(op, place=(op.place + 1) % len(program.cells))
    return replace(program, actors=tuple(map(tuple, actors)))


def random_program(family: str, rng: random.Random) -> Program:
    """Draw a program of this family."""
    if family == TICKETS:
        return _tickets(rng)
    return _soup(SOUPS[family], rng) if family in SOUPS else _protocol(family, rng)


def program_number(family: str, number: int) -> Program:
    """Return always the same program for the same family and number."""
    return random_program(family, random.Random(f"{family} {number}"))  # noqa: S311 - dice, no secret
