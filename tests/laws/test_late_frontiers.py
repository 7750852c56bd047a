"""Landings that the same operations need share a frontier: it must be the one that each has by itself."""

from __future__ import annotations

import numpy as np
import pytest
import trio
from late_families import FAMILIES
from late_programs import program_number
from late_runs import HALF_MODELS, MEMORIES, Dice, run_once
from plain_frontiers import furthest

from asyncsim import Case, Fifo, Signal, Window, kernel, simulate
from asyncsim.analysis import order, passes
from asyncsim.analysis.frontiers import Frontiers
from asyncsim.analysis.streams import Streams
from asyncsim.trace.late import MODELS

THOROUGH, ORDINARY = 10_000, 400


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    for name, model in HALF_MODELS.items():
        monkeypatch.setitem(MODELS, name, model)


def frontiers_of(trace, monkeypatch):
    """Return the run, its frontiers, and the guards and edges that they were made of."""
    made = []

    class Remembered(Frontiers):
        def __init__(self, streams, guards, edges):
            made.append((streams, self, guards, edges))
            super().__init__(streams, guards, edges)

    monkeypatch.setattr(order, "Frontiers", Remembered)
    order.order_of(Streams(trace), "frontiers")
    return made[-1]


def differences(streams, found, guards, edges):
    """Return where the shared frontiers are not those of the definition, and how many places of wires were held."""
    wrong, wires = [], 0
    for actor, stream in enumerate(streams.events):
        for index in range(len(stream)):
            wires += actor >= streams.tasks
            plain = furthest(streams, guards, edges, (actor, index))
            plain[actor] = index
            shared = [found.reach(actor, index, other) for other in range(len(streams.events))]
            wrong += [((actor, index), other) for other, far in enumerate(plain) if far != shared[other]]
    return wrong, wires


def test_shared_frontiers_are_those_of_the_definition(programs_of, monkeypatch):
    total = programs_of(ORDINARY, THOROUGH)
    held = 0
    for number in range(total):
        family, memory = list(FAMILIES)[number % len(FAMILIES)], list(MEMORIES)[number % len(MEMORIES)]
        trace = trio.run(run_once, program_number(family, number), memory, Dice(number)).trace
        wrong, wires = differences(*frontiers_of(trace, monkeypatch))
        assert not wrong, f"{family} {number} under {memory}: {wrong}"
        held += wires
    assert held > total


@kernel(memory=[Window("row", (8,), np.float32, initialised=True), Signal("cell", (1,))])
async def push(rank, row, cell, *, between):
    """Rank 0 puts eight times, with `between` between the fourth and the fifth, and then tells rank 1."""
    if rank.id == 0:
        for element in range(8):
            if element == 4 and between:
                await getattr(rank, between)()
            await rank.put(row.at(1)[element], 1.0)
        await rank.notify(cell.at(1)[0])
    else:
        await rank.wait(cell[0] >= 1)
        await rank.load(row[:])


@pytest.mark.parametrize(("between", "excursions"), [("", 1), ("fence", 2), ("quiet", 2)])
def test_landings_between_two_ordering_points_share_one_excursion(monkeypatch, between, excursions):
    trace = simulate(Case(push.variant(between=between), ranks=2, calls=1, memory="nic"), Fifo(), record="any").trace
    streams, found, *_ = frontiers_of(trace, monkeypatch)
    made = []

    class Counted(passes.Excursion):
        def __init__(self, start, held):
            made.append(held)
            super().__init__(start, held)

    monkeypatch.setattr(passes, "Excursion", Counted)
    for wire in range(streams.tasks, streams.tasks + 8):
        assert found.reach(wire, 0, 1) == 0, "rank 1 waits for the notify, which waits for every put"
    assert len(made) == excursions
