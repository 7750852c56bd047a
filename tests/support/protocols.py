"""Toy programs that synchronise: made from one order that works, so that many are right in every order.

Accesses are drawn in some order. Where one conflicts with an earlier one of another rank, that rank
notifies and this one waits, as an author would write it. Some styles are wrong by themselves (a
shared cell, Eq, Sets), and a *broken* program has one operation too few or a number too small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from brute import conflict
from toy import ADD, COPY, LOAD, NOTIFY, SET, STORE, TAKE, TEST, WAIT, Op, Program

if TYPE_CHECKING:
    import random

KINDS = (LOAD, LOAD, STORE, STORE, ADD, COPY)
MOST = 14
"""Operations over all ranks and calls, so that brute force stays quick."""


def protocol(  # noqa: PLR0913 - what can vary
    rng: random.Random,
    *,
    style: str = "count",
    shared: bool = False,
    broken: bool = False,
    calls: int = 1,
    bits: int = 32,
    start: int = 0,
) -> Program:
    """Draw a program.

    Args:
        rng: the dice.
        style: how a rank waits for the n-th notify: "count" (>= n), "give back" (>= 1, then subtract 1),
            "take" (a consuming wait), "set" (the notify is := n), "equal" (== n).
        shared: all producers notify one cell of a rank, which then waits for their sum.
        broken: spoil it.
        calls: as of `Program`.
        bits: as of `Program`.
        start: value of the cells.

    """
    draft = _Draft(rng, style, shared=shared, start=start)
    for _ in range(rng.randint(3, 8)):
        if not draft.extend(MOST // calls):
            break
    actors = draft.actors
    if broken:
        _spoil(actors, rng)
    return Program(
        tuple(map(tuple, actors)), elements=draft.elements, cells=draft.cells, starts=(start,) * len(draft.cells),
        bits=bits, calls=calls,
    )  # fmt: skip


class _Draft:
    """A program in the making, and who knows of which operations."""

    def __init__(self, rng: random.Random, style: str, *, shared: bool, start: int) -> None:
        self.rng = rng
        self.style = style
        self.shared = shared
        self.start = start
        self.ranks = ranks = rng.choice((2, 3, 3) if shared else (2, 2, 3))
        self.elements = tuple(rng.randrange(ranks) for _ in range(rng.choice((1, 2))))
        per_rank = 1 if shared else ranks
        self.cells = tuple(rank for rank in range(ranks) for _ in range(per_rank))
        self.actors: list[list[Op]] = [[] for _ in range(ranks)]
        self.sent = [0] * len(self.cells)
        self.known = [[0] * ranks for _ in range(ranks)]  # known[a][b]: a comes after so many operations of b

    def extend(self, most: int) -> bool:
        """Add an access and what it needs before it; say whether there is room for more."""
        rng = self.rng
        actor = rng.randrange(self.ranks)
        room = most - sum(map(len, self.actors))
        if rng.random() < 0.2 and room > (self.ranks + 1 if self.shared else 4) * (self.ranks - 1) + 1:
            self._barrier()
        op = self._access(actor)
        for other in range(self.ranks):
            if other != actor and self._must_follow(actor, other, op):
                self._follow(actor, other)
        self.actors[actor].append(op)
        if rng.random() < 0.04:
            self.actors[actor].append(Op(TEST, self._cell(actor, (actor + 1) % self.ranks), value=self.start + 1))
        return sum(map(len, self.actors)) < most - 3

    def _barrier(self) -> None:
        """Let everybody wait for everybody."""
        pairs = [(a, b) for a in range(self.ranks) for b in range(self.ranks) if a != b]
        for actor, other in pairs:
            self._notify(other, self._cell(actor, other))
        for actor, other in pairs:
            if not self.shared:
                self._wait(actor, self._cell(actor, other), 1)
            elif other == pairs[actor * (self.ranks - 1)][1]:
                self._wait(actor, self._cell(actor, other), self.ranks - 1)
        self.known = [list(map(len, self.actors)) for _ in self.actors]

    def _access(self, actor: int) -> Op:
        rng = self.rng
        kind = rng.choice(KINDS)
        place, source = rng.randrange(len(self.elements)), rng.randrange(len(self.elements))
        if kind == COPY and actor in (self.elements[place], self.elements[source]):
            return Op(COPY, place, source=source)
        return Op(LOAD if kind == COPY else kind, place)

    def _must_follow(self, actor: int, other: int, op: Op) -> bool:
        return any(conflict(earlier, op) for earlier in self.actors[other][self.known[actor][other] :])

    def _follow(self, actor: int, other: int) -> None:
        """Let the other rank notify, and this one wait for it."""
        cell = self._cell(actor, other)
        self._notify(other, cell)
        self._wait(actor, cell, 1)
        self.known[actor] = [max(pair) for pair in zip(self.known[actor], self.known[other], strict=True)]
        self.known[actor][other] = len(self.actors[other])

    def _notify(self, actor: int, cell: int) -> None:
        self.sent[cell] += 1
        if self.style == "set":
            self.actors[actor].append(Op(SET, cell, value=self.start + self.sent[cell]))
        else:
            self.actors[actor].append(Op(NOTIFY, cell, value=1))

    def _wait(self, actor: int, cell: int, fresh: int) -> None:
        """Wait for all that was sent, the last `fresh` notifies of which this rank has not yet waited for."""
        ops = self.actors[actor]
        if self.style == "take":
            ops.append(Op(TAKE, cell, value=fresh))
        elif self.style == "give back":
            ops += (Op(WAIT, cell, value=fresh), Op(NOTIFY, cell, value=-fresh))
        else:
            how = "==" if self.style == "equal" else ">="
            ops.append(Op(WAIT, cell, how=how, value=self.start + self.sent[cell]))

    def _cell(self, actor: int, other: int) -> int:
        return actor if self.shared else actor * self.ranks + other


def _spoil(actors: list[list[Op]], rng: random.Random) -> None:
    """Make one mistake."""
    filled = [ops for ops in actors if ops]
    ops = rng.choice(filled)
    at = rng.randrange(len(ops))
    mistake = rng.choice(("drop", "swap", "number", "number"))
    if mistake == "number" and not ops[at].on_data:
        ops[at] = replace(ops[at], value=ops[at].value + rng.choice((-1, 1)))
    elif mistake == "swap" and at + 1 < len(ops):
        ops[at], ops[at + 1] = ops[at + 1], ops[at]
    else:
        del ops[at]
