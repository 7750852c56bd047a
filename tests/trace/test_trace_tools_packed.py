"""Traces that are compressed by their ending: the same bytes again, whole or cut, damaged, or very large."""

from __future__ import annotations

import contextlib
import gzip
import io
import random

import everything
import pytest
from command import ROOT, run
from everything import TEXT

from asyncsim import MisuseError, TraceError
from asyncsim.trace import packed
from asyncsim.trace.jsonl import LiveTrace, read_trace, write_trace
from asyncsim.trace.jsonl_read import survey_trace


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_the_ending_compresses_and_the_bytes_depend_on_the_trace_alone(tmp_path, ending):
    if ending == ".zst":
        pytest.importorskip("zstandard")
    paths = [tmp_path / f"{name}.jsonl{ending}" for name in ("one", "other")]
    for path in paths:
        write_trace(everything.TRACE, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert len(paths[0].read_bytes()) < len(TEXT) / 3
    stream = io.StringIO()
    write_trace(read_trace(paths[0]), stream)
    assert stream.getvalue() == TEXT
    assert [path.name for path in sorted(tmp_path.iterdir())] == [f"one.jsonl{ending}", f"other.jsonl{ending}"]
    if ending == ".gz":
        assert gzip.decompress(paths[0].read_bytes()).decode() == TEXT


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_commands_take_compressed_traces(tmp_path, ending):
    if ending == ".zst":
        pytest.importorskip("zstandard")
    source = ROOT / "traces/reduce_scatter-no_post_barrier-WAR-next-call.jsonl"
    path = tmp_path / f"witness.jsonl{ending}"
    write_trace(read_trace(source), path)
    assert run("replay", str(path)).output == run("replay", str(source)).output
    assert run("explain", str(path)).output == run("explain", str(source)).output
    assert run("diff", str(path), str(source)).exit_code == 0
    shrunk = run("shrink", str(path))
    assert shrunk.exit_code == 0
    assert run("validate", *map(str, tmp_path.iterdir())).exit_code == 0


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_compressed_trace_that_is_cut_or_damaged_is_told_from_a_whole_one(tmp_path, ending):
    if ending == ".zst":
        pytest.importorskip("zstandard")
    path = tmp_path / f"some.jsonl{ending}"
    live = LiveTrace(path, everything.TRACE.header)
    with live:
        for event in everything.TRACE.events:
            live.step(event)
        live.finish(everything.TRACE.footer)
    whole = path.read_bytes()
    assert survey_trace(path).cut == ""
    for cut in range(1, len(whole), 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(TraceError):
            read_trace(path)
        try:
            survey = survey_trace(path)
        except TraceError as error:
            assert error.line == 1  # noqa: PT017 - not even the header is whole
        else:
            assert survey.cut
            assert len(survey.trace.events) in (survey.lines - 1, survey.lines - 2)
    draw = random.Random(3)  # noqa: S311 - no secret
    for _ in range(40):
        at = draw.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :])
        try:
            survey = survey_trace(path)
        except TraceError as error:
            assert error.line is not None  # noqa: PT017 - either way out is right
        else:
            assert [str(event.op) for event in survey.trace.events] == [
                str(event.op) for event in everything.TRACE.events[: len(survey.trace.events)]
            ]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_small_file_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch, ending):
    bomb = b'{"event":"header","format":1,"kernel":"' + b"x" * (1 << 26)
    path = tmp_path / f"bomb.jsonl{ending}"
    if ending == ".zst":
        path.write_bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(bomb))
    else:
        path.write_bytes(gzip.compress(bomb, mtime=0))
    assert path.stat().st_size < 100_000
    with pytest.raises(TraceError, match="line 1: the line is longer than 16777216 characters"):
        read_trace(path)
    monkeypatch.setattr(packed, "MAX_UNPACKED", 1 << 20)
    with pytest.raises(TraceError, match="it unpacks to more than 1048576 bytes"):
        read_trace(path)


def test_without_zstandard_it_is_said_what_to_install(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(packed.importlib, "import_module", missing)
    path = tmp_path / "some.jsonl.zst"
    with pytest.raises(MisuseError, match=r"pip install 'asyncsim\[zstd\]'; or use a trace that ends in .jsonl"):
        write_trace(everything.TRACE, path)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"")
    assert run("explain", str(path)).exit_code == 2
    assert "zstandard, which is not installed" in run("validate", str(path)).output


def test_an_empty_compressed_file_is_no_trace(tmp_path):
    (tmp_path / "none.jsonl.gz").write_bytes(b"")
    with pytest.raises(TraceError, match="line 1: empty: a trace begins with its header"):
        read_trace(tmp_path / "none.jsonl.gz")


class Interrupted:
    """Stands for an object, and lets Ctrl-C come before or after its n-th call, counted over all that share a clock."""

    def __init__(self, real, clock):
        """Share the clock."""
        self.real, self.clock = real, clock

    def __getattr__(self, name):
        """Wrap a method."""
        found = getattr(self.real, name)

        def call(*arguments):
            self.clock.tick()
            value = found(*arguments)
            self.clock.tick()
            return value

        return call if callable(found) else found


class Clock:
    """Raises once, at one point of time."""

    def __init__(self, when):
        """Count down from here."""
        self.left = when

    def tick(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_interrupted_at_any_moment_it_is_whole_up_to_its_last_line(tmp_path, monkeypatch, ending, live):
    if ending == ".zst":
        pytest.importorskip("zstandard")
    clock = Clock(0)
    files, packing = [], packed._Packing

    def slow(file, coder, *, live):
        files.append(file)
        return packing(Interrupted(file, clock), Interrupted(coder, clock), live=live)

    monkeypatch.setattr(packed, "_Packing", slow)
    path, lines = tmp_path / f"some.jsonl{ending}", TEXT.splitlines(keepends=True)
    read = []
    while clock.left <= 0:
        clock.left = len(read) + 1
        stream = packed.open_for_writing(path, live=live)
        with contextlib.suppress(KeyboardInterrupt), stream:
            for line in lines:
                stream.write(line)
                stream.flush()
        assert stream.closed
        files[-1].close()  # as the end of the process does, if Ctrl-C came before it was closed
        opened, unpacking = packed.open_for_reading(path)
        with opened:
            text = opened.read()
        assert TEXT.startswith(text)
        assert not unpacking.fault or unpacking.cut, unpacking.fault
        read.append(len(text))
        try:
            survey = survey_trace(path)
        except TraceError as error:
            assert error.line == 1  # noqa: PT017 - not even the header is whole
        else:
            assert len(survey.trace.events) <= len(everything.TRACE.events)
    assert read == sorted(read)
    assert (read[0], read[-1]) == (0, len(TEXT))
    assert len(read) > (8 if live else 4) * len(lines)
