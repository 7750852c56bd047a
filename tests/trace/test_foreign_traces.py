"""Traces of real kernels that were instrumented: no order between the ranks, no sums, hardly anything known."""

from __future__ import annotations

import io
import itertools
import json
import random

import instrumented
import pytest
from command import run

from asyncsim import Case, TraceError, simulate
from asyncsim.analysis.linear import NoOrderError, in_fair_order
from asyncsim.checking.record.locate import locate
from asyncsim.schedulers.table import make
from asyncsim.study.explain import explain, read_run
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.jsonl_read import survey_trace


def of(text):
    """Return what a log says."""
    return explain(read_run(io.StringIO(text)))


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


BUGGY, FIXED = (instrumented.run(acknowledged=acknowledged) for acknowledged in (False, True))


# ---- the real program


def test_the_race_of_a_real_program_is_found():
    explained = of(instrumented.log(BUGGY))
    (finding,) = explained.findings
    assert (finding.kind, finding.hazard, finding.scope, finding.window) == ("race", "WAR", "next call", "box")
    assert finding.pairs == 3
    assert [side.op for side in finding.sides] == ["remote_load", "store"]
    assert finding.harmful is None  # nobody can run it
    assert (explained.verdict, explained.suspicious) == (None, True)


def test_the_repaired_program_has_none_and_is_not_called_proved():
    explained = of(instrumented.log(FIXED))
    assert (explained.findings, explained.verdict, explained.suspicious) == ([], None, False)
    assert "no race in any schedule of these operations. This is not a proof" in explained.scope
    assert explained.notes == []


def test_one_call_of_the_buggy_program_has_no_race():
    assert of(instrumented.log(instrumented.run(acknowledged=False, calls=1), calls=1)).findings == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_it_does_not_matter_whose_notes_come_first(order):
    mixed = [BUGGY[rank] for rank in order]
    (finding,) = of(instrumented.log(mixed)).findings
    assert finding.to_json() == of(instrumented.log(BUGGY)).findings[0].to_json()


def test_notes_may_be_interleaved():
    turns = [[note] for turn in itertools.zip_longest(*reversed(BUGGY)) for note in turn if note is not None]
    text = instrumented.text_of(
        [instrumented.header(3, 2), *itertools.chain.from_iterable(turns), {"event": "footer"}],
    )
    assert [finding.title for finding in of(text).findings] == ["WAR race, next call"]


def test_the_commands_take_it(tmp_path):
    for name, notes in (("buggy", BUGGY), ("fixed", FIXED)):
        (tmp_path / f"{name}.jsonl").write_text(instrumented.log(notes))
    buggy, fixed = (str(tmp_path / f"{name}.jsonl") for name in ("buggy", "fixed"))
    shown = run("explain", buggy)
    assert shown.exit_code == 1
    assert shown.output.startswith("1 finding  shift.cu:shift, P = 3, 2 calls, sc\n  read from 24 steps recorded else")
    assert "1. WAR race, next call: 3 pairs, not shown to be harmful\n" in shown.output
    assert "said by the analysis; no run has shown it yet\n" in shown.output
    shown = run("explain", fixed, "--json")
    assert shown.exit_code == 0
    assert json.loads(shown.output)["recorded"] == "elsewhere"
    assert (
        run("validate", buggy, fixed).output
        == f"{buggy}: valid, 26 lines, 24 steps\n{fixed}: valid, 38 lines, 36 steps\n"
    )
    assert run("diff", buggy, fixed).exit_code == 1
    refused = run("replay", buggy, "--kernel", "reduce_scatter:builtin")
    assert refused.exit_code == 2
    assert "line 1: recorded elsewhere: there is no schedule to follow; asyncsim explain" in refused.stderr


# ---- what need not be known


def test_without_a_footer_nothing_is_said_of_what_came_after():
    explained = of(instrumented.log(FIXED, footer=False))
    assert explained.findings == []
    assert explained.scope.endswith("nothing was found, and nothing is proved")
    assert explained.notes == ["the trace is not whole: it has no footer; it is explained up to step 35"]


def test_put_in_order_it_is_a_trace_as_any_other():
    stream = io.StringIO()
    trace = read_run(io.StringIO(instrumented.log(BUGGY))).trace
    write_trace(trace, stream)
    again = read_run(io.StringIO(stream.getvalue())).trace
    assert [event.step for event in again.events] == list(range(24))
    assert {event.have for event in again.events if event.op.kind == "wait"} == {1}
    assert explain(read_run(io.StringIO(stream.getvalue()))).to_json() == of(instrumented.log(BUGGY)).to_json()


def test_a_value_that_nobody_wrote_shows_that_the_log_is_not_whole():
    lines = lines_of(instrumented.log(FIXED))
    load = next(line for line in lines if line.get("op") == "remote_load")
    load["value"] = [99.0]
    (note,) = of(instrumented.text_of(lines)).notes
    assert note.startswith("rank 0's 'remote_load of box[0]@2' at instrumented.py:")
    assert note.endswith("something is missing from this record")


def program(*streams, start=0, **more):
    """Return a log of ranks that add to, set and wait for one counter of rank 0, and of the memory as given."""
    head = {
        **instrumented.header(len(streams), 1),
        "declarations": [
            {"signal": "flag", "shape": [1], "dtype": "int32", "start": start},
            {"window": "box", "shape": [8], "dtype": "float32"},
        ],
        **more,
    }
    notes = [
        {
            "event": "step",
            "rank": rank,
            **({"cell": {"signal": "flag", "owner": 0}} if "accesses" not in step else {}),
            **step,
        }
        for rank, stream in enumerate(streams)
        for step in stream
    ]
    return instrumented.text_of([head, *notes, {"event": "footer"}])


ADD = {"op": "notify", "value": 1}
WAITS = {how: {"op": "wait", "how": how, "need": 1} for how in ("Eq", "Ge")}


def put(value):
    return {"op": "notify", "how": "Set", "value": value}


def test_an_order_is_searched_where_going_in_turn_gets_stuck():
    # In turn, both adds come before the wait: it must get between them.
    text = program([put(5), WAITS["Eq"]], [ADD, ADD], [put(0)])
    trace = read_run(io.StringIO(text)).trace
    wait = next(event for event in trace.events if event.op.kind == "wait")
    assert wait.have == 1
    assert [event.step for event in trace.events] == list(range(5))


def test_operations_that_fit_into_no_order_are_refused():
    for text, reason in (
        (
            program([{**WAITS["Ge"], "need": 2}], [ADD]),
            "no order of these operations is possible: after 1 of 2 operations",
        ),
        (program([WAITS["Eq"]], [put(2)]), "0's operation 0 (wait flag[0]@0 == 1) finds 2"),
        (program([{**WAITS["Ge"], "have": 3}], [ADD], [ADD]), "finds 2, and is said to see 3"),
        (program([{**ADD, "have": 1}], [{**ADD, "have": 1}]), "finds 1, and is said to leave 1"),
    ):
        with pytest.raises(TraceError) as caught:
            read_run(io.StringIO(text), name="mine")
        assert reason in str(caught.value)
        assert str(caught.value).startswith("mine: no order")


def test_the_search_gives_up_and_says_so():
    adds = [[{"op": "notify", "value": 1 << rank}] for rank in range(9)]
    text = program([{**WAITS["Eq"], "need": 1 << 20}], *adds)
    trace = survey_trace(io.StringIO(text), elsewhere=True).trace
    with pytest.raises(NoOrderError, match="no order was found in which they are possible, in 30 tries: after 9 of 10"):
        in_fair_order(trace, budget=30)
    with pytest.raises(NoOrderError, match="no order of these operations is possible: after 9 of 10"):
        in_fair_order(trace)


def test_what_an_add_gave_back_fixes_the_order():
    text = program([{**ADD, "have": 3}], [{**ADD, "have": 1}], [{**ADD, "have": 2}])
    trace = read_run(io.StringIO(text)).trace
    assert [event.op.actor.rank for event in trace.events] == [1, 2, 0]


def test_given_numbers_are_the_order_and_are_checked():
    good = lines_of(program([ADD], [ADD]))
    for number, line in enumerate(good[1:3]):
        line["step"] = number
    assert [event.step for event in read_run(io.StringIO(instrumented.text_of(good))).trace.events] == [0, 1]
    bad = lines_of(program([WAITS["Ge"]], [ADD]))
    for number, line in enumerate(bad[1:3]):
        line["step"] = number
    with pytest.raises(
        TraceError, match=r"step 0 cannot come there: 0's operation 0 \(wait flag\[0\]@0 >= 1\) finds 0"
    ):
        read_run(io.StringIO(instrumented.text_of(bad)))
    del good[1]["step"]
    with pytest.raises(TraceError, match="line 3: a number of a step, though the steps before have none"):
        read_run(io.StringIO(instrumented.text_of(good)))


def test_a_hang_is_told_from_what_stood_there():
    lines = lines_of(program([], [ADD]))
    lines[-1] |= {
        "ending": "deadlock",
        "pending": [{"rank": 0, "op": "wait", "how": "Ge", "need": 2, "cell": {"signal": "flag"}, "at": ["x.cu:7"]}],
    }
    explained = of(instrumented.text_of(lines))
    assert [finding.kind for finding in explained.findings] == ["deadlock"]
    assert "rank 0 waits at x.cu:7 for flag[0]@0 >= 2 (have 1, need 2): too few were sent" in explained.findings[0].why
    assert explained.verdict == "REFUTED"  # the run itself shows it


SEND = {"op": "put", "accesses": [{"window": "box", "owner": 1, "region": [[0, 2, 1]]}]}
TAKE = {"op": "load", "accesses": [{"window": "box", "region": [[0, 2, 1]]}]}


@pytest.mark.parametrize(("memory", "races"), [("sc", 0), ("ldst", 1), ("nic", 1)])
def test_landings_need_not_be_noted(memory, races):
    # A relaxed notify overtakes the data, but not where nothing is late.
    cell = {"cell": {"signal": "flag", "owner": 1}}
    text = program([SEND, {**ADD, **cell, "relaxed": True}], [{**WAITS["Ge"], **cell}, TAKE], memory=memory)
    explained = of(text)
    assert len(explained.findings) == races
    assert explained.steps == (4 if memory == "sc" else 6)
    ordered = program([SEND, {**ADD, **cell}], [{**WAITS["Ge"], **cell}, TAKE], memory=memory)
    assert of(ordered).findings == []


def test_landings_that_are_noted_are_refused():
    wire = {"op": "land", "actor": "0>0", "accesses": SEND["accesses"]}
    with pytest.raises(TraceError, match="no operation before this step leaves a landing to wire '0>0'"):
        read_run(io.StringIO(program([SEND, wire], [], memory="ldst")))


def test_a_late_read_of_the_source_is_made_too():
    copy = {
        "op": "put", "late": True,
        "accesses": [{"window": "box", "region": [[0, 2, 1]]}, {"window": "box", "owner": 1, "region": [[0, 2, 1]]}],
    }  # fmt: skip
    overwrite = {"op": "store", "accesses": [{"window": "box", "region": [[0, 2, 1]]}]}
    trace = read_run(io.StringIO(program([copy, overwrite], [], memory="nic"))).trace
    assert [event.op.kind for event in trace.events] == ["put", "fetch", "land", "store", "land"]
    assert [
        (finding.hazard, finding.scope)
        for finding in explain(read_run(io.StringIO(program([copy, overwrite], [], memory="nic")))).findings
    ] == [("WAR", "same call")]


def test_streams_of_a_rank_are_put_in_order():
    start, join = ({"op": op, "link": "0.1", "cell": None} for op in ("start", "join"))
    lines = lines_of(program([start, join], [ADD]))
    for line in lines[1:3]:
        del line["cell"]
    sync = {"event": "step", "op": "sync", "link": "0/1#0", "parties": 2}
    lines[2:2] = [
        {**sync, "actor": "0"},
        {"event": "step", "actor": "0.1", **WAITS["Ge"], "cell": {"signal": "flag"}},
        {**sync, "actor": "0.1"},
    ]
    trace = read_run(io.StringIO(instrumented.text_of(lines))).trace
    order = [event.op.actor.name + " " + event.op.kind for event in trace.events]
    assert order == ["0 start", "1 notify", "0.1 wait", "0 sync", "0.1 sync", "0 join"]


def test_what_is_not_left_out_must_be_right():
    for old, new, reason in (
        ('"recorded": "elsewhere"', '"recorded": "here"', "'recorded' is 'here'; it must be elsewhere, or left out"),
        ('"ranks": 3', '"ranks": 0', "'ranks' is 0"),
        ('"ranks": 3, ', "", "has no 'ranks'"),
        ('"window": "box"}]', '"window": "bag"}]', "the header declares no window 'bag'"),
        ('"accesses": [{"window": "box"}]', '"accesses": [3]', "an access is 3"),
        ('"rank": 0', '"rank": "0"', "'rank' is '0'; it must be an integer"),
        ('"rank": 0', '"actor": "7"', "the header knows no actor '7'"),
        ('"value": [0.0]', '"value": [0.0, 1.0]', "'value' has 2 elements"),
        ('{"event": "footer"}', '{"event": "footer", "steps": 3}', "the footer counts 3 steps"),
    ):
        text = instrumented.log(BUGGY)
        assert old in text
        with pytest.raises(TraceError) as caught:
            of(text.replace(old, new, 1))
        assert reason in caught.value.reason
        assert caught.value.line is not None


def test_only_who_asks_for_it_gets_it():
    with pytest.raises(TraceError, match="asyncsim explain analyses it"):
        read_trace(io.StringIO(instrumented.log(BUGGY)))


def test_a_search_that_meets_the_same_state_again_does_not_go_on_from_it():
    # Only 9 and 2 in this order, and then nobody else, let both waits pass.
    waits = [{"op": "wait", "how": "Eq", "need": need} for need in (9, 2)]
    text = program([waits[0], waits[1], put(1)], [put(9), ADD], [put(2), {"op": "notify", "value": -1}], [put(7)])
    trace = read_run(io.StringIO(text)).trace
    assert [event.have for event in trace.events if event.op.kind == "wait"] == [9, 2]


# ---- laws


def as_noted(trace, *, draw):
    """Return the log that the ranks of a run would have noted, mixed: no order, no cells, no landings."""
    stream = io.StringIO()
    write_trace(trace, stream)
    head, *steps, end = lines_of(stream.getvalue())
    own = {}
    for step in steps:
        if ">" not in step["actor"]:
            own.setdefault(step["actor"].partition(".")[0], []).append(step)
    mixed = []
    while own:
        rank = draw.choice(sorted(own))
        mixed.append(own[rank].pop(0))
        own = {rank: left for rank, left in own.items() if left}
    for line in (head, *mixed, end):
        for known in ("crc", "step", "have", "steps", "time"):
            line.pop(known, None)
    return instrumented.text_of([{**head, "recorded": "elsewhere"}, *mixed, end])


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
@pytest.mark.parametrize(
    "ref",
    ["reduce_scatter:builtin", "reduce_scatter:no_post_barrier", "all_reduce:ring", "reduce_scatter:double_buffer"],
)
def test_the_notes_of_a_run_say_what_its_trace_says(ref, memory):
    draw = random.Random(ref + memory)  # noqa: S311 - no secret
    for scheduler in ("fifo", "random:seed=4"):
        trace = simulate(Case(locate(ref), 3, 2, memory), make(scheduler), record=scheduler).trace
        whole, noted = explain(as_survey(trace)), of(as_noted(trace, draw=draw))
        assert [finding.to_json() for finding in noted.findings] == [finding.to_json() for finding in whole.findings]
        assert noted.steps == whole.steps
        assert not any("said to get other bytes" in note for note in noted.notes)


def as_survey(trace):
    stream = io.StringIO()
    write_trace(trace, stream)
    return read_run(io.StringIO(stream.getvalue()))
