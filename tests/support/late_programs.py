"""Random toy programs for late memory and streams, from a seeded generator."""

from __future__ import annotations

import random
from dataclasses import replace

from late_families import FAMILIES, PUT_SIGNAL, RELAXED, SOME_QUIET, STORES, Family
from late_toy import (
    ADD,
    COPIES,
    COPY,
    FENCE,
    JOIN,
    LATE_COPY,
    LOAD,
    NOTIFY,
    POLL,
    QUIET,
    RANK_QUIET,
    SET,
    START,
    STORE,
    SYNC,
    TAKE,
    TEST,
    WAIT,
    WRITING,
    Change,
    Op,
    Program,
)

EARLY = 0.8
"""How often a wait that comes too early gives way to a notify."""
SUCCESSIVE = 0.7
"""How often a rank's second further stream begins when the first was joined."""
BROKEN = 0.25
"""How many protocols are spoilt by one mistake."""


def program_number(family: str, number: int, *, total: int | None = None) -> Program:
    """Return always the same program for the same family and number; `total` overrides that of the family."""
    rng = random.Random(f"{family} {number}")  # noqa: S311 - dice, no secret
    chosen = FAMILIES[family]
    if total is not None:
        chosen = replace(chosen, total=total)
    program = _Protocol(chosen, rng).program() if chosen.ways else _Soup(chosen, rng).program()
    return in_data(program, rng) if chosen.in_data else program


def in_data(program: Program, rng: random.Random) -> Program:
    """Return the program with some of its cells as elements: who notified stores, who waited polls for that store."""
    places = [(actor, index, op) for actor, ops in enumerate(program.streams) for index, op in enumerate(ops)]
    changing = [op for _, _, op in places if op.change is not None]
    kept = {op.change.cell for op in changing if op.change and (op.kind != NOTIFY or op.change.how == SET)}
    kept |= {op.place for _, _, op in places if op.kind in (TAKE, TEST)}
    became = {
        cell: len(program.elements) + n
        for n, cell in enumerate(cell for cell in range(len(program.cells)) if cell not in kept)
    }
    stores = {
        cell: [
            program.number(actor, at) for actor, at, op in places if op.change is not None and op.change.cell == cell
        ]
        for cell in became
    }

    def changed(op: Op) -> Op:
        if op.change is not None and op.change.cell in became:
            return Op(STORE, became[op.change.cell])
        if op.kind != WAIT or op.place not in became:
            return op
        order = stores[op.place]
        value = order[op.value - 1] if 0 < op.value <= len(order) else rng.choice((0, len(places)))
        return Op(POLL, became[op.place], how=rng.choice((">=", ">=", ">=", "==", "!=")), value=value)

    ranks = tuple(tuple(tuple(map(changed, ops)) for ops in streams) for streams in program.ranks)
    return replace(program, ranks=ranks, elements=(*program.elements, *(program.cells[cell] for cell in became)))


class _Draft:
    """A program in the making: who there is, and what belongs to whom."""

    def __init__(self, family: Family, rng: random.Random) -> None:
        self.family = family
        self.rng = rng
        self.size = rng.choice(family.ranks)
        doubled = rng.sample(range(self.size), min(family.streams, self.size))
        further = 2 if family.successive else 1
        self.actors = [(rank, stream) for rank in range(self.size) for stream in range(1 + further * (rank in doubled))]
        self.rank_of = [rank for rank, _ in self.actors]
        self.ops: list[list[Op]] = [[] for _ in self.actors]
        count = rng.choice((1, 2, 2))
        self.elements = tuple(0 if family.local else rng.randrange(self.size) for _ in range(count))

    def finish(self, cells: tuple[int, ...]) -> Program:
        """Let the first stream of each rank start and join the others, and sometimes meet the only other one."""
        for actor, (_, stream) in enumerate(self.actors):
            if stream:
                main, child = self.ops[actor - stream], self.ops[actor]
                if not child:
                    child.append(Op(LOAD, self.rng.randrange(len(self.elements))))
                self._start_and_join(main, child, stream)
        ranks = tuple(
            tuple(tuple(ops) for ops, (owner, _) in zip(self.ops, self.actors, strict=True) if owner == rank)
            for rank in range(self.size)
        )
        return Program(ranks, elements=self.elements, cells=cells, starts=(0,) * len(cells))

    def _start_and_join(self, main: list[Op], child: list[Op], stream: int) -> None:
        rng = self.rng
        first = [at + 1 for at, op in enumerate(main) if op.kind in (START, JOIN)]
        if first:  # a machine numbers streams as they are started
            start = first[-1] if rng.random() < SUCCESSIVE else rng.randint(first[0], len(main))
        else:
            start = rng.choice((0, 0, rng.randrange(len(main) + 1)))
        join = rng.choice((len(main), len(main), rng.randint(start, len(main))))
        meets = not self.family.successive and rng.random() < 0.25
        between = [Op(SYNC)] if meets else []
        at = rng.randint(start, join)
        inside = [Op(START, stream), *main[start:at], *between, *main[at:join], Op(JOIN, stream)]
        main[start:join] = inside
        at = rng.randrange(len(child) + 1)
        child[at:at] = between

    def data_op(self, actor: int, kind: str) -> Op:
        """Draw an access; a copy that the machine does not know becomes a load or a store."""
        rng, rank = self.rng, self.rank_of[actor]
        place, source = rng.randrange(len(self.elements)), rng.randrange(len(self.elements))
        if kind == POLL:
            how, value = rng.choice((">=", ">=", "!=", "==")), rng.randrange(self.family.total)
            return Op(kind, place, how=how, value=value)
        if kind in COPIES and (place == source or rank not in (self.elements[place], self.elements[source])):
            kind = rng.choice((LOAD, STORE))
        put = kind in (STORE, *COPIES) and self.family.puts > 0 and rng.random() < self.family.puts
        if put and kind in COPIES and self.elements[source] != rank:
            put = False  # a put copies from the own rank
        return Op(kind, place, source=source if kind in COPIES else 0, put=put)

    def can_signal(self, actor: int, op: Op) -> bool:
        """Say whether the access can be a put with signal: a store, or a copy from the own rank."""
        return op.kind == STORE or (op.kind in COPIES and self.elements[op.source] == self.rank_of[actor])


class _Soup(_Draft):
    """Any operations in any order."""

    def program(self) -> Program:
        """Draw it."""
        family, rng = self.family, self.rng
        self.cells = (0,) if family.local else tuple(range(self.size))
        sent: set[int] = set()
        for _ in range(rng.randint(min(5, family.total), family.total)):
            actor = rng.randrange(len(self.actors))
            op = self._op(actor)
            if op.kind in (WAIT, TAKE) and op.place not in sent and len(self.actors) > 1 and rng.random() < EARLY:
                # Nobody would come past a wait for what nobody has sent: let another actor send first.
                actor = (actor + rng.randrange(1, len(self.actors))) % len(self.actors)
                op = self._notify(actor, op.place, relaxed=False)
            sent.update([op.change.cell] if op.change else [])
            self.ops[actor].append(op)
        return self.finish(self.cells)

    def _op(self, actor: int) -> Op:
        family, rng = self.family, self.rng
        kind = rng.choice(family.kinds)
        cell = rng.randrange(len(self.cells))
        if kind in (NOTIFY, RELAXED, STORES):
            return replace(self._notify(actor, cell, relaxed=kind == RELAXED), stores=kind == STORES)
        if kind == PUT_SIGNAL:
            op = self.data_op(actor, rng.choice((STORE, STORE, COPY, LATE_COPY)))
            signal = self._notify(actor, cell, relaxed=True).change
            return replace(op, change=signal) if self.can_signal(actor, op) else op
        if kind in (FENCE, QUIET, RANK_QUIET, SOME_QUIET):
            return Op(QUIET, value=rng.choice((1, 1, 2))) if kind == SOME_QUIET else Op(kind)
        if kind in (LOAD, POLL, *WRITING):
            return self.data_op(actor, kind)
        own = [cell for cell, owner in enumerate(self.cells) if owner == self.rank_of[actor]]
        if not own:
            return self.data_op(actor, LOAD)
        return Op(kind, rng.choice(own), how=rng.choice(family.compares), value=rng.choice(family.expected))

    def _notify(self, actor: int, cell: int, *, relaxed: bool) -> Op:
        how, value = self.rng.choice(self.family.changes)
        if how == NOTIFY and self.cells[cell] == self.rank_of[actor]:
            value = self.rng.choice(self.family.own)
        return Op(NOTIFY, change=Change(cell, how, value), relaxed=relaxed)


class _Protocol(_Draft):
    """Made from an order that works."""

    def program(self) -> Program:
        """Draw it."""
        family, rng = self.family, self.rng
        count = len(self.actors)
        self.cells = tuple(self.rank_of[actor] for actor in range(count) for _ in range(count))
        self.sent = [0] * len(self.cells)
        self.known = [[0] * count for _ in range(count)]  # known[a][b]: a comes after so many operations of b
        while sum(map(len, self.ops)) < max(family.total - 3 - count // 3, 3):
            actor = rng.randrange(count)
            op = self.data_op(actor, rng.choice(family.kinds))
            for other in range(count):
                if other != actor and self._must_follow(actor, other, op):
                    self._follow(actor, other)
            self.ops[actor].append(op)
        if rng.random() < BROKEN:
            self._spoil()
        used = sorted(
            {op.change.cell for ops in self.ops for op in ops if op.change}
            | {op.place for ops in self.ops for op in ops if op.kind in (WAIT, TAKE)}
        )
        for ops in self.ops:
            ops[:] = [_renumbered(op, used) for op in ops]
        return self.finish(tuple(self.cells[cell] for cell in used))

    def _must_follow(self, actor: int, other: int, op: Op) -> bool:
        return any(_conflict(earlier, op) for earlier in self.ops[other][self.known[actor][other] :])

    def _follow(self, actor: int, other: int) -> None:
        """Let the other actor publish what it did, and this one wait for it."""
        rng = self.rng
        cell = actor * len(self.actors) + other
        way = rng.choice(self.family.ways)
        ops = self.ops[other]
        if way == PUT_SIGNAL and not (ops and self.can_signal(other, ops[-1]) and ops[-1].change is None):
            way = NOTIFY
        self.sent[cell] += 1
        add, at_once = Change(cell, NOTIFY, 1), Change(cell, SET, self.sent[cell])
        if way == PUT_SIGNAL:
            ops[-1] = replace(ops[-1], change=at_once if SET in self.family.ways else add)
        elif way == SET:
            ops.append(Op(NOTIFY, change=at_once, relaxed=rng.random() < 0.3))
        elif way == SOME_QUIET:
            ops += [Op(QUIET, value=rng.choice((1, 1, 2))), Op(NOTIFY, change=add, relaxed=True)]
        elif way in (FENCE, QUIET, RANK_QUIET):
            ops += [Op(way), Op(NOTIFY, change=add, relaxed=True)]
        else:
            ops.append(Op(NOTIFY, change=add, relaxed=way == RELAXED, stores=way == STORES))
        self.ops[actor] += self._waits(cell, way)
        self.known[actor] = [max(pair) for pair in zip(self.known[actor], self.known[other], strict=True)]
        self.known[actor][other] = len(ops)

    def _waits(self, cell: int, way: str) -> list[Op]:
        if way == "take":
            self.sent[cell] = 0
            return [Op(TAKE, cell, value=1)]
        if "give back" in way:
            back = Op(NOTIFY, change=Change(cell, NOTIFY, -self.sent[cell]), relaxed=True)
            waits = [Op(WAIT, cell, value=self.sent[cell]), back, *([Op(QUIET)] if QUIET in way else [])]
            self.sent[cell] = 0
            return waits
        return [Op(WAIT, cell, value=self.sent[cell])]

    def _spoil(self) -> None:
        """Make one mistake: drop an operation, swap it with the next, or wait for one too few or too many."""
        ops = self.rng.choice([ops for ops in self.ops if ops])
        at = self.rng.randrange(len(ops))
        mistake = self.rng.random()
        waits = [n for n, op in enumerate(ops) if op.kind == WAIT]
        if mistake < 0.4 and waits:
            at = self.rng.choice(waits)
            ops[at] = replace(ops[at], value=ops[at].value + self.rng.choice((-1, -1, 1)))
        elif mistake < 0.7 and at + 1 < len(ops):
            ops[at], ops[at + 1] = ops[at + 1], ops[at]
        else:
            del ops[at]


def _renumbered(op: Op, used: list[int]) -> Op:
    if op.change:
        return replace(op, change=replace(op.change, cell=used.index(op.change.cell)))
    return replace(op, place=used.index(op.place)) if op.kind in (WAIT, TAKE) else op


def _conflict(a: Op, b: Op) -> bool:
    return any(x == y and not m == n != "w" for x, m in _touched(a) for y, n in _touched(b))


def _touched(op: Op) -> list[tuple[int, str]]:
    if op.kind == LOAD:
        return [(op.place, "r")]
    if op.kind not in WRITING:
        return []
    return [(op.place, "a" if op.kind == ADD else "w"), *([(op.source, "r")] if op.kind in COPIES else [])]
