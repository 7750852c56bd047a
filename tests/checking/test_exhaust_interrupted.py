"""Ctrl-C during an exhaustive exploration: it ends with what was learnt, and a second one changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import count

import pytest
from executors import Here
from exhaust import exhaust
from parted import divided
from processes import alive, children

from asyncsim import Case, explore
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.witness_writer import WitnessWriter
from asyncsim.checking.workers import exhaust_parallel as module
from asyncsim.checking.workers.exhaust_parallel import ParallelSearch
from asyncsim.checking.workers.pool import WorkerPool
from asyncsim.checking.workers.subtree import search_subtree
from asyncsim.machine.simulate import Blocking
from asyncsim.trace.jsonl import read_trace
from kernels import reduce_scatter

MANY = Case(reduce_scatter.no_post_barrier, 4, 2)
"""Some hundred executions; the first of them fails."""
SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="sends this process a signal, as a terminal does")


@pytest.fixture
def heard():
    """See to it that Ctrl-C is heard afterwards as it was before."""
    before = signal.getsignal(signal.SIGINT)
    yield
    after = signal.signal(signal.SIGINT, before)
    assert after is before


def ctrl_c(*_):
    signal.raise_signal(signal.SIGINT)


def ctrl_c_at(number):
    """Return what has Ctrl-C come when it is called for the so manieth time."""
    numbers = count(1)

    def told(*_):
        if next(numbers) == number:
            ctrl_c()

    return told


@pytest.mark.parametrize("at", [1, 2, 4])
async def test_ctrl_c_ends_it_with_what_was_learnt(at):
    numbers = count(1)

    def interrupt(_):
        if next(numbers) == at:
            raise KeyboardInterrupt

    explored = await divided(Case(reduce_scatter.no_post_barrier, 3, 2), 9, progress=interrupt)
    assert (explored.complete, explored.interrupted) == (False, True)
    assert 1 <= explored.executions < 40


class Stopping(WorkerPool):
    """A pool that is told by a second Ctrl-C, while it winds down, to hurry."""

    def stop(self):
        ctrl_c()


@SIGNALS
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("at", [2, 9])
def test_a_second_ctrl_c_does_not_lose_what_parts_have_shown(monkeypatch, at):
    monkeypatch.setattr(module, "WorkerPool", lambda *_, **more: Stopping(2, Here(), **more))
    monkeypatch.setattr(module, "FIRST", 5)
    report = explore(MANY.kernel, ranks=4, exhaustive=True, jobs=2, engine="direct", budget=400, progress=ctrl_c_at(at))
    assert (report.verdict, report.interrupted) == ("REFUTED", True)
    assert [finding.kind for finding in report.findings] == ["wrong-result"]
    assert at < report.schedules < 400


@SIGNALS
@pytest.mark.usefixtures("heard")
def test_one_process_is_deaf_to_a_second_ctrl_c_until_its_report_is_made(monkeypatch):
    monkeypatch.setattr(WitnessWriter, "_name", lambda *_: ctrl_c() or "witness.jsonl")
    seen = []
    monkeypatch.setattr(
        "asyncsim.checking.verdict.explore.exploration_scope", lambda *_, **__: seen.append(ctrl_c()) or ""
    )
    report = explore(MANY.kernel, ranks=4, exhaustive=True, engine="direct", budget=400, progress=ctrl_c_at(9))
    assert (report.schedules, report.interrupted, len(seen)) == (10, True, 1)


@SIGNALS
@pytest.mark.usefixtures("heard")
def test_an_exploration_without_a_report_hears_ctrl_c_again_when_it_returns():
    async def exploring(*, engine):
        return await exhaust.aio(MANY, judge=Judge(MANY), budget=400, progress=ctrl_c_at(9))

    explored = Blocking(exploring)(engine="direct")
    assert (explored.executions, explored.interrupted) == (9, True)
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


@SIGNALS
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("executor", [None, Here()])
def test_ctrl_c_while_a_witness_is_written_comes_when_it_is_whole(monkeypatch, tmp_path, executor):
    monkeypatch.setattr(module, "FIRST", 1)
    written = WitnessWriter._name

    def interrupted(self, finding):
        ctrl_c()  # while its run is there, and its file is not
        return written(self, finding)

    monkeypatch.setattr(WitnessWriter, "_name", interrupted)
    report = explore(
        MANY.kernel, ranks=4, exhaustive=True, executor=executor, engine="direct", budget=400, save=tmp_path
    )
    assert (report.verdict, report.interrupted) == ("REFUTED", True)
    (finding,) = report.findings
    assert read_trace(finding.trace).footer.verdict == "REFUTED"
    assert finding.token


@SIGNALS
@pytest.mark.usefixtures("heard")
def test_ctrl_c_while_a_failure_is_told_keeps_no_other_part_from_being_taken():
    told = []

    async def tell(failure):
        told.append(failure.finding.kind)
        ctrl_c()

    judge = Judge(MANY)
    pool = WorkerPool(2, Here(), run=partial(search_subtree, judge))
    dividing = ParallelSearch(MANY, judge, pool, parts=9, first=1, found=tell)
    explored = Blocking(lambda *, engine: dividing.run(400))(engine="direct")
    assert told == [failure.finding.kind for failure in explored.failures] == ["wrong-result"]
    assert explored.interrupted
    assert explored.executions > 9


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="asks /proc for the workers")  # noqa: PTH110
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_two_ctrl_c_in_a_row_end_all_processes_with_a_summary_and_a_witness(tmp_path, jobs):
    subject = ["explore", "reduce_scatter:no_post_barrier", "-P", "6", "--exhaustive", "--budget", "1000000"]
    command = [sys.executable, "-m", "asyncsim", *subject, "--jobs", jobs, "--save", "found"]
    running = subprocess.Popen(  # noqa: S603
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not list((tmp_path / "found").glob("*.jsonl")):
        assert running.poll() is None, running.communicate(timeout=60)
        time.sleep(0.05)
    workers = children(running.pid)
    for _ in range(2):
        os.killpg(running.pid, signal.SIGINT)
        time.sleep(0.02)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (1, "")
    assert out.startswith("REFUTED")
    assert "were run before it was interrupted" in " ".join(out.split())
    (witness,) = (tmp_path / "found").glob("*.jsonl")
    assert read_trace(witness).footer.verdict == "REFUTED"
    until = time.monotonic() + 10
    while left := list(filter(alive, workers)):
        assert time.monotonic() < until, left
        time.sleep(0.05)
