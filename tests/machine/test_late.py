"""What is late under ``ldst`` and ``nic``, and for whom; and what a poll sees of it.

Wires are called by their operation: "0>2" carries what operation 2 of rank 0 left, "0>2s" its signal.
"""

from __future__ import annotations

import pytest
from played import CELL, KNOWN, LATE, ROW, Played, only, tiles

from asyncsim import SET, KernelError

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
