"""``asyncsim show`` in the terminal, and the model behind all its views."""

from __future__ import annotations

import re

import pytest
from command import run
from shown import EVERY, HANG, LATE, RACE, STEER, STREAMS, hostile, large, small_trace, text_of

from asyncsim.trace.jsonl import read_trace
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_findings import footer_findings
from asyncsim.views.timeline_lines import Selection, plain, timeline_lines


def shown(*arguments, columns=110):
    result = run("show", *map(str, arguments), env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.output


def line_with(text, words):
    return next(line for line in text.splitlines() if words in line)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_kept_witness_is_shown_with_its_finding_and_no_line_is_too_wide(path):
    text = shown(path, columns=80)
    finding = read_trace(path).footer.findings[0]
    assert text.startswith("REFUTED")
    assert finding["kind"] in text or finding["hazard"] in text
    assert "".join(finding["why"].split()) in "".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_the_race_is_marked_on_both_sides_in_the_order_of_the_run():
    text = shown(RACE)
    marked = [line for line in text.splitlines() if line.startswith("▶")]
    assert [line.split()[1] for line in marked] == ["12", "17"]
    assert "rank 1: store to data[0, 0:64]@1" in marked[0]
    assert "rank 0: remote_load of data[0, 0:64]@1" in marked[1]
    assert text.index("└ second side of 1. WAR race, next call") < text.index("└ first side of 1. WAR race, next call")


def test_a_wait_names_the_step_that_let_it_pass_and_the_notify_names_the_wait():
    text = shown(RACE)
    assert "← step 2, rank 0" in line_with(text, "rank 1: wait signal[0, 0]@1 >= 1")
    assert "lets step 6 pass" in line_with(text, "rank 0: notify signal[0, 0]@1 += 1")


def test_a_lane_shows_from_when_to_when_its_rank_could_not_pass():
    lanes = [line[7:11] for line in shown(RACE).splitlines() if re.match(r"[▶ ] +\d+ ", line)]
    assert [lane[0] for lane in lanes[2:8]] == ["▲", "┊", "┊", "┊", "│", "│"]  # rank 0 waits for step 5
    assert lanes[6][2] == "▽"


def test_phases_stand_at_their_steps():
    text = shown(RACE)
    assert line_with(text, "   16 ").endswith("reduce")
    assert line_with(text, "    0 ").endswith("stage")


def test_who_hangs_is_told_with_what_is_missing():
    text = shown(HANG)
    assert "still at the gate when the run ended" in text
    assert re.search(r"rank 2, call \d: waits for .*, and it is \d", text)


def test_streams_and_landings_have_lanes_of_their_own():
    assert [lane.name for lane in timeline_of(read_trace(STREAMS)).lanes] == ["0", "0.1", "0.2", "1", "1.1", "1.2"]
    timeline = timeline_of(read_trace(LATE))
    assert [(lane.name, lane.title) for lane in timeline.lanes][:2] == [("0", "rank 0"), ("0>", "landings 0")]
    landing = next(step for step, event in enumerate(timeline.events) if event.op.actor.name == "0>1")
    issue = timeline.events[timeline.arrived[landing]]
    assert (issue.op.actor.name, issue.op.kind) == ("0", "remote_store")


def test_part_of_the_run_is_shown_on_request_and_the_rest_is_counted():
    text = shown(RACE, "--from", "10", "--to", "12")
    assert [line.split()[0] for line in text.splitlines() if re.match(r"  +\d+ ", line)] == ["10", "11"]
    assert "⋮ 10 steps not shown" in text
    assert "⋮ 23 steps not shown" in text
    only = shown(RACE, "--ranks", "1")
    assert "rank 0: store" not in only
    assert "1 of 2 lanes are not shown" in only


def test_a_long_run_on_many_ranks_is_shown_around_its_race(tmp_path):
    trace = large(24)
    trace.footer.findings = [{
        "kind": "race", "hazard": "WAR", "scope": "same call", "window": "data", "pairs": 1, "harmful": None,
        "why": "as an example", "sides": [
            {"rank": rank, "actor": str(rank), "call": 0, "op": event.op.kind,
             "region": str(event.op.accesses[0].region), "file": event.at[0].rpartition(":")[0],
             "line": int(event.at[0].rpartition(":")[2])}
            for step in (2100, 2101) for event in [trace.events[step]] for rank in [event.op.actor.rank]
        ],
    }]  # fmt: skip
    path = tmp_path / "long.jsonl"
    path.write_text(text_of(trace), "ascii")
    text = shown(path, columns=80)
    assert text.count("▶") == 2
    assert len(text.splitlines()) < 60
    assert "lanes are not shown; --ranks chooses" in text
    assert max(map(len, text.splitlines())) <= 80
    unmarked = timeline_of(large(8))
    steps = [
        line for line in timeline_lines(unmarked, Selection(), width=80) if line and line[0][0].strip().isdecimal()
    ]
    assert [int(line[0][0]) for line in steps] == list(range(len(unmarked.events) - 40, len(unmarked.events)))


def test_a_run_that_was_broken_off_is_shown_to_its_last_whole_line(tmp_path):
    path = tmp_path / "torn.jsonl"
    path.write_text(RACE.read_text("ascii")[:4000], "ascii")
    text = shown(path)
    assert "steps, broken off" in text
    assert "rank 0: store to data[0, 0:64]@0" in text
    path.write_text(RACE.read_text("ascii").splitlines()[0] + "\n", "ascii")
    assert "0 steps, broken off" in shown(path)


def test_output_that_is_piped_or_told_so_has_no_colour_and_a_terminal_has():
    assert "\x1b" not in shown(RACE)
    coloured = run("show", str(RACE), env={"FORCE_COLOR": "1", "TERM": "xterm-256color"}).output
    assert "\x1b[" in coloured
    plain_text = run("show", str(RACE), env={"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm-256color"}).output
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain_text)


def test_nothing_in_a_trace_steers_the_terminal(tmp_path):
    text = shown(hostile(tmp_path / "steer.jsonl", STEER))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_a_terminal_without_unicode_gets_ascii():
    assert plain("▶ ■ │ → é", ascii_only=True) == "> # | > \\xe9"
    assert plain("▶ é") == "▶ é"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl"),
        ([str(RACE), "--from", "36"], "the trace has the steps 0 to 35"),
        ([str(RACE), "--from", "9", "--to", "3"], "--from is not after --to"),
        ([str(RACE), "--ranks", "2"], "the trace has the ranks 0 to 1"),
        ([str(RACE), "--ranks", "a-b"], "'a-b' is not a list of ranks"),
        ([str(RACE), "--ranks", "0-x"], "not a list of ranks"),
        ([str(RACE), "--other", str(RACE)], "--html FILE"),
        ([str(RACE), "--other", str(RACE), "--kernel", "x", "--html", "y"], "give one of them"),
    ],
)
def test_bad_input_leaves_with_2_and_says_what_would_be_right(arguments, message):
    result = run("show", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_ranks_are_given_as_numbers_and_stretches(tmp_path):
    path = tmp_path / "eight.jsonl"
    path.write_text(text_of(large(8)), "ascii")
    text = shown(path, "--ranks", "0,4-6", "--from", "0", "--to", "30")
    assert {line.split(": ")[0].split()[-1] for line in text.splitlines() if " rank " in line} == {"0", "4", "5", "6"}


def test_values_and_cells_stand_at_their_steps():
    timeline = timeline_of(small_trace())
    lines = ["".join(text for text, _ in line) for line in timeline_lines(timeline, Selection(), width=120)]
    assert any("store to box[0:2]@1" in line and "11, 12" in line for line in lines)
    assert any("notify count[1]@1 += 2" in line and "= 5; → lets step" in line for line in lines)


def test_a_footer_of_another_make_is_told_as_far_as_it_goes():
    trace = read_trace(RACE)
    trace.footer.findings = [
        {"kind": "race"},
        {"kind": "odd", "sides": "many", "pairs": True, "why": 7, "harmful": "yes"},
        {"kind": "race", "hazard": "RAW", "sides": [{}, {"actor": 4, "rank": "x", "call": None}, 3]},
        {"kind": "wrong-result", "sides": [{"rank": 1, "actor": "1", "call": 1, "op": "return"}]},
        {"kind": "wrong-result", "sides": [{"rank": 1, "actor": "1", "call": 9, "op": "return"}]},
    ]
    findings = footer_findings(trace)
    assert [finding.title for finding in findings] == ["race", "odd", "RAW race", "wrong-result", "wrong-result"]
    assert [finding.steps for finding in findings] == [(), (), (), (35,), ()]
    assert "".join(text for line in timeline_lines(timeline_of(trace), Selection(), width=80) for text, _ in line)


def test_a_condition_that_held_from_the_start_was_released_by_nobody():
    trace = small_trace()
    for event in trace.events:
        if event.op.kind == "wait":
            event.op.how, event.op.amount = "Ge", 1
    timeline = timeline_of(trace)
    waits = [step for step, event in enumerate(trace.events) if event.op.kind == "wait"]
    assert [timeline.released[step] for step in waits] == [None, None]
    assert "held from the start" in "".join(
        t for line in timeline_lines(timeline, Selection(), width=120) for t, _ in line
    )
