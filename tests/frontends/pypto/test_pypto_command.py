"""``asyncsim pypto``: what a script finds, what it prints, what is said of it, and the exit status."""

import json
import os
import re
import shlex
import sys

import pytest
from command import run, run_process

PROGRAM = """
import sys
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig

SIZE = 4

@pl.program
class Shift:
    @pl.function(type=pl.FunctionType.InCore)
    def step(self, x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
        {meet}
        return pl.store(pld.remote_load(data, 1 - me, [0, 0], [1, SIZE]), [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x, y):
        data = pld.alloc_window_buffer(SIZE * 4)
        signal = pld.alloc_window_buffer(8)
        for r in pl.range(pld.world_size()):
            self.step(
                x[r], y[r], pld.window(data, [1, SIZE], dtype=pl.FP32), pld.window(signal, [2, 1], dtype=pl.INT32),
                device=r,
            )

x = np.arange(2 * SIZE, dtype=np.float32).reshape(2, 1, SIZE)
y = np.zeros_like(x)
compiled = ir.compile(Shift, platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[0, 1]))
{before}
compiled(x, y)
{after}
"""
BARRIER = "signal = pld.tensor.barrier(signal)"
SAFE = f"""{BARRIER}
        pl.store(pld.remote_load(data, 1 - me, [0, 0], [1, SIZE]), [0, 0], y)
        {BARRIER}
        return y
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Return what writes a script to the present folder."""
    monkeypatch.chdir(tmp_path)

    def write(*, meet=BARRIER, before="", after='print("OK")', name="shift.py"):
        path = tmp_path / name
        path.write_text(PROGRAM.format(meet=meet, before=before, after=after), "utf-8")
        return name

    return write


def test_the_scripts_own_output_comes_first_and_unchanged(script):
    name = script(before='print("before")', after='print("after", y[0, 0, 0])')
    result = run("pypto", name)
    assert result.exit_code == 0
    assert result.output.startswith("before\nafter 4.0\n\nPROVED  shift.py:Shift, P = 2, 1 call, sc\n")
    assert (
        "if the windows are reused, by a second dispatch with other inputs:\nREFUTED  shift.py:Shift" in result.output
    )
    assert "WAR race, next call: 2 pairs, harmful" in result.output


@pytest.mark.parametrize(
    ("meet", "after", "options", "status"),
    [
        (BARRIER, "", (), 0),
        (BARRIER, "", ("--calls", "2"), 1),
        (SAFE, "", ("--calls", "2"), 0),
        ("pass", "", (), 1),
        (BARRIER, "sys.exit(7)", (), 7),
        (BARRIER, "sys.exit('no')", (), 1),
        (BARRIER, "sys.exit()", (), 0),
        (BARRIER, "raise ValueError('no')", (), 1),
        (BARRIER, "sys.exit(7)", ("--calls", "2"), 7),
        ("pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)", "sys.exit(0)", (), 1),
        ("pl.laod(x)", "", (), 2),
        ("import numpyy", "", (), 1),
    ],
)
def test_the_exit_status(script, meet, after, options, status):
    result = run("pypto", *options, script(meet=meet, after=after))
    assert result.exit_code == status, result.output


def test_what_a_script_exits_with_is_said(script):
    assert run("pypto", script(after="sys.exit('no')")).stderr == "no\n"


def test_an_exception_is_told_with_the_scripts_frames_alone(script):
    result = run("pypto", script(meet="[][1]", after=""))
    frames = re.findall(r'File "(.*)", line \d+, in (\S+)', result.stderr)
    assert [(os.path.basename(file), name) for file, name in frames] == [  # noqa: PTH119 - a text
        ("shift.py", "<module>"),
        ("shift.py", "step"),
    ]
    assert "[][1]" in result.stderr
    assert result.stderr.rstrip().endswith("IndexError: list index out of range")
    assert "PROVED" not in result.output


def test_a_hang_is_told_with_the_line_that_waits(script):
    result = run("pypto", script(meet="pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)", after="print('no')"))
    assert "no\n" not in result.output
    assert "REFUTED  shift.py:Shift, P = 2, 1 call, sc" in result.output
    assert "shift.py:17" in result.output
    assert "pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)" in result.output


def test_the_replay_line_of_a_report_works_when_it_is_pasted(script):
    result = run("pypto", "--widen", script(), "an argument", "--seed", "1")
    lines = [line.split("replay  ")[1] for line in result.output.splitlines() if "replay  asyncsim" in line]
    command = shlex.split(lines[0])
    assert command[:4] == ["asyncsim", "pypto", "--widen", "--replay"]
    assert command[5:] == ["shift.py", "an argument", "--seed", "1"]
    again = run(*command[1:])
    assert again.exit_code == 1
    assert again.output.startswith("OK\n\nreplayed ")
    assert "steps of shift.py:Shift, P = 2, 2 calls, sc\nwrong-result: " in again.output


def test_a_saved_witness_replays_and_says_when_the_script_has_changed(script, tmp_path):
    run("pypto", "--save", "kept", script())
    (witness,) = (tmp_path / "kept").iterdir()
    assert witness.name == "shift-Shift-P2-calls2-WAR-race-next-call.jsonl"
    assert run("pypto", "--replay", str(witness), script()).exit_code == 1
    changed = run("pypto", "--replay", str(witness), script(after='print("OK")  # changed'))
    assert changed.exit_code == 2
    assert "the script has changed since the run was recorded; replayed" in changed.output


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("Shift.name = 'Other'", "the record is of the program 'Shift'; the script dispatched Other"),
        ("sys.exit()", "the record is of the program 'Shift'; the script dispatched none"),
    ],
)
def test_a_record_of_another_program_is_refused(script, before, words):
    token = re.search(r"as1\.\S+", run("pypto", script()).output)[0]
    before = before.replace("Shift.name", "compiled._name")
    result = run("pypto", "--replay", token, script(before=before))
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_record_that_is_none_is_refused(script):
    result = run("pypto", "--replay", "nothing.jsonl", script())
    assert result.exit_code == 2
    assert "there is no trace file 'nothing.jsonl'; a token begins with 'as1.'" in result.stderr


def test_the_reports_are_written_as_json(script, tmp_path):
    result = run("pypto", "--json", "report.json", script(), "-d", "0,1")
    assert result.exit_code == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["script"], report["arguments"], report["status"]) == ("shift.py", ["-d", "0,1"], 0)
    (program,) = report["programs"]
    assert (program["program"], program["dispatched"]) == ("Shift", 1)
    assert program["as_dispatched"]["verdict"] == "PROVED"
    assert program["if_reused"]["verdict"] == "REFUTED"
    assert program["if_reused"]["calls"] == 2


def test_other_inputs_that_a_kernel_does_not_take_are_no_verdict(script, tmp_path):
    meet = f"{BARRIER}\n        if (pl.load(x, [0, 0], [1, SIZE]) < 0).any(): raise ValueError('negative')"
    result = run("pypto", "--json", "report.json", script(meet=meet))
    assert result.exit_code == 0
    assert "other inputs:\n  not judged: rank 0 failed in call 1 at shift.py:" in result.output
    (program,) = json.loads((tmp_path / "report.json").read_text())["programs"]
    assert "ValueError: negative" in program["if_reused"]["not_judged"]


def test_a_program_that_is_dispatched_again_is_judged_once(script):
    result = run("pypto", script(after="compiled(x, y)"))
    assert result.output.count("PROVED") == 1
    assert "dispatched 2 times; judged with the inputs of the first\nPROVED" in result.output


def test_programs_of_one_name_are_told_apart_by_what_they_run(script):
    again = "Again = ir.compile(make(), distributed_config=DistributedConfig(device_ids=[0, 1]))\nAgain(x, y)"
    name = script()
    with open(name) as file:  # noqa: PTH123 - in the present folder
        text = file.read()
    head, rest = text.split("@pl.program\n")
    body, tail = rest.split("\nx = np.arange")
    made = "".join(f"    {line}\n" for line in ["@pl.program", *body.splitlines(), "return Shift"])
    with open(name, "w") as file:  # noqa: PTH123
        file.write(f"{head}def make():\n{made}\nShift = make()\nx = np.arange{tail}\n{again}\n")
    result = run("pypto", name)
    assert result.exit_code == 0, result.output
    assert "PROVED  shift.py:Shift, P = 2, 1 call, sc" in result.output
    assert "PROVED  shift.py:Shift#2, P = 2, 1 call, sc" in result.output
    assert "dispatched 2 times" not in result.output


def test_the_folder_is_the_same_after_a_script_that_changes_it(script, tmp_path):
    result = run("pypto", "--json", "report.json", script(before="import os; os.chdir('/')"))
    assert result.exit_code == 0
    assert (tmp_path / "report.json").exists()
    assert "return pl.store(pld.remote_load(" in result.output  # its lines are still found


def test_a_script_that_dispatches_nothing_is_not_judged(script):
    result = run("pypto", script(before="print(compiled.output_dir)\nsys.exit(0)"))
    assert result.exit_code == 0
    assert "asyncsim: shift.py dispatched nothing; there is nothing to judge" in result.output


def test_what_a_kernel_prints_is_printed_once(script):
    result = run("pypto", script(meet=f"print('rank', me)\n        {BARRIER}"))
    assert result.output.startswith("rank 0\nrank 1\nOK\n")
    assert result.output.count("rank 0\n") == 1


def test_a_schedule_can_be_chosen_for_what_the_script_sees(script):
    result = run("pypto", "--scheduler", "starve:rank=0", script(meet="pass", after="print(y[1, 0])"))
    assert result.output.startswith("[0. 0. 0. 0.]\n")
    assert run("pypto", "--scheduler", "nobody", script()).exit_code == 2
    assert run("pypto", "--memory", "nothing", script()).exit_code == 2
    assert run("pypto", "--memory", "ldst", script()).exit_code == 0


WHAT_PYTHON_GIVES = """
import sys, os, neighbour
print(__name__, sys.argv, os.path.isabs(__file__), os.path.basename(__file__), sys.path[0] == os.path.dirname(__file__))
print(sys.modules["__main__"].__dict__ is globals(), neighbour.WHO, os.getcwd())
"""


def test_a_script_finds_what_it_finds_when_python_runs_it(tmp_path, monkeypatch):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "own.py").write_text(WHAT_PYTHON_GIVES)
    (folder / "neighbour.py").write_text("WHO = 'neighbour'\n")
    monkeypatch.chdir(tmp_path)
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    for path in ("scripts/own.py", str(folder / "own.py")):
        result = run("pypto", "--seed", "3", path, "--seed", "4", "-h", "--", "x")
        first, second, *_ = result.output.splitlines()
        assert first == f"__main__ {[path, '--seed', '4', '-h', '--', 'x']} True own.py True"
        assert second == f"True neighbour {tmp_path}"
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before
    assert "neighbour" not in sys.modules


def test_a_script_that_is_not_there_is_bad_input():
    result = run("pypto", "missing.py")
    assert result.exit_code == 2
    assert "there is no script 'missing.py'" in result.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import pypto.langage", "did you mean 'pypto.language'?"),
        ("from pypto.language import laod", "pl has no 'laod'; did you mean 'load'?"),
    ],
)
def test_an_import_that_pypto_does_not_have_is_bad_input(tmp_path, line, words):
    script = tmp_path / "script.py"
    script.write_text(f"\n{line}\n")
    result = run("pypto", str(script))
    assert result.exit_code == 2
    assert words in result.stderr
    assert "script.py:2: " in result.stderr


def test_a_script_with_a_syntax_error_fails_as_under_python(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def\n")
    result = run("pypto", str(script))
    assert result.exit_code == 1
    assert "SyntaxError" in result.stderr


def test_a_process_does_the_same(script, tmp_path):
    name = script()
    result = run_process("pypto", str(tmp_path / name), "-d", "0,1")
    assert result.returncode == 0
    assert result.stdout.startswith("OK\n\nPROVED  ")
