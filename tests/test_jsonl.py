"""Trace files: written and read they are the same; damaged they say where."""

from __future__ import annotations

import io
import json
import math
import struct
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncsim
from asyncsim import ATOMIC_ADD, SET, Case, KernelError, Signal, TraceError, Window, kernel, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from asyncsim.trace import jsonl_read, jsonl_step
from asyncsim.trace.event import Digest, Event, Footer, Header, Trace
from asyncsim.trace.jsonl import TraceWriter, read_trace, write_trace
from asyncsim.trace.op import Op
from asyncsim.trace.strict import parse_json
from asyncsim.trace.values import DTYPES, decode_data, dtype_name, dtype_named, encode_data
from asyncsim.trace.version import VERSION
from asyncsim.trace.world import World
from kernels.reduce_scatter import builtin

MEMORY = [
    Window("data", ("P", 3, 20), np.float32, dirty=0),
    Window("one", (), "bfloat16", initialised=True),
    Window("none", (0,), np.int8, dirty="random"),
    Signal("flag", ("P", 1), np.int8, start=-2, wrap=True),
    Signal("done", (), self_cleaning=True),
]


@kernel(memory=MEMORY)
async def everything(rank, data, one, none, flag, done):
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
    return simulate(Case(program, ranks, calls), scheduler or Fifo(), record="fifo").trace


def written(trace):
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue()


def read(text, **options):
    return read_trace(io.StringIO(text), **options)


TRACE = recorded()
TEXT = written(TRACE)
LINES = TEXT.splitlines(keepends=True)
PLAIN = ["".join((json.dumps({k: v for k, v in json.loads(line).items() if k != "crc"}), "\n")) for line in LINES]
"""The same without sums, so that a test can change a line and nothing else stops it."""


def test_a_trace_comes_back_as_it_was():
    assert TRACE.footer.ending == "deadlock"
    again = read(TEXT)
    assert written(again) == TEXT
    assert again.choices == TRACE.choices
    assert again.header.world.memory[3:] == tuple(
        replace(signal, shape=shape, dtype=np.dtype(signal.dtype))
        for signal, shape in zip(MEMORY[3:], ((2, 1), ()), strict=True)
    )
    for old, new in zip(TRACE.events, again.events, strict=True):
        assert (new.step, new.call, new.phase, new.at, new.have, new.need, new.unwritten) == (
            old.step, old.call, old.phase, old.at, old.have, old.need, old.unwritten,
        )  # fmt: skip
        assert str(new.op) == str(old.op)
        assert (new.op.call, new.op.payload) == (old.op.call, None)
        if isinstance(new.data, Digest):
            assert new.data.elements > 16
        else:
            assert new.data == old.data


@given(st.integers(0, 1 << 16), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_every_run_of_a_kernel_comes_back(seed, ranks):
    text = written(recorded(builtin, ranks, 2, Random(seed)))
    assert written(read(text)) == text
    plain = "".join(line.partition(',"crc"')[0] + "}\n" for line in text.splitlines())
    assert written(read(plain)) == text


def test_the_bytes_are_these():
    assert LINES[0] == (
        '{"event":"header","format":1,"asyncsim":"' + VERSION + '","kernel":"' + everything.ref + '","source":"'
        + everything.source + '","ranks":2,"calls":1,"memory":"sc","seed":0,"declarations":['
        '{"window":"data","shape":[2,3,20],"dtype":"float32","dirty":0},'
        '{"window":"one","shape":[],"dtype":"bfloat16","initialised":true},'
        '{"window":"none","shape":[0],"dtype":"int8","dirty":"random"},'
        '{"signal":"flag","shape":[2,1],"dtype":"int8","start":-2,"wrap":true},'
        '{"signal":"done","shape":[],"dtype":"int32","start":0,"self_cleaning":true}],"groups":[],'
        '"actors":[{"actor":"0","rank":0},{"actor":"1","rank":1}],"edits":[],"scheduler":"fifo","crc":"'
        + json.loads(LINES[0])["crc"] + '"}\n'
    )  # fmt: skip
    assert LINES[1].startswith(
        '{"event":"step","step":0,"rank":0,"actor":"0","call":0,"op":"store","accesses":[{"window":"data","owner":0,'
        '"region":[0,[0,2,1],[0,4,3]],"mode":"write"}],"value":[1.0,"nan:7fc00000","-inf",-0.0],"phase":"\\u00e9/1","at":['
    )
    waits = [line for line in LINES if '"consume":true' in line]
    assert '"op":"wait","how":"Eq","cell":{"signal":"flag","owner":0,"index":[0,0]},"need":1,"have":1,"consume":true' in waits[0]
    assert json.loads(LINES[-1])["pending"][0]["need"] == 4
    assert TEXT.isascii()


def test_the_version_of_the_package_is_that_of_its_traces():
    assert asyncsim.__version__ == VERSION


def test_structlog_configured_elsewhere_changes_nothing():
    structlog.configure(processors=[lambda *_: "not this"])
    try:
        assert written(TRACE) == TEXT
    finally:
        structlog.reset_defaults()


def test_a_killed_run_leaves_whole_lines():
    stream = io.StringIO()
    writer = TraceWriter(stream, TRACE.header)
    for event in TRACE.events[:5]:
        writer.step(event)
    text = stream.getvalue()
    assert text == "".join(LINES[:6])
    with pytest.raises(TraceError, match="line 6: truncated: the trace ends without a footer"):
        read(text)
    partial = read(text, partial=True)
    assert (len(partial.events), partial.footer) == (5, None)
    assert written(partial) == text
    assert len(read(text + LINES[6][:-9], partial=True).events) == 5
    with pytest.raises(TraceError, match="line 7: truncated: the last line is not whole"):
        read(text + LINES[6][:-9])
    with pytest.raises(TraceError, match="line 3: the crc does not fit"):
        read("".join(LINES[:2] + LINES[3:]), partial=True)


def test_the_last_newline_may_be_missing():
    assert read(TEXT[:-1]).footer is not None
    assert read(TEXT.replace("\n", "\r\n")).footer is not None


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "run.jsonl"
    write_trace(TRACE, path)
    assert path.read_bytes() == TEXT.encode()
    assert written(read_trace(str(path))) == TEXT
    broken = Trace(TRACE.header, [], Footer("complete", [], findings=[{"kind": {1}}]))
    with pytest.raises(TypeError):
        write_trace(broken, path)
    assert [file.name for file in tmp_path.iterdir()] == ["run.jsonl"]
    assert path.read_bytes() == TEXT.encode()


def test_an_error_names_the_file_and_the_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(LINES[0].encode() + b'{"event":"\xff"}\n')
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert str(caught.value) == f"{path}, line 2: bytes that are no UTF-8"
    with path.open(encoding="utf-8") as stream, pytest.raises(TraceError, match="mine, line 1: bytes that are no text"):
        read_trace(stream, name="mine")


def test_what_was_concluded_is_kept():
    footer = Footer("complete", [], verdict="REFUTED", findings=[{"kind": "race", "pairs": 2, "sides": [[]]}])
    trace = read(written(Trace(TRACE.header, [], footer)))
    assert (trace.footer.verdict, trace.footer.findings) == (footer.verdict, footer.findings)


def test_the_trace_of_a_kernel_that_raised_is_a_trace():
    @kernel(memory=MEMORY)
    async def raises(rank, data, one, none, flag, done):
        await rank.load(one[()])
        raise ValueError

    with pytest.raises(KernelError) as caught:
        simulate(Case(raises, 2, 1), Fifo(), record="fifo")
    again = read(written(caught.value.trace))
    assert again.footer.ending == "stopped"


def test_a_digest_that_was_read_is_written_again():
    digest = Digest("0123456789abcdef", 20)
    world = TRACE.header.world
    region = world.views(0)[0][0, 0]
    event = Event(0, Op(world.actors[0], "load", region.reads), 0, "", (), digest)
    text = written(Trace(TRACE.header, [event], Footer("complete", [])))
    assert read(text).events[0].data == digest


# Numbers.


@given(st.sampled_from(DTYPES), st.binary(min_size=0, max_size=64))
def test_every_bit_pattern_of_every_dtype_comes_back(name, raw):
    dtype = dtype_named(name)
    data = raw[: len(raw) // dtype.itemsize * dtype.itemsize]
    elements = len(data) // dtype.itemsize
    value = encode_data(data, dtype)
    if elements <= 16:
        assert decode_data(json.loads(json.dumps(value, allow_nan=False)), dtype, elements) == data
    else:
        assert decode_data(value, dtype, elements) == Digest(value["sha256"], elements)


def test_a_dtype_has_one_name():
    assert [dtype_name(dtype_named(name)) for name in DTYPES] == list(DTYPES)


def test_a_nan_keeps_its_bits():
    signalling = struct.pack("=I", 0xFF800001)
    assert encode_data(signalling, np.dtype(np.float32)) == ["nan:ff800001"]


@pytest.mark.parametrize(
    ("value", "dtype", "reason"),
    [
        ({"sha256": "0123456789abcdef", "elements": 1}, "int8", "at least 17"),
        ({"sha256": "0123456789abcdeg", "elements": 17}, "int8", "16 hex digits"),
        ({"sha256": "0123456789abcdef", "elements": 17}, "int8", "digest of 17 elements; its region has 1"),
        ("x", "int8", "must be a list"),
        ([1, 2], "int8", "has 2 elements; its region has 1"),
        ([128], "int8", "128 is no int8"),
        ([True], "int8", "True is no int8"),
        ([1.0], "int8", "1.0 is no int8"),
        ([1], "bool", "1 is no bool"),
        (["x"], "float32", "'x' is no float32"),
        ([True], "float32", "True is no float32"),
        ([1e39], "float32", "too large for float32"),
        (["nan:7fc0"], "float32", "not the bits of a float32"),
        (["nan:7FC00000"], "float32", "not the bits of a float32"),
        (["nan:00000000"], "float32", "no NaN of float32"),
        (["nan:00"], "int8", "no NaN of int8"),
        ([1.0], "complex64", "no pair"),
        ([[1.0, "i"]], "complex64", "'i' is no float32"),
    ],
)
def test_a_value_that_its_window_cannot_hold_is_refused(value, dtype, reason):
    with pytest.raises(ValueError, match=".") as caught:
        decode_data(value, dtype_named(dtype), 1)
    assert reason in str(caught.value)


def test_many_elements_must_be_a_digest():
    with pytest.raises(ValueError, match="more than 16 are a digest"):
        decode_data([0] * 17, np.dtype(np.int8), 17)


@pytest.mark.parametrize("dirty", [math.inf, -1.5, np.float32(0.5), math.nan, True, 3, np.int8(7)])
def test_dirty_memory_is_declared_as_it_was(dirty):
    world = World(1, [Window("w", (1,), dirty=dirty)])
    text = written(Trace(Header("k:k", "", world, 1, "sc", 0, "fifo"), [], Footer("complete", [])))
    again = read(text)
    assert again.header.world.windows[0].dirty == pytest.approx(dirty, nan_ok=True, rel=0)
    assert written(again) == text


# Damage.


@given(st.integers(0, len(TEXT) - 2), st.characters(codec="utf-8"))
@settings(max_examples=200)
def test_one_changed_character_is_found_in_its_line(at, sign):
    changed = TEXT[:at] + sign + TEXT[at + 1 :]
    if changed == TEXT:
        return
    with pytest.raises(TraceError) as caught:
        read(changed)
    assert caught.value.line in (TEXT[:at].count("\n") + 1, TEXT[:at].count("\n") + 2)


@given(st.data())
def test_lost_and_moved_lines_are_found(data):
    at = data.draw(st.integers(0, len(LINES) - 2))
    with pytest.raises(TraceError) as caught:
        read("".join(LINES[:at] + LINES[at + 1 :]))
    assert caught.value.line == at + 1
    to = data.draw(st.integers(0, len(LINES) - 1).filter(lambda to: to != at))
    lines = LINES[:at] + LINES[at + 1 :]
    lines.insert(to, LINES[at])
    with pytest.raises(TraceError) as caught:
        read("".join(lines))
    assert caught.value.line == min(at, to) + 1


leaves = st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=3) | st.just(1 << 70)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_without_sums_a_changed_line_is_refused_or_gives_a_trace(data):
    at = data.draw(st.integers(0, len(PLAIN) - 1))
    line = json.loads(PLAIN[at])
    holder, key = line, None
    while isinstance(holder, dict | list) and holder:
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.booleans()):
            break
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[key] = data.draw(leaves | st.lists(leaves, max_size=3))
    else:
        del holder[key]
    text = "".join([*PLAIN[:at], json.dumps(line) + "\n", *PLAIN[at + 1 :]])
    try:
        again = read(text)
    except TraceError as error:
        assert error.line is not None  # noqa: PT017 - either way out is right
        assert error.line >= at + 1
    else:
        assert written(read(written(again))) == written(again)


def changed(number, old, new, lines=PLAIN):
    assert old in lines[number - 1], lines[number - 1]
    return "".join([*lines[: number - 1], lines[number - 1].replace(old, new, 1), *lines[number:]])


def line_of(part):
    return next(number for number, line in enumerate(PLAIN, 1) if part in line)


HEADER_FAULTS = [
    ('"format": 1', '"format": 2', "format 2; this asyncsim reads format 1"),
    ('"format": 1', '"format": true', "format True"),
    ('"header"', '"step"', "a line of the kind 'step', where a header belongs"),
    ('"ranks": 2', '"ranks": 3', "2 actors for 3 ranks"),
    ('"ranks": 2', '"ranks": 1e99', "'ranks' is 1e+99"),
    ('"actor": "1"', '"actor": "x"', "the actor of rank 1 is called '1'"),
    ('"calls": 1', '"calls": 1000000', "1 to 65536"),
    ('"groups": []', '"groups": [1]', "not part of this format yet"),
    ('"edits": []', '"edits": [7]', "an edit is 7; it must be a text"),
    ('"edits": []', '"edits": 7', "'edits' is 7; it must be a list"),
    ('"memory": "sc"', '"memory": "\\ud800"', "half a character"),
    ('"seed": 0', '"seed": 0, "hour": 3', "a field 'hour' that does not belong there"),
    ('"seed": 0', '"seed": 0, "seed": 3', "the key 'seed' stands twice"),
    ('"seed": 0', '"seed": NaN', "NaN is no JSON"),
    ('"seed": 0', '"seed": 1e999', "too large"),
    ('"seed": 0', f'"seed": {"9" * 5000}', "a number of 5000 digits"),
    ('"seed": 0', f'"seed": {"[" * 5000}', "nested deeper than 32"),
    ('"seed": 0, ', "", "has no 'seed'"),
    ('"float32"', '"object"', "'dtype' is 'object'"),
    ('"dtype": "int8", "start"', '"dtype": "float32", "start"', "a signal is one of int8"),
    ('"window": "one"', '"window": "data"', "two declarations are called 'data'"),
    ('"window": "one"', '"door": "one"', "a declaration has no 'signal'"),
    ('"initialised": true', '"initialised": 1', "must be true or false"),
    ('"dirty": 0', '"dirty": "clean"', "'dirty' is 'clean'; it must be a number"),
    ("[2, 3, 20]", "[2, 3, 99999999999999]", "bytes; at most"),
    ('"shape": [2, 1]', '"shape": [2, 99999999999999]', "cells; at most"),
    (json.dumps(everything.source), '"0123"', "16 hex digits"),
]


@pytest.mark.parametrize(("old", "new", "reason"), HEADER_FAULTS)
def test_a_header_that_cannot_be_is_refused(old, new, reason):
    with pytest.raises(TraceError) as caught:
        read(changed(1, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == 1


STEP_FAULTS = [
    (2, '"step": 0', '"step": 1', "step 1, where step 0 belongs"),
    (2, '"actor": "0"', '"actor": "9"', "the header knows no actor '9'"),
    (2, '"rank": 0', '"rank": 1', "actor 0 is of rank 0, not 1"),
    (2, '"call": 0', '"call": 1', "'call' is 1; it must be an integer, 0 to 0"),
    (2, '"op": "store"', '"op": "fly"', "'op' is 'fly'"),
    (2, '"op": "store"', '"op": "wait"', "it has no 'cell'"),
    (2, '"op": "store"', '"op": "load"', "the mode write does not fit"),
    (2, '"op": "store"', '"op": "remote_store"', "is not where this kind goes"),
    (2, '"op": "store"', '"op": "get"', "1 accesses; it has a source and a target"),
    (2, '"window": "data"', '"window": "flag"', "the header declares no window 'flag'"),
    (2, '"owner": 0', '"owner": 2', "'owner' is 2"),
    (2, "[0, 2, 1]", "[0, 4, 1]", "a stop is 4; it must be an integer, 0 to 3"),
    (2, "[0, 2, 1]", "[0, 2]", "[0, 2] is no [start, stop, step]"),
    (2, "[0, 2, 1]", "[0, 2, 0]", "a step is 0"),
    (2, "[0, [0, 2, 1]", "[2, [0, 2, 1]", "an offset is 2; it must be an integer, 0 to 1"),
    (2, "[0, [0, 2, 1]", "[[0, 2, 1]", "'region' has 2 offsets"),
    (2, '"write"', '"read it"', "'mode' is 'read it'"),
    (2, '"at": [', '"at": ["a:1", "b:2", ', "at most two lines"),
    (2, '"at": [', '"at": ["no line", ', "at most two lines"),
    (2, '"at": [', '"at": [3, ', "a line of 'at' is 3"),
    (2, '"accesses": [', '"accesses": [3, ', "an access is 3; it must be an object"),
    (2, '"phase": ', '"unknown": 1, "phase": ', "a field 'unknown' that does not belong there"),
    (2, "1.0,", "", "'value' has 3 elements"),
    (2, '"event": "step"', '"event": "leap"', "a line of the kind 'leap', where a step or footer belongs"),
    (2, "{", "", "no JSON: "),
    (2, "{", "[{", "no JSON: "),
]


@pytest.mark.parametrize(("number", "old", "new", "reason"), STEP_FAULTS)
def test_a_step_that_cannot_be_is_refused(number, old, new, reason):
    with pytest.raises(TraceError) as caught:
        read(changed(number, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == number


FAULTS_BY_LINE = [
    ('"op": "wait"', '"owner": 0', '"owner": 1', "waits on flag[0, 0]@1, which is not its own"),
    ('"op": "wait"', '"how": "Eq"', '"how": "Set"', "'how' is 'Set'"),
    ('"op": "wait"', '"need": 1', '"need": 200', "'need' is 200"),
    ('"op": "wait"', '"have": 1', '"have": null', "'have' is None"),
    ('"op": "wait"', '"index": [0, 0]', '"index": [0]', "'index' has 1 offsets"),
    ('"op": "wait"', '"index": [0, 0]', '"index": [0, 1]', "an offset is 1"),
    ('"op": "wait"', '"signal": "flag"', '"signal": "data"', "declares no signal 'data'"),
    ('"op": "notify"', '"value": 3', '"value": 128', "'value' is 128"),
    ('"op": "notify"', '"value": 3', '"value": 3, "consume": true', "a field 'consume'"),
    ('"op": "notify"', ATOMIC_ADD, "Ge", "'how' is 'Ge'"),
    ('"op": "get"', '"mode": "read"', '"mode": "write"', "the source, is not a read"),
    ('"op": "get"', '"mode": "write"', '"mode": "read"', "a copy reads its target exactly when it is the source"),
    ('"op": "get"', "[1, 0, [0, 20, 1]]", "[1, 0, [0, 19, 1]]", "differ in shape or dtype"),
    ('"op": "get"', '0, "region": [1, 0, [0, 20, 1]], "mode": "write"', '1, "region": [1, 0, [0, 20, 1]], "mode": "write"', "is a peer's"),
    ('"op": "put"', '"owner": 0', '"owner": 1', "the source data[1, 0, 0:20]@1 is a peer's"),
    ('"op": "put", "accesses": [{"window": "one"', '"mode": "add"', '"mode": "read"', "it writes nothing"),
    ('"op": "remote_load"', '"accesses": [', '"accesses": [], "x": [', "0 accesses; it has one"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "old", "new", "reason"), FAULTS_BY_LINE)
def test_an_operation_that_its_kind_does_not_allow_is_refused(part, old, new, reason):
    number = line_of(part)
    with pytest.raises(TraceError) as caught:
        read(changed(number, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == number


FOOTER_FAULTS = [
    ('"deadlock"', '"bored"', "'ending' is 'bored'"),
    (f'"steps": {len(TRACE.events)}', '"steps": 3', f"counts 3 steps; the trace has {len(TRACE.events)}"),
    ('"outputs": [', '"outputs": [[null, null], ', "'outputs' of 2 calls; the run makes 1"),
    ('"outputs": [[', '"outputs": [[null, ', "3 outputs of a call; there are 2 ranks"),
    ('"outputs": [[', '"outputs": [["x", ', "an output is 'x'"),
    ('"pending": [', '"pending": [4, ', "a pending operation is 4"),
    ('"pending": [{', '"pending": [{"step": 1, ', "a field 'step'"),
    ('"ending"', '"findings": [{}], "ending"', "a finding has no 'kind'"),
    ('"ending"', '"verdict": 4, "ending"', "'verdict' is 4"),
]


@pytest.mark.parametrize(("old", "new", "reason"), FOOTER_FAULTS)
def test_a_footer_that_cannot_be_is_refused(old, new, reason):
    with pytest.raises(TraceError) as caught:
        read(changed(len(PLAIN), old, new))
    assert reason in caught.value.reason
    assert caught.value.line == len(PLAIN)


def test_booleans_cannot_be_added():
    world = World(1, [Window("mask", (1,), bool)])
    op = Op(world.actors[0], "store", world.views(0)[0][0].adds)
    text = written(Trace(Header("k:k", "", world, 1, "sc", 0, ""), [Event(0, op, 0, "", ())], Footer("complete", [])))
    with pytest.raises(TraceError, match="line 2: rank 0, store: booleans cannot be added"):
        read(text)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "empty"),
        ("\n", 1, "no JSON"),
        ("[]\n", 1, "the line is []; it must be an object"),
        (TEXT + LINES[1], len(LINES) + 1, "the crc does not fit"),
        ("".join(PLAIN) + PLAIN[1], len(LINES) + 1, "content after the footer"),
        (LINES[0] + PLAIN[1], 2, "no crc, though the lines before have one"),
        (PLAIN[0] + LINES[1], 2, "a crc, though the lines before have none"),
        (PLAIN[0] + '"\ud800"\n', 2, "no UTF-8"),
        (PLAIN[0] + PLAIN[0], 2, "of the kind 'header', where a step or footer belongs"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(text, line, reason):
    with pytest.raises(TraceError) as caught:
        read(text)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_a_line_without_end_is_not_held_in_memory(monkeypatch):
    monkeypatch.setattr(jsonl_read, "MAX_LINE", 5000)
    with pytest.raises(TraceError, match="line 2: the line is longer than 5000 characters"):
        read(PLAIN[0] + " " * 6000)


def test_a_region_of_very_many_pieces_is_not_made(monkeypatch):
    monkeypatch.setattr(jsonl_step, "MAX_SPANS", 3)
    with pytest.raises(TraceError, match="line 2: the regions so far are more than 3 pieces of memory"):
        read(TEXT)


def test_brackets_inside_a_text_are_no_nesting():
    assert parse_json(json.dumps(["[" * 100 + '"{\\'])) == ["[" * 100 + '"{\\']
