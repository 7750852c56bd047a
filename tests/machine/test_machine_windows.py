"""What each operation on a window means, one small program a sentence."""

import numpy as np
import pytest
from schedules import run

from asyncsim import Window, World

ROW = Window("row", (4,), np.int32)


def tiles(*numbers, dtype=np.int32):
    return np.array(numbers, dtype)


# Windows: load and store.


def test_a_loaded_tile_is_a_private_copy():
    async def program(rank, row):
        await rank.store(row[:], tiles(1, 2, 3, 4))
        tile = await rank.load(row[:])
        tile += 100
        return await rank.load(row[:])

    assert run(program, [ROW], ranks=1).outputs[0][0].tolist() == [1, 2, 3, 4]


def test_a_stored_tile_is_not_a_view_into_the_window():
    async def program(rank, row):
        tile = tiles(1, 2, 3, 4)
        await rank.store(row[:], tile)
        tile += 100
        return await rank.load(row[:])

    assert run(program, [ROW], ranks=1).outputs[0][0].tolist() == [1, 2, 3, 4]


def test_an_effect_happens_at_its_step_and_not_before():
    async def program(rank, row):
        if rank.id == 0:
            await rank.store(row[0], 7)
            return None
        return await rank.load(row.at(0)[0])

    assert run(program, [Window("row", (1,), np.int32, initialised=True)], 1, 0).outputs[0][1] == 0
    assert run(program, [Window("row", (1,), np.int32, initialised=True)], 0, 1).outputs[0][1] == 7


def test_peers_have_windows_of_their_own():
    async def program(rank, row):
        await rank.store(row.at(1 - rank.id)[1:3], tiles(rank.id + 10, rank.id + 20))
        return await rank.load(row[1])

    outputs = run(program, [ROW], 0, 1).outputs[0]
    assert [int(y) for y in outputs] == [11, 10]


def test_a_single_element_is_a_number_both_ways():
    async def program(rank, row):
        await rank.store(row[2], 5)
        one = await rank.load(row[2])
        await rank.store(row[3], one)
        await rank.store(row[0:1], tiles(9))
        return [one, await rank.load(row[3]), await rank.load(row[0:1])]

    one, same, slice_of_one = run(program, [ROW], ranks=1).outputs[0][0]
    assert one == same == 5
    assert isinstance(one, np.int32)
    assert slice_of_one.tolist() == [9]


def test_slices_may_step_and_ellipsis_means_all():
    async def program(rank, grid):
        await rank.store(grid[...], np.arange(12, dtype=np.int32).reshape(3, 4))
        return [await rank.load(grid[0:3:2, 1]), await rank.load(grid[..., 3]), await rank.load(grid[1])]

    odd, last, middle = run(program, [Window("grid", (3, 4), np.int32)], ranks=1).outputs[0][0]
    assert (odd.tolist(), last.tolist(), middle.tolist()) == ([1, 9], [3, 7, 11], [4, 5, 6, 7])


@pytest.mark.parametrize("order", [(0, 0, 1, 1), (1, 1, 0, 0), (0, 1, 0, 1)])
def test_atomic_adds_from_anywhere_add_up(order):
    async def program(rank, row):
        await rank.store(row.at(0)[:], tiles(1, 2, 3, 4), atomic="add")
        await rank.put(row.at(0)[0:2], tiles(10, 10), atomic="add")

    memory = [Window("row", (4,), np.int32, initialised=True)]
    result = run(program, memory, *order, record="scripted")
    assert [event.op.accesses[0].mode for event in result.trace.events] == ["add"] * 4

    async def and_look(rank, row):
        await program(rank, row)
        if rank.id == 0:
            return await rank.load(row[:])
        return None

    assert run(and_look, memory, 1, 1, *order).outputs[0][0].tolist() == [22, 24, 6, 8]


def test_atomic_add_on_a_single_element_and_from_a_window():
    async def program(rank, row):
        await rank.store(row[:], tiles(1, 2, 3, 4))
        await rank.store(row[0], 5, atomic="add")
        await rank.put(row[0:2], row[2:4], atomic="add")
        return await rank.load(row[:])

    assert run(program, [ROW], ranks=1).outputs[0][0].tolist() == [9, 6, 3, 4]


def test_integer_windows_wrap_when_added_to():
    async def program(rank, row):
        await rank.store(row[0], 127)
        await rank.store(row[0], 1, atomic="add")
        return await rank.load(row[0])

    assert run(program, [Window("row", (1,), np.int8)], ranks=1).outputs[0][0] == -128


# Get and put.


def test_get_copies_from_a_peer_and_put_to_one():
    async def program(rank, row):
        peer = 1 - rank.id
        await rank.store(row[0], 10 + rank.id)
        await rank.get(row[1], row.at(peer)[0])
        await rank.put(row.at(peer)[2], row[0])
        await rank.put(row.at(peer)[3], np.int32(20 + rank.id))

    result = run(program, [ROW], 0, 1, 0, 1, 0, 1, record="scripted")
    kinds = [(e.op.kind, [(a.region.owner, a.mode) for a in e.op.accesses]) for e in result.trace.events]
    assert kinds[2] == ("get", [(1, "read"), (0, "write")])
    assert kinds[4] == ("put", [(0, "read"), (1, "write")])
    assert kinds[6] == ("put", [(1, "write")])
    assert [np.frombuffer(e.data, np.int32).tolist() for e in result.trace.events[2:6]] == [[11], [10], [10], [11]]


@pytest.mark.parametrize("copy", ["get", "put"])
def test_a_copy_of_elements_onto_themselves_is_a_read(copy):
    async def program(rank, row):
        await rank.store(row[:], tiles(1, 2, 3, 4))
        await getattr(rank, copy)(row[1:3], row[1:3])
        return await rank.load(row[:])

    result = run(program, [ROW], ranks=1, record="scripted")
    assert {access.mode for access in result.trace.events[1].op.accesses} == {"read"}
    assert result.outputs[0][0].tolist() == [1, 2, 3, 4]


def test_overlapping_own_copies_read_before_they_write():
    async def program(rank, row):
        await rank.store(row[:], tiles(1, 2, 3, 4))
        await rank.get(row[1:4], row[0:3])
        return await rank.load(row[:])

    assert run(program, [ROW], ranks=1).outputs[0][0].tolist() == [1, 1, 2, 3]


# What nobody wrote.


def test_an_unwritten_element_is_noted_element_by_element():
    async def program(rank, row):
        await rank.store(row[0:2], tiles(1, 2))
        await rank.load(row[0:2])
        await rank.load(row[1:3])

    result = run(program, [ROW], ranks=1, record="scripted")
    assert result.unwritten == ["row[1:3]@0"]
    assert [event.unwritten for event in result.trace.events] == [False, False, True]


@pytest.mark.parametrize("write", ["store", "add", "put", "get"])
def test_every_way_of_writing_writes(write):
    async def program(rank, row):
        await rank.store(row[0], 1)
        if write == "store":
            await rank.store(row[1], 1)
        elif write == "add":
            await rank.store(row[1], 1, atomic="add")
        else:
            await getattr(rank, write)(row[1], row[0])
        await rank.load(row[0:2])

    assert run(program, [ROW], ranks=1).unwritten == []


def test_what_is_declared_initialised_may_be_read():
    async def program(rank, row):
        return await rank.load(row[:])

    result = run(program, [Window("row", (4,), np.int32, initialised=True)], ranks=1)
    assert result.unwritten == []
    assert result.outputs[0][0].tolist() == [0, 0, 0, 0]


def test_get_of_an_unwritten_region_is_noted():
    async def program(rank, row):
        await rank.get(row[0], row.at(1 - rank.id)[1])

    assert run(program, [ROW], 0, 1).unwritten == ["row[1]@1", "row[1]@0"]


def test_dirty_memory_holds_a_number_or_what_the_seed_draws():
    async def program(rank, row):
        return await rank.load(row[:])

    def content(dirty, seed=0, dtype=np.float32):
        return [y.tolist() for y in run(program, [Window("row", (4,), dtype, dirty=dirty)], seed=seed).outputs[0]]

    assert content(7) == [[7] * 4] * 2
    assert np.isnan(content(float("nan"))).all()
    assert content("random", 1) == content("random", 1)
    assert content("random", 1) != content("random", 2)
    first, second = content("random", 1)
    assert first != second
    for dtype in ("int8", "uint16", "int64", "bool", "float16", "bfloat16", "complex64"):
        assert content("random", 1, dtype) == content("random", 1, dtype)


def test_dirty_memory_is_still_unwritten():
    async def program(rank, row):
        await rank.load(row[:])

    assert run(program, [Window("row", (4,), dirty=7)], ranks=1).unwritten == ["row[0:4]@0"]


# Shapes and dtypes.


@pytest.mark.parametrize(
    ("dtype", "numbers", "total"),
    [
        ("bfloat16", (1.5, 2.5), 4.0),
        ("float16", (1.5, 2.5), 4.0),
        ("float64", (0.1, 0.2), 0.1 + 0.2),
        ("complex64", (1 + 2j, 3 - 1j), 4 + 1j),
        ("uint8", (250, 10), 4),
    ],
)
def test_windows_of_any_number(dtype, numbers, total):
    async def program(rank, one):
        await rank.store(one[0], numbers[0])
        await rank.store(one[0], numbers[1], atomic="add")
        tile = await rank.load(one[:])
        await rank.store(one[:], tile)
        return await rank.load(one[0])

    result = run(program, [Window("one", (1,), dtype)], ranks=1, record="scripted")
    assert result.outputs[0][0] == total
    assert result.outputs[0][0].dtype == World(1, [Window("one", (1,), dtype)]).windows[0].dtype


def test_a_window_of_booleans():
    async def program(rank, flags):
        await rank.store(flags[:], np.array([True, False]))
        return await rank.load(flags[:])

    assert run(program, [Window("flags", (2,), bool)], ranks=1).outputs[0][0].tolist() == [True, False]


def test_empty_regions_and_windows_are_fine():
    async def program(rank, none):
        await rank.store(none[:], np.zeros((0, 4), np.float32))
        await rank.get(none[:], none.at(0)[:])
        return await rank.load(none[:, 1:1])

    result = run(program, [Window("none", (0, 4))])
    assert (result.ending, result.unwritten, result.outputs[0][1].shape) == ("complete", [], (0, 0))
