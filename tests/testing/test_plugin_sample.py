"""The plugin from outside: a project of its own, run by pytest in a process of its own, and the page that shows it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, run_process

SAMPLE = Path(__file__).parent / "sample_project"
PAGE = ROOT / "docs/how-to/test-with-pytest.md"
BLOCKS = dict(re.findall(r'```\w+ title="([\w.]+)"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL))
LEAN = [word for name in ("hypothesispytest", "cov", "trio", "xdist") for word in ("-p", f"no:{name}")]
"""Without the plugins that a run does not need: to load them takes longer than to judge."""
RACES = ["test_race.py::test_shift[P2]", "test_race.py::test_shift[P3]"]


@pytest.fixture
def project(tmp_path):
    """Return a copy of the sample project."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__", ".*")))


def run(project, *arguments):
    """Run pytest in the project."""
    env = {**os.environ, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    env.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False, timeout=240)  # noqa: S603 - ours


def failed(output):
    return sorted(re.findall(r"^FAILED (\S+)", output, re.MULTILINE))


def shown(output):
    """Return the failures, with what differs from run to run as the page writes it."""
    part = output[output.index("________________") :].partition("=====")[0]
    return re.sub(r"in \d+\.\d+ s", "in 0.05 s", re.sub(r"as1\.\S+", "as1.…", part)).rstrip()


def pasted(output, start):
    """Return the words of the first line that begins so, as a shell would."""
    return re.search(rf"{start} (.*)", output)[1].replace("'", "").split()


def test_the_race_is_found_and_shown_as_documented_and_every_line_replays(project):
    done = run(project, *LEAN, "test_race.py", "-k", "P3", "--asyncsim-save", "witnesses")
    assert (done.returncode, failed(done.stdout)) == (1, RACES[1:])
    assert shown(done.stdout) == BLOCKS["failure"].rstrip()

    again = run(project, *LEAN, *pasted(done.stdout, r"1\. pytest"))
    assert (again.returncode, failed(again.stdout)) == (1, RACES[1:])
    assert shown(again.stdout) == BLOCKS["replay"].rstrip()

    saved = re.search(r"trace   (\S+)", done.stdout)[1]
    assert (project / saved).is_file()
    by_file = run(project, *LEAN, "test_race.py", "--asyncsim-replay", saved)
    assert (failed(by_file.stdout), "1 failed, 1 deselected" in by_file.stdout) == (RACES[1:], True)


def test_the_command_replays_the_token_and_the_file_of_a_test(project, monkeypatch):
    done = run(project.parent, *LEAN, "project/test_race.py", "-k", "P3", "--asyncsim-save", "witnesses")
    monkeypatch.chdir(project.parent)
    words = pasted(done.stdout, "replay  asyncsim")
    assert words[-1] == "project/test_race.py:test_shift"
    saved = re.search(r"trace   (\S+)", done.stdout)[1]
    for recorded in (words[1], saved):
        replayed = run_process("replay", recorded, *words[2:])
        assert (replayed.returncode, replayed.stderr) == (1, "")
        assert "instead of" in replayed.stdout


def test_all_else_in_the_project_passes_without_a_warning(project):
    done = run(project, "-W", "error")
    assert failed(done.stdout) == RACES
    assert "2 failed, 16 passed in" in done.stdout


def test_it_runs_on_two_workers_and_its_sections_travel(project):
    done = run(project, *LEAN[:-2], "-n", "2", "test_race.py")
    assert failed(done.stdout) == RACES
    assert done.stdout.count("- asyncsim -") == 2
    assert shown(done.stdout).count("to run a witness again in this test") == 2


@pytest.mark.skipif(importlib.util.find_spec("pytest_randomly") is None, reason="pytest-randomly is not installed")
def test_it_runs_in_any_order(project):
    for seed in ("1", "2"):
        done = run(project, *LEAN[:4], f"--randomly-seed={seed}")
        assert failed(done.stdout) == RACES


def test_without_the_plugin_pytest_says_what_is_missing_and_collects_all_the_same(project):
    done = run(project, *LEAN[:4], "-p", "no:asyncsim")
    assert "Unknown pytest.mark.asyncsim" in done.stdout
    assert "cannot collect 'test_shift' because it is not a function" in done.stdout
    assert "returned <class 'asyncsim.machine.kernel.Kernel'>" in done.stdout
    assert "fixture 'judge' not found" in done.stdout
    assert "7 passed" in done.stdout


def test_a_suite_that_judges_nothing_does_not_load_asyncsim(tmp_path):
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\ndef test_plain():\n"
        "    assert 'pytest_asyncsim' in sys.modules\n"
        "    assert not {'asyncsim', 'numpy', 'trio'} & set(sys.modules)\n",
        encoding="utf-8",
    )
    done = run(tmp_path, *LEAN, "-p", "no:randomly")  # which imports numpy itself, to seed it
    assert "1 passed" in done.stdout, done.stdout


def test_a_folder_called_kernels_is_hidden_as_the_page_says(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "mine.py").write_text("", encoding="utf-8")
    command = [sys.executable, "-c", "import kernels.mine"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=240)  # noqa: S603 - ours
    assert "No module named 'kernels.mine'" in done.stderr
    assert "a\nfolder `kernels/` that has no `__init__.py`" in PAGE.read_text("utf-8")
    for page in (PAGE, PAGE.with_name("replay-in-ci.md")):
        assert not re.search(r"(?<!\w)kernels/\w", page.read_text("utf-8"))


@pytest.mark.parametrize("name", [name for name in BLOCKS if name.endswith(".py")])
def test_the_page_shows_the_files_of_the_project(name):
    assert BLOCKS[name] == (SAMPLE / name).read_text("utf-8")


def test_the_page_shows_every_file_and_nothing_that_is_not_run():
    assert {path.name for path in SAMPLE.glob("*.py")} | {"failure", "replay"} == set(BLOCKS)
    assert PAGE.read_text("utf-8").count("```") == 2 * (len(BLOCKS) + 1)  # and the command that is run above
