"""Trace files of runs with streams and landings: the same when written and read."""

from __future__ import annotations

import json

import pytest
from everything import read, written
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_lines import plain, recorded

from asyncsim import Signal, TraceError, kernel
from asyncsim.analysis.analyse import analyse
from asyncsim.trace.event import Collective, Footer, Trace
from kernels.reduce_scatter import builtin, mpi_in_place, no_post_barrier

SCHEDULES = ("fifo", "eager", "random:seed=1", "pct:seed=3", "pos:seed=1", "starve:rank=1")
MODELS = ("sc", "ldst", "nic", "nic:atom=3", "ldst:atom=5")


def assert_same(trace):
    """Write and read a trace; nothing may be lost on the way, and the analysis says the same of both."""
    text = written(trace)
    again = read(text)
    assert written(again) == text
    for old, new in zip(trace.events, again.events, strict=True):
        a, b = old.op, new.op
        assert (a.actor.name, a.actor.order, a.actor.rank, a.actor.wire) == (
            b.actor.name, b.actor.order, b.actor.rank, b.actor.wire,
        )  # fmt: skip
        assert str(a) == str(b)
        assert (a.deferred, a.adapter, a.late, a.relaxed) == (b.deferred, b.adapter, b.late, b.relaxed)
        assert (a.link, a.call) == (b.link, b.call)
        for x, y in zip(a.accesses, b.accesses, strict=True):
            assert (x.mode, x.region.spans, x.region.part) == (y.mode, y.region.spans, y.region.part)
        assert (old.data, old.have, old.unwritten) == (new.data, new.have, new.unwritten)
    live, read_back = analyse(trace), analyse(again)
    assert live.findings == read_back.findings
    assert (live.race_pairs, live.reasons) == (read_back.race_pairs, read_back.reasons)
    return again


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", SCHEDULES)
def test_a_trace_with_every_kind_comes_back(text, model):
    trace = recorded(text=text, memory=model)
    again = assert_same(trace)
    assert trace.footer.ending == "complete"
    assert len({id(event.op.actor) for event in again.events}) == len({event.op.actor.name for event in again.events})


@pytest.mark.parametrize("program", [builtin, no_post_barrier, mpi_in_place])
@pytest.mark.parametrize("model", ["ldst", "nic"])
def test_the_analysis_of_a_file_is_that_of_the_run(program, model):
    for text in ("fifo", "random:seed=5"):
        trace = recorded(program, text, calls=2, memory=model)
        assert_same(Trace(trace.header, [_digested(event) for event in trace.events], trace.footer))


def _digested(event):
    event.data = None  # a digest is not the bytes; what comes of them is tested elsewhere
    return event


@given(st.integers(0, 1 << 16), st.sampled_from(MODELS), st.integers(0, 60))
@settings(max_examples=30)
def test_a_run_that_was_cut_off_comes_back(seed, model, steps):
    assert_same(recorded(text=f"random:seed={seed}", memory=model, max_steps=steps))


def test_what_is_pending_at_the_end_comes_back():
    async def waits(rank, cell):
        await rank.wait(cell[0] >= 5)

    async def meets(rank, barrier):
        await rank.sync(barrier)

    @kernel(memory=[Signal("cell", (1,))])
    async def hangs(rank, cell):
        barrier = rank.stream_barrier(3)
        streams = [await rank.start(waits, cell), await rank.start(meets, barrier)]
        if rank.id == 1:
            await rank.sync(barrier)
        for stream in streams:
            await rank.join(stream)

    trace = recorded(hangs)
    assert trace.footer.ending == "deadlock"
    assert len(trace.footer.pending) == 6
    assert_same(trace)


def test_a_step_of_each_new_kind_is_written_like_this():
    steps = [json.loads(line) for line in plain(recorded(text="random:seed=1", memory="nic:atom=8"))[1:-1]]
    wanted = {}
    for step in steps:
        wanted.setdefault(step["op"], {key: value for key, value in step.items() if key not in ("step", "at", "call")})
    assert wanted["start"] == {
        "event": "step", "rank": 0, "actor": "0", "op": "start", "link": "0.1", "phase": "outer",
    }  # fmt: skip
    assert wanted["sync"]["link"], wanted["sync"]["parties"] == ("0/1#0", 2)
    assert wanted["join"].keys() == {"event", "rank", "actor", "op", "link", "phase"} - (
        set() if "phase" in wanted["join"] else {"phase"}
    )
    assert wanted["quiet"].keys() == wanted["fence"].keys() == {"event", "rank", "actor", "op"}
    signal = wanted["put_signal"]
    assert (signal["how"], signal["amount"], len(signal["value"])) == ("AtomicAdd", 1, 2)
    piece = next(step for step in steps if "piece" in step.get("accesses", [{}])[0])
    assert piece["accesses"][0]["piece"] in ([0, 8], [8, 12])
    assert any(step.get("late") for step in steps)
    assert any(step.get("relaxed") for step in steps)
    assert any(step["op"] == "land" and step.get("link") == "local" for step in steps)
    assert [step["value"] for step in steps if step["actor"] == "0>6s"] == [7] or "0>6s" not in steps


def test_collectives_come_back():
    trace = recorded()
    said = Collective("0.1", 0, "world", (0, 1), 0, "barrier", (("dtype", "int8"), ("op", "Sum")), ("a.py:3",))
    bare = Collective("1", 1, "pair", (1,), 0, "barrier", (), ())
    trace.footer = Footer(*(getattr(trace.footer, name) for name in ("ending", "outputs", "pending")),
                          collectives=[said, bare])  # fmt: skip
    text = written(trace)
    assert read(text).footer.collectives == [said, bare]
    assert written(read(text)) == text
    lines = plain(trace)
    for old, new, reason in [
        ('"actor": "0.1", "rank": 0, "group"', '"actor": "0.7", "rank": 0, "group"', "starts stream '0.7'"),
        ('"actor": "0.1", "rank": 0, "group"', '"actor": "0.1", "rank": 1, "group"', "calls a collective as 1"),
        ('"members": [0, 1]', '"members": [1]', "calls a collective as 0 of (1,)"),
        ('"members": [0, 1]', '"members": [0, 2]', "a member is 2"),
        ('"op": "Sum"', '"op": 3', "'op' is 3; it must be a text"),
    ]:
        assert old in lines[-1]
        with pytest.raises(TraceError) as caught:
            read("\n".join([*lines[:-1], lines[-1].replace(old, new, 1), ""]))
        assert reason in caught.value.reason
