"""Two traces compared; a trace explained without its kernel; traces that grow while a run goes on."""

from __future__ import annotations

import io
import json
import signal
import time
from pathlib import Path

import pytest
from command import BAD, GOOD, KERNELS, ROOT, run, start_process

from asyncsim import Case, simulate
from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.check import check
from asyncsim.schedulers.live import Live
from asyncsim.schedulers.replay import Replay
from asyncsim.schedulers.table import make
from asyncsim.study.compare import compare_traces
from asyncsim.study.explain import ANALYSIS, BOTH, FOOTER, explain, read_run
from asyncsim.trace.event import Trace
from asyncsim.trace.jsonl import LiveTrace, read_trace, write_trace
from asyncsim.trace.jsonl_read import survey_trace

TRACES = sorted((ROOT / "traces").glob("*.jsonl"))
NOT_FROM_EVENTS = ("wrong-result", "ranks-differ")
"""What only outputs show."""


def recorded(ref, scheduler, ranks=3, calls=2, **fields):
    return simulate(Case(locate(ref), ranks, calls, **fields), make(scheduler), record=scheduler).trace


@pytest.fixture
def files(tmp_path):
    """Write the trace of a bad kernel under each of three schedules."""
    for name, scheduler in (("fair", "fifo"), ("mixed", "random:seed=1"), ("starved", "starve:rank=1")):
        write_trace(recorded(BAD, scheduler), tmp_path / f"{name}.jsonl")
    return tmp_path


# ---- diff


def test_a_trace_is_the_same_as_itself(files):
    result = run("diff", str(files / "fair.jsonl"), str(files / "fair.jsonl"))
    assert (result.exit_code, result.output) == (0, "the same run: 84 steps, and the same end\n")


def test_another_order_with_the_same_values_is_called_that(files):
    result = run("diff", str(files / "fair.jsonl"), str(files / "mixed.jsonl"))
    assert result.exit_code == 1
    assert "other headers\n  scheduler\n    A  fifo\n    B  random:seed=1\n" in result.output
    assert "first difference: step 2\n  A  actor 2, call 0, stage: store to data[0, 0:64]@2" in result.output
    assert "what follows: nothing; every actor does the same with the same values, in another order" in result.output
    assert result.output.endswith("\nthe end is the same\n")


def test_a_stale_value_is_followed_to_who_wrote_it(files):
    result = run("diff", str(files / "fair.jsonl"), str(files / "starved.jsonl"))
    assert result.exit_code == 1
    assert "what follows: the streams of 2 actors part\n  actor 1, from its operation 8 on\n" in result.output
    assert ", from 0's store to data[1, 0:64]@0, call 0, step 3\n" in result.output
    assert ", from 0's store to data[1, 0:64]@0, call 1, step 25\n" in result.output
    assert "the end\n  output of rank 1 in call 0\n    A  " in result.output
    found = json.loads(run("diff", str(files / "fair.jsonl"), str(files / "starved.jsonl"), "--json").output)
    assert (found["same"], found["step"], [each["actor"] for each in found["partings"]]) == (False, 1, ["1", "2"])
    assert found["partings"][0]["changes"][0]["name"] == "value"
    assert [change["name"] for change in found["footer"]] == [
        "output of rank 1 in call 0",
        "output of rank 2 in call 0",
    ]


def test_another_world_is_said_first():
    found = compare_traces(recorded(GOOD, "fifo"), recorded(GOOD, "fifo", ranks=2, memory="ldst", seed=3))
    assert {"ranks", "memory", "seed", "actors"} <= {change.name for change in found.header}
    assert {parting.actor for parting in found.partings if parting.right is None} == {"2"}


def test_a_repaired_kernel_goes_on_where_the_bad_one_ends(tmp_path):
    for name, ref in (("bad", BAD), ("good", GOOD)):
        write_trace(recorded(ref, "fifo", ranks=2), tmp_path / f"{name}.jsonl")
    result = run("diff", str(tmp_path / "bad.jsonl"), str(tmp_path / "good.jsonl"))
    assert (
        "  kernel\n    A  kernels.reduce_scatter:no_post_barrier\n    B  kernels.reduce_scatter:builtin\n"
        in result.output
    )
    assert "what differs: " in result.output


def test_a_run_that_was_broken_off_ends_there():
    whole = recorded(GOOD, "fifo")
    part = Trace(whole.header, whole.events[:5])
    found = compare_traces(part, whole)
    assert (found.step, found.left, found.right) == (5, None, whole.events[5])
    assert [(change.name, change.left, change.right) for change in found.footer] == [("footer", None, "complete")]
    assert not found.same


def test_two_that_were_broken_off_are_the_same_as_far_as_both_go(tmp_path):
    whole = recorded(GOOD, "fifo")
    for name, steps, scheduler in (
        ("a", 19, "fifo"),
        ("b", 19, "fifo"),
        ("one", 1, "fifo"),
        ("c", 19, "random:seed=1"),
    ):
        events = recorded(GOOD, scheduler).events[:steps]
        write_trace(Trace(whole.header, events), tmp_path / f"{name}.jsonl")
    a, b, c, short = (str(tmp_path / f"{name}.jsonl") for name in ("a", "b", "c", "one"))
    assert run("diff", a, b).stdout == "the same run as far as both go: 19 steps; neither has an end\n"
    assert run("diff", short, short).stdout == "the same run as far as both go: 1 step; neither has an end\n"
    assert run("diff", a, c).stdout.endswith("\nneither has an end\n")


def test_a_trace_that_is_not_whole_says_its_last_step(tmp_path):
    whole = recorded(GOOD, "fifo")
    for steps, told in ((19, "it is explained up to step 18"), (0, "it has no step that could be explained")):
        write_trace(Trace(whole.header, whole.events[:steps]), tmp_path / "cut.jsonl")
        assert told in " ".join(run("explain", str(tmp_path / "cut.jsonl")).output.split())


def test_only_the_end_may_differ():
    one, other = recorded(BAD, "fifo"), recorded(BAD, "fifo")
    other.footer.verdict = "REFUTED"
    found = compare_traces(one, other)
    assert (found.step, [change.name for change in found.footer], found.same) == (None, ["verdict"], False)


def test_what_only_one_of_them_has_is_said_in_words(tmp_path):
    whole = recorded(GOOD, "fifo", ranks=10)
    write_trace(whole, tmp_path / "whole.jsonl")
    write_trace(Trace(whole.header, whole.events[:40]), tmp_path / "part.jsonl")
    result = run("diff", str(tmp_path / "part.jsonl"), str(tmp_path / "whole.jsonl"))
    assert result.exit_code == 1
    assert "part.jsonl is not whole: it has no footer; compared as far as it goes" in result.stderr
    assert "first difference: step 40\n  A  has ended\n  B  actor 0, call 0, stage: store to" in result.stdout
    assert "the streams of 10 actors part\n" in result.stdout
    assert "  and 2 more\n" in result.stdout
    assert "    A  has ended\n" in result.stdout
    whole.footer.ending = "overflow"
    write_trace(whole, tmp_path / "other.jsonl")
    result = run("diff", str(tmp_path / "whole.jsonl"), str(tmp_path / "other.jsonl"))
    assert "\nall steps are the same\n\nthe end\n  ending\n    A  complete\n    B  overflow\n" in result.stdout


def test_the_values_that_a_read_gets_may_be_those_of_the_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(KERNELS)
    case = Case(locate("mine.py:last_wins"), 2, 1)
    late, early = (simulate(case, Replay(order.split()), record="x").trace for order in ("0 0 1 1", "0 1 0 1"))
    found = compare_traces(late, early)
    assert found.partings[0].left_source == "0's store to box[0]@0, call 0, step 0"
    assert found.partings[0].right_source == "1's remote_store to box[0]@0, call 0, step 1"


def test_what_is_no_trace_leaves_with_2(files):
    (files / "no.jsonl").write_text("no\n")
    result = run("diff", str(files / "fair.jsonl"), str(files / "no.jsonl"))
    assert result.exit_code == 2
    assert "no.jsonl, line 1: no JSON: " in result.stderr


# ---- explain


def key_of(finding):
    return (finding.kind, finding.hazard, finding.scope, finding.window)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_every_kept_witness_is_explained_as_it_was_found(path):
    told = read_trace(path).footer.findings[0]
    explained = explain(read_run(path))
    assert explained.verdict == "REFUTED"
    assert explained.suspicious
    key = tuple(told[name] for name in ("kind", "hazard", "scope", "window"))
    said = zip(explained.findings, explained.said_by, strict=True)
    finding, who = next(each for each in said if key_of(each[0]) == key and each[1] != ANALYSIS)
    silent = any("is written plainly" in note for note in explained.notes)  # then the analysis finds nothing
    assert who == (FOOTER if told["kind"] in NOT_FROM_EVENTS or silent else BOTH)
    if finding.hazard:
        sides = [side.to_json() for side in finding.sides]
        if (
            explained.notes
        ):  # where one run does not decide, a check counts and shows the pairs that it brought together
            assert [side["line"] for side in sides] == [side["line"] for side in told["sides"]]
        else:
            assert (finding.pairs, sides) == (told["pairs"], told["sides"])


@pytest.mark.parametrize("ref", [BAD, GOOD, "reduce_scatter:hand", "all_reduce:no_post_barrier"])
@pytest.mark.parametrize("scheduler", ["fifo", "random:seed=5", "starve:rank=0"])
def test_any_run_says_what_a_check_says(ref, scheduler):
    report = check(locate(ref), ranks=3, shrinking=0)
    stream = io.StringIO()
    write_trace(recorded(ref, scheduler), stream)
    stream.seek(0)
    explained = explain(read_run(stream))
    keys = [(finding.title, finding.window, finding.pairs) for finding in report.findings]
    assert [(finding.title, finding.window, finding.pairs) for finding in explained.findings] == keys
    assert explained.suspicious == report.refuted
    assert all(who == ANALYSIS for who in explained.said_by)
    assert explained.verdict is None  # a file alone proves and refutes nothing about order


def test_the_words_are_those_of_a_report():
    path = str(ROOT / "traces/reduce_scatter-no_post_barrier-WAR-next-call.jsonl")
    result = run("explain", path, "--cells")
    assert result.exit_code == 1
    assert result.output.startswith(
        "REFUTED  kernels.reduce_scatter:no_post_barrier, P = 2, 2 calls, sc\n  read from 36"
    )
    assert (
        "\n1. WAR race, next call: 2 pairs, harmful\n   memory  data\n   first   rank 0, call 0, reduce: "
        in result.output
    )
    assert "\n   said by the footer and the analysis\n" in result.output
    assert "replay" not in result.output
    assert result.output.count("\n  signal") > 0


def test_a_clean_run_leaves_with_0_and_without_a_proof(tmp_path):
    write_trace(recorded(GOOD, "fifo"), tmp_path / "good.jsonl")
    result = run("explain", str(tmp_path / "good.jsonl"), "--json")
    told = json.loads(result.output)
    assert (result.exit_code, told["verdict"], told["findings"]) == (0, None, [])
    assert "This is not a proof for the kernel" in told["scope"]


def test_no_kernel_is_run_and_no_source_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(KERNELS)
    write_trace(recorded("mine.py:hang", "fifo", ranks=2, calls=1), "hang.jsonl")
    Path("mine.py").write_text("raise SystemExit('was run')")
    result = run("explain", "hang.jsonl")
    assert result.exit_code == 1
    assert result.output.startswith("REFUTED  mine.py:hang, P = 2, 1 call, sc\n")
    assert "1. deadlock" in result.output
    assert "await rank" not in result.output


def test_a_footer_that_says_strange_things_is_quoted_with_care(tmp_path):
    trace = recorded(GOOD, "fifo", ranks=2)
    trace.footer.findings = [{"kind": "\x1b[2Jgone"}, {"kind": "race", "why": "x", "pairs": 1, "harmful": 3}]
    write_trace(trace, tmp_path / "odd.jsonl")
    result = run("explain", str(tmp_path / "odd.jsonl"))
    assert "\x1b" not in result.output
    assert "note: finding 1 of the footer is none that asyncsim writes: 'kind' is " in result.output
    assert "note: finding 2 of the footer is none that asyncsim writes: 'harmful' is 3" in result.output


def test_beside_a_signal_race_no_data_race_is_claimed():
    explained = explain(read_run(ROOT / "traces/f10_parity_per_handle_slots_shared-signal-race.jsonl"))
    assert {finding.kind for finding in explained.findings} == {"signal-race", "deadlock"}
    (note,) = [note for note in explained.notes if "further pairs may race" in note]
    assert int(note.split()[0]) > 0


def test_a_footer_alone_proves_nothing(tmp_path):
    for ref, heading, status in ((GOOD, "no finding", 0), (BAD, "1 finding", 1)):
        trace = recorded(ref, "fifo", ranks=2)
        trace.footer.verdict = "PROVED"
        write_trace(trace, tmp_path / "proved.jsonl")
        result = run("explain", str(tmp_path / "proved.jsonl"))
        assert result.exit_code == status
        assert result.output.startswith(f"{heading}  kernels.reduce_scatter:")
        assert "note: the footer says PROVED; a trace alone cannot show that" in result.output


# ---- traces that grow


def test_a_run_is_written_while_it_goes_on(tmp_path):
    case = Case(locate(GOOD), 2, 2)
    seen = []
    with LiveTrace(tmp_path / "live.jsonl", case.header("fifo")) as live:

        def step(event):
            live.step(event)
            seen.append((tmp_path / "live.jsonl").read_bytes().count(b"\n"))

        trace = simulate(case, Live(make("fifo"), step), record="fifo").trace
        live.finish(trace.footer)
    assert seen == list(range(2, len(trace.events) + 2))  # the header, and each step at once
    stream = io.StringIO()
    write_trace(trace, stream)
    assert (tmp_path / "live.jsonl").read_text() == stream.getvalue()


def test_the_command_records_one_run(tmp_path):
    path = str(tmp_path / "run.jsonl.gz")
    result = run("record", GOOD, path, "-P", "2", "--scheduler", "random:seed=3")
    said, where = result.output.splitlines()
    assert said == "recorded 44 steps of kernels.reduce_scatter:builtin, P = 2, 2 calls, sc: complete"
    assert where == f"trace    {path}"
    assert read_trace(path).choices == recorded(GOOD, "random:seed=3", ranks=2).choices
    assert run("replay", path).exit_code == 0
    assert run("record", GOOD, path, "-P", "2,3").exit_code == 2


def test_a_kernel_that_raises_leaves_its_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(KERNELS)
    result = run("record", "mine.py:raises", "run.jsonl", "-P", "2", "--calls", "1", "--scheduler", "starve:rank=0")
    assert result.exit_code == 2
    assert read_trace("run.jsonl").footer.ending == "stopped"


ENDLESS = """
from asyncsim import Window, kernel

data = Window("data", (1,), "float32", initialised=True)

@kernel(memory=[data])
async def endless(rank, data):
    while True:
        await rank.store(data[0], 1.0)
"""


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_killed_run_leaves_its_whole_lines(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(ENDLESS)
    path = tmp_path / f"run{ending}"
    process = start_process("-m", "asyncsim", "record", "mine.py:endless", str(path), "-P", "2")
    while process.poll() is None and not (path.exists() and path.stat().st_size > 20_000):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    survey = survey_trace(path)
    assert survey.cut in ("its last line is not whole", "it has no footer", "its compressed data ends too early")
    assert len(survey.trace.events) == survey.lines - 1 > 50
    assert run("validate", str(path)).exit_code == 2
    assert f"whole up to line {survey.lines}" in run("validate", str(path)).output
    shown = run("explain", str(path))
    assert shown.exit_code == 0
    assert "the trace is not whole" in shown.output
    assert "compared as far as it goes" in run("diff", str(path), str(path)).stderr
