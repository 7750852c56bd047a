"""Traces from people who mean no good: a clear error with its line, or a correct reading; never a crash or a hang."""

from __future__ import annotations

import collections
import gzip
import io
import json
import time

import hostile
import pytest
from command import start_process

from asyncsim import DivergenceError, KernelError, MisuseError, TraceError
from asyncsim.checking.record.locate import is_shipped, locate
from asyncsim.checking.record.replay import replay
from asyncsim.study.compare import compare_traces
from asyncsim.study.explain import explain, read_run
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.jsonl_read import survey_trace
from asyncsim.views.explain import explanation_text

MANY, ALL = 1_000, 10_000
PARTS = 5
LONG = 30
"""Seconds of CPU that one trace may take at the very most; a thousandth is usual."""


def opened(data):
    """Return bytes as a trace file is opened."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape", newline="\n")


def written(trace):
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue()


def outcome(data, reference):
    """Read a trace and do everything with it that can be done; return what came of it in a word."""
    try:
        survey = survey_trace(opened(data), elsewhere=True)
    except TraceError as error:
        refused = error
    else:
        return outcome_of_reading(survey, data, reference)
    assert refused.line is not None
    assert 1 <= refused.line <= data.count(b"\n") + 2
    assert refused.reason
    return "refused"


def outcome_of_reading(survey, data, reference):
    try:
        survey = read_run(opened(data))
    except TraceError as error:
        return "no order" if survey.trace.header.recorded and " operations" in error.reason else f"odd: {error}"
    text = written(survey.trace)
    assert written(survey_trace(io.StringIO(text), elsewhere=True).trace) == text
    explained = explain(survey)
    json.dumps(explained.to_json())
    explanation_text(explained, cells=True)
    compare_traces(reference, survey.trace)
    header = survey.trace.header
    if not header.recorded and is_shipped(header.kernel):
        return replayed(survey.trace)
    return "read"


def replayed(trace):
    try:
        kernel = locate(trace.header.kernel)
    except MisuseError:
        return "no such kernel"
    try:
        replay(trace, kernel)
    except DivergenceError as error:
        return "diverged" if 0 <= error.step <= len(trace.events) else f"odd: {error}"
    except (KernelError, MisuseError):
        return "misused"
    return "replayed"


@pytest.fixture(scope="module")
def references():
    return [read_run(io.StringIO(text)).trace for text in hostile.originals()]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_wrong_trace_is_refused_or_read(part, references, request):
    count = (ALL if request.config.getoption("--thorough") else MANY) // PARTS
    mutator = hostile.Mutator(part)
    met = collections.Counter()
    for _ in range(count):
        number, data = mutator.next()
        started = time.process_time()
        met[outcome(data, references[number])] += 1
        assert time.process_time() - started < LONG, data[:2000]
    assert met["refused"] > count / 3  # they are wrong,
    assert met["read"] + met["replayed"] + met["diverged"] > count / 20  # and not all at first sight
    assert not [word for word in met if word.startswith("odd")]


def test_the_originals_are_read_and_replayed(references):
    for text, reference in zip(hostile.originals(), references, strict=True):
        word = "replayed" if any(name in text for name in ("no_post_barrier", "kernels.field")) else "read"
        assert outcome(text.encode(), reference) == word


BIG = """
import resource, sys
from asyncsim import TraceError
from asyncsim.trace.jsonl import read_trace

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        read_trace(path)
    except TraceError as error:
        print(error.line, error.reason)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_line_of_a_hundred_megabytes_is_refused_in_little_memory(tmp_path):
    head = hostile.originals()[0].splitlines(keepends=True)[0].encode()
    piece = 1 << 20
    for name, first, filling in (
        ("text", b'{"event":"header","kernel":"', b"x" * piece),
        ("nested", b"", b"[" * piece),
        ("later", head, b'{"event":"step","at":[' + b"0," * (piece // 2)),
        ("no text", head, b"\xff" * piece),
    ):
        with (tmp_path / name).open("wb") as file:
            file.write(first)
            for _ in range(100):
                file.write(filling)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(b" " * 100 * piece, 1))
    names = ("text", "nested", "later", "no text", "packed.gz")
    process = start_process("-c", BIG, *(str(tmp_path / name) for name in names))
    stdout, stderr = process.communicate(timeout=120)
    *reasons, growth = stdout.splitlines()
    assert stderr == ""
    assert [int(reason.split()[0]) for reason in reasons] == [1, 1, 2, 2, 1]
    assert all("the line is longer than 16777216 characters" in reason for reason in reasons)
    assert int(growth) < 256  # MiB: of 16 million characters, some in four bytes each


@pytest.mark.parametrize("deep", [33, 1_000, 1_000_000])
def test_deep_nesting_is_no_recursion(deep):
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        text = opening * deep + "1" + closing * deep
        with pytest.raises(TraceError, match="line 1: nested deeper than 32"):
            read_trace(io.StringIO(text + "\n"))


def test_an_endless_supply_of_lines_is_read_line_by_line():
    class Endless(io.RawIOBase):
        def __init__(self):
            self.given = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            self.given += len(buffer)
            buffer[:] = b"{}\n" * (len(buffer) // 3) + b" " * (len(buffer) % 3)
            return len(buffer)

    endless = Endless()
    with pytest.raises(TraceError, match="line 1: "):
        read_trace(io.TextIOWrapper(io.BufferedReader(endless)))
    assert endless.given < 1 << 20
