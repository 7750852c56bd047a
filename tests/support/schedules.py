"""Schedulers for tests, and a short way to run a program on the machine."""

from __future__ import annotations

import random

from asyncsim import Case, kernel, simulate


class Scripted:
    """Choose the ranks in the order given; after that, and where the rank is not ready, the first one ready.

    A turn may also go to an actor by its name: "0.1", "0>3". Keeps what it was offered: for each
    step the operations, as text, and who they are of.
    """

    def __init__(self, *ranks):
        """Take the ranks whose turn it shall be, step by step."""
        self.ranks = ranks
        self.offered = []
        self.names = []

    def begin(self, actors):
        """Start again."""
        self.actors = actors
        self.offered = []
        self.names = []

    def choose(self, ready):
        """Follow the script."""
        step = len(self.offered)
        self.offered.append([f"{op.actor.rank} {op}" for op in ready])
        self.names.append([op.actor.name for op in ready])
        wanted = self.ranks[step] if step < len(self.ranks) else None
        return next((op for op in ready if wanted in (op.actor.rank, op.actor.name)), ready[0])


class Seeded:
    """Choose at random, the same way for the same seed."""

    def __init__(self, seed):
        """Take the seed."""
        self.seed = seed

    def begin(self, actors):
        """Start again."""
        self.random = random.Random(self.seed)  # noqa: S311 - a schedule is no secret

    def choose(self, ready):
        """Draw."""
        return self.random.choice(ready)


class Starving:
    """Never choose this rank while another one can go."""

    def __init__(self, rank):
        """Take the rank that waits for all others."""
        self.rank = rank

    def begin(self, actors):
        """Need nothing."""

    def choose(self, ready):
        """Prefer anybody else."""
        return next((op for op in ready if op.actor.rank != self.rank), ready[0])


def run(program, memory, *order, inputs=None, record=None, **case):
    """Call a program once, on two ranks unless `case` says otherwise; the ranks of `order` go first."""
    made = kernel(memory=memory, inputs=inputs)(program)
    return simulate(Case(made, **{"ranks": 2, "calls": 1, **case}), Scripted(*order), record=record)
