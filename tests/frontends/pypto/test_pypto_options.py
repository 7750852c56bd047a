"""Options of ``asyncsim pypto`` that are wrong, or stand where they are the script's: what is said, and when."""

import pytest
from command import run

SCRIPT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
print("seed", parser.parse_args().seed)
"""
HINT = "asyncsim: the script was given {}; if that was meant for asyncsim, it stands before the script\n"


@pytest.fixture(autouse=True)
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(SCRIPT)
    (tmp_path / "refused.py").write_text("import pypto.langage")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--calls", "0"], "'--calls': 0 is not in the range x>=1"),
        (["--call", "2"], "Did you mean '--calls'?"),
        (["--seed", "-1"], "'--seed': -1 is not in the range x>=0"),
        (["--scheduler", "nobody"], "no scheduler is called 'nobody'; there are: fifo, "),
        (["--memory", "tso"], "memory='tso'; the memory models are: sc, ldst, nic"),
        (
            ["--memory", "nic"],
            "--memory nic lets happen what PyPTO rules out: a put or a get of PyPTO is complete when",
        ),
        (["--save", "own.py"], "'--save': Directory 'own.py' is a file"),
        (["--json", "missing/report.json"], "--json missing/report.json: there is no folder 'missing'; make it first"),
    ],
)
def test_a_wrong_option_is_refused_before_the_script_runs(options, words):
    result = run("pypto", *options, "own.py")
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [["--calls", "2"], ["--calls=2"]])
def test_an_option_that_the_script_does_not_know_is_perhaps_asyncsims(arguments):
    result = run("pypto", "own.py", *arguments)
    assert result.exit_code == 2
    assert f"unrecognized arguments: {' '.join(arguments)}" in result.stderr
    assert result.stderr.endswith(HINT.format(arguments[0]))


@pytest.mark.parametrize(
    ("arguments", "status"), [(["own.py", "--seed", "3"], 0), (["own.py", "--other"], 2), (["refused.py", "--seed"], 2)]
)
def test_what_is_the_scripts_own_affair_is_left_alone(arguments, status):
    result = run("pypto", *arguments)
    assert result.exit_code == status
    assert "meant for asyncsim" not in result.stderr


def test_the_help_has_examples():
    assert "Examples:\n      asyncsim pypto 14_reduce_scatter.py" in run("pypto", "--help").output
