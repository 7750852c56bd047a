"""Small programs on the real machine, drawn at random and run under every schedule, one after the other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from brute import COMPARE

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.machine.case import Case
from asyncsim.machine.kernel import Kernel
from asyncsim.machine.simulate import simulate
from asyncsim.trace.declare import Signal, Window

if TYPE_CHECKING:
    import random

    from asyncsim.machine.case import Run

DATA = Window("data", (1,), np.int64, initialised=True)
CELL = Signal("cell", (1,))

ANYTHING = (
    "load", "load", "store", "store", "put", "put", "notify", "notify", "notify", "wait", "wait", "wait",
    "put_signal", "poll", "take", "test", "set",
)  # fmt: skip
LATE = (
    "load", "store", "put", "put", "late put", "late get", "own put", "notify", "relaxed", "stores", "wait", "wait",
    "put_signal", "fence", "quiet", "rank quiet",
)  # fmt: skip


class EverySchedule:
    """A scheduler that makes another run of each: depth first, without any reduction."""

    def __init__(self):
        """Start with the first schedule."""
        self._path = []
        self._step = 0

    def begin(self, actors):
        """Start a run."""
        self._step = 0

    def choose(self, ready):
        """Follow the path; at its end take the first."""
        if self._step == len(self._path):
            self._path.append([0, len(ready)])
        chosen = ready[self._path[self._step][0]]
        self._step += 1
        return chosen

    def turn(self):
        """Turn to the next schedule; say whether there is one."""
        while self._path and self._path[-1][0] + 1 == self._path[-1][1]:
            self._path.pop()
        if self._path:
            self._path[-1][0] += 1
        return bool(self._path)


def end_of(run: Run):
    """Return what must be equal for two runs to end alike, as far as a run tells."""
    outputs = tuple(part for parts in Judge(run.case).digests(run) for part in parts)
    return run.ending, outputs, tuple(array.tobytes() for array in run.windows)


async def every_end(case: Case, limit: int):
    """Return all ends of a case, and how many schedules it has; None if there are more than `limit`."""
    schedules = EverySchedule()
    ends = set()
    for number in range(1, limit + 1):
        ends.add(end_of(await simulate.aio(case, schedules)))
        if not schedules.turn():
            return ends, number
    return None


def draw(rng: random.Random, kinds, most: int, *, streams: bool = False):
    """Draw a program for two ranks: a list of (kind, peer, value) for each, nested for a stream."""
    programs = [[], []]
    for n in range(rng.randint(3, most)):
        programs[rng.randrange(2)].append((rng.choice(kinds), rng.randrange(2), n + 1, rng.choice((1, 1, 2))))
    if streams:
        inner = programs[0][: rng.randrange(1, 4)]
        programs[0] = [("stream", 0, 0, inner), *programs[0][len(inner) :]]
        if rng.random() < 0.3:
            programs[0].append(("meet", 0, 0, 0))
            inner.append(("meet", 0, 0, 0))
    return programs


def case_of(programs, memory: str = "sc") -> Case:
    """Make a case of a program."""
    made = Kernel(run_drawn, memory=(DATA, CELL), params={"programs": programs})
    return Case(made, ranks=2, calls=1, memory=memory)


async def run_drawn(rank, data, cell, *, programs):
    """Do what is drawn for this rank."""
    barrier = rank.stream_barrier(2)
    seen = []
    running = []
    for step in programs[rank.id]:
        if step[0] == "stream":
            running.append(await rank.start(run_stream, data, cell, step[3], barrier))
        else:
            await act(rank, data, cell, step, seen, barrier)
    for stream in running:
        seen += await rank.join(stream)
    return seen


async def run_stream(rank, data, cell, steps, barrier):
    """Do what is drawn for a stream."""
    seen = []
    for step in steps:
        await act(rank, data, cell, step, seen, barrier)
    return seen


async def act(rank, data, cell, step, seen, barrier):  # noqa: PLR0913, PLR0917 - one operation, with all it needs
    """Do one operation."""
    kind, peer, value, amount = step
    there = data.at(peer)[0]
    tile = np.int64(value)
    other = 1 - rank.id
    operations = {
        "load": lambda: rank.load(there),
        "store": lambda: rank.store(there, tile),
        "put": lambda: rank.put(data.at(other)[0], data[0]),
        "late put": lambda: rank.put(data.at(other)[0], data[0], nbi=True),
        "late get": lambda: rank.get(data[0], data.at(other)[0], nbi=True),
        "own put": lambda: rank.put(data.at(rank.id)[0], tile),
        "notify": lambda: rank.notify(cell.at(peer)[0], amount),
        "relaxed": lambda: rank.notify(cell.at(peer)[0], amount, order="relaxed"),
        "stores": lambda: rank.notify(cell.at(peer)[0], amount, order="stores"),
        "set": lambda: rank.notify(cell.at(peer)[0], amount, op="Set"),
        "wait": lambda: rank.wait(cell[0] >= amount),
        "take": lambda: rank.wait(COMPARE["=="](cell[0], amount), consume=True),
        "test": lambda: rank.test(cell[0] >= amount),
        "put_signal": lambda: rank.put_signal(data.at(other)[0], data[0], cell.at(other)[0]),
        "poll": lambda: rank.poll(data[0], partial(_is, value // 2)),
        "fence": rank.fence,
        "quiet": rank.quiet,
        "rank quiet": lambda: rank.quiet(scope="rank"),
        "meet": lambda: rank.sync(barrier),
    }
    got = await operations[kind]()
    if kind in ("load", "test", "poll"):
        seen.append(got)


def _is(value, tile):
    return tile == value
