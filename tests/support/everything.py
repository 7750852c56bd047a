"""A kernel that does each kind of operation, its trace, and the trace as text: for the tests of traces."""

from __future__ import annotations

import io
import json

import ml_dtypes
import numpy as np

from asyncsim import SET, Case, Signal, Window, kernel, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.jsonl import read_trace, write_trace

MEMORY = [
    Window("data", ("P", 3, 20), np.float32, dirty=0),
    Window("one", (), "bfloat16", initialised=True),
    Window("none", (0,), np.int8, dirty="random"),
    Signal("flag", ("P", 1), np.int8, start=-2, wrap=True),
    Signal("done", (), self_cleaning=True),
]


@kernel(memory=MEMORY)
async def everything(rank, data, one, none, flag, done):  # noqa: PLR0913, PLR0917 - a parameter a declaration
    """Do each kind of operation, then hang where rank 1 waits for more than it gets."""
    peer = 1 - rank.id
    with rank.phase("é/1"):
        await rank.store(data[0, 0:2, 0:4:3], np.array([[1, np.nan], [-np.inf, -0.0]], np.float32))
        await rank.store(data.at(peer)[1, 2], np.ones(20, np.float32), atomic="add")
    await rank.load(data[0])
    await rank.load(data.at(peer)[0, 0, 3])
    await rank.put(data.at(peer)[0, 0], data[1, 0])
    await rank.put(one.at(peer)[()], np.asarray(1.5, ml_dtypes.bfloat16), atomic="add")
    await rank.get(data[1, 0], data.at(peer)[1, 0])
    await rank.get(data[0, 1], data.at(rank.id)[0, 1])
    await rank.store(none[:], np.empty(0, np.int8))
    await rank.notify(flag.at(peer)[0], 3)
    await rank.notify(flag[1], 5, SET)
    await rank.wait(flag[0] == 1, consume=True)
    await rank.test(flag[1] < 9)
    if rank.id == 1:
        await rank.wait(done[()] >= 4)


def recorded(program=everything, ranks=2, calls=1, scheduler=None):
    """Return the trace of a run."""
    return simulate(Case(program, ranks, calls), scheduler or Fifo(), record="fifo").trace


def written(trace):
    """Return the text of a trace."""
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue()


def read(text, **options):
    """Return the trace of a text."""
    return read_trace(io.StringIO(text), **options)


TRACE = recorded()
TEXT = written(TRACE)
LINES = TEXT.splitlines(keepends=True)
PLAIN = ["".join((json.dumps({k: v for k, v in json.loads(line).items() if k != "crc"}), "\n")) for line in LINES]
"""The same without sums, so that a test can change a line and nothing else stops it."""
