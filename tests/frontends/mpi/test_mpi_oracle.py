"""Random race-free programs on windows print what they print on a real MPI, where one is installed."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_random import PROGRAMS, RANKS, programs

from asyncsim.frontends.mpi.module import script

PROGRAM = Path(__file__).with_name("mpi_random.py")


def printed_here(text, path):
    """Return what each rank prints on the simulated machine, and the program."""
    path.write_text(text, "utf-8")
    made = script(str(path))
    with made.answered():
        made.follow(RANKS, memory="nic", seed=0)
    lines = made.printed.splitlines(keepends=True)
    return ["".join(line for line in lines if line.startswith(f"{rank} ")) for rank in range(RANKS)], made


@pytest.mark.timeout(180)
def test_random_programs_print_what_they_print_on_a_real_mpi(tmp_path):
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    launcher = shutil.which("mpiexec", path=here)
    if launcher is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("no MPI here: pip install mpi4py mpich")
    command = [launcher, "-n", str(RANKS), sys.executable, str(PROGRAM), str(tmp_path)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)  # noqa: S603 - made above
    theirs = [Path(tmp_path, f"{rank}.txt").read_text("utf-8").split("--\n") for rank in range(RANKS)]
    for number, text in enumerate(programs()):
        ours, _ = printed_here(text, tmp_path / "program.py")
        assert ours == [theirs[rank][number] for rank in range(RANKS)], text
    assert number + 1 == PROGRAMS


@pytest.mark.parametrize("number", range(0, PROGRAMS, 40))
def test_random_programs_have_no_race(number, tmp_path):
    _, made = printed_here(programs()[number], tmp_path / "program.py")
    with made.answered():
        report = made.judge(RANKS, memory="nic", races="all", budget=10, samples=2)
    assert report.verdict in {"PROVED", "EXHAUSTED", "SURVIVED"}
    assert not report.findings
