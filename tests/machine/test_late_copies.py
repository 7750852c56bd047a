"""Copies and large tiles that land late: when their source is read, and in which pieces they arrive.

Wires are called by their operation: "0>2" carries what operation 2 of rank 0 left, "0>2s" its signal.
"""

from __future__ import annotations

import numpy as np
import pytest
from played import CELL, KNOWN, LATE, ROW, Played, only, tiles

from asyncsim import SET, Window
from asyncsim.trace.landing import index_of, landings_of
from asyncsim.trace.late import model_of
from asyncsim.trace.op import Op
from asyncsim.trace.world import World

# Copies.


@pytest.mark.parametrize(("nbi", "got"), [(False, 1), (True, 2)])
def test_a_non_blocking_put_reads_its_source_when_it_lands(nbi, got):
    async def program(rank, row):
        await rank.store(row[0], 1)
        await rank.put(row.at(1)[0], row[0], nbi=nbi)
        await rank.store(row[0], 2)

    played = Played(only(0, program), [KNOWN], 0, 0, 0, "0>0", "0>2")
    assert played.row(1)[0] == got
    assert [event.op.kind for event in played.events if event.op.actor.name == "0>1"] == ["fetch", "land"][not nbi :]


def test_a_non_blocking_get_reads_its_source_when_it_is_fetched():
    async def program(rank, row):
        if rank.id == 0:
            await rank.get(row[0], row.at(1)[0], nbi=True)
            return int(await rank.load(row[0]))
        await rank.store(row[0], 6)
        return None

    played = Played(program, [KNOWN], 0, 1, "1>0", "0>0", 0, "0>0")
    assert (played.outputs[0], played.row(0)[0]) == (0, 6)  # not seen before it lands, not even by its own rank


def test_a_put_with_a_late_source_signals_after_its_data():
    async def program(rank, row, cell):
        await rank.store(row[0], 1)
        await rank.put_signal(row.at(1)[0], row[0], cell.at(1)[0], 5, SET, nbi=True)
        await rank.store(row[0], 2)

    played = Played(only(0, program), [KNOWN, CELL], 0, 0, 0, "0>0", "0>2", "0>1", "0>1", "0>1s")
    assert [str(event.op) for event in played.events[5:]] == [
        "fetch of row[0]@0", "land to row[0]@1", "land cell[0]@1 := 5",
    ]  # fmt: skip
    assert str(played.events[1].op) == "put_signal of row[0]@0 to row[0]@1, cell[0]@1 := 5"
    assert played.row(1)[0] == 2


@pytest.mark.parametrize("nbi", [False, True])
def test_a_copy_onto_itself_only_reads_and_leaves_nothing(nbi):
    async def program(rank, row, cell):
        await rank.put(row[0], row[0], nbi=nbi)
        await rank.put_signal(row[0], row[0], cell[0], nbi=nbi)

    played = Played(only(0, program), [ROW, CELL])
    assert [event.op.actor.name for event in played.events] == ["0", "0", "0>1s"]
    assert [event.unwritten for event in played.events] == [True, True, False]


@pytest.mark.parametrize("model", LATE)
def test_adds_of_two_ranks_are_atomic_whenever_they_land(model):
    async def program(rank, row):
        for number in (1, 10):
            await rank.store(row.at(0)[0:2], tiles(number, number), atomic="add")

    order = [0, 1, 0, 1, "1>1", "0>0", "0>1", "1>0"]
    assert Played(program, [KNOWN], *order, model=model).row(0) == [22, 22, 0, 0]


@pytest.mark.parametrize("source", ["store", "put"])
def test_a_tile_is_taken_when_it_is_given(source):
    async def program(rank, row):
        tile = tiles(1, 2, 3, 4)
        await getattr(rank, source)(row.at(1)[:], tile)
        tile += 100

    assert Played(only(0, program), [ROW], 0).row(1) == [1, 2, 3, 4]


# Tearing.


def test_a_tile_larger_than_the_atom_lands_in_pieces():
    async def program(rank, row):
        if rank.id == 0:
            await rank.store(row.at(1)[0:3], tiles(1, 2, 3))
            return None
        return (await rank.load(row[:])).tolist()

    played = Played(program, [KNOWN], 0, "0>0.1", 1, model="nic:atom=2")
    assert played.outputs[1] == [0, 0, 3, 0]
    assert played.row(1) == [1, 2, 3, 0]
    pieces = [(event.op.accesses[0].region.part, event.op.accesses[0].region.spans) for event in played.events]
    assert pieces == [(None, ((0, 12),)), ((2, 3), ((8, 12),)), (None, ((0, 16),)), ((0, 2), ((0, 8),))]
    assert [np.frombuffer(played.events[step].data, np.int32).tolist() for step in (1, 3)] == [[3], [1, 2]]


def test_pieces_of_a_region_with_gaps_are_its_elements_in_order():
    window = Window("grid", (3, 4), np.int32, initialised=True)

    async def program(rank, grid):
        tile = np.arange(1, 7, dtype=np.int32).reshape(3, 2)
        await rank.store(grid.at(1)[:, 0:4:2], tile)
        await rank.store(grid.at(1)[:, 1], tiles(10, 20, 30), atomic="add")

    played = Played(only(0, program), [window], 0, 0, "0>0.1", model="ldst:atom=4")
    assert played.events[2].op.accesses[0].region.spans == ((32, 36), (40, 44))
    assert played.row(1) == [[1, 10, 2, 0], [3, 20, 4, 0], [5, 30, 6, 0]]


def test_a_piece_that_is_fetched_reads_its_own_elements_only():
    async def program(rank, row):
        await rank.put(row.at(1)[:], row[:], nbi=True)
        await rank.store(row[2:4], tiles(7, 8))

    played = Played(only(0, program), [ROW], 0, 0, "0>0.1", "0>0", model="nic:atom=2")
    fetches = {event.op.actor.name: event.unwritten for event in played.events if event.op.kind == "fetch"}
    assert fetches == {"0>0.1": False, "0>0": True}
    assert played.row(1) == [0, 0, 7, 8]


def test_forwarded_pieces_are_seen_whole():
    async def program(rank, row):
        await rank.store(row.at(1)[:], tiles(1, 2, 3, 4))
        return (await rank.load(row.at(1)[:])).tolist()

    assert Played(only(0, program), [ROW], 0, "0>0.1", 0, model="ldst:atom=1").outputs[0] == [1, 2, 3, 4]


def test_every_piece_of_a_large_tile_has_a_wire_of_its_own():
    world = World(2, [Window("large", (5000,), np.int8)])
    (large,) = world.views(0)
    op = Op(world.actors[0], "remote_store", large.at(1)[:].writes, deferred=True)
    wires = [landing.actor for landing in landings_of(op, 3, model_of("nic:atom=1"))]
    orders = [wire.order for wire in wires]
    assert orders == sorted(set(orders))
    assert (wires[0].name, wires[4999].name, index_of(wires[4999].name)) == ("0>3", "0>3.4999", 3)
    later = landings_of(op, 4, model_of("nic"))[0].actor
    other = landings_of(Op(world.actors[1], "store", large.at(1)[:].writes), 0, model_of("nic"))[0].actor
    assert orders[-1] < later.order < other.order
