"""What a kernel is given and how its run ends, one small program a sentence."""

import numpy as np
import pytest
from schedules import Scripted, Seeded, run

from asyncsim import Case, MisuseError, Signal, Window, kernel, simulate

ROW = Window("row", (4,), np.int32)
CELL = Signal("cell", (1,))

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
