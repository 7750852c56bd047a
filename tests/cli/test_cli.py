"""The command line: what every command shares, and `list`, `check` and `explore`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from command import BAD, GOOD, Terminal, ctrl_c, last_line, run, token_of

import asyncsim
from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.explore import Progress
from asyncsim.checking.verdict.report import Report
from asyncsim.cli import check as check_module
from asyncsim.cli import progress as progress_module
from asyncsim.cli.main import main
from asyncsim.machine.case import Case
from asyncsim.trace.finding import PROVED, REFUTED
from asyncsim.trace.jsonl import read_trace


@pytest.mark.parametrize("command", ["list", "check", "explore", "replay", "shrink", "demo"])
def test_every_command_explains_itself_with_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"      asyncsim {command}" in result.output


def test_the_version_is_the_package_version():
    assert run("--version").output == f"asyncsim, version {asyncsim.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check"], "which kernel?"),
        (["check", GOOD, "-P", "0"], "'0' is not a number of ranks"),
        (["check", GOOD, "-P", "2,x"], "'2,x' is not a number of ranks"),
        (["check", GOOD, "-P", ""], "'' is not a number of ranks"),
        (["check", GOOD, "-d", "0,0"], "'0,0' is not a list of devices"),
        (["check", GOOD, "-d", "-1,0"], "'-1,0' is not a list of devices"),
        (["check", GOOD, "-P", "2", "-d", "0,1"], "give one of them"),
        (["check", GOOD, "--calls", "0"], "--calls"),
        (["check", GOOD, "--memory", "psychic"], "--memory"),
        (["check", "reduce_scatter:bultin"], "did you mean builtin?"),
        (["check", "reduce_scatter:wrong_op"], "op must be ReduceOp.Sum"),
        (["check", GOOD, "--save", "/dev/null/x"], "/dev/null"),
        (["explore", GOOD, "--scheduler", "psychic"], "no scheduler is called 'psychic'"),
        (["explore", GOOD, "--runs", "0"], "--runs"),
        (["replay", "nowhere.jsonl"], "there is no trace file 'nowhere.jsonl'; a token begins with 'as1.'"),
        (["replay", "as1.zzz"], "token: "),
        (["shrink", "nowhere.jsonl"], "there is no trace file"),
    ],
)
def test_bad_input_leaves_with_2_and_a_message_on_stderr(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_bug_of_ours_leaves_with_3_and_a_traceback(monkeypatch):
    ours = {"__name__": "asyncsim.broken"}
    exec("def broken(*_, **__): raise RuntimeError('oh no')", ours)  # noqa: S102 - a function of ours, as far as one can see
    monkeypatch.setattr(check_module, "check", ours["broken"])
    result = run("check", GOOD, "--json")
    assert result.exit_code == 3
    assert "Traceback" in result.stderr
    assert "asyncsim: this is a bug of asyncsim, not of your kernel: RuntimeError: oh no" in result.stderr
    assert result.stdout == ""


def test_an_error_of_the_system_without_a_file_is_told_as_it_is(monkeypatch):
    def full(*_, **__):
        raise OSError("no space")

    monkeypatch.setattr(check_module, "check", full)
    result = run("check", GOOD)
    assert (result.exit_code, result.stderr) == (2, "asyncsim: no space\n")


def test_what_comes_from_a_file_cannot_steer_the_terminal():
    token = token_of(locate(GOOD), ["0"], ref="evil\x1b[2J\u202e:name")
    result = run("replay", token)
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert "\u202e" not in result.stderr


def test_colour_is_for_terminals_and_can_be_refused():
    assert "\x1b[" not in run("check", GOOD, "-P", "2").output
    assert "\x1b[" in run("check", GOOD, "-P", "2", color=True).output
    assert "\x1b[" not in run("check", GOOD, "-P", "2", color=True, env={"NO_COLOR": "1"}).output


# ---- list


def test_list_shows_every_kernel_and_what_it_must_give(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    result = run("list")
    assert result.exit_code == 0
    assert last_line(result.output, "reduce_scatter:builtin ").split()[:2] == ["reduce_scatter:builtin", "nothing"]
    assert "WAR, next call; RAW, same call" in last_line(result.output, "hand_no_epilogue")


def test_list_fits_a_terminal_of_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("list").output.splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index("reduce_scatter:hand_no_epilogue")
    assert "    must give WAR, next call; RAW, same call" in lines[at : at + 4]


def test_list_as_json():
    objects = json.loads(run("list", "--json").output)
    assert {"kernel", "about", "finds"} == set(objects[0])
    assert {"kernels.reduce_scatter:builtin"} <= {entry["kernel"] for entry in objects}


# ---- check


def test_check_proves_with_0_and_refutes_with_1():
    proved = run("check", GOOD, "-P", "2")
    assert (proved.exit_code, proved.output.split()[0]) == (0, "PROVED")
    refuted = run("check", BAD, "-P", "2")
    assert (refuted.exit_code, refuted.output.split()[0]) == (1, "REFUTED")
    assert "1. WAR race, next call: 2 pairs, harmful" in refuted.output


def test_several_reports_follow_one_another_and_the_worst_status_counts():
    result = run("check", BAD, GOOD, "-P", "2,3")
    assert result.exit_code == 1
    verdicts = [line.split()[0] for line in result.output.splitlines() if line[:1].isupper()]
    assert verdicts == ["REFUTED", "REFUTED", "REFUTED", "PROVED", "PROVED", "PROVED"]
    assert "\n\nPROVED" in result.output


def test_devices_count_the_ranks():
    assert "P = 3," in run("check", GOOD, "-d", "4,0,2").output
    assert "P = 4," in run("check", GOOD).output


def test_json_is_one_object_for_one_case_and_else_an_array():
    one = run("check", BAD, "-P", "2", "--calls", "2", "--json")
    assert one.exit_code == 1
    report = json.loads(one.stdout)
    assert (report["verdict"], report["ranks"], report["findings"][0]["pairs"]) == (REFUTED, 2, 2)
    many = run("check", GOOD, "-P", "2,3", "--calls", "1", "--json")
    assert many.exit_code == 0
    assert [(report["ranks"], report["calls"]) for report in json.loads(many.stdout)] == [(2, 1), (3, 1)]


def test_save_writes_the_witness_where_the_report_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("check", BAD, "-P", "2", "--save", "out")
    path = Path(last_line(result.output, "   trace ").split()[1])
    assert path.parent == Path("out")
    assert read_trace(path).footer.verdict == REFUTED


def test_ctrl_c_before_anything_is_known_leaves_with_130(monkeypatch):
    def interrupted(*_, **__):
        ctrl_c()

    monkeypatch.setattr(check_module, "check", interrupted)
    result = run("check", GOOD)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "asyncsim: interrupted\n")


@pytest.mark.parametrize(("verdict", "status"), [(REFUTED, 1), (PROVED, 130)])
@pytest.mark.parametrize("inside", [True, False])
def test_ctrl_c_keeps_what_was_judged_and_its_status(monkeypatch, verdict, status, inside):
    made = []

    def check(kernel, *, ranks, **_):
        if made and not inside:
            ctrl_c()
        made.append(ranks)
        return Report(Case(kernel, ranks), verdict, "so far", interrupted=inside)

    monkeypatch.setattr(check_module, "check", check)
    result = run("check", GOOD, "-P", "2,3,4", "--json")
    assert result.exit_code == status
    assert [report["ranks"] for report in json.loads(result.stdout)] == [2]
    assert result.stderr == "asyncsim: interrupted; 2 of 3 were not judged\n"


# ---- explore


def test_explore_finds_or_survives():
    found = run("explore", BAD, "-P", "2", "--runs", "20", "--scheduler", "starve:rank=0")
    assert (found.exit_code, found.output.split()[0]) == (1, "REFUTED")
    survived = run("explore", GOOD, "-P", "2", "--runs", "5", "--seed", "3", "--json")
    assert survived.exit_code == 0
    assert json.loads(survived.stdout)["verdict"] == "SURVIVED"


def test_a_bar_moves_for_a_person_only(monkeypatch):
    with progress_module.progress_bar("judging") as move:
        assert move is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress_module, "DELAY", 0.0)
    with progress_module.progress_bar("judging") as move:
        assert move is not None
        move(Progress(3, 10, 2))
    assert "judging" in sys.stderr.getvalue()
    assert "2 found" in sys.stderr.getvalue()


def test_a_bar_does_not_get_into_the_output(monkeypatch):
    class Runner(CliRunner):
        """A runner whose stderr is a terminal."""

    terminal = Terminal()
    monkeypatch.setattr(progress_module, "DELAY", 0.0)
    monkeypatch.setattr(progress_module, "sys", type("Sys", (), {"stderr": terminal}))
    result = Runner().invoke(main, ["explore", BAD, "-P", "2", "--runs", "5", "--json"])
    assert json.loads(result.stdout)["verdict"] == REFUTED
