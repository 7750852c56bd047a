"""Toy programs with orders, scopes and fences, for several actors of a rank.

What an operation does is written as in `sync_toy`; its order and its scope follow behind an ``@``::

    parse("st x; c += 1 @rel.sys || wait c >= 1 @rlx.sys; fence @acq.gpu; ld x", homes=((0, 0), (1, 0)))

Orders are ``rlx``, ``acq``, ``rel`` and ``ar`` (both), scopes ``cta``, ``gpu`` and ``sys``. Without an ``@`` a wait,
test or read acquires, an update releases, and one with a result, or one that waits first, does both, for all (``sys``).
`homes` has the rank and the block of each actor. ``sync 0`` is a barrier of all actors that name it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sync_toy
from sync_toy import Op

RELAXED, ACQUIRE, RELEASE, BOTH = "rlx", "acq", "rel", "ar"
BLOCK, RANK, WORLD = "cta", "gpu", "sys"


@dataclass(frozen=True, slots=True)
class Step:
    """An operation with its order and scope; data has neither; without an operation it is a fence, or a barrier."""

    op: Op | None
    order: str = ""
    scope: str = WORLD
    barrier: int = -1

    @property
    def updates(self) -> bool:
        """Whether it may change its cell."""
        return self.op is not None and bool(self.op.update)

    @property
    def is_on_cell(self) -> bool:
        """Whether it synchronises by a cell."""
        return self.op is not None and not self.op.data

    @property
    def is_pure(self) -> bool:
        """Whether it is an update that sees nothing of its cell: it may land late."""
        return self.op is not None and self.updates and not (self.op.how or self.op.gives) and not self.acquires

    @property
    def sees(self) -> bool:
        """Whether a later fence acquires what it sees."""
        return self.is_on_cell and not self.is_pure

    @property
    def hands_on(self) -> bool:
        """Whether who sees what it writes sees what it has seen: all but a Set that does not look."""
        return self.op is not None and not (self.op.update == ":=" and not (self.op.how or self.op.gives))

    @property
    def acquires(self) -> bool:
        """Whether it does so itself."""
        return self.order in (ACQUIRE, BOTH)

    @property
    def releases(self) -> bool:
        """Whether it does so itself."""
        return self.order in (RELEASE, BOTH) and (self.op is None or self.updates)

    def __str__(self) -> str:
        """Write it in the notation of this page."""
        if self.barrier >= 0:
            return f"sync {self.barrier}"
        if self.op is not None and self.op.data:
            return str(self.op)
        return f"{'fence' if self.op is None else self.op} @{self.order}.{self.scope}"


@dataclass(frozen=True, slots=True)
class Program:
    """A program: what each actor does, and where it lives.

    Args:
        actors: the steps of each.
        homes: the rank and the block of each.
        starts: the value of each cell at the start.

    """

    actors: tuple[tuple[Step, ...], ...]
    homes: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]

    def meeting(self, actor: int, index: int) -> dict[int, int]:
        """Return who meets at a barrier, and where in its stream; at its end if it does not come so often."""
        barrier = self.actors[actor][index].barrier
        every = {
            other: [n for n, step in enumerate(steps) if step.barrier == barrier]
            for other, steps in enumerate(self.actors)
        }
        number = every[actor].index(index)
        return {other: at[number] if number < len(at) else len(self.actors[other]) for other, at in every.items() if at}

    def covers(self, scope: str, a: int, b: int) -> bool:
        """Say whether a scope of actor a has actor b in it."""
        one, other = self.homes[a], self.homes[b]
        return scope == WORLD or (one[0] == other[0] and (scope == RANK or one == other))

    def include(self, a: int, scope: str, b: int, other: str) -> bool:
        """Say whether the scopes of two operations include each other."""
        return self.covers(scope, a, b) and self.covers(other, b, a)

    def __str__(self) -> str:
        """Write the call of `parse` that makes this program."""
        text = " || ".join("; ".join(map(str, steps)) for steps in self.actors)
        return f"parse({text!r}, homes={self.homes}, starts={self.starts})"


def parse(text: str, *, homes: tuple[tuple[int, int], ...] = (), starts: tuple[int, ...] = ()) -> Program:
    """Make a program of its text; unless said otherwise each actor is a rank of its own, and cells begin with 0."""
    actors = tuple(tuple(_step(part) for part in line.split(";") if part.strip()) for line in text.split("||"))
    cells = 1 + max((s.op.place for steps in actors for s in steps if s.op is not None and not s.op.data), default=-1)
    return Program(actors, homes or tuple((rank, 0) for rank in range(len(actors))), starts or (0,) * cells)


def default_order(op: Op) -> str:
    """Return the order of an operation that names none."""
    if op.data:
        return ""
    if not op.update:
        return ACQUIRE
    return BOTH if op.how or op.gives else RELEASE


def _step(part: str) -> Step:
    text, _, said = part.strip().partition("@")
    if text.startswith("sync"):
        return Step(None, barrier=int(text.split()[1]))
    op = None if text.strip() == "fence" else sync_toy.parse(text).actors[0][0]
    step = Step(op, BOTH if op is None else default_order(op))
    if said:
        order, _, scope = said.strip().partition(".")
        step = replace(step, order=order, scope=scope or WORLD)
    return step
