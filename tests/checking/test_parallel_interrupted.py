"""Ctrl-C while several workers explore: everybody ends, with a summary, and a second one changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from executors import EXPLORE, Here

from asyncsim import explore
from asyncsim.checking.workers.pool import WorkerPool
from kernels.reduce_scatter import hand


def test_ctrl_c_before_the_first_batch_says_that_nothing_was_run(monkeypatch):
    class Cut(WorkerPool):
        def submit(self, batch):
            raise KeyboardInterrupt

    monkeypatch.setattr("asyncsim.checking.verdict.explore.WorkerPool", lambda *_: Cut(2, Here()))
    report = explore(hand, ranks=2, runs=100, jobs=2)
    assert report.interrupted
    assert report.scope.startswith("no schedule was run, of 100 to be sampled (")
    assert "nothing is said of any but the fair one" in report.scope


@pytest.mark.skipif(sys.platform == "win32", reason="sends this process a signal, as a terminal does")
def test_a_second_ctrl_c_does_not_lose_the_report():
    before = signal.getsignal(signal.SIGINT)

    class Stopping(WorkerPool):
        def stop(self):
            signal.raise_signal(signal.SIGINT)  # while it winds down

        def submit(self, batch):
            if self._lent.given:
                signal.raise_signal(signal.SIGINT)
            return super().submit(batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncsim.checking.verdict.explore.WorkerPool", lambda *_: Stopping(2, Here()))
        report = explore(hand, ranks=2, runs=40, jobs=2)
    assert report.interrupted
    assert " of 40 schedules sampled" in report.scope
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="sends a signal to a group of processes, as a terminal does")
def test_ctrl_c_ends_all_processes_with_a_summary(tmp_path):
    command = [sys.executable, "-m", "asyncsim", *EXPLORE[:-1], "--runs", "1000000", "--jobs", "2", "--resume", "j"]
    running = subprocess.Popen(  # noqa: S603
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    journal = tmp_path / "j"
    while not journal.exists() or '"part"' not in journal.read_text():
        assert running.poll() is None, running.communicate(timeout=60)
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (1, "")
    assert out.startswith("REFUTED")
    assert " of 1000000 schedules sampled" in out
    assert "(interrupted)" in " ".join(out.split())
