"""Workers that die, or do not stop: nothing that was found is lost, and nobody is left behind."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from executors import EXPLORE, RUNS, Here, Renewed, text_of, undisturbed
from processes import alive, children

from asyncsim import MisuseError, explore
from asyncsim.checking.workers.batch import _end_with_parent
from kernels import reduce_scatter
from kernels.reduce_scatter import hand, hand_no_epilogue


def test_a_worker_that_is_killed_loses_nothing():
    killed = []

    def kill(_):
        if not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    report = explore(hand_no_epilogue, ranks=3, runs=RUNS, jobs=2, progress=kill)
    assert killed
    assert text_of(report) == undisturbed()


def explored_by(crew, monkeypatch, **more):
    monkeypatch.setattr("asyncsim.checking.verdict.explore.WorkerPool", lambda *_: crew)
    return explore(hand_no_epilogue, ranks=3, runs=RUNS, jobs=2, **more)


def test_batches_that_are_lost_run_again(monkeypatch):
    lost = []

    def lose(batch):
        lost.append(batch.start)
        return lost.count(batch.start) <= 2 and batch.start % 16 == 0

    crew = Renewed(lose)
    assert text_of(explored_by(crew, monkeypatch)) == undisturbed()
    assert crew.renewals >= 2


def test_the_schedule_that_kills_its_process_is_named_and_all_others_are_run(monkeypatch):
    crew = Renewed(lambda batch: any("pos:seed=5" in text for text in batch.texts))
    report = explored_by(crew, monkeypatch)
    assert report.schedules == RUNS  # with the fair one: what died was not judged
    assert report.scope.startswith(f"{RUNS - 1} of {RUNS} schedules sampled (")
    assert (
        "; 1 more ended the process that ran them, and were not judged; nothing is said of the others" in report.scope
    )
    deadly = [finding for finding in report.findings if "dies" in finding.why]
    assert [finding.shown for finding in deadly] == [f"in 1 of {RUNS} schedules, first under pos:seed=5"]
    assert (deadly[0].harmful, deadly[0].token) == (None, None)
    facts = [finding["why"] for finding in json.loads(undisturbed())["findings"]]
    assert [finding.why for finding in report.findings if finding not in deadly] == facts
    alone = [len(batch.texts) for batch in crew._lent.given if "pos:seed=5" in batch.texts]
    assert alone[-1] == 1


def test_a_deadly_schedule_alone_refutes_nothing(monkeypatch):
    crew = Renewed(lambda batch: "random:seed=3" in batch.texts)
    monkeypatch.setattr("asyncsim.checking.verdict.explore.WorkerPool", lambda *_: crew)
    report = explore(reduce_scatter.builtin, ranks=2, runs=20, jobs=2)
    assert report.verdict == "SURVIVED"
    assert len(report.findings) == 1


def test_where_every_schedule_dies_none_is_said_to_be_sampled(monkeypatch):
    crew = Renewed(lambda _: True)
    monkeypatch.setattr("asyncsim.checking.verdict.explore.WorkerPool", lambda *_: crew)
    report = explore(reduce_scatter.builtin, ranks=2, runs=4, jobs=2)
    assert report.scope.startswith("no schedule was judged, of 4 to be sampled (")
    assert report.scope.endswith("; 4 ended the process that ran them, and were not judged")
    assert report.schedules == 1
    (finding,) = report.findings
    assert finding.why.startswith("nothing was judged: the process that runs this schedule dies")


def test_a_worker_that_does_not_stop_when_told_ends_itself():
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    busy = context.Process(target=_end_with_parent, args=(stop,), kwargs={"every": 0.01, "patience": 0.05})
    busy.start()
    try:
        busy.join(1.0)
        assert busy.exitcode is None  # not told yet
        stop.set()
        busy.join(10)
        assert busy.exitcode == 1
    finally:
        busy.kill()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="asks /proc for the workers")  # noqa: PTH110
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path, how):
    command = [sys.executable, "-m", "asyncsim", *EXPLORE[:-1], "--runs", "1000000", "--jobs", "2", "--resume", "j"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603
    workers = []
    try:
        while not (tmp_path / "j").exists() or '"part"' not in (tmp_path / "j").read_text():
            assert running.poll() is None
            time.sleep(0.05)
        workers = children(running.pid)
        running.send_signal(getattr(signal, how))
        running.wait(10)
        assert len(workers) >= 2
        until = time.monotonic() + 10
        while left := [pid for pid in workers if alive(pid)]:
            assert time.monotonic() < until, left
            time.sleep(0.05)
        running.communicate(timeout=10)  # nobody holds its output
    finally:
        for pid in filter(alive, [running.pid, *workers]):
            os.kill(pid, signal.SIGKILL)


def test_a_lent_executor_that_breaks_is_not_ours_to_make_anew():
    with pytest.raises(MisuseError, match=r"the executor \(Here\) is broken.*continue with the journal"):
        explore(hand, ranks=2, runs=20, executor=Here(lambda batch: batch.start > 5))
