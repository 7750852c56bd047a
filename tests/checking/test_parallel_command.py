"""The options of ``asyncsim explore`` that say who runs the schedules; with Dask, where it is installed."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import sys

import pytest
from click.testing import CliRunner
from executors import EXPLORE, RUNS, Here, text_of, undisturbed
from processes import alive

from asyncsim import explore
from asyncsim.cli.main import main
from kernels.reduce_scatter import hand_no_epilogue


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--jobs", "many"], "'many' is not a number of processes; give an integer such as 4, at most 1024, or auto"),
        (["--jobs", "-1"], "is not a number of processes"),
        (["--dask", "tcp://here:1", "--jobs", "2"], "--jobs and --dask both say what runs the schedules"),
        (["--resume", "j", "-P", "2,3"], "--resume is the journal of one exploration"),
        (["--resume", "."], "is a directory"),
    ],
)
def test_options_that_cannot_be_right_leave_with_2(args, message):
    done = CliRunner().invoke(main, ["explore", "reduce_scatter:hand", *args])
    assert done.exit_code == 2
    assert message in done.stderr.replace("\n", " ")


def test_without_dask_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = CliRunner().invoke(main, ["explore", "reduce_scatter:hand", "--dask", "tcp://here:1"])
    assert done.exit_code == 2
    assert "asyncsim[dask]" in done.stderr


class Cluster:
    """Stands for the package distributed, where a client has as many workers as asked."""

    def __init__(self, threads):
        self.threads = threads

    def Client(self, address):  # noqa: N802 - its name there
        if self.threads is None:
            raise OSError("timed out")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.left = True

    def nthreads(self):
        return self.threads

    def get_executor(self):
        return Here()


def test_a_dask_cluster_is_asked_for_its_executor(monkeypatch):
    cluster = Cluster({"a": 2, "b": 1})
    monkeypatch.setitem(sys.modules, "distributed", cluster)
    done = CliRunner().invoke(main, [*EXPLORE, "--runs", str(RUNS), "--dask", "tcp://there:8786"])
    facts = json.loads(done.stdout)
    del facts["seconds"]
    assert (facts, done.exit_code, cluster.left) == (json.loads(undisturbed()), 1, True)


@pytest.mark.parametrize(("threads", "message"), [({}, "has no workers"), (None, "answers there (timed out)")])
def test_a_dask_cluster_of_no_use_leaves_with_2(monkeypatch, threads, message):
    monkeypatch.setitem(sys.modules, "distributed", Cluster(threads))
    done = CliRunner().invoke(main, [*EXPLORE, "--dask", "tcp://there:8786"])
    assert done.exit_code == 2
    assert message in done.stderr.replace("\n", " ")


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs Dask: asyncsim[dask]")
def test_a_dask_cluster_gives_the_same_findings_as_a_process_pool_and_leaves_no_process(tmp_path):
    from distributed import Client, LocalCluster  # noqa: PLC0415 - where it is installed

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        executor = client.get_executor()
        report = explore(
            hand_no_epilogue,
            ranks=3,
            runs=RUNS,
            executor=executor,
            jobs=2,
            save=tmp_path / "same",
            resume=tmp_path / "j",
        )
        shown = CliRunner().invoke(main, [*EXPLORE, "--runs", str(RUNS), "--dask", cluster.scheduler_address])
    assert len(set(pids)) == 2
    assert not [pid for pid in pids if alive(pid)]
    assert not multiprocessing.active_children()
    assert (shown.exit_code, shown.stderr) == (1, "")
    facts = json.loads(shown.stdout)
    del facts["seconds"]
    assert facts == json.loads(undisturbed())
    witnesses = {path.name: path.read_bytes() for path in (tmp_path / "same").iterdir()}
    (tmp_path / "same").rename(tmp_path / "of the cluster")
    pool = explore(hand_no_epilogue, ranks=3, runs=RUNS, jobs=2, save=tmp_path / "same", resume=tmp_path / "k")
    assert text_of(pool) == text_of(report)
    assert {path.name: path.read_bytes() for path in (tmp_path / "same").iterdir()} == witnesses
    assert len(witnesses) == len(report.findings) == 2
