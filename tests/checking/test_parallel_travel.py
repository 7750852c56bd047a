"""Kernels travel to workers by name and by the hash of their source."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from executors import Here, spec_of

from asyncsim import MisuseError, Signal, explore, kernel
from asyncsim.checking.record.locate import locate
from asyncsim.checking.workers.batch import Batch, importable_name, run_batch
from kernels.reduce_scatter import hand

cell = Signal("cell", (1,))


def test_a_worker_refuses_another_source_and_names_both():
    batch = Batch(spec_of(hand, source="0123456789abcdef"), 0, ("fifo",))
    with pytest.raises(MisuseError, match=rf"another source .*{hand.source} there, 0123456789abcdef here"):
        run_batch(batch)


def test_a_worker_says_what_is_wrong_in_an_error_that_survives_the_way_back():
    batch = Batch(spec_of(hand, kernel="no_such_module:hand"), 0, ("fifo",))
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
        importable_name(hand.variant(name="hand"))


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

    monkeypatch.setattr("asyncsim.checking.workers.batch._stops", [Told()])
    with pytest.raises(MisuseError, match="put the call under: if __name__"):
        explore(hand, jobs=2)
    whole = run_batch(Batch(spec_of(hand), 3, ("fifo", "random:seed=1")))
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
