"""Windows over others, shown: one memory, whatever it is seen as, and what is written through which view."""

from __future__ import annotations

import io
import json
import shutil
import subprocess

import numpy as np
import pytest
from command import run
from shown import text_of

from asyncsim import Case, Group, Signal, Window, kernel, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.jsonl import read_trace
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_orders import orders_of
from asyncsim.views.timeline_page import PAGE, page_data

WORDS = Window("words", (2, 2), np.int32, dirty=7, initialised=True)
FLAT = Window("flat", (4,), np.int32, over="words")
HALVES = Window("halves", (8,), np.int16, over="words")
LONG = Window("long", (), np.int64, over="words")
OTHER = Window("other", (3,), np.int8)
SIGNAL = Signal("signal", (1,), np.int8, wrap=True)


@kernel(memory=[OTHER, WORDS, FLAT, HALVES, LONG, SIGNAL])
async def viewed(rank, other, words, flat, halves, long, signal):  # noqa: PLR0913, PLR0917 - the windows
    """Write and read one memory as three things."""
    await rank.store(words[0:2, 1], np.array([10, 11], np.int32))
    await rank.store(flat[0:2], np.array([20, 21], np.int32))
    await rank.store(halves[1:8:4], np.array([30, 31], np.int16))
    await rank.store(flat[3:3], np.zeros(0, np.int32))
    await rank.load(long[()])
    await rank.store(other[2], 5)
    await rank.notify(signal[0], 1)


def timeline(program=viewed, ranks=1, **options):
    """Return the timeline of a fair run, as read back from its file."""
    trace = simulate(Case(program, ranks, 1, **options), Fifo(), record="fifo").trace
    return timeline_of(read_trace(io.StringIO(text_of(trace))))


def accesses_of(data):
    """Return, for each step, what it reads and what it writes."""
    found = []
    for number in data["columns"]["op"]:
        read, written = data["ops"][number][3:5]
        found.append(data["accesses"][read if written < 0 else written] if max(read, written) >= 0 else None)
    return found


def test_a_place_is_one_memory_in_the_units_of_its_narrowest_view():
    data = page_data(timeline())
    assert data["windows"] == [["other", [3], "int8", "0, unwritten", 1], ["words", [2, 2], "int32", "7", 2]]
    assert data["views"] == [
        ["flat", [4], "int32", 1, 2], ["halves", [8], "int16", 1, 1], ["long", [], "int64", 1, 4],
    ]  # fmt: skip
    assert data["places"] == [[1, 0], [0, 0]]
    assert accesses_of(data) == [
        [0, [[2, 4], [6, 8]]], [0, [[0, 4]], 0], [0, [[1, 2], [5, 6]], 1], [0, [], 0], [0, [[0, 4]], 2],
        [1, [[2, 3]]], None,
    ]  # fmt: skip


def test_two_windows_with_the_same_boxes_are_two_operations():
    like = Window("like", (4,), np.int32, over="line")

    @kernel(memory=[Window("line", (4,), np.int32), like])
    async def both(rank, line, like):
        await rank.store(line[1], 1)
        await rank.store(like[1], 1)

    data = page_data(timeline(both))
    assert [op[1] for op in data["ops"]] == [" to line[1]@0", " to like[1]@0"]
    assert data["accesses"] == [[0, [[1, 2]]], [0, [[1, 2]], 0]]


def test_a_view_of_a_groups_window_is_where_the_window_is():
    held = Window("held", ("P", 2), np.int16, group=Group("odd", (1, 3)))

    @kernel(memory=[held, Window("bytes", (4,), np.int8, over="held")])
    async def grouped(rank, held, bytes_):
        if rank.id == 3:
            await rank.store(held.at(0)[0, 1], 5)
            await rank.store(bytes_.at(1)[0], 5)

    data = page_data(timeline(grouped, 4))
    assert data["places"] == [[0, 1], [0, 3]]
    assert data["accesses"] == [[0, [[2, 4]]], [1, [[0, 1]], 0]]


def test_what_a_view_holds_at_the_start_is_what_its_window_holds():
    shown = timeline()
    contents = shown.contents
    long, flat = (shown.trace.header.world.layouts[name] for name in ("long", "flat"))
    start = contents.before(long.region(0, (), 0), 0)
    assert start.data == np.array([7, 7], np.int32).tobytes()
    assert start.writers == (-1,)
    mixed = np.array([20, 21, 7, 11], np.int32)
    mixed.view(np.int16)[1::4] = [30, 31]
    assert contents.before(flat.region(0, slice(None), 0), 3).data == mixed.tobytes()


def test_a_value_that_is_read_as_elements_of_another_size_is_the_one_that_was_written():
    @kernel(memory=[Window("wide", (32,), np.int32), Window("narrow", (64,), np.int16, over="wide")])
    async def punned(rank, wide, narrow):
        if rank.id:
            await rank.store(narrow.at(0)[:], np.arange(64, dtype=np.int16))
        else:
            await rank.load(wide[0])
            await rank.load(wide[:])

    trace = simulate(Case(punned, 2, 1), Fifo(), record="fifo").trace
    side = {"actor": "0", "rank": 0, "call": 0, "op": "load", "region": "wide[0:32]@0"}
    other = {"actor": "1", "rank": 1, "call": 0, "op": "remote_store", "region": "narrow[0:64]@0"}
    trace.footer.findings = [{"kind": "race", "hazard": "RAW", "sides": [other, side]}]
    read = timeline_of(read_trace(io.StringIO(text_of(trace))))
    orders = orders_of(read, read.findings[0])
    assert orders.note.startswith("told from the file")
    assert "reads 32 elements, digest " in orders.run[1].outcome
    assert "written by step" in orders.run[1].outcome


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic:atom=1"])
@pytest.mark.parametrize("ranks", [1, 40])
def test_every_way_to_show_a_run_takes_views(tmp_path, memory, ranks):
    path, out = tmp_path / "run.jsonl", tmp_path / "out"
    trace = simulate(Case(viewed, ranks, 1, memory), Fifo(), record="fifo").trace
    path.write_text(text_of(trace), "utf-8")
    for arguments in (
        ["show"], ["show", "--html", str(out)], ["show", "--perfetto", str(out)], ["validate"], ["explain"],
        ["diff", str(path)],
    ):  # fmt: skip
        result = run(arguments[0], str(path), *arguments[1:])
        assert result.exit_code == 0, result.output


# What the scripts make of it: a document that knows as much as they ask of it, and the panel of memory as text.

DOCUMENT = """
const element = (tag) => ({
  tag, children: [], setAttribute() {}, addEventListener() {},
  append(...more) { this.children.push(...more); },
  replaceChildren(...more) { this.children = more; },
  get text() { return this.children.map((child) => typeof child === "string" ? child : child.text).join("|"); },
});
const document = { createElement: element };
"""
ASK = """
const run = new Run(JSON.parse(require("fs").readFileSync(0, "utf8")));
const told = [], view = { step: 0 };
const tables = new Tables(run, view, () => {});
for (view.step = 0; view.step < run.steps; view.step++) { tables.draw(); told.push(tables.memory.text); }
console.log(JSON.stringify(told));
"""


def test_pieces_are_shown_as_they_were_written():
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js on this machine")
    scripts = "".join((PAGE / name).read_text("utf-8") for name in ("run.js", "tables.js"))
    command = [node, "-e", DOCUMENT + scripts + ASK]
    data = json.dumps(page_data(timeline()))
    told = json.loads(
        subprocess.run(command, input=data, capture_output=True, text=True, check=True, timeout=240).stdout  # noqa: S603 - our own scripts
    )
    views = "also flat (4,), int32, also halves (8,), int16, also long (), int64"
    about = f"window words| shape (2, 2), int32, starts as 7, {views}"
    assert all(about in text for text in told)
    pieces = [text.partition(about)[2].partition("|window ")[0] for text in told]
    for step, shown in (
        (0, ["[0, 1]|10|step 0| changed", "[1, 1]|11|step 0| changed"]),
        (1, ["flat[0:2]|20, 21|step 1| changed", "[1, 1]|11|step 0"]),
        (
            2,
            [
                "a part of flat[0]|20|step 1", "halves[1]|30|step 2| changed", "flat[1]|21|step 1",
                "halves[5]|31|step 2| changed", "[1, 1]|11|step 0",
            ],
        ),
        (4, ["flat[1]|21|step 1| read by this step", "halves[5]|31|step 2|[1, 1]"]),
    ):  # fmt: skip
        assert all(piece in pieces[step] for piece in shown), pieces[step]
