"""Exploration by several workers: the same report, whoever runs the schedules."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio
from click.testing import CliRunner
from executors import RUNS, Here, Late, text_of, undisturbed

from asyncsim import MisuseError, Signal, Window, explore, kernel, replay
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.workers.pool import WorkerPool, cores
from asyncsim.cli.main import main
from asyncsim.trace.jsonl import read_trace
from asyncsim.trace.token import decode
from kernels.reduce_scatter import hand, hand_no_epilogue


def test_two_processes_report_what_one_does_and_save_the_same_witnesses(tmp_path):
    report = explore(hand_no_epilogue, ranks=3, runs=RUNS, jobs=2, save=tmp_path / "two")
    alone = explore(hand_no_epilogue, ranks=3, runs=RUNS, save=tmp_path / "one")
    facts = json.loads(undisturbed())
    for finding in facts["findings"]:
        finding["trace"] = None
    own = json.loads(text_of(report))
    for finding in own["findings"]:
        assert read_trace(finding.pop("trace")).footer.verdict == "REFUTED"
        finding["trace"] = None
    assert own == facts
    files = {path.name: path.read_bytes() for path in (tmp_path / "two").glob("*.jsonl")}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "one").glob("*.jsonl")}
    assert len(files) == len(alone.findings) == 2


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("executor", [Here, Late])
def test_any_executor_gives_the_same_report_however_the_schedules_are_cut(executor, jobs):
    lent = executor()
    assert text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS, executor=lent, jobs=jobs)) == undisturbed()
    assert len(lent.given) == 4 * jobs
    assert sum(len(batch.texts) for batch in lent.given) == RUNS


def test_threads_give_the_same_report():
    with ThreadPoolExecutor(2) as executor:
        report = explore(hand_no_epilogue, ranks=3, runs=RUNS, executor=executor, jobs=2)
    assert text_of(report) == undisturbed()


def test_results_that_were_met_before_are_not_judged_again_and_the_report_is_the_same(monkeypatch):
    judged = []
    findings = Judge.findings
    monkeypatch.setattr(Judge, "findings", lambda self, run: judged.append(run) or findings(self, run))
    assert text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS)) == undisturbed()
    few = len(judged)
    assert 0 < few < RUNS
    monkeypatch.setattr("asyncsim.checking.search.sampler._MOST_KNOWN", 1)
    assert text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS)) == undisturbed()
    assert len(judged) - few > few


async def test_other_tasks_go_on_while_workers_run():
    turns = []

    async def other():
        while True:
            turns.append(len(turns))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        with ThreadPoolExecutor(1) as executor:
            report = await explore.aio(hand_no_epilogue, ranks=3, runs=RUNS, executor=executor)
        nursery.cancel_scope.cancel()
    assert text_of(report) == undisturbed()
    assert len(turns) > 10
    with ThreadPoolExecutor(1) as executor:  # plainly, inside a trio loop: it keeps the loop waiting
        assert text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS, executor=executor)) == undisturbed()


def test_as_many_jobs_as_cores():
    assert cores() >= 1
    seen = []

    def pool(jobs, executor):
        seen.append(jobs)
        return WorkerPool(jobs, Here())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncsim.checking.verdict.explore.WorkerPool", pool)
        patch.setattr("asyncsim.cli.explore.cores", lambda: 3)
        assert (
            CliRunner().invoke(main, ["explore", "reduce_scatter:builtin", "--runs", "5", "--jobs", "auto"]).exit_code
            == 0
        )
        explore(hand, ranks=2, runs=5, jobs=0)
    assert seen == [3, cores()]


@pytest.mark.parametrize("jobs", [-1, True, "two"])
def test_jobs_are_a_number(jobs):
    with pytest.raises(MisuseError, match="or 0 for one a core"):
        explore(hand, jobs=jobs)


# ---- two sites, one finding


def test_one_bug_found_many_times_is_one_finding_with_a_count():
    report = explore(hand, ranks=3, runs=RUNS)
    (finding,) = report.findings
    assert f" of {RUNS} schedules, first under " in finding.shown
    assert int(finding.shown.rpartition("; in ")[2].split()[0]) > RUNS / 2
    load, store = finding.sides[-2:]
    assert (load.op, store.op) == ("load", "store") or load.op == "remote_load"
    assert [side.at[0].rpartition(":")[0] for side in (load, store)] == ["kernels/reduce_scatter.py"] * 2


def test_two_bugs_are_two_findings_though_both_give_wrong_results():
    found = explore(hand_no_epilogue, ranks=3, runs=RUNS).findings
    assert [finding.kind for finding in found] == ["wrong-result"] * 2
    assert sum(int(finding.shown.rpartition("; in ")[2].split()[0]) for finding in found) <= RUNS
    for finding in found:
        assert replay(decode(finding.token), hand_no_epilogue).steps > 0


cell = Signal("cell", (1,))
data = Window("data", (1,), "int64", initialised=True)


@kernel(memory=[data, cell])
async def hangs_or_raises(rank, data, cell):
    """Rank 0 sees how far the others are: it waits for ever at one line, or raises at another."""
    if rank.id:
        await rank.store(data.at(0)[0], rank.id)
        return
    if (seen := int(await rank.load(data[0]))) == 1:
        await rank.wait(cell[0] >= 1)
    assert seen != 2


def test_hangs_and_exceptions_are_told_apart_by_their_lines():
    report = explore(hangs_or_raises, ranks=3, calls=1, runs=RUNS, scheduler="random")
    assert sorted(finding.kind for finding in report.findings) == ["deadlock", "wrong-result"]
    assert "AssertionError" in next(f.why for f in report.findings if f.kind == "wrong-result")
