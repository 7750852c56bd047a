"""The kept witnesses: each replays to the byte, shows its failure, and is what the present code would write."""

import io

import pytest
from make_traces import FOLDER, wanted, witness_of

from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.record.locate import is_shipped, locate
from asyncsim.checking.record.replay import replay
from asyncsim.machine.case import Case
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.late import is_with_old_reads

BUGS = {bug.name: bug for bug in wanted()}
AGAIN = "if that is meant, run python tests/make_traces.py and look at the difference"

each_trace = pytest.mark.parametrize("name", BUGS)


def test_every_known_bug_has_one_trace_and_all_are_small():
    kept = {path.name: path.stat().st_size for path in FOLDER.glob("*.jsonl")}
    assert kept.keys() == BUGS.keys(), AGAIN
    assert sum(kept.values()) < 1_000_000


@each_trace
def test_a_kept_trace_replays_to_the_byte_and_shows_its_failure(name):
    trace = read_trace(FOLDER / name)
    header = trace.header
    assert is_shipped(header.kernel)
    kernel = locate(header.kernel)
    again = replay(trace, kernel)
    assert not again.source_changed, f"the source of {header.kernel} is another one: {AGAIN}"
    text = io.StringIO()
    write_trace(again.run.trace, text)
    assert text.getvalue() == (FOLDER / name).read_text("ascii")
    case = Case(kernel, header.world.ranks, header.calls, header.memory, header.seed)
    assert Symptoms(case).findings(again.run)


@each_trace
def test_the_footer_says_what_was_found(name):
    bug, trace = BUGS[name], read_trace(FOLDER / name)
    header = trace.header
    memory = "gpu" if is_with_old_reads(header.memory) else header.memory  # a witness names the reads that it has so
    assert (header.kernel, header.world.ranks, header.calls, memory) == (
        bug.kernel.ref, bug.ranks, bug.calls, bug.memory,
    )  # fmt: skip
    assert trace.footer.verdict == "REFUTED"
    (found,) = trace.footer.findings
    expected = bug.expected
    assert found["harmful"]
    assert found["kind"] == expected.kind
    assert expected.hazard in (None, found["hazard"])
    assert expected.scope in (None, found["scope"])
    assert expected.pairs is None or found["pairs"] == expected.pairs(bug.ranks)


@each_trace
def test_a_kept_trace_is_what_is_written_today(name):
    assert witness_of(BUGS[name]) == (FOLDER / name).read_bytes(), f"{name} would be another one: {AGAIN}"
