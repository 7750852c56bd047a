"""Runs to be shown: the kept witnesses, one with a race in inline values, a large one, and a hostile trace."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from asyncsim import Case, Signal, Window, kernel, simulate
from asyncsim.checking.record.locate import locate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.jsonl import read_trace, write_trace

TRACES = Path(__file__).resolve().parents[2] / "traces"
RACE = TRACES / "reduce_scatter-no_post_barrier-WAR-next-call.jsonl"
HANG = TRACES / "f16_group_index_used_as_rank-deadlock.jsonl"
LATE = TRACES / "f27_flag_overtakes_data-RAW-same-call.jsonl"
STREAMS = TRACES / "f25_two_streams_one_communicator-WAR-same-call.jsonl"
EVERY = sorted(TRACES.glob("*.jsonl"))

SCRIPT = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&amp;"
"""A phase, a file and a sentence that would be a script if anything made markup of them."""
STEER = "\x1b[2J\x1b]0;owned\x07"


def text_of(trace):
    """Return the lines of a trace."""
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue()


def large(ranks=64):
    """Return the trace of one call on many ranks: 28,480 steps on 64."""
    return simulate(Case(locate("reduce_scatter:builtin"), ranks, 1), Fifo(), record="fifo").trace


def hostile(path, words):
    """Write a kept race to `path` with `words` wherever a trace holds free text."""
    lines = [json.loads(line) for line in RACE.read_text("ascii").splitlines()]
    for line in lines:
        line.pop("crc")
        if line["event"] == "step":
            line["phase"], line["at"] = words, [f"{words}:3"]
    lines[0]["kernel"], lines[0]["scheduler"] = words, words
    (finding,) = lines[-1]["findings"]
    finding["why"], finding["shown"], finding["scope"] = words, words, words
    for side in finding["sides"]:
        side["file"], side["line"], side["phase"] = words, 3, words
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    return path


BOX = Window("box", (3,), np.int32, initialised=True)
TALLY = Window("tally", (4,), np.int32, dirty=5)
COUNT = Signal("count", (2,), start=3)


@kernel(memory=[BOX, TALLY, COUNT])
async def small(rank, box, tally, count):
    """Store, add, notify and wait, on two ranks, with values that stand in the trace."""
    with rank.phase("fill"):
        await rank.store(box[0:2], np.array([1, 2], np.int32) + 10 * rank.id)
    await rank.store(tally.at(1 - rank.id)[1:3], np.array([7, 8], np.int32), atomic="add")
    await rank.notify(count.at(1 - rank.id)[1], 2)
    await rank.wait(count[1] == 5)
    await rank.store(box.at(1 - rank.id)[2], 9)
    return await rank.load(box[:])


def small_trace():
    """Return the trace of `small` in fair turn, as read back from its file."""
    trace = simulate(Case(small, 2, 1), Fifo(), record="fifo").trace
    return read_trace(io.StringIO(text_of(trace)))
