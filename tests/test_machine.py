"""What each operation of a rank means, one small program a sentence."""

import numpy as np
import pytest
from schedules import Scripted, Seeded, run

from asyncsim import AtomicAdd, Case, MisuseError, Set, Signal, Window, World, kernel, simulate

ROW = Window("row", (4,), np.int32)
CELL = Signal("cell", (1,))


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


# Signals.


def test_notify_adds_or_sets_also_negative_and_to_oneself():
    async def program(rank, cell):
        await rank.notify(cell[0], 5)
        await rank.notify(cell[0], -7, AtomicAdd)
        await rank.notify(cell.at(1)[0], 4, op=Set)
        await rank.notify(cell.at(1)[0])

    result = run(program, [CELL], 0, 0, 0, 0, record="scripted")
    assert [event.have for event in result.trace.events[:4]] == [5, -2, 4, 5]


@pytest.mark.parametrize(
    ("condition", "holds_for"),
    [
        (lambda cell: cell == 2, {2}),
        (lambda cell: cell != 2, {1, 3}),
        (lambda cell: cell > 2, {3}),
        (lambda cell: cell >= 2, {2, 3}),
        (lambda cell: cell < 2, {1}),
        (lambda cell: cell <= 2, {1, 2}),
    ],
    ids=["Eq", "Ne", "Gt", "Ge", "Lt", "Le"],
)
@pytest.mark.parametrize("start", [1, 2, 3])
def test_the_six_comparisons(condition, holds_for, start):
    async def waits(rank, cell):
        await rank.wait(condition(cell[0]))

    async def tests(rank, cell):
        return await rank.test(condition(cell[0]))

    memory = [Signal("cell", (1,), start=start)]
    assert run(waits, memory, ranks=1).ending == ("complete" if start in holds_for else "deadlock")
    assert run(tests, memory, ranks=1).outputs[0][0] is (start in holds_for)


def test_a_wait_parks_until_a_notify_makes_it_ready():
    async def program(rank, cell):
        if rank.id == 0:
            await rank.wait(cell[0] >= 2)
        else:
            await rank.notify(cell.at(0)[0])
            await rank.notify(cell.at(0)[0])

    assert run(program, [CELL], 0, 0, 0).choices == ["1", "1", "0"]


def test_a_plain_wait_consumes_nothing_and_a_consuming_one_subtracts():
    async def program(rank, cell):
        await rank.notify(cell[0], 5)
        await rank.wait(cell[0] >= 2)
        await rank.wait(cell[0] >= 2, consume=True)
        await rank.test(cell[0] == 3)

    result = run(program, [CELL], ranks=1, record="scripted")
    assert [event.have for event in result.trace.events] == [5, 5, 5, 3]
    assert [event.need for event in result.trace.events] == [None, 2, 2, 3]


def test_test_does_not_block():
    async def program(rank, cell):
        before = await rank.test(cell[0] >= 1)
        await rank.notify(cell[0])
        return [before, await rank.test(cell[0] >= 1)]

    assert run(program, [CELL], ranks=1).outputs[0][0] == [False, True]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_a_cell_that_leaves_its_range_ends_the_run(dtype):
    async def program(rank, cell):
        await rank.notify(cell[0], 1)
        await rank.notify(cell[0], 1)

    last = int(np.iinfo(dtype).max)
    result = run(program, [Signal("cell", (1,), dtype, start=last - 1)], ranks=1, record="scripted")
    assert (result.ending, result.choices) == ("overflow", ["0", "0"])
    assert result.trace.events[-1].have == last


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_a_wrapping_cell_goes_on_at_the_other_end(dtype):
    async def program(rank, cell):
        await rank.notify(cell[0], 1)
        await rank.wait(cell[0] < 0)
        await rank.notify(cell[0], -1)
        await rank.wait(cell[0] > 0)

    info = np.iinfo(dtype)
    result = run(program, [Signal("cell", (1,), dtype, start=int(info.max), wrap=True)], ranks=1, record="scripted")
    assert result.ending == "complete"
    assert [event.have for event in result.trace.events] == [info.min, info.min, info.max, info.max]


def test_a_consuming_wait_can_overflow_too():
    async def program(rank, cell):
        await rank.wait(cell[0] <= 1, consume=True)

    assert run(program, [Signal("cell", (1,), "int8", start=-128)], ranks=1).ending == "overflow"


def test_cells_persist_across_calls_and_the_call_is_known():
    async def program(rank, cell):
        await rank.notify(cell[0])
        return [rank.call, await rank.test(cell[0] == rank.call + 1)]

    assert run(program, [CELL], ranks=1, calls=3).outputs == [[[0, True]], [[1, True]], [[2, True]]]


def test_signals_of_two_dimensions_name_cells_by_both_offsets():
    async def program(rank, table):
        await rank.notify(table[1, 2])
        return [await rank.test(table[row, column] == 1) for row in range(2) for column in range(3)]

    outputs = run(program, [Signal("table", (2, 3))], ranks=1).outputs[0][0]
    assert outputs == [False, False, False, False, False, True]


# Phases.


def test_phases_nest_and_end():
    async def program(rank, row):
        with rank.phase("outer"):
            await rank.store(row[0], 1)
            with rank.phase("inner"):
                await rank.store(row[0], 1)
            await rank.store(row[0], 1)
        await rank.store(row[0], 1)

    result = run(program, [ROW], ranks=1, calls=2, record="scripted")
    assert [event.phase for event in result.trace.events] == 2 * ["outer", "outer/inner", "outer", ""]


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


def test_shapes_depend_on_the_number_of_ranks():
    async def program(rank, data, table):
        await rank.notify(table[rank.size - 1, 2 * rank.size - 1])
        return [data.shape, table.shape, data.name, str(data.dtype), table.name]

    memory = [Window("data", ("P", lambda P: P * P), np.int8), Signal("table", ("P", lambda P: 2 * P))]
    assert run(program, memory, ranks=3).outputs[0] == 3 * [[(3, 9), (3, 6), "data", "int8", "table"]]


def test_one_rank_alone_has_no_peers():
    async def program(rank, row):
        return [rank.id, rank.size, list(rank.peers), row.at(0).owner]

    result = run(program, [ROW], ranks=1)
    assert (result.outputs, result.choices, result.ending) == ([[[0, 1, [], 0]]], [], "complete")


def test_inputs_differ_by_call_and_a_run_gets_copies():
    async def program(rank, x, row):
        x += 1
        return x

    def inputs(P, call, rng):
        return [np.array([10 * call + r]) for r in range(P)]

    for _ in range(2):
        assert run(program, [ROW], calls=2, inputs=inputs).outputs == [[[1], [2]], [[11], [12]]]


def test_numbers_of_numpy_are_as_good_as_pythons():
    async def program(rank, row, cell):
        one = np.int64(1)
        await rank.store(row.at(one)[one], one.astype(np.int32))
        await rank.notify(cell.at(one)[np.int8(0)], one)
        await rank.wait(cell[0] >= np.int16(0))
        return await rank.load(row.at(1)[1:2])

    assert run(program, [ROW, CELL]).outputs[0][0].tolist() == [1]


def test_one_kernel_can_await_another():
    @kernel(memory=[ROW])
    async def inner(rank, row, *, number=1):
        await rank.store(row[0], number)
        return await rank.load(row[0])

    async def outer(rank, row):
        return [await inner(rank, row), await inner.variant(number=2)(rank, row), await inner(rank, row, number=3)]

    assert run(outer, [ROW], ranks=1).outputs[0][0] == [1, 2, 3]


def test_a_variant_changes_some_parts_and_keeps_the_rest():
    @kernel(memory=[ROW], rtol=0.5)
    async def base(rank, row, *, number=1):
        """Be the base.

        And more.
        """

    changed = base.variant(number=2, memory=[ROW, CELL], about="Be another.", name="other")
    assert (base.name, changed.name) == ("base", "other")
    assert (base.first_line, changed.first_line) == ("Be the base.", "Be another.")
    assert (changed.rtol, changed.memory, dict(changed.params)) == (0.5, (ROW, CELL), {"number": 2})
    assert base.ref.endswith("test_machine:base")
    assert len(base.source) == 16
    assert base.variant().source == base.source


# How a run ends.


def test_a_deadlock_is_an_ending_with_what_is_pending():
    async def program(rank, cell):
        if rank.id == 0:
            return 1
        await rank.wait(cell[0] >= 1)
        return 2

    result = run(program, [CELL], record="scripted", ranks=3)
    assert result.ending == "deadlock"
    assert result.outputs[0][0] == 1
    assert repr(result.outputs[0][1]) == "MISSING"
    pending = result.trace.footer.pending
    assert [(str(event.op), event.have, event.need) for event in pending] == [
        ("wait cell[0]@1 >= 1", 0, 1),
        ("wait cell[0]@2 >= 1", 0, 1),
    ]


def test_a_run_without_end_ends_at_the_step_limit():
    async def program(rank, cell):
        while not await rank.test(cell[0] >= 1):
            pass

    result = run(program, [CELL], ranks=1, max_steps=10)
    assert (result.ending, len(result.choices)) == ("step-limit", 10)


def test_two_runs_of_a_case_share_nothing():
    async def program(rank, row, cell):
        await rank.notify(cell[0])
        await rank.store(row[0], 1, atomic="add")
        return [await rank.load(row[0]), await rank.test(cell[0] == 1)]

    case = Case(kernel(memory=[ROW, CELL])(program), ranks=1, calls=1)
    assert [simulate(case, Scripted()).outputs[0][0] for _ in range(2)] == [[1, True]] * 2


def test_the_same_choices_give_the_same_trace():
    async def program(rank, row, cell):
        for peer in rank.peers:
            await rank.store(row.at(peer)[rank.id], rank.id)
            await rank.notify(cell.at(peer)[0])
        await rank.wait(cell[0] >= rank.size - 1)
        return await rank.load(row[:])

    case = Case(kernel(memory=[ROW, CELL])(program), ranks=3)

    def lines():
        result = simulate(case, Seeded(7), record="seeded")
        return [(str(e.op), e.call, e.at, e.data, e.have) for e in result.trace.events], result.trace.footer.outputs

    assert lines() == lines()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": 0}, "ranks=0; a world has at least one rank"),
        ({"ranks": True}, "ranks=True; a world has at least one rank"),
        ({"calls": 0}, "calls=0; a kernel is called at least once"),
        ({"memory": "tso"}, "memory='tso'; the memory models are: sc"),
        ({"seed": -1}, "seed=-1; a seed is an integer >= 0"),
    ],
)
def test_a_case_that_cannot_be_run_is_refused(change, message):
    async def program(rank, row):
        pass

    with pytest.raises(MisuseError) as caught:
        simulate(Case(kernel(memory=[ROW])(program), **change), Scripted())
    assert message in str(caught.value)
