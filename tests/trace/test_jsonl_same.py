"""A trace that is written and read again has the same operations, field by field, under every memory model."""

import io

import numpy as np
import pytest

from asyncsim import Case, Fifo, Set, Signal, Window, kernel, simulate
from asyncsim.trace.jsonl import write_trace
from asyncsim.trace.jsonl_read import read_trace

BOX = Window("box", (4,), np.int32, initialised=True)
CELL = Signal("cell", (3,), "int8", wrap=True)
FIELDS = ("kind", "how", "amount", "consume", "call", "late", "relaxed", "link", "deferred")


@kernel(memory=[BOX, CELL])
async def everything(rank, box, cell):
    """Do each kind of operation, towards the peer and towards itself."""
    peer = 1 - rank.id
    await rank.store(box[0], 1)
    await rank.store(box.at(peer)[1], 2, atomic="add")
    await rank.put(box.at(peer)[2], box[0], nbi=True)
    await rank.get(box[3], box.at(peer)[0], nbi=True)
    await rank.quiet()
    await rank.put(box.at(peer)[2:4], np.ones(2, np.int32))
    await rank.fence()
    await rank.put_signal(box.at(peer)[2], np.int32(3), cell.at(peer)[0], 1)
    await rank.notify(cell.at(peer)[1], -1, order="relaxed")
    await rank.notify(cell[2], 5, op=Set)
    await rank.quiet()
    await rank.wait(cell[0] >= 1, consume=True)
    await rank.wait(cell[1] != 0)
    await rank.test(cell[2] == 5)
    await rank.load(box.at(peer)[1:3])

    async def child(rank, barrier):
        await rank.sync(barrier)

    barrier = rank.stream_barrier(2)
    stream = await rank.start(child, barrier)
    await rank.sync(barrier)
    await rank.join(stream)
    await rank.poll(box[0], bool)


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic", "nic:atom=1"])
def test_what_is_read_is_what_was_written(memory):
    trace = simulate(Case(everything, 2, 2, memory), Fifo(), record="fifo").trace
    text = io.StringIO()
    write_trace(trace, text)
    again = read_trace(io.StringIO(text.getvalue()))
    assert len(again.events) == len(trace.events) > 60
    for one, other in zip(trace.events, again.events, strict=True):
        for field in FIELDS:
            assert getattr(one.op, field) == getattr(other.op, field), (field, str(one.op))
        assert (str(one.op), one.op.actor.name, one.have, one.phase, one.at, one.unwritten) == (
            str(other.op), other.op.actor.name, other.have, other.phase, other.at, other.unwritten,
        )  # fmt: skip
        assert [access.region.part for access in one.op.accesses] == [x.region.part for x in other.op.accesses]
        assert one.data == other.data
