"""What each operation on a signal means, one small program a sentence."""

import numpy as np
import pytest
from schedules import run

from asyncsim import AtomicAdd, Set, Signal

CELL = Signal("cell", (1,))


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
