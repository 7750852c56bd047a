"""Streams: further tasks of a rank, and what starting, joining and meeting mean."""

from __future__ import annotations

import pytest
from schedules import Scripted, run
from streaming import CELL, ROW, answer

from asyncsim import Case, kernel, simulate
from asyncsim.analysis.analyse import analyse
from asyncsim.schedulers.table import make
from asyncsim.trace.world import World

# What start, join and sync do.


def test_joining_a_stream_gives_what_its_program_returned():
    async def program(rank, row):
        one, two = await rank.start(answer, rank.id + 1), await rank.start(answer)
        return await rank.join(two), await rank.join(one), one.result

    assert run(program, [ROW]).outputs == [[(42, 1, 1), (42, 2, 2)]]


def test_a_stream_has_a_name_a_rank_and_a_place_after_its_parent():
    async def inner(rank):
        await rank.fence()
        return rank.actor.name, rank.actor.order

    async def outer(rank):
        streams = [await rank.start(inner) for _ in range(2)]
        return [rank.actor.name, rank.id, rank.size, rank.actor.order, *[await rank.join(s) for s in streams]]

    async def program(rank, row):
        return await rank.join(await rank.start(outer))

    result = run(program, [ROW])
    names = [[y[0], *(each[0] for each in y[4:])] for y in result.outputs[0]]
    assert names == [["0.1", "0.1.1", "0.1.2"], ["1.1", "1.1.1", "1.1.2"]]
    orders = [order for y in result.outputs[0] for order in (y[3], *(each[1] for each in y[4:]))]
    assert orders == sorted(set(orders))
    own = World(2, [ROW]).actors
    assert own[0].order < orders[0] < orders[2] < own[1].order < orders[3]


def test_a_stream_runs_beside_its_parent():
    async def side(rank, row):
        await rank.store(row[0], 1)
        await rank.store(row[0], 2)

    async def program(rank, row):
        stream = await rank.start(side, row)
        seen = [int(await rank.load(row[0])) for _ in range(3)]
        await rank.join(stream)
        return seen

    assert run(program, [ROW], 0, "0.1", 0, "0.1", ranks=1).outputs == [[[1, 2, 2]]]
    assert run(program, [ROW], ranks=1).outputs == [[[0, 0, 0]]]


def test_a_join_waits_until_the_stream_has_finished():
    async def side(rank):
        await rank.fence()
        await rank.fence()

    async def program(rank):
        await rank.join(await rank.start(side))

    script = Scripted(0, 0, 0, 0)
    simulate(Case(kernel(memory=[])(program), 1, 1), script)
    assert script.names == [["0"], ["0.1"], ["0.1"], ["0"]]


def test_streams_of_a_rank_share_its_memory_and_its_cells():
    async def side(rank, row, cell):
        await rank.wait(cell[1] >= 1)
        await rank.store(row[0], 7)
        await rank.notify(cell[0])

    async def program(rank, row, cell):
        stream = await rank.start(side, row, cell)
        if rank.id == 1:
            await rank.notify(cell.at(0)[1])
            await rank.notify(cell[1])
        await rank.wait(cell[0] >= 1)
        seen = int(await rank.load(row[0]))
        await rank.join(stream)
        return seen

    result = run(program, [ROW, CELL], record="x")
    assert result.outputs == [[7, 7]]
    assert analyse(result.trace).findings == []


def test_a_barrier_holds_each_stream_until_all_have_come_and_can_be_used_again():
    async def side(rank, barrier):
        for _ in range(2):
            await rank.sync(barrier)

    async def program(rank):
        barrier = rank.stream_barrier(2)
        stream = await rank.start(side, barrier)
        for _ in range(2):
            await rank.fence()
            await rank.sync(barrier)
        await rank.join(stream)

    script = Scripted(0, "0.1", 0, 0, 0, "0.1", "0.1", 0, 0)
    result = simulate(Case(kernel(memory=[])(program), 1, 1), script, record="x")
    assert script.names[:5] == [["0"], ["0"], ["0", "0.1"], ["0", "0.1"], ["0.1"]]
    links = [(event.op.actor.name, event.op.link, event.op.amount) for event in result.trace.events]
    assert [link for link in links if link[2]] == [
        ("0", "0/1#0", 2), ("0.1", "0/1#0", 2), ("0.1", "0/1#1", 2), ("0", "0/1#1", 2),
    ]  # fmt: skip


def test_a_stream_belongs_to_the_call_and_the_phase_in_which_it_was_started():
    async def side(rank):
        with rank.phase("inner"):
            await rank.fence()
        return rank.call

    async def program(rank):
        with rank.phase("outer"):
            stream = await rank.start(side)
        return stream.actor.name, await rank.join(stream)

    result = run(program, [], calls=2, ranks=1, record="x")
    assert result.outputs == [[("0.1", 0)], [("0.2", 1)]]
    phases = [(event.op.actor.name, event.call, event.phase) for event in result.trace.events]
    assert phases == [
        ("0", 0, "outer"), ("0.1", 0, "outer/inner"), ("0", 0, ""),
        ("0", 1, "outer"), ("0.2", 1, "outer/inner"), ("0", 1, ""),
    ]  # fmt: skip


def test_what_starting_joining_and_meeting_order_is_no_race():
    async def side(rank, row, barrier):
        await rank.store(row[0], 1)
        await rank.sync(barrier)
        await rank.load(row[1])
        await rank.store(row[2], 1)

    async def program(rank, row):
        barrier = rank.stream_barrier(2)
        await rank.store(row[0], 0)
        stream = await rank.start(side, row, barrier)
        await rank.store(row[1], 5)
        await rank.sync(barrier)
        await rank.load(row[0])
        await rank.join(stream)
        await rank.load(row[2])

    assert analyse(run(program, [ROW], record="x").trace).findings == []


def test_what_nothing_orders_is_a_race_of_two_streams():
    async def side(rank, row):
        await rank.store(row[0], 1)

    async def program(rank, row):
        stream = await rank.start(side, row)
        await rank.load(row[0])
        await rank.join(stream)

    (finding,) = analyse(run(program, [ROW], ranks=1, record="x").trace).findings
    assert (finding.kind, {side.actor for side in finding.sides}) == ("race", {"0", "0.1"})


@pytest.mark.parametrize("text", ["fifo", "eager", "starve:rank=0", "pct:seed=4", "pos:seed=1", "random:seed=2"])
def test_any_scheduler_can_choose_among_streams(text):
    async def side(rank, row, cell):
        await rank.store(row.at(1 - rank.id)[rank.id], rank.id + 1)
        await rank.notify(cell.at(1 - rank.id)[0])

    async def program(rank, row, cell):
        streams = [await rank.start(side, row, cell) for _ in range(3)]
        await rank.wait(cell[0] >= 3)
        for stream in streams:
            await rank.join(stream)
        return int(await rank.load(row[1 - rank.id]))

    case = Case(kernel(memory=[ROW, CELL])(program), 2, 1)
    one, two = make(text), make(text)
    assert [simulate(case, one).outputs for _ in range(2)] == [[[2, 1]], [[2, 1]]]
    assert simulate(case, two).choices == simulate(case, make(text)).choices
