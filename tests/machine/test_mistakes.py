"""What a kernel author gets wrong, and what asyncsim says: who, what, where, and what would be right."""

import asyncio
import inspect
from types import SimpleNamespace

import numpy as np
import pytest
import trio
from mistaken import DATA, MEMORY, MISTAKES, OTHER_CELL, OTHER_DATA, mistake
from schedules import run

from asyncsim import (
    KernelError,
    Set,
    settle,
)


@mistake("rank 0: load takes a region, window[...] or window.at(peer)[...]; got all of 'data'; index it")
async def load_of_a_whole_window(rank, my):
    await rank.load(my.data)


@mistake("rank 0: store takes a region, window[...] or window.at(peer)[...]; got all of 'cell'; index it")
async def store_to_a_whole_signal(rank, my):
    await rank.store(my.cell, 1)


@mistake("rank 0: load takes a region, window[...] or window.at(peer)[...]; got an array of shape (3,)")
async def load_of_an_array(rank, my):
    await rank.load(np.zeros(3))


@mistake("rank 0: load of data[1, 0:4]@0, which belongs to another run; use this run's windows")
async def load_from_another_run(rank, my):
    await rank.load(OTHER_DATA[1])


@mistake("rank 0: store to data[1, 0:4]@0: the tile has dtype float64, the window has float32; convert it")
async def wrong_dtype(rank, my):
    await rank.store(my.data[1], np.zeros(4))


@mistake("rank 0: remote_store to data[1, 0:4]@1: the tile has shape (3,), the region has shape (4,)")
async def wrong_shape(rank, my):
    await rank.store(my.data.at(1)[1], np.zeros(3, np.float32))


@mistake("rank 0: store to data[1, 0:4]@0 takes an array of shape (4,) and dtype float32; got 1.0")
async def a_number_for_a_row(rank, my):
    await rank.store(my.data[1], 1.0)


@mistake("rank 0: put to data[1, 0:4]@1 takes an array of shape (4,) and dtype float32; got an object of type list")
async def a_list_for_a_row(rank, my):
    await rank.put(my.data.at(1)[1], [1, 2, 3, 4])


@mistake("rank 0: store to count[1]@0: 1.5 does not fit dtype int32")
async def a_fraction_into_integers(rank, my):
    await rank.store(my.count[1], 1.5)


@mistake("rank 0: store to count[1]@0: 4294967296 does not fit dtype int32")
async def a_number_that_is_too_large(rank, my):
    await rank.store(my.count[1], 2**32)


@mistake("rank 0: store to count[1]@0: atomic='max'; use 'add' or 'set', or leave it out")
async def another_atomic(rank, my):
    await rank.store(my.count[1], 1, atomic="max")


async def always(tile):
    return True


@mistake("rank 0: poll of data[0, 0]@0 takes a function of the tile; got an async function")
async def an_async_predicate(rank, my):
    await rank.poll(my.data[0, 0], always)


@mistake("rank 0: store to flags[1]@0: booleans cannot be added; use an integer window")
async def adding_booleans(rank, my):
    await rank.store(my.flags[1], True, atomic="add")  # noqa: FBT003 - the value


@mistake("rank 0, indexing window 'data' of rank 0: offset -1 is outside dimension 0 of shape (2, 4); use 0 to 1")
async def negative_offset(rank, my):
    await rank.load(my.data[-1])


@mistake("rank 0, indexing window 'data' of rank 1: offset 4 is outside dimension 1 of shape (2, 4); use 0 to 3")
async def offset_too_large(rank, my):
    await rank.load(my.data.at(1)[0, rank.size * 2])


@mistake("rank 0, indexing window 'data' of rank 0: offset True in dimension 0 is no integer; index a window with")
async def offset_true(rank, my):
    await rank.load(my.data[rank.id == 0])


@mistake("rank 0, indexing window 'data' of rank 0: offset 2.0 in dimension 1 is no integer; index a window with")
async def offset_a_float(rank, my):
    await rank.load(my.data[0, 4 / 2])


@mistake("rank 0, indexing window 'data' of rank 0: offsets 2:5:1 leave dimension 1 of shape (2, 4); use 0 <= start")
async def slice_too_long(rank, my):
    await rank.load(my.data[0, 2:5])


@mistake("rank 0, indexing window 'data' of rank 0: offsets 0:4:-1 leave dimension 1 of shape (2, 4); use 0 <= start")
async def slice_backwards(rank, my):
    await rank.load(my.data[0, ::-1])


@mistake("rank 0, indexing window 'data' of rank 0: 3 offsets for 2 dimensions; the shape is (2, 4)")
async def too_many_offsets(rank, my):
    await rank.load(my.data[0, 0, 0])


@mistake("rank 0: data.at(2); peers are the ranks 0 to 1")
async def no_such_peer(rank, my):
    await rank.load(my.data.at(rank.size)[0])


@mistake("rank 0: cell.at('1'); a peer is a rank, 0 to 1")
async def a_peer_by_name(rank, my):
    await rank.notify(my.cell.at("1")[0])


@mistake("rank 0: get into data[0, 0:4]@1; a get copies into an own region: window[...]")
async def get_into_a_peer(rank, my):
    await rank.get(my.data.at(1)[0], my.data[0])


@mistake("rank 0: put from data[0, 0:4]@1; a put copies from an own region: window[...]")
async def put_from_a_peer(rank, my):
    await rank.put(my.data[0], my.data.at(1)[0])


@mistake("rank 0: get from data[0, 0:4]@1 to data[0, 0:2]@0: the source has shape (4,) and dtype float32, the")
async def copy_of_another_shape(rank, my):
    await rank.get(my.data[0, 0:2], my.data.at(1)[0])


@mistake("rank 0: put from count[0:2]@0 to data[0, 0:2]@1: the source has shape (2,) and dtype int32, the")
async def copy_of_another_dtype(rank, my):
    await rank.put(my.data.at(1)[0, 0:2], my.count[:])


@mistake("rank 0: put takes a region, window[...] or window.at(peer)[...]; got 3")
async def put_to_nowhere(rank, my):
    await rank.put(3, my.data[0])


@mistake("rank 0: notify takes a cell, signal.at(peer)[...]; got all of 'cell'; index it")
async def notify_of_a_whole_signal(rank, my):
    await rank.notify(my.cell.at(1))


@mistake("rank 0: notify takes a cell, signal.at(peer)[...]; got the condition cell[0, 0]@1 >= 1")
async def notify_of_a_condition(rank, my):
    await rank.notify(my.cell.at(1)[0] >= 1)


@mistake("rank 0: notify of cell[0, 0]@0, which belongs to another run; use this run's signals")
async def notify_in_another_run(rank, my):
    await rank.notify(OTHER_CELL[0])


@mistake("rank 0: notify of cell[0, 0]@1: op='Add'; use AtomicAdd, Set, And, Or, Xor, Min or Max")
async def notify_with_another_op(rank, my):
    await rank.notify(my.cell.at(1)[0], 1, "Add")


@mistake("rank 0: notify of cell[0, 0]@1: value 1.0 is no integer")
async def notify_with_a_float(rank, my):
    await rank.notify(my.cell.at(1)[0], 1.0)


@mistake("rank 0: notify of small[0]@1: value 128 is outside -128 to 127")
async def notify_out_of_range(rank, my):
    await rank.notify(my.small.at(1)[0], 128)


@mistake("rank 0, indexing signal 'cell' of rank 1: offset 2 is outside dimension 0 of shape (2, 1)")
async def cell_offset_too_large(rank, my):
    await rank.notify(my.cell.at(1)[2])


@mistake("rank 0, indexing signal 'cell' of rank 0: offset slice(0, 2, None) is no integer; a signal is")
async def a_row_of_cells(rank, my):
    await rank.wait(my.cell[0:2] >= 1)


@mistake("rank 0, indexing signal 'small' of rank 0: 2 offsets do not name one cell of shape (1,)")
async def too_many_cell_offsets(rank, my):
    await rank.wait(my.small[0, 0] >= 1)


@mistake("rank 0: wait takes a condition on a cell, signal[peer] >= 1; got cell[1, 0]@0; compare it, as in")
async def wait_for_a_cell(rank, my):
    await rank.wait(my.cell[1])


@mistake("rank 0: test takes a condition on a cell, signal[peer] >= 1; got True")
async def test_of_a_truth(rank, my):
    await rank.test(True)  # noqa: FBT003 - the mistake


@mistake("rank 0: wait of cell[0, 0]@0: order='release'; use 'acquire' or 'relaxed'")
async def wait_that_releases(rank, my):
    await rank.wait(my.cell[0] >= 1, order="release")


@mistake("rank 0: wait of cell[0, 0]@0: scope='gpu'; use 'world', 'rank' or 'block'")
async def wait_of_another_scope(rank, my):
    await rank.wait(my.cell[0] >= 1, scope="gpu")


@mistake("rank 0: wait for cell[0, 0]@0 >= 1: then=Set; say by what: then=Set(0)")
async def wait_then_nothing(rank, my):
    await rank.wait(my.cell[0] >= 1, then=Set)


@mistake("rank 0: wait for cell[0, 0]@0 >= 1: then=7; use an update, such as then=Set(0)")
async def wait_then_a_number(rank, my):
    await rank.wait(my.cell[0] >= 1, then=7)


@mistake("rank 0: wait, then Set(128), of small[0]@0: value 128 is outside -128 to 127")
async def wait_then_too_much(rank, my):
    await rank.wait(my.small[0] >= 1, then=Set(128))


@mistake("rank 0: wait for cell[0, 0]@0 >= 1: consume and then=Set(0); one step makes one update")
async def wait_with_two_updates(rank, my):
    await rank.wait(my.cell[0] >= 1, consume=True, then=Set(0))


@mistake("rank 0: fetch_add of cell[0, 0]@1: value 1.5 is no integer")
async def add_a_fraction(rank, my):
    await rank.fetch_add(my.cell.at(1)[0], 1.5)


@mistake("rank 0: atomic of cell[0, 0]@1: order='sc'; use 'acq_rel', 'acquire', 'release' or 'relaxed'")
async def exchange_in_a_fence_s_order(rank, my):
    await rank.exchange(my.cell.at(1)[0], 1, order="sc")


@mistake("rank 0: compare_exchange of small[0]@1: value 200 is outside -128 to 127")
async def compare_with_too_much(rank, my):
    await rank.compare_exchange(my.small.at(1)[0], 200, 0)


@mistake("rank 0: read takes a cell, signal[...] or signal.at(peer)[...]; got the condition cell[0, 0]@0 >= 1")
async def read_a_condition(rank, my):
    await rank.read(my.cell[0] >= 1)


@mistake("rank 0: wait of cell[0, 0]@0, which belongs to another run; use this run's signals")
async def wait_in_another_run(rank, my):
    await rank.wait(OTHER_CELL[0] >= 1)


@mistake("small[0]@0 is compared with 200; the cell holds -128 to 127")
async def wait_for_the_impossible(rank, my):
    await rank.wait(my.small[0] >= 200)


@mistake("cell[0, 0]@0 is compared with cell[1, 0]@0; compare a cell with an integer")
async def wait_for_another_cell(rank, my):
    await rank.wait(my.cell[0] >= my.cell[1])


@mistake("cell[0, 0]@0 is compared with 1.0; compare a cell with an integer")
async def wait_for_a_float(rank, my):
    await rank.wait(my.cell[0] >= 1.0)


@mistake("cell[0, 0]@0 >= 1 has no truth value; wait for it: await rank.wait(cell[0, 0]@0 >= 1)")
async def if_on_a_condition(rank, my):
    await rank.wait(my.cell[0] >= 1 and my.cell[1] >= 1)


@mistake("rank 0: phase(''); a phase is named by a short text")
async def a_phase_without_a_name(rank, my):
    rank.phase("")


@mistake("the kernel awaits something that is no operation of its rank; a kernel awaits methods of its Rank only")
async def sleeping_in_trio(rank, my):
    await trio.sleep(1)


@mistake("the kernel awaits something that is no operation of its rank; a kernel awaits methods of its Rank only")
async def sleeping_in_asyncio(rank, my):
    await asyncio.sleep(0)


@mistake("rank 0, indexing signal 'small' of rank 0: offset 1 is outside dimension 0 of shape (1,)")
async def a_composite_on_the_wrong_signal(rank, my):
    await settle(rank, my.small, credits=1)


@mistake("AxisError: axis 5 is out of bounds for array of dimension 1")
async def a_mistake_with_numpy(rank, my):
    np.sum(np.zeros(3), axis=5)


@pytest.mark.parametrize(("program", "what"), MISTAKES)
def test_a_mistake_is_named_with_its_place(program, what):
    lines, first = inspect.getsourcelines(program)

    async def start(rank, *views):
        await program(rank, SimpleNamespace(**{view.name: view for view in views}))

    with pytest.raises(KernelError) as caught:
        run(start, MEMORY)
    line = f"test_mistakes.py:{first + len(lines) - 1} ({lines[-1].strip()})"
    place, _, said = str(caught.value).partition(f"{line}: ")
    assert place in ("rank 0 failed in call 0 at ", "rank 0 failed in call 0 at tests/")
    assert what in said
    assert (caught.value.rank, caught.value.call) == (0, 0)


def test_an_exception_of_the_kernel_itself_cancels_the_others_and_is_the_cause():
    async def program(rank, data):
        await rank.load(data[0])
        if rank.id == 1:
            raise ZeroDivisionError("one")
        await rank.load(data[1])

    with pytest.raises(KernelError, match=r"rank 1 failed in call 0 at .*test_mistakes.py:\d+ \(raise Zero") as caught:
        run(program, [DATA], 1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
