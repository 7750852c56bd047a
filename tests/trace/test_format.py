"""The format of a trace is declared once: what is declared is written, read, in the schema and in the documentation."""

from __future__ import annotations

import importlib.util
import io
import json

import pytest
from command import ROOT

from asyncsim import Case, Fifo, TraceError, Window, kernel, simulate
from asyncsim.trace import format_step
from asyncsim.trace.fields import FLAG, Field
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.kinds import STORING
from asyncsim.trace.schema import TABLES, schema

MADE_UP = Field(
    "colourful", FLAG, "a field of this test", default=False, source="op.follows", of=lambda row: row.name in STORING
)


@kernel(memory=[Window("box", (2,), initialised=True)])
async def stores(rank, box):
    await rank.store(box[0], 1)
    await rank.load(box[0])


@pytest.fixture
def colourful(monkeypatch):
    for objects, made in zip(
        (format_step.STEPS, format_step.PENDING), format_step.step_objects((*format_step.STEP, MADE_UP)), strict=True
    ):
        for key, declared in made.items():
            monkeypatch.setitem(objects, key, declared)


@pytest.fixture
def trace():
    trace = simulate(Case(stores, 1, 1), Fifo(), record="fifo").trace
    for event in trace.events:
        event.op.follows = True
    return trace


def lines_of(trace):
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue().splitlines(keepends=True)


def test_a_field_that_is_declared_is_written_read_in_the_schema_and_in_the_docs(colourful, trace):
    lines = lines_of(trace)
    assert [json.loads(line).get("colourful") for line in lines] == [None, True, None, None]  # a load has none
    assert [event.op.follows for event in read_trace(io.StringIO("".join(lines))).events] == [True, False]
    plain = [json.loads(line) for line in lines]
    for line in plain:
        del line["crc"]
    for op, value, reason in (
        ("store", 1, "'colourful' is 1; it must be true or false"),
        ("load", True, "does not belong"),
    ):
        number = next(n for n, line in enumerate(plain, 1) if line.get("op") == op)
        changed = [{**line, "colourful": value} if n == number else line for n, line in enumerate(plain, 1)]
        with pytest.raises(TraceError, match=reason) as caught:
            read_trace(io.StringIO("".join(json.dumps(line) + "\n" for line in changed)))
        assert caught.value.line == number
    shapes = schema()["$defs"]["step"]["oneOf"]
    with_it = [shape["properties"]["op"]["enum"] for shape in shapes if "colourful" in shape["properties"]]
    assert sorted(kind for kinds in with_it for kind in kinds) == sorted(STORING)
    assert "| `colourful` | `store` `remote_store` | true or false | a field of this test |" in TABLES["of step"]()


def test_without_the_declaration_there_is_no_such_field(trace):
    assert "colourful" not in "".join(lines_of(trace))
    assert "colourful" not in json.dumps(schema())
    assert "colourful" not in TABLES["of step"]()


def test_the_page_of_the_format_has_every_table():
    spec = importlib.util.spec_from_file_location("included", ROOT / "docs/hooks/included.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    page = hook.on_page_markdown((ROOT / "docs/reference/trace-format.md").read_text("utf-8"))
    assert len(TABLES) > 7
    for name, make in TABLES.items():
        assert make() in page, name
    assert "<!-- fields" not in page
