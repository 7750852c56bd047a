"""What a command writes never replaces what it reads, the source of a kernel, or its other output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command import KERNELS, run

from asyncsim.cli.outputs import check_outputs
from asyncsim.trace.errors import MisuseError

SCRIPT = "print('ran')\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with a kernel, a trace, a link to each, a script and a table of numbers."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(KERNELS, "utf-8")
    assert run("record", "mine.py:fine", "t.jsonl", "-P", "2").exit_code == 0
    for name in ("mine.py", "t.jsonl"):
        Path(f"link-{name}l").symlink_to(name)
        os.link(name, f"hard-{name}l")
    Path("script.py").write_text(SCRIPT, "utf-8")
    Path("numbers.csv").write_text("1,2\n3,4\n", "utf-8")
    return tmp_path


REFUSED = [
    ("record mine.py:fine mine.py", "FILE mine.py: a trace is not a Python file"),
    ("record mine.py:fine new.py", "FILE new.py: a trace is not a Python file"),
    (
        "record mine.py:fine link-mine.pyl",
        "FILE link-mine.pyl: that would write over mine.py, the file of mine.py:fine",
    ),
    ("record mine.py:fine hard-mine.pyl", "that would write over mine.py, the file of mine.py:fine"),
    ("record mine.py:fine -", "FILE -: it is written to a file"),
    ("show t.jsonl --html t.jsonl", "--html t.jsonl: that would write over t.jsonl, which it reads"),
    ("show t.jsonl --perfetto ./t.jsonl", "--perfetto t.jsonl: that would write over t.jsonl, which it reads"),
    ("show t.jsonl --perfetto link-t.jsonll", "that would write over t.jsonl, which it reads"),
    ("show t.jsonl --html hard-t.jsonll", "that would write over t.jsonl, which it reads"),
    ("show t.jsonl --html x --perfetto x", "--perfetto x: that would write over x, which --html writes"),
    ("show mine.py --other t.jsonl --html t.jsonl", "that would write over t.jsonl, which it reads"),
    ("show t.jsonl --kernel mine.py:fine --html mine.py", "would write over mine.py, the file of mine.py:fine"),
    ("show t.jsonl --html -", "--html -: it is written to a file, and not to standard output"),
    ("show t.jsonl --perfetto -", "--perfetto -: it is written to a file"),
    ("check mine.py:fine -P 2 --certificate mine.py", "--certificate mine.py: that would write over mine.py, the file"),
    ("table reduce_scatter --input numbers.csv --out numbers.csv", "--out numbers.csv: that would write over numbers"),
    ("bench --quick --json -", "--json -: it is written to a file"),
    ("torchrun --json script.py script.py", "--json script.py: that would write over script.py, which it reads"),
    ("torchrun --replay t.jsonl --json t.jsonl script.py", "that would write over t.jsonl, which it reads"),
    ("pypto --json script.py script.py", "--json script.py: that would write over script.py, which it reads"),
    ("pypto --replay t.jsonl --json t.jsonl script.py", "that would write over t.jsonl, which it reads"),
]


def test_no_output_replaces_what_is_needed(here):
    before = {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()}
    for line, message in REFUSED:
        result = run(*line.split())
        assert (line, result.exit_code) == (line, 2)
        assert message in result.stderr.replace("\n", " "), line
        assert {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()} == before, line


def test_other_files_are_written_and_written_again(here):
    for _ in range(2):
        assert run("show", "t.jsonl", "--html", "a.html", "--perfetto", "a.json").exit_code == 0
        assert run("record", "mine.py:fine", "u.jsonl", "-P", "2").exit_code == 0
        assert run("check", "mine.py:fine", "-P", "2", "--certificate", "c.jsonl").exit_code == 0
        assert run("table", "reduce_scatter", "--input", "numbers.csv", "--out", "t.txt").exit_code == 0
    assert Path("u.jsonl").read_bytes() == Path("t.jsonl").read_bytes()


def test_a_token_is_no_file_however_long_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_outputs({"--json": Path("new.json")}, reads=["as1." + 5000 * "x", None])
    with pytest.raises(MisuseError, match="which it reads"):
        check_outputs({"--json": Path("new.json")}, reads=[Path("no/../new.json")])
