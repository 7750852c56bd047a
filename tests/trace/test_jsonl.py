"""Trace files: written and read they are the same."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import structlog
from everything import LINES, MEMORY, TEXT, TRACE, everything, read, recorded, written
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncsim
from asyncsim import Case, KernelError, TraceError, kernel, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from asyncsim.trace.event import Digest, Event, Footer, Trace
from asyncsim.trace.jsonl import TraceWriter, read_trace, write_trace
from asyncsim.trace.op import Op
from asyncsim.trace.strict import json_text, parse_json, text_in
from asyncsim.trace.version import VERSION
from kernels.reduce_scatter import builtin


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
@settings(max_examples=20)
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
    assert '"how":"Eq","cell":{"signal":"flag","owner":0,"index":[0,0]},"need":1,"have":1,"consume":true' in waits[0]
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
    async def raises(rank, *memory):
        await rank.load(memory[1][()])
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


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udcff.py", "\U0001f600", "\\ud800", "\ude00\ud83d", "\ud83d\U0001f600", '"\\']
)
def test_every_text_is_written_as_one_that_can_be_read(text):
    read = text_in(parse_json(json_text({"text": text}))["text"], "it")
    lone = any("\ud800" <= sign <= "\udfff" for sign in text)
    assert read == (text.encode("utf-8", "backslashreplace").decode() if lone else text)
