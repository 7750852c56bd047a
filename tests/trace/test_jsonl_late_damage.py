"""Trace files of runs with streams and landings are refused when they cannot be."""

from __future__ import annotations

import json
from itertools import count

import numpy as np
import pytest
from everything import read, written
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_lines import plain, recorded

from asyncsim import Case, TraceError, Window, kernel, simulate
from asyncsim.analysis.analyse import analyse
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace import jsonl_actors
from kernels.reduce_scatter import builtin

# Damage. The lines that are changed have no sums, so that nothing else stops a reader.

LATE = plain(recorded(memory="nic:atom=8"))


def damaged(change, where, lines=LATE, nth=0):
    """Change a line, and return what is said of it, and whether it is said of that line."""
    found = [number for number, line in enumerate(lines) if where(json.loads(line))][nth]
    line = json.loads(lines[found])
    change(line)
    with pytest.raises(TraceError) as caught:
        read("\n".join([*lines[:found], json.dumps(line), *lines[found + 1 :], ""]))
    return caught.value.reason, caught.value.line - found - 1


def does(kind, **wanted):
    return lambda line: line.get("op") == kind and all(line.get(key) == value for key, value in wanted.items())


def wire(end=""):
    return lambda line: ">" in line.get("actor", "") and line["actor"].endswith(end)


def header(line):
    return line["event"] == "header"


def to(**fields):
    return lambda line: line.update(fields)


def access(**fields):
    return lambda line: line["accesses"][0].update(fields)


def cell(**fields):
    return lambda line: line["cell"].update(fields)


def gone(*names):
    return lambda line: [line.pop(name) for name in names]


FAULTS = [
    # The header.
    (to(memory="weird"), header, "memory='weird'; the memory models are: sc, ldst, nic"),
    (to(memory="nic:atom=0"), header, "'memory' is 'nic:atom=0'"),
    (to(memory="nic:atom=" + "9" * 5000), header, "one of the memory models: sc, ldst, nic"),
    (to(memory="sc:atom=2"), header, "a model that is late"),
    (to(memory=7), header, "'memory' is 7; it must be a text"),
    # Streams.
    (to(link="0.-x"), does("start"), "actor 0 has no stream '0.-x'"),
    (to(link="0.01"), does("start"), "actor 0 has no stream '0.01'"),
    (to(link="1.1"), does("start"), "actor 0 has no stream '1.1'"),
    (to(link="0.1.1"), does("start"), "actor 0 has no stream '0.1.1'"),
    (to(link="0.5000"), does("start"), "too many streams; they go 4 deep and 4095 an actor"),
    (gone("link"), does("start"), "has no 'link'"),
    (to(parties=2), does("start"), "a field 'parties'"),
    (to(link="0.2"), does("join", actor="0"), "stream 0.2 is not running"),
    (to(link="1.1"), does("join", actor="0"), "actor 0 has no stream '1.1'"),
    (to(actor="0.9"), does("sync"), "no step before this one starts stream '0.9'"),
    (to(actor="0.1.1.1"), does("sync"), "starts stream '0.1.1.1'"),
    (to(actor="0."), does("sync"), "the header knows no actor '0.'"),
    (to(actor="x"), does("sync"), "the header knows no actor 'x'"),
    # Barriers.
    (to(link="0/1"), does("sync"), "'0/1' is no meeting of streams of rank 0: ACTOR/N#ROUND"),
    (to(link="1/1#0"), does("sync"), "is no meeting of streams of rank 0"),
    (to(link="0.7/1#0"), does("sync"), "is no meeting of streams of rank 0"),
    (to(parties=0), does("sync"), "'parties' is 0"),
    (gone("parties"), does("sync"), "has no 'parties'"),
    # What is issued.
    (to(late=1), does("put"), "'late' is 1; it must be true or false"),
    (gone("how"), does("put_signal"), "has no 'how'"),
    (to(amount=1 << 40), does("put_signal"), "'amount' is 1099511627776"),
    (gone("cell"), does("put_signal"), "has no 'cell'"),
    (access(mode="add"), does("put_signal"), "put_signal: only a put or a store adds"),
    (access(mode="read"), does("put_signal"), "it writes nothing"),
    (to(relaxed="yes"), does("notify"), "'relaxed' is 'yes'"),
    (to(consume=True), does("poll"), "a field 'consume'"),
    (access(mode="write"), does("poll"), "rank 0, poll: the mode write does not fit"),
    (to(accesses=[]), does("poll"), "'accesses' has 0 entries; it must have 1"),
    (to(accesses=[]), does("fence"), "a field 'accesses'"),
    (to(link="0.1"), does("quiet"), "'link' is '0.1'; it must be rank"),
    (to(pending=-1), does("quiet"), "'pending' is -1"),
    (to(link="rank", pending=2), does("quiet"), "'pending' is 2; the quiet of a whole rank leaves nothing pending"),
    (to(pending=1), does("fence"), "a field 'pending'"),
    (to(link="rank"), does("fence"), "a field 'link'"),
    (to(link="rank"), does("notify", relaxed=True), "'link' is 'rank'; it must be stores"),
    (gone("relaxed"), does("notify", link="stores"), "only what is relaxed has one"),
    (access(piece=[0, 4]), does("store"), "an access has a field 'piece'"),
    # Wires.
    (to(actor="0>99"), wire(), "no operation before this step leaves a landing to wire '0>99'"),
    (to(actor="0>1.7"), wire(), "leaves a landing to wire '0>1.7'"),
    (to(actor="0>x"), wire(), "leaves a landing to wire '0>x'"),
    (to(rank=1), wire(), "is of rank 0, not 1"),
    (to(op="load"), wire(), "does a load; its next step is a "),
    (to(op="fetch"), does("land"), "does a fetch; its next step is a land"),
    (to(op="land"), does("fetch"), "does a land; its next step is a fetch"),
    (to(op="land"), does("load"), "is a task; only a wire can land"),
    (to(op="fetch"), does("load"), "is a task; only a wire can fetch"),
    (access(owner=0), wire(), "this is not what the operation that it belongs to left to it"),
    (access(mode="add"), does("land"), "this is not what the operation"),
    (access(piece=[0, 4]), does("land"), "this is not what the operation"),
    (access(piece=[0]), does("land"), "'piece' has 1 entries; it must have 2"),
    (access(piece=[-1, 4]), does("land"), "an end of a 'piece' is -1"),
    (access(piece=3), does("land"), "'piece' is 3; it must be a list"),
    (gone("accesses"), does("land", link="local"), "has no 'accesses'"),
    (gone("link"), does("land", link="local"), "this is not what the operation"),
    (to(link="global"), does("land", link="local"), "it must be local, or left out"),
    (to(link="local"), wire("s"), "it must be queued, or left out"),
    (to(value=99), wire("s"), "this is not what the operation"),
    (to(how="Set"), wire("s"), "this is not what the operation"),
    (cell(owner=0), wire("s"), "this is not what the operation"),
    (gone("have"), wire("s"), "has no 'have'"),
    (to(value=[1]), does("land", link="local"), "'value' has 1 elements; its region has 8"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "where", "reason"), FAULTS)
def test_what_cannot_be_is_refused_at_its_line(change, where, reason):
    said, off = damaged(change, where)
    assert reason in said
    assert off == 0


def test_a_landing_belongs_to_the_call_of_its_issue():
    lines = plain(recorded(builtin, calls=2, memory="nic"))
    said, off = damaged(to(call=1), wire(), lines)
    assert (said, off) == ("wire 0>0 carries a landing of call 0, not 1", 0)


def test_a_source_that_is_fixed_is_not_read_late():
    said, off = damaged(to(late=True), lambda line: does("put")(line) and len(line["accesses"]) == 1)
    assert "nothing of it can be read late" in said
    assert off == 0


def repeated(where, lines=LATE):
    """Write a line twice, and return what is said of the second."""
    found = next(number for number, line in enumerate(lines) if where(json.loads(line)))
    second = json.dumps(json.loads(lines[found]) | {"step": found})
    with pytest.raises(TraceError) as caught:
        read("\n".join([*lines[: found + 1], second, ""]))
    assert caught.value.line == found + 2
    return caught.value.reason


def test_what_happens_once_does_not_happen_twice():
    assert repeated(does("start")) == "stream 0.1 was started before"
    assert repeated(does("join")) == "stream 0.1.1 is not running"
    assert repeated(does("land")) == "wire 0.1.1>0 has carried its landing before"
    assert "does a fetch; its next step is a land" in repeated(does("fetch"))
    assert repeated(does("sync", actor="0")) == "actor 0 is one too many at meeting 0/1#0 of 2 streams"
    other = damaged(to(parties=3), does("sync", rank=0), nth=1)
    assert other == ("meeting 0/1#0 is of 2 streams, not 3", 0)


def test_a_stream_that_was_joined_does_nothing_more():
    found = next(number for number, line in enumerate(LATE) if does("join")(json.loads(line)))
    after = {"event": "step", "step": found, "rank": 0, "actor": "0.1.1", "call": 0, "op": "fence"}
    with pytest.raises(TraceError, match=f"line {found + 2}: stream 0.1.1 was joined before"):
        read("\n".join([*LATE[: found + 1], json.dumps(after), ""]))


def test_an_actor_is_pending_once():
    trace = recorded(memory="nic", max_steps=9)
    lines = plain(trace)
    last = json.loads(lines[-1])
    last["pending"].append(last["pending"][0])
    with pytest.raises(TraceError, match=f"line {len(lines)}: actor .* is pending twice"):
        read("\n".join([*lines[:-1], json.dumps(last), ""]))


def test_a_tile_of_very_many_pieces_is_not_taken_apart(monkeypatch):
    window = Window("large", (1 << 20,), np.int8)

    @kernel(memory=[window])
    async def one_store(rank, large):
        await rank.store(large[:], np.zeros(1 << 20, np.int8))

    trace = simulate(Case(one_store, 1, 1), Fifo(), record="fifo").trace
    trace.header.memory = "ldst:atom=1"
    text = written(trace)
    monkeypatch.setattr(jsonl_actors, "MAX_PIECES", 1000)
    with pytest.raises(TraceError, match="line 2: the tiles so far land in more than 1000 pieces"):
        read(text)


@given(st.data())
@settings(max_examples=80)
def test_a_changed_line_is_refused_or_gives_a_trace(data):
    at = data.draw(st.integers(0, len(LATE) - 1))
    line = json.loads(LATE[at])
    holder = line
    for _ in count():
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.booleans()):
            break
        holder = holder[key]
    names = st.sampled_from(["0", "1.1", "0>1", "0>3.1", "0>6s", "0/1#0", "local", "late", "nic", "land", "sync"])
    holder[key] = data.draw(st.none() | st.booleans() | st.integers(-2, 9) | names)
    text = "\n".join([*LATE[:at], json.dumps(line), *LATE[at + 1 :], ""])
    try:
        again = read(text)
    except TraceError as error:
        assert error.line >= at + 1  # noqa: PT017 - either way out is right
    else:
        assert written(read(written(again))) == written(again)
        analyse(again)
