"""The page of ``asyncsim show --html``: one file, safe whatever the trace holds, and true to the run."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest
from command import run
from shown import EVERY, HANG, LATE, RACE, SCRIPT, hostile, large, small_trace, text_of

from asyncsim import Case, Window, kernel, simulate
from asyncsim.checking.record.locate import locate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.jsonl import read_trace
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_page import PAGE, SCRIPTS, json_text, page_data, page_text


def page_of(path):
    return page_text(timeline_of(read_trace(path)))


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def columns_of(data):
    """Return the columns with one entry a step, and steps where the page has how far back they are."""
    columns = {}
    for name, column in data["columns"].items():
        runs = zip(column[::2], column[1::2], strict=True)
        columns[name] = column if name in ("op", "arrived") else [v for v, times in runs for _ in range(times)]
    columns["arrived"] = [step - back for step, back in enumerate(columns["arrived"])]
    columns["released"] = [step - back if back else -1 for step, back in enumerate(columns["released"])]
    return columns


def kind_of(data, op):
    return data["kinds"][data["ops"][op][0]][1]


def written(tmp_path, *arguments):
    out = tmp_path / "page.html"
    result = run("show", *map(str, arguments), "--html", str(out))
    assert result.exit_code == 0, result.output
    assert result.output == f"wrote {out}\n"
    return out.read_text("utf-8")


def test_the_page_needs_nothing_from_outside():
    page = page_of(RACE)
    assert not re.search(r"https?:|//\w|@import|url\(|\bsrc=|\bhref=\"(?!#)|fetch\(|XMLHttp|WebSocket", page)
    assert "default-src 'none'" in page
    assert len(page.encode()) < 80_000


def test_only_the_scripts_and_styles_of_the_page_may_run():
    page = page_of(RACE)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_nothing_that_a_trace_holds_becomes_markup(tmp_path):
    page = page_of(hostile(tmp_path / "hostile.jsonl", SCRIPT))
    assert page.count("</script>") == page_of(RACE).count("</script>")
    assert "<img" not in page
    (data,) = data_of(page)
    assert data["kernel"] == SCRIPT
    assert data["phases"] == [SCRIPT]
    assert data["findings"][0]["why"] == SCRIPT


def test_the_scripts_make_text_never_markup():
    for name in SCRIPTS:
        text = (PAGE / name).read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text)


def test_json_in_the_page_reads_back_as_it_was():
    value = {"a": ["</script>", "<!--", "&lt;", "\u2028\u2029", 1.5, None]}
    assert not set("<>&\u2028\u2029") & set(json_text(value))
    assert json.loads(json_text(value)) == value


def test_long_texts_are_cut(tmp_path):
    page = page_of(hostile(tmp_path / "long.jsonl", "x" * 100_000))
    assert len(page) < 120_000


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_the_columns_point_into_the_tables_of_every_kept_witness(path):
    timeline = timeline_of(read_trace(path))
    data = page_data(timeline)
    columns, steps = columns_of(data), len(timeline.events)
    assert {len(column) for column in columns.values()} == {steps}
    for name, table in (("lane", "lanes"), ("op", "ops"), ("phase", "phases"), ("site", "sites")):
        assert all(0 <= number < len(data[table]) for number in columns[name])
    for name in ("value", "put"):
        assert all(-1 <= number < len(data["values"]) for number in columns[name])
    for step, (by, arrived) in enumerate(zip(columns["released"], columns["arrived"], strict=True)):
        assert -1 <= by < step
        assert -1 <= arrived < step
    for op in data["ops"]:
        assert op[0] < len(data["kinds"])
        assert op[2] < len(data["cells"])
        assert all(-1 <= access < len(data["accesses"]) for access in op[3:5])
    assert all(access[0] < len(data["places"]) for access in data["accesses"])


def test_the_data_say_what_each_step_did():
    data = page_data(timeline_of(small_trace()))
    columns, ops = columns_of(data), data["ops"]
    stores = [step for step, op in enumerate(columns["op"]) if kind_of(data, op) == "store"]
    first = ops[columns["op"][stores[0]]]
    assert first[1] == " to box[0:2]@0"
    assert data["accesses"][first[4]] == [0, [[0, 2]]]
    assert data["values"][columns["put"][stores[0]]] == ["1", "2"]
    added = next(step for step, op in enumerate(columns["op"]) if ops[op][1].startswith(" to tally"))
    assert data["values"][columns["value"][added]] == ["7", "8"]
    assert data["values"][columns["put"][added]] == ["12", "13"]
    assert [after for after in columns["after"] if after is not None] == [5, 5]
    assert data["windows"] == [["box", [3], "int32", "0", 1], ["tally", [4], "int32", "5, unwritten", 1]]
    assert data["signals"] == [["count", [2], 3]]
    assert data["time"] is None


def test_numbers_too_large_for_a_script_are_texts():
    trace = small_trace()
    for event in trace.events:
        if event.have is not None:
            event.have += 1 << 60
    have = [value for value in columns_of(page_data(timeline_of(trace)))["have"] if value is not None]
    assert set(have) == {str((1 << 60) + 5)}


def test_virtual_time_is_there_if_every_step_has_it_and_it_never_goes_back():
    trace = small_trace()
    for step, event in enumerate(trace.events):
        event.time = step * 1e-6
    assert page_data(timeline_of(trace))["time"] == [event.time for event in trace.events]
    trace.events[3].time = 0.0
    assert page_data(timeline_of(trace))["time"] is None


def test_what_stood_at_the_gate_at_the_end_is_in_the_page():
    data = page_data(timeline_of(read_trace(HANG)))
    assert data["ending"] == "deadlock"
    assert all("waits for" in text for _, text in data["pending"])


def test_values_that_a_trace_does_not_hold_and_pieces_are_said_as_such():
    data = page_data(timeline_of(read_trace(EVERY[0])))
    assert any(isinstance(value, str) and "digest" in value for value in data["values"])
    late = page_data(timeline_of(read_trace(LATE)))
    assert any(lane[2] for lane in late["lanes"])


def test_a_region_of_very_many_pieces_is_one_range(tmp_path):
    @kernel(memory=[Window("wide", (400,), "int8")])
    async def comb(rank, wide):
        await rank.store(wide[0:400:4], np.ones(100, np.int8))

    data = page_data(timeline_of(simulate(Case(comb, 1, 1), Fifo(), record="fifo").trace))
    assert data["accesses"] == [[0, [[0, 397]]]]


def test_two_runs_stand_side_by_side(tmp_path):
    runs = data_of(written(tmp_path, RACE, "--other", EVERY[0]))
    assert [data["title"] for data in runs] == ["As run", EVERY[0].name]
    assert runs[1]["kernel"] == "kernels.all_reduce:no_post_barrier"


def test_the_other_order_is_run_with_the_kernel_that_the_user_names(tmp_path):
    first, second = data_of(written(tmp_path, RACE, "--kernel", "reduce_scatter:no_post_barrier"))
    assert second["title"] == "The other order, run"
    assert [side[2] for side in first["findings"][0]["sides"]] == [17, 12]
    load, store = (side[2] for side in second["findings"][0]["sides"])
    assert load < store
    told = first["findings"][0]["orders"][1][0][2]
    value = second["values"][columns_of(second)["value"][load]]
    assert told.startswith(f"reads {value}, ")


def test_there_is_no_other_order_without_a_race(tmp_path):
    result = run("show", str(HANG), "--html", str(tmp_path / "x.html"), "--kernel", "reduce_scatter:builtin")
    assert result.exit_code == 2
    assert "there is no other order" in result.stderr


def test_a_kernel_that_raises_in_the_other_order_is_shown_as_far_as_it_came(tmp_path):
    source = tmp_path / "fussy.py"
    source.write_text(
        "import numpy as np\nfrom asyncsim import Window, kernel\n"
        "box = Window('box', (1,), np.float32, initialised=True)\n"
        "@kernel(memory=[box])\n"
        "async def fussy(rank, box):\n"
        "    if rank.id == 0:\n"
        "        await rank.store(box[0], 1.0)\n"
        "    elif (await rank.load(box.at(0)[0])) == 0.0:\n"
        "        raise ValueError('too early')\n",
        "utf-8",
    )
    trace = simulate(Case(locate(f"{source}:fussy"), 2, 1), Fifo(), record="fifo").trace
    sides = [{"rank": rank, "actor": str(rank), "call": 0, "op": op} for rank, op in ((0, "store"), (1, "remote_load"))]
    trace.footer.findings = [{"kind": "race", "hazard": "RAW", "sides": sides}]
    path = tmp_path / "fussy.jsonl"
    path.write_text(text_of(trace), "ascii")
    first, second = data_of(written(tmp_path, path, "--kernel", f"{source}:fussy"))
    assert (first["ending"], second["ending"]) == ("complete", "stopped")
    assert [kind_of(second, op) for op in second["columns"]["op"]] == ["remote_load"]


def test_a_large_run_makes_a_page_of_some_sixty_bytes_a_step(tmp_path):
    trace = large(32)
    assert len(trace.events) > 7_000
    path = tmp_path / "large.jsonl"
    path.write_text(text_of(trace), "ascii")
    page = page_of(path)
    assert len(page) < 60_000 + 65 * len(trace.events)
    assert len(data_of(page)[0]["lanes"]) == 32


def test_an_empty_run_makes_a_page(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.write_text(RACE.read_text("ascii").splitlines()[0] + "\n", "ascii")
    data = data_of(written(tmp_path, path))[0]
    assert data["columns"]["lane"] == []
    assert data["ending"] == "broken off"
