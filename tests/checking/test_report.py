"""What a report looks like: the verdict first, two places, why, and a line that can be pasted."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from asyncsim import Window, check, kernel
from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.report import Report
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.finding import PROVED, REFUTED, Finding, Side
from asyncsim.views.report import finding_title, replay_line, report_text, source_line
from asyncsim.views.run import run_text
from asyncsim.views.table import table_text

KERNEL = locate("reduce_scatter:no_post_barrier")
LOAD_LINE = 1 + KERNEL.program.__globals__["own_row"].__code__.co_firstlineno
SLOW = Side("1", 9, 1, 0, "reduce", "remote_load", "data[1, 0:64]@0", (f"kernels/reduce_scatter.py:{LOAD_LINE + 2}",))
FAST = Side("0", 21, 0, 1, "", "store", "data[1, 0:64]@0", ("kernels/reduce_scatter.py:0",))
RACE = Finding(
    "race",
    "nothing that rank 0 waits for before it stages comes after the load of rank 1",
    hazard="WAR",
    scope="next call",
    window="data",
    pairs=12,
    harmful=True,
    sides=(SLOW, FAST),
    trace="witnesses/race.jsonl",
    token="abc-DEF_123",  # noqa: S106 - no secret: a schedule as text
    shown="rank 1, call 0: expected 1.5\n  got 2.5",
)


def report(*findings, verdict=REFUTED, kernel=KERNEL, **fields):
    return Report(Case(kernel), verdict, "one run of 200 steps; holds for every schedule", list(findings), **fields)


def test_a_report_says_all_that_a_kernel_author_needs_in_order():
    text = report_text(report(RACE, notes=["equal within tolerance"], schedules=3, seconds=0.5))
    assert text == (
        "REFUTED  kernels.reduce_scatter:no_post_barrier, P = 4, 2 calls, sc\n"
        "  one run of 200 steps; holds for every schedule\n"
        "\n"
        "1. WAR race, next call: 12 pairs, harmful\n"
        "   memory  data\n"
        "   first   rank 1, call 0, reduce: remote_load of data[1, 0:64]@0\n"
        f"           kernels/reduce_scatter.py:{LOAD_LINE + 2}\n"
        "               acc = await rank.load(data[rank.id])\n"
        "   second  rank 0, call 1: store to data[1, 0:64]@0\n"
        "           kernels/reduce_scatter.py:0\n"
        "   why     nothing that rank 0 waits for before it stages comes after the load of rank 1\n"
        "   shown   rank 1, call 0: expected 1.5\n"
        "           got 2.5\n"
        "   trace   witnesses/race.jsonl\n"
        "   replay  asyncsim replay abc-DEF_123\n"
        "\n"
        "  note: equal within tolerance\n"
        "\n"
        "  3 runs in 0.50 s\n"
    )


def test_a_proof_is_short():
    assert report_text(report(verdict=PROVED)) == (
        "PROVED  kernels.reduce_scatter:no_post_barrier, P = 4, 2 calls, sc\n"
        "  one run of 200 steps; holds for every schedule\n"
        "  taken for granted: the kernel depends on nothing but its inputs, its windows and its signals\n"
        "\n"
        "  1 run in 0.00 s\n"
    )


def test_a_report_says_when_its_check_was_interrupted():
    assert "every schedule (interrupted)" in " ".join(report_text(report(interrupted=True)).split())


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, "WAR race, next call: 12 pairs, harmful"),
        ({"pairs": 1, "harmful": False}, "WAR race, next call: 1 pair, benign here"),
        (
            {"kind": "signal-race", "hazard": None, "pairs": 1, "harmful": None},
            "signal-race, next call: not shown to be harmful",
        ),
        (
            {"kind": "deadlock", "hazard": None, "scope": None, "sides": (FAST,), "pairs": 3},
            "deadlock: 3 actors, harmful",
        ),
        ({"kind": "leftover-credit", "hazard": None, "scope": None, "pairs": 1, "harmful": None}, "leftover-credit"),
    ],
)
def test_a_title_counts_pairs_and_says_whether_it_harms(changes, title):
    assert finding_title(RACE.with_(**changes)) == title


def test_a_benign_finding_says_so():
    text = report_text(report(RACE.with_(harmful=False, shown="")))
    assert "shown   both orders give the same bits here" in text
    assert "shown   same bits" in report_text(report(RACE.with_(harmful=False, shown="same bits")))


def test_a_finding_without_places_or_witness_is_its_reason():
    text = report_text(report(Finding("hidden-state", "two runs differ")))
    assert "1. hidden-state\n   why     two runs differ\n\n" in text


def test_streams_composites_and_many_places_are_shown():
    inside = Side("0.1", 3, 0, 0, "", "wait", "signal[1, 0]@0", ("a.py:1", "asyncsim/collectives/barrier.py:30"))
    text = report_text(report(Finding("deadlock", "nobody notifies", sides=(inside,) * 10)))
    assert "   at      stream 0.1 of rank 0, call 0: wait signal[1, 0]@0\n" in text
    assert "           a.py:1, inside it asyncsim/collectives/barrier.py:30\n" in text
    assert text.count("stream 0.1 of rank 0") == 8
    assert "           and 2 more\n" in text
    nowhere = Side("0", 3, 0, 0, "", "wait", "signal[1, 0]@0", ())
    assert "wait signal[1, 0]@0\n   why" in report_text(report(Finding("deadlock", "why", sides=(nowhere,))))


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (Side("0>3", 0, 0, 0, "", "land", "x[0]@1", ("a.py:1",)), "rank 0, call 0: land to x[0]@1, issued at\n"),
        (
            Side("0.2>3s", 0, 0, 0, "", "land", "s[0]@1", ()),
            "stream 0.2 of rank 0, call 0: land to s[0]@1, issued at\n",
        ),
        (Side("1>0", 0, 1, 0, "", "fetch", "x[0]@1", ()), "rank 1, call 0: fetch of x[0]@1, issued at\n"),
        (Side("1", 4, 1, 0, "", "join", "1.2", ()), "rank 1, call 0: join stream 1.2\n"),
        (Side("1.1", 4, 1, 0, "", "sync", "1/3#0", ()), "stream 1.1 of rank 1, call 0: sync at 1/3#0\n"),
        (Side("1", 4, 1, 0, "", "quiet", "", ()), "rank 1, call 0: quiet\n"),
    ],
)
def test_landings_streams_and_what_touches_no_memory_are_named(side, words):
    assert f"   at      {words}" in report_text(report(Finding("deadlock", "why", sides=(side,))))


def test_sentences_wrap_and_lines_to_paste_do_not():
    token = "x" * 500
    text = report_text(report(RACE.with_(why="many words " * 30, token=token)), width=60)
    pasted = [line for line in text.splitlines() if len(line) > 60 and "words" in line]
    assert not pasted
    assert f"asyncsim replay {token}\n" in text


def test_the_replay_line_names_a_kernel_that_is_not_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my kernels.py").write_text(
        "from asyncsim.machine.kernel import kernel\n@kernel(memory=[])\nasync def mine(rank):\n    pass\n"
    )
    mine = locate("my kernels.py:mine")
    line = replay_line("abc-DEF_123", mine)
    assert line == "asyncsim replay abc-DEF_123 --kernel 'my kernels.py:mine'"
    assert shlex.split(line)[-1] == mine.ref


def test_without_a_token_the_trace_is_replayed_and_without_a_trace_nothing():
    text = report_text(report(RACE.with_(token=None)))
    assert "replay  asyncsim replay witnesses/race.jsonl\n" in text
    assert "replay" not in report_text(report(RACE.with_(token=None, trace=None)))


def test_a_source_line_is_read_from_the_kernel_wherever_it_lies(tmp_path, monkeypatch):
    file = tmp_path / "far.py"
    file.write_text("from asyncsim.machine.kernel import kernel\n@kernel(memory=[])\nasync def mine(rank):\n    pass\n")
    kernel = locate(f"{file}:mine")
    assert source_line(kernel, "far.py:4") == "pass"
    assert source_line(kernel, "far.py:99") == ""
    assert source_line(kernel, "nowhere.py:1") == ""
    assert source_line(kernel, "far.py:x") == ""
    monkeypatch.syspath_prepend(str(tmp_path))
    assert source_line(KERNEL, "far.py:3") == "async def mine(rank):"


def test_a_table_lines_up():
    assert table_text(("a", "bcd"), [("xx", "y"), ("z", "")]) == "a   bcd\n--  ---\nxx  y\nz\n"


def test_what_stands_at_no_known_line_is_shown_without_one():
    run = simulate(Case(KERNEL, max_steps=1), Fifo(), record="fifo")
    for event in run.trace.footer.pending:
        event.at = ("",)
    text = run_text(run, [Finding("step-limit", "no end")], [])
    assert "  rank 0, call 0, stage: stands at store to data[1, 0:64]@0\n  rank 1" in text
    run.trace = None
    assert run_text(run, [Finding("step-limit", "no end")], []) == "step-limit: no end\n"


@pytest.mark.parametrize("second", ["put", "load"])
def test_two_sides_of_one_rank_are_not_said_to_wait_for_each_other(second):
    x = Window("x", (1,), np.int64, initialised=True)

    @kernel(memory=[x])
    async def twice(rank, x):
        if rank.id == 0:
            await rank.put(x.at(1)[0], 1)
            await (rank.put(x.at(1)[0], 2) if second == "put" else rank.load(x.at(1)[0]))

    finding = check(twice, ranks=2, memory="nic").findings[0]
    assert finding.kind == "race"
    assert finding.why.endswith("rank 0 issues both, and no fence, quiet or wait of its own orders them")
