"""Exploration by several workers: the same report, whoever runs the schedules and whatever happens to them."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor

import pytest
import trio
from click.testing import CliRunner

from asyncsim import MisuseError, Signal, Window, explore, kernel, replay
from asyncsim.checking.batch import Batch, Work, _end_with_parent, run_batch, travelling
from asyncsim.checking.locate import locate
from asyncsim.checking.parallel import Crew, cores
from asyncsim.cli.main import main
from asyncsim.trace.jsonl import read_trace
from asyncsim.trace.token import decode
from kernels import reduce_scatter
from kernels.reduce_scatter import hand, hand_no_epilogue

RUNS = 60
EXPLORE = ("explore", "reduce_scatter:hand_no_epilogue", "-P", "3", "--json")


def text_of(report):
    """Return all that a report says, but for the seconds."""
    facts = report.to_json()
    del facts["seconds"]
    return json.dumps(facts)


@pytest.fixture(scope="module")
def undisturbed():
    """Return what one process reports."""
    return text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS))


def work_of(found, ranks=3, **more):
    return Work(
        **{"kernel": found.ref, "source": found.source, "ranks": ranks, "calls": 2, "memory": "sc", "seed": 0}
        | {"behaviours": True, **more}
    )


class Here(Executor):
    """Runs each batch at once; pickles it and its part, as a process would; may lose some."""

    def __init__(self, lose=lambda _: False):  # noqa: D107
        self.lose = lose
        self.given = []

    def submit(self, function, /, batch):
        self.given.append(batch)
        future = Future()
        if self.lose(batch):
            future.set_exception(BrokenExecutor("a worker died"))
        else:
            try:
                future.set_result(pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(batch))))))  # noqa: S301
            except MisuseError as error:
                future.set_exception(error)
        return future


class Late(Here):
    """Holds every future back until there are some, and then finishes the last first."""

    def submit(self, function, /, batch):
        future = super().submit(function, batch)
        late = Future()
        self.held = [(late, future), *getattr(self, "held", [])]
        if len(self.held) == 2 or batch.start + len(batch.texts) == RUNS:
            for late_one, done in self.held:
                late_one.set_result(done.result())
            self.held = []
        return late


# ---- the same report


def test_two_processes_report_what_one_does_and_save_the_same_witnesses(undisturbed, tmp_path):
    report = explore(hand_no_epilogue, ranks=3, runs=RUNS, jobs=2, save=tmp_path / "two")
    alone = explore(hand_no_epilogue, ranks=3, runs=RUNS, save=tmp_path / "one")
    facts = json.loads(undisturbed)
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
def test_any_executor_gives_the_same_report_however_the_schedules_are_cut(undisturbed, executor, jobs):
    lent = executor()
    assert text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS, executor=lent, jobs=jobs)) == undisturbed
    assert len(lent.given) == 4 * jobs
    assert sum(len(batch.texts) for batch in lent.given) == RUNS


def test_threads_give_the_same_report(undisturbed):
    with ThreadPoolExecutor(2) as executor:
        report = explore(hand_no_epilogue, ranks=3, runs=RUNS, executor=executor, jobs=2)
    assert text_of(report) == undisturbed


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs Dask: asyncsim[dask]")
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_report(undisturbed):
    from distributed import Client, LocalCluster  # noqa: PLC0415 - where it is installed

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        report = explore(hand_no_epilogue, ranks=3, runs=RUNS, executor=client.get_executor(), jobs=2)
        assert text_of(report) == undisturbed
        shown = CliRunner().invoke(main, [*EXPLORE, "--runs", str(RUNS), "--dask", cluster.scheduler_address])
    facts = json.loads(shown.stdout)
    del facts["seconds"]
    assert facts == json.loads(undisturbed)


async def test_other_tasks_go_on_while_workers_run(undisturbed):
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
    assert text_of(report) == undisturbed
    assert len(turns) > 10
    with ThreadPoolExecutor(1) as executor:  # plainly, inside a trio loop: it keeps the loop waiting
        assert text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS, executor=executor)) == undisturbed


# ---- two sites, one finding


def test_one_bug_found_many_times_is_one_finding_with_a_count():
    report = explore(hand, ranks=3, runs=RUNS)
    (finding,) = report.findings
    assert f" of {RUNS} schedules, first under " in finding.shown
    assert int(finding.shown.rpartition("; in ")[2].split()[0]) > RUNS / 2
    load, store = finding.sides[-2:]
    assert (load.op, store.op) == ("load", "store") or load.op == "remote_load"
    assert [side.at[0].rpartition(":")[0] for side in (load, store)] == ["kernels/reduce_scatter.py"] * 2


def test_two_bugs_are_two_findings_though_both_give_wrong_results(undisturbed):
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


# ---- workers that die


def test_a_worker_that_is_killed_loses_nothing(undisturbed):
    killed = []

    def kill(_):
        if not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    report = explore(hand_no_epilogue, ranks=3, runs=RUNS, jobs=2, progress=kill)
    assert killed
    assert text_of(report) == undisturbed


class Renewed(Crew):
    """A crew whose pool can be lost without a process."""

    def __init__(self, lose):  # noqa: D107
        super().__init__(2, Here(lose))
        self.renewals = 0

    def renew(self):
        self.renewals += 1


def explored_by(crew, monkeypatch, **more):
    monkeypatch.setattr("asyncsim.checking.explore.Crew", lambda *_: crew)
    return explore(hand_no_epilogue, ranks=3, runs=RUNS, jobs=2, **more)


def test_batches_that_are_lost_run_again(undisturbed, monkeypatch):
    lost = []

    def lose(batch):
        lost.append(batch.start)
        return lost.count(batch.start) <= 2 and batch.start % 16 == 0

    crew = Renewed(lose)
    assert text_of(explored_by(crew, monkeypatch)) == undisturbed
    assert crew.renewals >= 2


def test_the_schedule_that_kills_its_process_is_named_and_all_others_are_run(undisturbed, monkeypatch):
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
    facts = [finding["why"] for finding in json.loads(undisturbed)["findings"]]
    assert [finding.why for finding in report.findings if finding not in deadly] == facts
    alone = [len(batch.texts) for batch in crew._lent.given if "pos:seed=5" in batch.texts]
    assert alone[-1] == 1


def test_a_deadly_schedule_alone_refutes_nothing(monkeypatch):
    crew = Renewed(lambda batch: "random:seed=3" in batch.texts)
    monkeypatch.setattr("asyncsim.checking.explore.Crew", lambda *_: crew)
    report = explore(reduce_scatter.builtin, ranks=2, runs=20, jobs=2)
    assert report.verdict == "SURVIVED"
    assert len(report.findings) == 1


def test_where_every_schedule_dies_none_is_said_to_be_sampled(monkeypatch):
    crew = Renewed(lambda _: True)
    monkeypatch.setattr("asyncsim.checking.explore.Crew", lambda *_: crew)
    report = explore(reduce_scatter.builtin, ranks=2, runs=4, jobs=2)
    assert report.scope.startswith("no schedule was judged, of 4 to be sampled (")
    assert report.scope.endswith("; 4 ended the process that ran them, and were not judged")
    assert report.schedules == 1
    (finding,) = report.findings
    assert finding.why.startswith("nothing was judged: the process that runs this schedule dies")


def test_ctrl_c_before_the_first_batch_says_that_nothing_was_run(monkeypatch):
    class Cut(Crew):
        def submit(self, batch):
            raise KeyboardInterrupt

    monkeypatch.setattr("asyncsim.checking.explore.Crew", lambda *_: Cut(2, Here()))
    report = explore(hand, ranks=2, runs=100, jobs=2)
    assert report.interrupted
    assert report.scope.startswith("no schedule was run, of 100 to be sampled (")
    assert "nothing is said of any but the fair one" in report.scope


@pytest.mark.skipif(sys.platform == "win32", reason="sends this process a signal, as a terminal does")
def test_a_second_ctrl_c_does_not_lose_the_report():
    before = signal.getsignal(signal.SIGINT)

    class Stopping(Crew):
        def stop(self):
            signal.raise_signal(signal.SIGINT)  # while it winds down

        def submit(self, batch):
            if self._lent.given:
                signal.raise_signal(signal.SIGINT)
            return super().submit(batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncsim.checking.explore.Crew", lambda *_: Stopping(2, Here()))
        report = explore(hand, ranks=2, runs=40, jobs=2)
    assert report.interrupted
    assert " of 40 schedules sampled" in report.scope
    assert signal.getsignal(signal.SIGINT) is before


def alive(pid):
    """Say whether a process is there; one that ended and that nobody asked for counts as gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - no path of ours
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


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
        with open(f"/proc/{running.pid}/task/{running.pid}/children") as file:  # noqa: PTH123
            workers = [int(pid) for pid in file.read().split()]
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


# ---- kernels travel by name


def test_a_worker_refuses_another_source_and_names_both():
    batch = Batch(work_of(hand, source="0123456789abcdef"), 0, ("fifo",))
    with pytest.raises(MisuseError, match=rf"another source .*{hand.source} there, 0123456789abcdef here"):
        run_batch(batch)


def test_a_worker_says_what_is_wrong_in_an_error_that_survives_the_way_back():
    batch = Batch(work_of(hand, kernel="no_such_module:hand"), 0, ("fifo",))
    with pytest.raises(MisuseError, match="no_such_module") as caught:
        run_batch(batch)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_a_kernel_made_in_a_function_cannot_travel():
    @kernel(memory=[cell])
    async def made_here(rank, cell):
        """Do nothing."""

    for jobs in (0, 2):
        with pytest.raises(MisuseError, match=r"other processes cannot find the kernel .*or explore with jobs=1"):
            explore(made_here, jobs=jobs)
    assert explore(made_here, ranks=2, runs=3).verdict == "SURVIVED"


def test_a_kernel_whose_name_leads_to_another_one_cannot_travel():
    with pytest.raises(MisuseError, match="would find another kernel under the name"):
        travelling(hand.variant(name="hand"))


SCRIPT = """
from asyncsim import Signal, explore, kernel


@kernel(memory=[Signal("cell", (1,))])
async def meet(rank, cell):
    await rank.notify(cell.at(0)[0])


"""


def run_script(folder, text, *how):
    (folder / "my_script.py").write_text(SCRIPT + text)
    return subprocess.run(  # noqa: S603
        [sys.executable, *how], cwd=folder, capture_output=True, text=True, check=False, timeout=100
    )


def test_a_kernel_of_a_script_travels_by_the_name_of_its_module(tmp_path):
    done = run_script(
        tmp_path,
        "if __name__ == '__main__':\n    print(explore(meet, ranks=2, runs=9, jobs=2).schedules)",
        "-m",
        "my_script",
    )
    assert (done.stdout, done.stderr) == ("10\n", "")


def test_a_script_that_is_no_module_says_how_to_run_it(tmp_path):
    done = run_script(tmp_path, "explore(meet, ranks=2, runs=9, jobs=2)", "my_script.py")
    assert done.returncode == 1
    assert "run the script as a module, python -m NAME, or explore with jobs=1" in done.stderr


def test_a_worker_does_not_start_workers(monkeypatch):
    class Told:
        def is_set(self):
            return False

    monkeypatch.setattr("asyncsim.checking.batch._stops", [Told()])
    with pytest.raises(MisuseError, match="put the call under: if __name__"):
        explore(hand, jobs=2)
    whole = run_batch(Batch(work_of(hand), 3, ("fifo", "random:seed=1")))
    assert (whole.start, whole.count, len(whole.behaviours)) == (3, 2, 2)


def test_a_kernel_of_a_file_travels_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "from asyncsim import Signal, kernel\n"
        "@kernel(memory=[Signal('cell', (1,))])\n"
        "async def meet(rank, cell):\n"
        "    await rank.notify(cell.at(0)[0])\n"
    )
    report = explore(locate("own.py:meet"), ranks=2, runs=10, executor=Here())
    assert report.verdict == "SURVIVED"
    (tmp_path / "own.py").write_text("# another file\n" + (tmp_path / "own.py").read_text())
    with pytest.raises(MisuseError, match="or its file has changed since"):
        explore(report.case.kernel, ranks=2, runs=10, executor=Here())


# ---- the command


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--jobs", "many"], "'many' is no number of processes; give an integer such as 4, or auto"),
        (["--jobs", "-1"], "is no number of processes"),
        (["--dask", "tcp://here:1", "--jobs", "2"], "--jobs and --dask both say who runs the schedules"),
        (["--resume", "j", "-P", "2,3"], "--resume is the journal of one exploration"),
        (["--resume", "."], "is a directory"),
    ],
)
def test_options_that_cannot_be_right_leave_with_2(args, message):
    done = CliRunner().invoke(main, ["explore", "reduce_scatter:hand", *args])
    assert done.exit_code == 2
    assert message in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("jobs", [-1, True, "two"])
def test_jobs_are_a_number(jobs):
    with pytest.raises(MisuseError, match="or 0 for one a core"):
        explore(hand, jobs=jobs)


def test_without_dask_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = CliRunner().invoke(main, ["explore", "reduce_scatter:hand", "--dask", "tcp://here:1"])
    assert done.exit_code == 2
    assert "asyncsim[dask]" in done.stderr


class Cluster:
    """Stands for the package distributed, where a client has as many workers as asked."""

    def __init__(self, threads):  # noqa: D107
        self.threads = threads

    def Client(self, address):  # noqa: N802 - its name there
        if self.threads is None:
            raise OSError("timed out")
        return self

    def __enter__(self):  # noqa: D105
        return self

    def __exit__(self, *_):  # noqa: D105
        self.left = True

    def nthreads(self):
        return self.threads

    def get_executor(self):
        return Here()


def test_a_dask_cluster_is_asked_for_its_executor(undisturbed, monkeypatch):
    cluster = Cluster({"a": 2, "b": 1})
    monkeypatch.setitem(sys.modules, "distributed", cluster)
    done = CliRunner().invoke(main, [*EXPLORE, "--runs", str(RUNS), "--dask", "tcp://there:8786"])
    facts = json.loads(done.stdout)
    del facts["seconds"]
    assert (facts, done.exit_code, cluster.left) == (json.loads(undisturbed), 1, True)


@pytest.mark.parametrize(("threads", "message"), [({}, "has no workers"), (None, "answers there (timed out)")])
def test_a_dask_cluster_of_no_use_leaves_with_2(monkeypatch, threads, message):
    monkeypatch.setitem(sys.modules, "distributed", Cluster(threads))
    done = CliRunner().invoke(main, [*EXPLORE, "--dask", "tcp://there:8786"])
    assert done.exit_code == 2
    assert message in done.stderr.replace("\n", " ")


def test_as_many_jobs_as_cores():
    assert cores() >= 1
    seen = []

    def crew(jobs, executor):
        seen.append(jobs)
        return Crew(jobs, Here())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncsim.checking.explore.Crew", crew)
        patch.setattr("asyncsim.cli.explore.cores", lambda: 3)
        assert (
            CliRunner().invoke(main, ["explore", "reduce_scatter:builtin", "--runs", "5", "--jobs", "auto"]).exit_code
            == 0
        )
        explore(hand, ranks=2, runs=5, jobs=0)
    assert seen == [3, cores()]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="sends a signal to a group of processes, as a terminal does")
def test_ctrl_c_ends_all_processes_with_a_summary(tmp_path):
    command = [sys.executable, "-m", "asyncsim", *EXPLORE[:-1], "--runs", "1000000", "--jobs", "2", "--resume", "j"]
    running = subprocess.Popen(  # noqa: S603
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    journal = tmp_path / "j"
    while not journal.exists() or '"part"' not in journal.read_text():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (1, "")
    assert out.startswith("REFUTED")
    assert " of 1000000 schedules sampled" in out
    assert "(interrupted)" in " ".join(out.split())
