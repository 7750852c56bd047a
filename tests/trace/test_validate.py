"""Whether a file is a trace, and which line is wrong; the JSON Schema of the lines, against the reader."""

from __future__ import annotations

import io
import json
import random
import re

import instrumented
import pytest
from command import ROOT, run
from everything import LINES, PLAIN, TEXT
from everything_late import late

from asyncsim import Case, TraceError, simulate
from asyncsim.schedulers.table import make
from asyncsim.study.explain import read_run
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.schema import schema

TRACES = sorted((ROOT / "traces").glob("*.jsonl"))
DOCUMENT = ROOT / "docs/reference/trace-format.md"


@pytest.fixture
def put(tmp_path):
    """Write a text to a file, and return its path as a text."""

    def write(text, name="some.jsonl"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(tmp_path / name)

    return write


# ---- the command


def test_a_whole_trace_is_valid(put):
    path = put(TEXT)
    result = run("validate", path)
    assert (result.exit_code, result.output) == (0, f"{path}: valid, {len(LINES)} lines, {len(LINES) - 2} steps\n")


def test_a_wrong_line_is_named_with_its_reason(put):
    path = put(TEXT.replace('"op":"load"', '"op":"lead"', 1))
    line = next(number for number, text in enumerate(LINES, 1) if '"op":"load"' in text)
    result = run("validate", path)
    assert result.exit_code == 2
    assert result.output.startswith(f"{path}, line {line}: the crc does not fit")
    (told,) = json.loads(run("validate", path, "--json").output)
    assert (told["valid"], told["line"], told["lines"]) == (False, line, None)


def test_of_a_trace_that_was_broken_off_it_is_said_how_far_it_is_whole(put):
    for cut, reason in ((0, "it has no footer"), (25, "its last line is not whole")):
        path = put("".join(LINES[:9]) + LINES[9][:cut])
        result = run("validate", path)
        assert result.exit_code == 2
        assert result.output == f"{path}: broken off: {reason}; whole up to line 9, 8 steps\n"


def test_several_files_are_told_one_by_one(put, tmp_path):
    good, bad, gone = put(TEXT), put("[]\n", "bad.jsonl"), str(tmp_path / "gone.jsonl")
    result = run("validate", good, bad, gone)
    assert result.exit_code == 2
    assert [line.partition(": ")[0] for line in result.output.splitlines()] == [good, f"{bad}, line 1", gone]
    assert result.output.splitlines()[2].endswith(": No such file or directory")
    assert run("validate", good, good).exit_code == 0


def test_without_a_file_it_asks_for_one():
    result = run("validate")
    assert result.exit_code == 2
    assert "which file? Give one or more" in result.stderr


def test_what_came_out_of_a_file_does_not_steer_the_terminal(put):
    result = run("validate", put(b'{"event":"\x1b[2J"}\n'))
    assert "\x1b" not in result.output


# ---- the schema


@pytest.fixture(scope="module")
def fits():
    """Return whether a line fits the schema."""
    jsonschema = pytest.importorskip("jsonschema")
    validators = {}
    for elsewhere in (False, True):
        made = schema(elsewhere=elsewhere)
        jsonschema.Draft202012Validator.check_schema(made)
        validators[elsewhere] = jsonschema.Draft202012Validator(made)
    return lambda line, *, elsewhere=False: validators[elsewhere].is_valid(line)


def late_lines():
    for memory in ("nic", "ldst:atom=4"):
        stream = io.StringIO()
        write_trace(simulate(Case(late, 2, 1, memory), make("fifo"), record="fifo").trace, stream)
        yield from stream.getvalue().splitlines()


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_every_line_of_the_kept_traces_fits(path, fits):
    assert all(fits(json.loads(line)) for line in path.read_text("utf-8").splitlines())


def test_every_kind_of_line_fits(fits):
    assert [line for line in (*LINES, *PLAIN, *late_lines()) if not fits(json.loads(line))] == []


def test_lines_that_were_recorded_elsewhere_fit_their_own_schema(fits):
    lines = [json.loads(line) for line in instrumented.log(instrumented.run(acknowledged=True)).splitlines()]
    assert all(fits(line, elsewhere=True) for line in lines)
    assert not any(fits(line) for line in lines)


def mutated(line, draw):
    """Change one value, or drop or add a field, somewhere in a line."""
    holder = line
    while True:
        key = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        if isinstance(holder[key], dict | list) and holder[key] and draw.random() < 0.6:
            holder = holder[key]
        else:
            break
    odd = [None, True, -1, 1 << 70, 2.5, "odd", "", [], {}, [1, 2], {"a": 1}]
    what = draw.random()
    if what < 0.2:
        del holder[key]
    elif what < 0.3 and isinstance(holder, dict):
        holder["extra"] = draw.choice(odd)
    else:
        holder[key] = draw.choice(odd)
    return line


def test_what_the_reader_takes_fits_and_what_does_not_fit_is_refused(fits):
    draw = random.Random(7)  # noqa: S311 - no secret
    taken = refused = 0
    for _ in range(300):
        at = draw.randrange(len(PLAIN))
        line = mutated(json.loads(PLAIN[at]), draw)
        text = "".join([*PLAIN[:at], json.dumps(line) + "\n", *PLAIN[at + 1 :]])
        try:
            read_trace(io.StringIO(text))
        except TraceError:
            refused += not fits(line)
        else:
            assert fits(line), line
            taken += 1
    assert taken > 10
    assert refused > 150


SHAPE_FAULTS = [
    (1, '"format": 1', '"format": 2'),
    (1, '"ranks": 2', '"ranks": 0'),
    (1, '"memory": "sc"', '"memory": "tso"'),
    (1, '"float32"', '"object"'),
    (1, '"seed": 0', '"seed": -1'),
    (1, '"seed": 0', '"seed": 0, "hour": 3'),
    (1, '"initialised": true', '"initialised": 1'),
    (1, '"event": "header"', '"event": "head"'),
    (2, '"step": 0, ', ""),
    (2, '"op": "store"', '"op": "fly"'),
    (2, '"mode": "write"', '"mode": "writes"'),
    (2, "[0, 2, 1]", "[0, 2]"),
    (2, '"at": [', '"at": ["no line", '),
    (2, '"at": [', '"at": ["a:1", "b:2", '),
    (2, "1.0,", "null,"),
]


@pytest.mark.parametrize(("number", "old", "new"), SHAPE_FAULTS)
def test_faults_of_shape_are_refused_by_both(number, old, new, fits):
    line = PLAIN[number - 1]
    assert old in line
    assert fits(json.loads(line))
    changed = line.replace(old, new, 1)
    assert not fits(json.loads(changed))
    with pytest.raises(TraceError) as caught:
        read_trace(io.StringIO("".join([*PLAIN[: number - 1], changed, *PLAIN[number:]])))
    assert caught.value.line == number


# ---- the document


def document_blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)


def test_the_command_prints_the_schema_that_the_document_links_to():
    shown = run("validate", "--schema", "asyncsim").output
    assert json.loads(shown) == schema()
    assert json.loads(run("validate", "--schema", "elsewhere").output) == schema(elsewhere=True)
    file = DOCUMENT.with_name("trace.schema.json")
    assert file.read_text("utf-8") == shown, "write it anew: asyncsim validate --schema asyncsim"


def test_the_traces_in_the_document_are_traces(fits):
    whole, elsewhere = document_blocks("jsonl")
    assert len(read_trace(io.StringIO(whole)).events) > 2
    assert all(fits(json.loads(line)) for line in whole.splitlines())
    survey = read_run(io.StringIO(elsewhere))
    assert survey.cut == ""
    assert all(fits(json.loads(line), elsewhere=True) for line in elsewhere.splitlines())
