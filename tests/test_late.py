"""What lands late: under ``ldst`` and ``nic``, each rule of the wires by a schedule that shows it.

Wires are called by their operation: "0>2" carries what operation 2 of rank 0 left, "0>2s" its signal.
"""

from __future__ import annotations

import numpy as np
import pytest
from schedules import Scripted

from asyncsim import SET, Case, KernelError, MisuseError, Signal, Window, kernel, simulate
from asyncsim.checking.shrink import segments_of, shrink
from asyncsim.schedulers.replay import Replay
from asyncsim.schedulers.script import Script
from asyncsim.schedulers.table import make
from asyncsim.trace.late import index_of, landings_of, model_of
from asyncsim.trace.op import Op
from asyncsim.trace.world import World
from kernels.reduce_scatter import builtin, no_post_barrier

ROW = Window("row", (4,), np.int32)
KNOWN = Window("row", (4,), np.int32, initialised=True)
CELL = Signal("cell", ("P",))
LATE = ("ldst", "nic")


class Played:
    """A run, what could go at each step, and what lay in the window of each rank at the end."""

    def __init__(self, program, memory, *order, model="nic", **options):
        """Call a program once, on two ranks; the actors of `order` go first."""
        script = Scripted(*order)
        case = Case(kernel(memory=memory)(program), **{"ranks": 2, "calls": 1, "memory": model, **options})
        self.run = simulate(case, script, record="script")
        self.ready = script.names
        self.outputs = self.run.outputs[0]
        self.events = self.run.trace.events

    def landings(self, step):
        """Return the wires that could go at a step."""
        return [name for name in self.ready[step] if ">" in name]

    def row(self, rank):
        """Return what lies in the first window of a rank."""
        return self.run.windows[rank].tolist()


def only(rank_id, program):
    """Let one rank do something."""

    async def body(rank, *memory):
        return await program(rank, *memory) if rank.id == rank_id else None

    return body


def tiles(*numbers):
    return np.array(numbers, np.int32)


# What is late, and for whom.


@pytest.mark.parametrize("model", LATE)
def test_a_remote_store_is_there_when_it_has_landed(model):
    async def program(rank, row):
        if rank.id == 0:
            await rank.store(row.at(1)[0], 7)
            return None
        return [int(await rank.load(row[0])) for _ in range(2)]

    played = Played(program, [KNOWN], 0, 1, "0>0", 1, model=model)
    assert played.outputs[1] == [0, 7]
    assert [str(event.op) for event in played.events] == [
        "remote_store to row[0]@1", "load of row[0]@1", "land to row[0]@1", "load of row[0]@1",
    ]  # fmt: skip


def test_under_sc_nothing_is_late():
    played = Played(only(0, lambda rank, row: rank.store(row.at(1)[0], 7)), [KNOWN], model="sc")
    assert [event.op.actor.name for event in played.events] == ["0"]


@pytest.mark.parametrize("model", LATE)
def test_a_local_store_is_seen_at_once_by_the_own_rank_and_later_by_peers(model):
    async def beside(rank, row):
        return int(await rank.load(row[0]))

    async def program(rank, row):
        if rank.id == 0:
            await rank.store(row[0], 7)
            stream = await rank.start(beside, row)
            return int(await rank.load(row[0])), await rank.join(stream)
        return [int(await rank.load(row.at(0)[0])) for _ in range(2)]

    played = Played(program, [ROW], 0, 0, 0, "0.1", 1, "0>0", 1, model=model)
    assert played.outputs == [(7, 7), [0, 7]]
    assert [event.unwritten for event in played.events[2:7]] == [False, False, True, False, False]
    assert played.run.unwritten == ["row[0]@0"]
    assert played.events[5].op.link == "local"


@pytest.mark.parametrize("model", LATE)
def test_what_a_get_brings_is_seen_as_a_local_store_is(model):
    async def program(rank, row):
        if rank.id == 0:
            await rank.get(row[0], row.at(1)[1])
            return int(await rank.load(row[0]))
        await rank.store(row[1], 5)
        return [int(await rank.load(row.at(0)[0])) for _ in range(2)]

    played = Played(program, [KNOWN], 1, "1>0", 0, 0, 1, "0>0", 1, model=model)
    assert played.outputs == [5, [0, 5]]


@pytest.mark.parametrize(("model", "seen"), [("ldst", 7), ("nic", 0)])
def test_an_actor_sees_its_own_remote_writes_only_if_they_are_forwarded(model, seen):
    async def beside(rank, row):
        return int(await rank.load(row.at(1)[0]))

    async def program(rank, row):
        await rank.store(row.at(1)[0], 7)
        stream = await rank.start(beside, row)
        return int(await rank.load(row.at(1)[0])), await rank.join(stream)

    played = Played(only(0, program), [ROW], *[0] * 3, "0.1", model=model)
    assert played.outputs[0] == (seen, 0)  # a stream is another actor, and sees nothing of it
    assert [event.unwritten for event in played.events[2:4]] == [seen == 0, True]


def test_forwarded_writes_are_seen_one_over_the_other():
    async def program(rank, row):
        await rank.store(row.at(1)[:], tiles(1, 2, 3, 4))
        await rank.store(row.at(1)[1:3], tiles(10, 10), atomic="add")
        await rank.store(row.at(1)[2], 5)
        return (await rank.load(row.at(1)[0:3])).tolist(), (await rank.load(row.at(1)[3])).tolist()

    assert Played(only(0, program), [ROW], *[0] * 5, model="ldst").outputs[0] == ([1, 12, 5], 4)


@pytest.mark.parametrize("model", LATE)
def test_a_notify_of_itself_is_late_too(model):
    async def program(rank, cell):
        await rank.notify(cell[0], 2)
        early = await rank.test(cell[0] >= 2)
        await rank.wait(cell[0] >= 2)
        return early

    played = Played(only(0, program), [CELL], 0, 0, 0, model=model)
    forwarded = model == "ldst"
    assert played.outputs[0] is forwarded
    assert [event.op.kind for event in played.events][2:] == (["wait", "land"] if forwarded else ["land", "wait"])
    # What a test or wait saw; where nothing is forwarded the first is 0, and the wait comes after the landing.
    assert [event.have for event in played.events] == [0, 2 * forwarded, 2, 2]


def test_a_forwarded_set_is_seen_over_what_came_before():
    async def program(rank, cell):
        await rank.notify(cell[0], 9)
        await rank.notify(cell[0], 1, SET)
        await rank.notify(cell[0], 3)
        return await rank.test(cell[0] == 4), await rank.test(cell[1] == 0)

    assert Played(only(0, program), [CELL], *[0] * 5, model="ldst").outputs[0] == (True, True)


def test_a_consuming_wait_does_not_overtake_an_own_set():
    async def program(rank, cell):
        await rank.notify(cell[0], 5, SET)
        await rank.wait(cell[0] >= 5, consume=True)

    played = Played(only(0, program), [CELL], 0, model="ldst")
    assert [event.op.kind for event in played.events] == ["notify", "land", "wait"]
    assert played.ready[1] == ["1>0"] if "1>0" in played.ready[1] else ["0>0"]


def test_a_consuming_wait_says_what_it_saw_of_forwarded_credits():
    async def program(rank, cell):
        await rank.notify(cell[0], 5)
        await rank.wait(cell[0] >= 5, consume=True)

    played = Played(only(0, program), [CELL], 0, 0, model="ldst")
    assert [(event.op.kind, event.have) for event in played.events] == [("notify", 0), ("wait", 5), ("land", 0)]


# The rules by which landings go. `landings(n)` is who could go once n steps were taken.


def test_l1_the_signal_of_a_put_waits_for_its_own_data_and_for_nothing_else():
    async def program(rank, row, cell):
        await rank.put(row.at(1)[0], 1)
        await rank.put_signal(row.at(1)[1], 2, cell.at(1)[0])

    played = Played(only(0, program), [ROW, CELL], 0, 0, "0>1", "0>1s")
    assert [played.landings(step) for step in (2, 3, 4)] == [["0>0", "0>1"], ["0>0", "0>1s"], ["0>0"]]
    kinds = [(event.op.kind, event.have) for event in played.events]
    assert kinds == [("put", None), ("put_signal", 0), ("land", None), ("land", 1), ("land", None)]


@pytest.mark.parametrize(("model", "free", "last"), [("ldst", ["0>0", "0>2"], 2), ("nic", ["0>0", "0>1", "0>2"], 1)])
def test_l2_landings_at_one_place_keep_their_order_only_if_places_do(model, free, last):
    async def program(rank, row):
        for number in (1, 2):
            await rank.store(row.at(1)[0], number)
        await rank.store(row.at(1)[1], 3)

    played = Played(only(0, program), [KNOWN], 0, 0, 0, "0>1", model=model)
    assert played.landings(3) == free
    assert played.row(1) == [last, 3, 0, 0]


def test_l2_holds_for_cells_and_not_for_two_adds():
    async def program(rank, row, cell):
        await rank.notify(cell.at(1)[0], 3, order="relaxed")
        await rank.notify(cell.at(1)[0], 4, order="relaxed")
        await rank.notify(cell.at(1)[0], 1, SET, order="relaxed")
        await rank.store(row.at(1)[0], 1, atomic="add")
        await rank.store(row.at(1)[0], 2, atomic="add")
        await rank.store(row.at(1)[0], 9)

    played = Played(only(0, program), [KNOWN, CELL], *[0] * 6, model="ldst")
    assert played.landings(6) == ["0>0", "0>1", "0>3", "0>4"]
    assert played.row(1) == [9, 0, 0, 0]
    assert played.events[-1].op.actor.name == "0>5"


@pytest.mark.parametrize("model", LATE)
def test_l3_a_fence_orders_landings_at_each_destination_separately(model):
    async def program(rank, row):
        await rank.store(row.at(1)[0], 1)
        await rank.fence()
        await rank.store(row.at(1)[1], 2)
        await rank.store(row.at(2)[0], 3)
        await rank.fence()
        await rank.store(row.at(2)[1], 4)

    played = Played(only(0, program), [KNOWN], *[0] * 6, "0>0", "0>3", model=model, ranks=3)
    assert [played.landings(step) for step in (6, 7, 8)] == [["0>0", "0>3"], ["0>2", "0>3"], ["0>2", "0>5"]]


@pytest.mark.parametrize("model", LATE)
def test_l4_a_release_lands_after_all_that_its_actor_wrote_before(model):
    async def program(rank, row, cell):
        await rank.store(row.at(1)[0], 1)
        await rank.notify(cell.at(2)[0], order="relaxed")
        await rank.notify(cell.at(1)[0])
        await rank.store(row.at(1)[1], 2)

    played = Played(only(0, program), [KNOWN, CELL], *[0] * 4, "0>3", "0>0", "0>1", model=model, ranks=3)
    assert [played.landings(step) for step in (4, 5, 6, 7)] == [
        ["0>0", "0>1", "0>3"], ["0>0", "0>1"], ["0>1"], ["0>2"],
    ]  # fmt: skip


@pytest.mark.parametrize(("model", "free"), [("ldst", ["0>0"]), ("nic", ["0>0", "0>1"])])
def test_l5_a_fetch_waits_for_own_writes_to_its_source_only_if_they_are_forwarded(model, free):
    async def program(rank, row):
        await rank.store(row[0], 7)
        await rank.put(row.at(1)[0], row[0], nbi=True)

    played = Played(only(0, program), [KNOWN], 0, 0, "0>1", "0>1", model=model)
    assert played.landings(2) == free
    assert played.row(1) == [7, 0, 0, 0]  # what the own rank stored it sees, landed or not


@pytest.mark.parametrize("model", LATE)
def test_l6_local_stores_of_two_streams_to_one_place_become_visible_in_order(model):
    async def beside(rank, row):
        await rank.store(row[0], 2)
        await rank.store(row[1], 3)

    async def program(rank, row):
        stream = await rank.start(beside, row)
        await rank.store(row[0], 1)
        await rank.join(stream)

    played = Played(only(0, program), [KNOWN], 0, 0, "0.1", "0.1", model=model)
    assert played.landings(4) == ["0>1", "0.1>1"]
    assert played.row(0) == [2, 3, 0, 0]


# Completion.


@pytest.mark.parametrize("model", LATE)
def test_quiet_waits_for_the_own_landings_and_for_nobody_elses(model):
    async def beside(rank, row):
        await rank.store(row.at(1)[1], 2)

    async def program(rank, row):
        stream = await rank.start(beside, row)
        await rank.store(row.at(1)[0], 1)
        await rank.quiet()
        await rank.fence()
        await rank.join(stream)

    played = Played(only(0, program), [KNOWN], 0, 0, "0.1", "0>1", 0, model=model)
    assert [played.ready[step] for step in (3, 4)] == [["0>1", "0.1>0"], ["0", "0.1>0"]]
    assert [event.op.kind for event in played.events[3:5]] == ["land", "quiet"]


def test_quiet_does_not_wait_where_nothing_is_late():
    assert [event.op.kind for event in Played(only(0, lambda rank, row: rank.quiet()), [ROW]).events] == ["quiet"]
    assert Played(only(0, lambda rank, row: rank.quiet()), [ROW], model="sc").run.ending == "complete"


@pytest.mark.parametrize("model", LATE)
def test_joining_and_meeting_complete_nothing(model):
    async def beside(rank, row):
        await rank.store(row.at(1)[0], 1)

    async def program(rank, row):
        await rank.join(await rank.start(beside, row))
        await rank.fence()

    played = Played(only(0, program), [KNOWN], 0, "0.1", 0, 0, model=model)
    assert [event.op.actor.name for event in played.events] == ["0", "0.1", "0", "0", "0.1>0"]


@pytest.mark.parametrize("model", LATE)
def test_a_run_ends_only_when_all_has_landed(model):
    async def program(rank, row, cell):
        await rank.store(row.at(1)[0], 7)
        await rank.notify(cell.at(1)[0])

    played = Played(only(0, program), [KNOWN, CELL], 0, 0, model=model)
    assert (played.run.ending, played.row(1)[0]) == ("complete", 7)
    assert [event.op.actor.name for event in played.events] == ["0", "0", "0>0", "0>1"]
    assert [(event.call, event.at) for event in played.events[2:]] == [
        (event.call, event.at) for event in played.events[:2]
    ]


def test_what_could_land_at_a_step_limit_is_pending():
    async def program(rank, row, cell):
        await rank.store(row.at(1)[0], 7)
        await rank.notify(cell.at(1)[0])

    played = Played(only(0, program), [KNOWN, CELL], 0, 0, max_steps=2)
    (pending,) = played.run.trace.footer.pending
    assert (pending.op.actor.name, str(pending.op), pending.at) == ("0>0", "land to row[0]@1", played.events[0].at)


def test_an_overflow_comes_when_the_credit_lands():
    async def program(rank, cell):
        await rank.notify(cell.at(1)[0])
        await rank.fence()
        await rank.notify(cell.at(1)[0])

    played = Played(only(0, program), [Signal("cell", (1,), np.int8, start=127)], 0, 0, "0>0")
    assert played.run.ending == "overflow"
    assert [(event.op.actor.name, event.have) for event in played.events] == [("0", 127), ("0", None), ("0>0", 127)]
    assert [event.op.actor.name for event in played.run.trace.footer.pending] == ["0"]


def test_an_overflow_at_the_very_end_is_one_too():
    program = only(0, lambda rank, cell: rank.notify(cell.at(1)[0]))
    assert Played(program, [Signal("cell", (1,), np.int8, start=127)]).run.ending == "overflow"


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
    wires = [landing.actor for landing in landings_of(op, 3, 1)]
    orders = [wire.order for wire in wires]
    assert orders == sorted(set(orders))
    assert (wires[0].name, wires[4999].name, index_of(wires[4999].name)) == ("0>3", "0>3.4999", 3)
    later = landings_of(op, 4, None)[0].actor
    other = landings_of(Op(world.actors[1], "store", large.at(1)[:].writes), 0, None)[0].actor
    assert orders[-1] < later.order < other.order


# Polls.


@pytest.mark.parametrize("model", ["sc", "ldst", "nic"])
def test_a_poll_waits_for_data_in_the_eyes_of_its_rank(model):
    async def program(rank, row):
        if rank.id == 1:
            await rank.store(row.at(0)[0], 3)
            await rank.store(row.at(0)[1], 4)
            return None
        await rank.store(row[2], 9)
        tile = await rank.poll(row[0:3], lambda tile: tile[0] == 3)
        return tile.tolist()

    played = Played(program, [ROW], 0, 1, "1>0", 0, model=model)
    assert played.outputs[0] == [3, 0, 9]
    # Looking is no load. What was loaded in the end had an element that nobody wrote.
    assert played.run.unwritten == ["row[0:3]@0"]


@pytest.mark.parametrize("model", ["sc", "nic"])
def test_an_exception_in_a_predicate_is_that_of_its_kernel(model):
    def fussy(tile):
        return 1 // int(tile) == 1

    async def program(rank, row):
        if rank.id == 0:
            return await rank.poll(row[0], fussy)
        await rank.store(row[0], 1)
        return await rank.load(row[0])

    with pytest.raises(KernelError, match=r"rank 0 failed in call 0 at test_late\.py:.*: ZeroDivisionError") as caught:
        Played(program, [KNOWN], 1, model=model)
    assert (caught.value.rank, caught.value.trace.events[-1].op.kind) == (0, "poll")


def test_a_predicate_that_depends_on_something_else_is_refused():
    async def program(rank, row):
        answers = [True, False]
        await rank.poll(row[0], lambda tile: answers.pop(0))

    with pytest.raises(KernelError, match="the predicate changed its mind on the same tile"):
        Played(program, [KNOWN], ranks=1)


def test_a_predicate_cannot_change_memory():
    def spoil(tile):
        tile[...] = 9
        return True

    async def program(rank, row):
        return (await rank.poll(row[:], spoil)).tolist()

    played = Played(program, [KNOWN], ranks=1, model="sc")
    assert (played.outputs[0], played.row(0)) == ([0] * 4, [0] * 4)


# Models by name, and schedulers.


def test_models_and_atoms_are_checked():
    assert model_of("nic:atom=4").atom == 4
    for text in ("weird", "sc:atom=4", "nic:atom=0", "nic:atom=x", "nic:atom"):
        with pytest.raises(MisuseError, match="memory="):
            Case(builtin, memory=text)


@pytest.mark.parametrize(("model", "calls"), [("ldst", 2), ("ldst:atom=16", 2), ("nic", 1)])
@pytest.mark.parametrize(
    "text", ["fifo", "eager", "random", "starve:rank=1", "pct", "pos", "delay", "preempt:k=3", "surw"]
)
def test_a_correct_kernel_stays_correct_whoever_chooses(text, model, calls):
    case = Case(builtin, 3, calls, memory=model)
    scheduler = make(text, seed=3)
    for _ in range(3):
        run = simulate(case, scheduler)
        assert run.ending == "complete"
        for ys, goldens in zip(run.outputs, case.goldens, strict=True):
            np.testing.assert_allclose(ys, goldens, rtol=1e-5)


def test_to_starve_a_rank_is_to_starve_its_streams_and_wires():
    async def beside(rank, row):
        await rank.store(row.at(1 - rank.id)[0], 2)

    async def program(rank, row):
        stream = await rank.start(beside, row)
        await rank.store(row.at(1 - rank.id)[1], 1)
        await rank.join(stream)

    case = Case(kernel(memory=[KNOWN])(program), 2, 1, memory="nic")
    ranks = [int(name[0]) for name in simulate(case, make("starve:rank=0")).choices]
    assert ranks == [1] * 6 + [0] * 6


def test_a_script_can_hold_a_landing_and_what_touches_no_memory():
    async def program(rank, row):
        if rank.id == 0:
            await rank.store(row.at(1)[0], 7)
            await rank.fence()
            return None
        return int(await rank.load(row[0]))

    case = Case(kernel(memory=[KNOWN])(program), 2, 1, memory="nic")
    held = Script("hold rank 0 before its land to row@1 until rank 1 has loaded of row")
    assert simulate(case, held).choices == ["0", "1", "0>0", "0"]
    landed = Script("hold rank 1 before its load until rank 0 has landed; hold rank 0 before its land until "
                    "rank 0 has done its fence")  # fmt: skip
    assert simulate(case, landed).choices == ["0", "0", "0>0", "1"]
    assert not held.released + landed.released


def test_a_script_knows_both_places_of_a_put_with_signal():
    async def program(rank, row, cell):
        if rank.id == 0:
            await rank.put_signal(row.at(1)[0], 1, cell.at(1)[0])
        else:
            await rank.fence()

    case = Case(kernel(memory=[KNOWN, CELL])(program), 2, 1)
    for rule in ("put to row@1", "notified on cell@1", "done its put_signal"):
        script = Script(f"hold rank 1 before its fence until rank 0 has {rule}", make("starve:rank=0"))
        assert simulate(case, script).choices == ["0", "1"]
        assert str(script).split("base")[0].strip(",") == str(make(str(script))).split("base")[0].strip(",")


def test_a_failing_schedule_with_wires_shrinks():
    case = Case(no_post_barrier, 2, 2, memory="nic")

    def fails(run):
        pairs = zip(sum(run.outputs, []), sum(case.goldens, []), strict=True)  # noqa: RUF017 - two short lists
        return run.ending == "complete" and not all(np.allclose(y, golden) for y, golden in pairs)

    scheduler = make("pct:depth=2", seed=1)
    long = next(run.choices for run in (simulate(case, scheduler) for _ in range(300)) if fails(run))
    short = shrink(case, long, fails, budget=150)
    assert len(segments_of(short)) <= len(segments_of(long))
    assert fails(simulate(case, Replay(short)))
