"""``asyncsim show --perfetto``: the rules of the trace event format, and what the events say."""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict

import pytest
from command import run
from shown import EVERY, HANG, LATE, RACE, SCRIPT, hostile, small_trace

from asyncsim.trace.jsonl import read_trace
from asyncsim.views.perfetto import perfetto_events, perfetto_text
from asyncsim.views.timeline import timeline_of


def events_of(path):
    return list(perfetto_events(timeline_of(read_trace(path))))


def check_rules(events):
    """Check what the format asks of each event, and of the events of a thread and of a flow together."""
    threads, flows, processes = defaultdict(list), defaultdict(list), {}
    for event in events:
        assert event["ph"] in ("M", "X", "s", "f", "i")
        assert type(event["name"]) is str
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        assert event["pid"] > 0
        assert event["tid"] > 0
        assert event["ts"] >= 0
        assert processes.setdefault(event["tid"], event["pid"]) == event["pid"]  # no two processes share a thread
        if event["ph"] == "X":
            assert event["dur"] >= 0
            threads[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in ("s", "f"):
            flows[event["cat"], event["id"]].append(event)
        elif event["ph"] == "i":
            assert event["s"] in ("t", "p", "g")
        else:
            assert list(event["args"]) in (["name"], ["sort_index"])
    for slices in threads.values():
        open_ = []
        for begin, end in sorted(slices, key=lambda span: (span[0], -span[1])):
            while open_ and open_[-1] <= begin:
                open_.pop()
            assert not open_ or end <= open_[-1], "two slices of a thread overlap without one holding the other"
            open_.append(end)
    for ends in flows.values():
        assert [event["ph"] for event in ends] == ["s", "f"]
        assert ends[0]["ts"] <= ends[1]["ts"]
        assert ends[1]["bp"] == "e"
        for end in ends:
            assert any(begin <= end["ts"] <= stop for begin, stop in threads[end["tid"]])
    return flows


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_kept_witness_keeps_the_rules_of_the_format(path):
    timeline = timeline_of(read_trace(path))
    whole = json.loads(perfetto_text(timeline))
    assert list(whole) == ["displayTimeUnit", "traceEvents"]
    flows = check_rules(whole["traceEvents"])
    assert len(flows) == sum(by is not None for by in timeline.released)


def test_ranks_are_processes_and_lanes_are_threads():
    names = defaultdict(set)
    for event in events_of(LATE):
        if event["ph"] == "M":
            names[event["name"]].add(event["args"].get("name"))
    assert names["process_name"] == {"rank 0", "rank 1"}
    assert names["thread_name"] == {"rank 0", "landings 0", "rank 1", "landings 1"}


def test_a_step_is_a_slice_of_a_microsecond_with_what_it_did():
    (step,) = (event for event in events_of(RACE) if event.get("args", {}).get("step") == 17)
    assert (step["name"], step["ts"], step["dur"], step["pid"]) == ("remote_load", 17.0, 1.0, 1)
    assert step["args"]["op"] == "remote_load of data[0, 0:64]@1"
    assert step["args"]["at"] == "kernels/reduce_scatter.py:66"
    assert step["args"]["phase"] == "reduce"


def test_a_flow_leads_from_the_notify_to_the_wait():
    events = events_of(RACE)
    ends = {event["ph"]: event for event in events if event["ph"] in ("s", "f") and event["id"] == 7}
    assert (ends["s"]["ts"], ends["s"]["pid"]) == (2.5, 1)
    assert (ends["f"]["ts"], ends["f"]["pid"]) == (6.5, 2)


def test_a_finding_is_an_instant_at_each_of_its_steps_or_at_the_end():
    marks = [event for event in events_of(RACE) if event["ph"] == "i"]
    assert [(event["ts"], event["s"]) for event in marks] == [(17.5, "t"), (12.5, "t")]
    assert marks[0]["args"]["why"].startswith("nothing orders")
    (mark,) = (event for event in events_of(HANG) if event["ph"] == "i")
    assert mark["s"] == "g"


def test_time_that_could_not_pass_is_a_slice_of_its_own():
    parked = [event for event in events_of(RACE) if event.get("cat") == "parked"]
    assert (parked[0]["ts"], parked[0]["dur"], parked[0]["args"]) == (3.0, 3.0, {"released by step": 5})


def test_virtual_time_is_the_time_of_the_slices():
    trace = small_trace()
    for step, event in enumerate(trace.events):
        event.time = 2e-6 * (step + 1)
    events = list(perfetto_events(timeline_of(trace)))
    check_rules(events)
    steps = {event["args"]["step"]: event for event in events if event["ph"] == "X" and "step" in event["args"]}
    assert steps[0]["ts"] == 0.0
    assert steps[0]["dur"] == pytest.approx(2.0)
    last = len(trace.events) - 1
    assert steps[last]["ts"] + steps[last]["dur"] == pytest.approx(2.0 * (last + 1))


def test_the_file_is_plain_text_whatever_the_trace_holds(tmp_path):
    text = perfetto_text(timeline_of(read_trace(hostile(tmp_path / "hostile.jsonl", SCRIPT))))
    check_rules(json.loads(text)["traceEvents"])
    assert text.isascii()
    long = perfetto_text(timeline_of(read_trace(hostile(tmp_path / "long.jsonl", "x" * 100_000))))
    assert len(long) < 200_000


def test_the_command_writes_the_file(tmp_path):
    out = tmp_path / "race.json"
    result = run("show", str(RACE), "--perfetto", str(out))
    assert result.exit_code == 0
    assert result.output == f"wrote {out}; open it in ui.perfetto.dev\n"
    check_rules(json.loads(out.read_text("utf-8"))["traceEvents"])


def test_the_trace_processor_reads_it(tmp_path):
    processor = pytest.importorskip("perfetto.trace_processor", reason="the package perfetto is not installed")
    binary = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    if binary is None:
        pytest.skip("no binary of trace_processor is at hand; name one in TRACE_PROCESSOR")
    out = tmp_path / "race.json"
    out.write_text(perfetto_text(timeline_of(read_trace(RACE))), "utf-8")
    config = processor.TraceProcessorConfig(bin_path=binary)
    with processor.TraceProcessor(trace=str(out), config=config) as opened:
        (row,) = opened.query("select count(*) as n from slice where category in ('load', 'store', 'notify', 'wait')")
        assert row.n == 36
        (row,) = opened.query("select count(*) as n from flow")
        assert row.n == 4
