"""In which order late things land: each rule of the wires by a schedule that shows it, and what completes them.

Wires are called by their operation: "0>2" carries what operation 2 of rank 0 left, "0>2s" its signal.
"""

from __future__ import annotations

import numpy as np
import pytest
from played import CELL, KNOWN, LATE, ROW, Played, only

from asyncsim import SET, KernelError, Signal

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


# A non-blocking get, a rank's own places, the whole rank, and stores alone.


@pytest.mark.parametrize(("model", "free"), [("ldst", []), ("nic", ["0>2"])])
def test_no_fence_and_no_adapter_waits_for_a_non_blocking_get(model, free):
    async def program(rank, row, cell):
        await rank.get(row[0], row.at(1)[0], nbi=True)
        await rank.fence()
        await rank.notify(cell.at(1)[0])
        await rank.store(row[0], 7)
        await rank.quiet()

    played = Played(only(0, program), [KNOWN, CELL], 0, 0, 0, 0, model=model)
    assert played.landings(4) == ["0>0", *free, "0>3"]
    assert [event.op.kind for event in played.events][-1] == "quiet"


@pytest.mark.parametrize("model", LATE)
def test_l6_what_a_rank_issues_after_a_local_store_lands_after_it(model):
    async def beside(rank, row):
        await rank.get(row[0], row.at(1)[0], nbi=True)

    async def program(rank, row):
        await rank.store(row[0:2], np.array([7, 7], np.int32))
        await rank.store(row[1], 1, atomic="add")
        await rank.join(await rank.start(beside, row))
        await rank.quiet(scope="rank")
        return (await rank.load(row[0:2])).tolist()

    played = Played(only(0, program), [KNOWN], 0, 0, 0, "0.1", "0.1>0", model=model)
    assert played.landings(5) == ["0>0"]  # the get is fetched, and waits as the add does
    assert played.outputs[0] == [0, 8]


@pytest.mark.parametrize(("scope", "steps"), [("stream", 1), ("rank", 0)])
def test_a_quiet_of_the_rank_waits_for_all_its_streams(scope, steps):
    async def beside(rank, row):
        await rank.put(row.at(1)[0], 7)

    async def program(rank, row):
        await rank.join(await rank.start(beside, row))
        await rank.quiet(scope=scope)

    played = Played(only(0, program), [KNOWN], 0, "0.1", 0, 0)
    quiet = [event.op.kind for event in played.events].index("quiet")
    assert len(played.landings(quiet)) == steps
    assert str(played.events[quiet].op) == ("quiet rank" if scope == "rank" else "quiet")


@pytest.mark.parametrize("model", LATE)
@pytest.mark.parametrize(("pending", "awaited"), [(0, ["0>1", "0>2", "0>4"]), (1, ["0>1", "0>2"]), (2, []), (3, [])])
def test_a_quiet_may_leave_the_last_copies_pending_and_what_was_issued_after_them(model, pending, awaited):
    async def program(rank, row):
        await rank.get(row[2], row.at(1)[0])
        await rank.put(row.at(1)[0], row[0], nbi=True)
        await rank.store(row.at(1)[1], 7)
        await rank.get(row[3], row.at(1)[3])
        await rank.put(row.at(1)[2], 8)
        await rank.quiet(pending=pending)
        await rank.load(row[0])

    played = Played(only(0, program), [KNOWN], *[0] * 5, "0>0", "0>3", model=model)
    blocked = bool(awaited)
    assert ("0" in played.ready[7]) is not blocked
    landed = [event.op.actor.name for event in played.events if event.op.kind == "land"]
    quiet = [event.op.kind for event in played.events].index("quiet")
    before = [event.op.actor.name for event in played.events[7:quiet] if event.op.kind == "land"]
    assert set(awaited) <= set(before)
    assert {"0>1", "0>2", "0>4"} <= set(landed)
    assert str(played.events[quiet].op) == (f"quiet to {pending} pending" if pending else "quiet")


@pytest.mark.parametrize("model", LATE)
def test_a_quiet_that_leaves_copies_awaits_all_before_the_first_copy_and_is_no_fence(model):
    async def program(rank, row):
        await rank.store(row.at(1)[1], 7)
        await rank.put(row.at(1)[0], row[0], nbi=True)
        await rank.quiet(pending=9)
        await rank.store(row.at(1)[2], 8)

    played = Played(only(0, program), [KNOWN], 0, 0, "0>0", 0, 0, model=model)
    assert "0" not in played.ready[2]
    assert played.landings(5) == ["0>1", "0>3"]


@pytest.mark.parametrize("model", LATE)
def test_a_notify_after_stores_waits_for_no_put(model):
    async def program(rank, row, cell):
        await rank.put(row.at(1)[0], 7)
        await rank.store(row.at(1)[1], 7)
        await rank.store(row[2], 7)
        await rank.notify(cell.at(1)[0], order="stores")

    played = Played(only(0, program), [KNOWN, CELL], 0, 0, 0, 0, "0>1", "0>2", model=model)
    assert played.landings(4) == ["0>0", "0>1", "0>2"]
    assert played.landings(6) == ["0>0", "0>3"]


@pytest.mark.parametrize(("model", "waits"), [("ldst", False), ("nic", True)])
def test_a_put_to_oneself_is_there_at_once_only_without_an_adapter(model, waits):
    async def program(rank, row):
        await rank.put(row.at(0)[0], 7)
        return int(await rank.load(row[0]))

    played = Played(only(0, program), [KNOWN], 0, 0, model=model)
    assert played.outputs[0] == (0 if waits else 7)


def test_a_signal_behind_a_copy_is_seen_by_its_own_actor_when_it_lands():
    async def program(rank, row, cell):
        await rank.store(row[1], 7)
        await rank.put(row.at(0)[0], row[1], nbi=True)
        await rank.notify(cell[0])
        await rank.notify(cell[1], order="relaxed")
        tests = [await rank.test(cell[0] >= 1), await rank.test(cell[1] >= 1)]
        await rank.wait(cell[0] >= 1)
        return *tests, int(await rank.load(row[0]))

    played = Played(only(0, program), [KNOWN, CELL], 0, 0, 0, 0, 0, 0, 0, model="ldst")
    assert played.outputs[0] == (False, True, 7)
    links = {event.op.link for event in played.events if event.op.kind == "land" and event.op.cell is not None}
    assert links == {"", "queued"}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (lambda rank, cell: rank.quiet(scope="world"), "quiet of scope='world'; use 'stream' or 'rank'"),
        (lambda rank, cell: rank.quiet(pending=-1), "quiet of pending=-1; use a number of copies"),
        (lambda rank, cell: rank.quiet(pending=True), "quiet of pending=True; use a number of copies"),
        (lambda rank, cell: rank.quiet(pending=1.0), "quiet of pending=1.0; use a number of copies"),
        (lambda rank, cell: rank.quiet(scope="rank", pending=1), "scope='rank' and pending=1; the last copies are of"),
        (lambda rank, cell: rank.notify(cell[0], order="late"), "order='late'; use 'release', 'stores' or 'relaxed'"),
    ],
)
def test_words_that_are_none_are_refused(operation, reason):
    with pytest.raises(KernelError, match=reason):
        Played(only(0, operation), [CELL])
