"""The command line: what it prints, where, and the status it leaves with."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import asyncsim
from asyncsim.checking.explore import Progress
from asyncsim.checking.locate import locate
from asyncsim.checking.report import PROVED, REFUTED, Report
from asyncsim.cli import check as check_module
from asyncsim.cli import demo as demo_module
from asyncsim.cli import progress as progress_module
from asyncsim.cli.main import main
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.finding import Finding
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.token import Token, encode

ROOT = Path(asyncsim.__file__).parents[1]
BAD = "reduce_scatter:no_post_barrier"
GOOD = "reduce_scatter:builtin"
KERNELS = '''
import numpy as np
from asyncsim import Signal, Window, kernel

data = Window("data", (1,), np.float32)
box = Window("box", (1,), np.float32, initialised=True)
signal = Signal("signal", (1,))

@kernel(memory=[data, signal])
async def hang(rank, data, signal):
    with rank.phase("wait"):
        await rank.wait(signal[0] >= rank.size)

@kernel(memory=[box])
async def last_wins(rank, box):
    await rank.store(box.at(0)[0], float(rank.id))
    return float((await rank.load(box.at(0)[0]))) * (0.0 if rank.id else 1.0)

@kernel(memory=[box])
async def raises(rank, box):
    if rank.id == 0:
        await rank.store(box[0], 1.0)
    elif (await rank.load(box.at(0)[0])) == 0.0:
        raise ValueError("too early")

@kernel(memory=[Signal("left", (1,), self_cleaning=True)])
async def leaves(rank, left):
    await rank.notify(left[0], 1)

@kernel(memory=[data])
async def fine(rank, data):
    await rank.store(data[0], 1.0)
    return await rank.load(data[0])
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A present folder with a file of kernels."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(KERNELS)
    return tmp_path


def run(*arguments, **options):
    return CliRunner().invoke(main, list(arguments), **options)


def run_process(*arguments, **environment):
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-m", "asyncsim", *arguments], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def last_line(text, word):
    return next(line for line in reversed(text.splitlines()) if word in line)


def replay_arguments(output):
    """Return what stands behind ``asyncsim`` in the line to paste."""
    return last_line(output, "asyncsim replay").partition("asyncsim ")[2].split()


def token_of(kernel, choices, *, ranks=2, calls=1, ending=None, source=None, ref=None):
    return encode(
        Token(
            kernel=ref or kernel.ref,
            source=kernel.source if source is None else source,
            ranks=ranks,
            calls=calls,
            memory="sc",
            seed=0,
            choices=tuple(choices),
            ending=ending,
        )
    )


# ---- what every command shares


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
        (["check"], "Missing argument"),
        (["check", GOOD, "-P", "0"], "'0' is no number of ranks"),
        (["check", GOOD, "-P", "2,x"], "'2,x' is no number of ranks"),
        (["check", GOOD, "-P", ""], "'' is no number of ranks"),
        (["check", GOOD, "-d", "0,0"], "'0,0' is no list of devices"),
        (["check", GOOD, "-d", "-1,0"], "'-1,0' is no list of devices"),
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
    def broken(*_, **__):
        raise RuntimeError("oh no")

    monkeypatch.setattr(check_module, "check", broken)
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


def test_list_shows_every_kernel_and_what_it_must_give():
    result = run("list")
    assert result.exit_code == 0
    assert last_line(result.output, "reduce_scatter:builtin ").split()[:2] == ["reduce_scatter:builtin", "nothing"]
    assert "WAR, next call; RAW, same call" in last_line(result.output, "hand_no_epilogue")


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
    assert verdicts == ["REFUTED", "REFUTED", "PROVED", "PROVED"]
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


def test_save_writes_the_witness_where_the_report_says(here):
    result = run("check", BAD, "-P", "2", "--save", "out")
    path = Path(last_line(result.output, "   trace ").split()[1])
    assert path.parent == Path("out")
    assert read_trace(path).footer.verdict == REFUTED


def test_ctrl_c_before_anything_is_known_leaves_with_130(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(check_module, "check", interrupted)
    result = run("check", GOOD)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "asyncsim: interrupted\n")


@pytest.mark.parametrize(("verdict", "status"), [(REFUTED, 1), (PROVED, 0)])
@pytest.mark.parametrize("inside", [True, False])
def test_ctrl_c_keeps_what_was_judged_and_its_status(monkeypatch, verdict, status, inside):
    made = []

    def check(kernel, *, ranks, **_):
        if made and not inside:
            raise KeyboardInterrupt
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


class Terminal(io.StringIO):
    """A stderr with somebody who watches."""

    def isatty(self):
        """Say yes."""
        return True


def test_a_bar_moves_for_a_person_only(monkeypatch):
    with progress_module.progress_bar("judging") as move:
        assert move is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_module.progress_bar("judging") as move:
        assert move is not None
        move(Progress(3, 10, 2))
    assert "judging" in sys.stderr.getvalue()
    assert "2 found" in sys.stderr.getvalue()


def test_a_bar_does_not_get_into_the_output(monkeypatch):
    class Runner(CliRunner):
        """A runner whose stderr is a terminal."""

    terminal = Terminal()
    monkeypatch.setattr(progress_module, "sys", type("Sys", (), {"stderr": terminal}))
    result = Runner().invoke(main, ["explore", BAD, "-P", "2", "--runs", "5", "--json"])
    assert json.loads(result.stdout)["verdict"] == REFUTED


# ---- replay


def test_the_line_of_a_report_replays_the_failure():
    shown = run("check", BAD, "-P", "3")
    result = run(*replay_arguments(shown.output))
    assert result.exit_code == 1
    assert "of kernels.reduce_scatter:no_post_barrier, P = 3, 2 calls, sc\n" in result.output
    assert "wrong-result: " in result.output
    assert " instead of " in result.output


def test_a_trace_file_replays_like_its_token(here):
    shown = run("check", BAD, "-P", "2", "--save", "out")
    path = last_line(shown.output, "   trace ").split()[1]
    by_file, by_token = run("replay", path), run(*replay_arguments(shown.output))
    assert by_file.exit_code == by_token.exit_code == 1
    assert by_file.output == by_token.output
    as_json = json.loads(run("replay", path, "--json").stdout)
    assert (as_json["failure"], as_json["source_changed"], as_json["ending"]) == (True, False, "complete")
    assert as_json["findings"][0]["kind"] == "wrong-result"


def test_a_run_without_failure_replays_with_0():
    case = Case(locate(BAD), 2, 1)
    token = token_of(case.kernel, simulate(case, Fifo()).choices, ending="complete")
    result = run("replay", token)
    assert result.exit_code == 0
    assert result.output.endswith("no failure: no result is wrong, and nobody hangs\n")


def test_a_hang_shows_who_waits_for_what(here):
    shown = run("check", "mine.py:hang", "-P", "2")
    arguments = replay_arguments(shown.output)
    assert arguments[2:] == ["--kernel", "mine.py:hang"]
    result = run(*arguments)
    assert result.exit_code == 1
    assert "  rank 1, call 0, wait: waits for signal[0]@1 >= 2, and it is 0\n    mine.py:12: await rank" in result.output


def test_many_hanging_ranks_are_counted(here):
    result = run(*replay_arguments(run("check", "mine.py:hang", "-P", "10").output))
    assert result.output.count("waits for") == 8
    assert "  and 2 more\n" in result.output


def test_a_kernel_that_raises_under_the_schedule_fails_again(here):
    token = token_of(locate("mine.py:raises"), ["1"])
    result = run("replay", token, "--kernel", "mine.py:raises")
    assert result.exit_code == 1
    assert "replayed 1 steps" in result.output
    assert "the kernel raises: rank 1 failed in call 0 at mine.py:25" in result.output


def test_without_a_golden_the_fair_run_says_what_is_wrong(here):
    token = token_of(locate("mine.py:last_wins"), ["0", "1", "0", "1"], ending="complete")
    assert run("replay", token, "--kernel", "mine.py:last_wins").exit_code == 0
    other = token_of(locate("mine.py:last_wins"), ["1", "0", "0", "1"], ending="complete")
    result = run("replay", other, "--kernel", "mine.py:last_wins")
    assert result.exit_code == 1
    assert "wrong-result: 1 of 2 results are wrong\n  rank 0, call 0: 1 of 1 elements differ" in result.output


def test_a_left_credit_is_a_failure(here):
    result = run(*replay_arguments(run("check", "mine.py:leaves", "-P", "1").output))
    assert result.exit_code == 1
    assert "leftover-credit: left[0]@0 ends 2 above its start" in result.output


def test_a_record_that_breaks_off_is_no_endless_run(here):
    trace = simulate(Case(locate("mine.py:fine"), 2, 1), Fifo(), record="fifo").trace
    del trace.events[2:]
    trace.footer = None
    write_trace(trace, here / "half.jsonl")
    result = run("replay", "half.jsonl", "--kernel", "mine.py:fine")
    assert (result.exit_code, result.output.splitlines()[0][:16]) == (0, "replayed 2 steps")


def test_a_trace_runs_no_code_that_it_names(here):
    shown = run("check", "mine.py:hang", "-P", "2", "--save", "out")
    path = last_line(shown.output, "   trace ").split()[1]
    (here / "mine.py").write_text("raise SystemExit('was run')")
    for record in (path, replay_arguments(shown.output)[1]):
        for command in ("replay", "shrink"):
            result = run(command, record)
            assert result.exit_code == 2
            assert "the record is of the kernel 'mine.py:hang', which does not come with asyncsim" in result.stderr
            assert "--kernel mine.py:hang" in result.stderr
    assert "was run" in run("replay", path, "--kernel", "mine.py:hang").stderr


def test_a_changed_source_that_still_agrees_is_said_and_leaves_with_2(here):
    shown = run("check", "mine.py:hang", "-P", "2", "--save", "out")
    path = last_line(shown.output, "   trace ").split()[1]
    (here / "mine.py").write_text("# moved down a line\n" + KERNELS)
    result = run("replay", path, "--kernel", "mine.py:hang")
    assert result.exit_code == 2
    assert "asyncsim: the source of mine.py:hang has changed since the run was recorded" in result.stderr
    assert "it agrees to the end, all 0 steps; but the source has changed" in result.stderr
    assert "waits for signal[0]@1 >= 2" in result.stdout


def test_a_changed_source_that_differs_says_at_which_step(here):
    shown = run("check", "mine.py:leaves", "-P", "2", "--save", "out")
    path = last_line(shown.output, "   trace ").split()[1]
    (here / "mine.py").write_text(KERNELS.replace("notify(left[0], 1)", "notify(left[0], 1 + rank.call)"))
    result = run("replay", path, "--kernel", "mine.py:leaves")
    assert result.exit_code == 2
    assert "has changed since the run was recorded" in result.stderr
    assert "asyncsim: divergence at step 2: " in result.stderr


# ---- shrink


def test_shrink_writes_beside_the_trace_and_prints_a_line_that_replays(here):
    found = run("explore", BAD, "-P", "2", "--runs", "1", "--scheduler", "starve:rank=0", "--save", "out")
    path = Path(last_line(found.output, "   trace ").split()[1])
    result = run("shrink", str(path))
    assert result.exit_code == 0
    before, after, trace, replay = result.output.splitlines()
    assert int(after.split()[1]) <= int(before.split()[1])
    shrunk = path.with_name(path.name.replace(".jsonl", ".shrunk.jsonl"))
    assert trace == f"trace   {shrunk}"
    assert run(*replay.split()[2:]).exit_code == run("replay", str(shrunk)).exit_code == 1
    footer = read_trace(shrunk).footer
    assert (footer.verdict, footer.findings[0]["kind"]) == (REFUTED, "wrong-result")


def test_shrink_writes_where_it_is_told(here):
    found = run("explore", BAD, "-P", "2", "--runs", "1", "--scheduler", "starve:rank=0", "--save", "out")
    path = Path(last_line(found.output, "   trace ").split()[1])
    assert run("shrink", str(path), "--save", "small/er").exit_code == 0
    assert [file.name for file in Path("small/er").iterdir()] == [path.name.replace(".jsonl", ".shrunk.jsonl")]
    token = replay_arguments(found.output)[1]
    assert "trace" not in run("shrink", token).output
    assert "trace   small/token.shrunk.jsonl" in run("shrink", token, "--save", "small").output
    assert read_trace("small/token.shrunk.jsonl").footer.findings[0]["kind"] == "wrong-result"


def test_shrink_refuses_a_run_without_failure():
    case = Case(locate(BAD), 2, 1)
    token = token_of(case.kernel, simulate(case, Fifo()).choices, ending="complete")
    result = run("shrink", token)
    assert result.exit_code == 2
    assert "shows no failure" in result.stderr


def test_a_run_that_met_its_limit_shrinks_within_that_limit(here):
    token = token_of(locate("mine.py:fine"), ["0", "1", "0"], ending="step-limit")
    result = run("shrink", token, "--kernel", "mine.py:fine")
    assert result.exit_code == 0
    assert result.output.startswith("before  2 switches, 3 steps\nafter   1 switches, 3 steps\nreplay  asyncsim replay ")


# ---- demo


def test_the_demo_gives_what_is_known_and_a_line_that_replays(here):
    started = time.monotonic()
    result = run("demo", "--save", "out")
    assert result.exit_code == 0
    assert time.monotonic() - started < 120
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in result.output.splitlines() if "  yes" in line}
    assert len(rows) == 8
    assert rows["no_post_barrier"].split("  ") [0] == "clean"
    assert rows["hand_no_epilogue"].endswith("WAR 12, RAW 12  yes")
    assert set(rows["builtin"].split()) == set(rows["double_buffer"].split()) == {"clean", "yes"}
    assert "await rank.load(data.at(peer)[rank.id])" in result.output
    assert "nothing orders" in result.output
    assert " instead of " in result.output
    assert len(list(Path("out").iterdir())) == 1
    assert run(*replay_arguments(result.output)).exit_code == 1


def test_a_demo_that_does_not_give_what_is_known_fails(monkeypatch):
    right = demo_module.check

    def check(kernel, **options):
        report = right(kernel, **options)
        if kernel.name == "builtin":
            report.findings.append(Finding("race", "made up", hazard="WAW"))
        return report

    monkeypatch.setattr(demo_module, "check", check)
    monkeypatch.setattr(demo_module, "KERNELS", (GOOD, BAD))
    monkeypatch.setattr(demo_module, "RANKS", (2,))
    monkeypatch.setattr(demo_module, "SHOWN", (BAD, 2, 2))
    result = run("demo")
    assert result.exit_code == 1
    assert last_line(result.output, "WAW (benign) 1").endswith("  no")
    assert f"asyncsim: not as known: {GOOD}, P = 2, calls = 1\n" in result.stderr


@pytest.mark.parametrize(
    ("verdict", "findings", "calls", "right"),
    [
        (PROVED, [], 2, False),
        (PROVED, [], 1, True),
        ("SURVIVED", [], 1, False),
        (REFUTED, [Finding("race", "", hazard="WAR", scope="next call", pairs=2)], 2, True),
        (REFUTED, [Finding("race", "", hazard="WAR", scope="next call", pairs=3)], 2, False),
        (REFUTED, [Finding("race", "", hazard="RAW", scope="next call", pairs=2)], 1, False),
    ],
)
def test_what_is_known_of_a_kernel_is_compared(verdict, findings, calls, right):
    report = Report(Case(locate(BAD), 2, calls), verdict, "", findings)
    assert demo_module.as_expected(report) is right


def test_a_cell_says_what_was_found_or_how_far_it_got():
    case = Case(locate(BAD), 2)
    assert demo_module.cell_text(Report(case, PROVED, "")) == "clean"
    assert demo_module.cell_text(Report(case, "SURVIVED", "")) == "SURVIVED"
    assert demo_module.cell_text(Report(case, REFUTED, "", [Finding("deadlock", "", harmful=True)])) == "deadlock 1"


def test_an_interrupted_demo_leaves_with_130(monkeypatch):
    def check(kernel, *, ranks, **_):
        return Report(Case(kernel, ranks), PROVED, "", interrupted=True)

    monkeypatch.setattr(demo_module, "check", check)
    assert run("demo").exit_code == 130


def test_the_demo_shows_how_far_it_is(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(progress_module, "sys", type("Sys", (), {"stderr": terminal}))
    monkeypatch.setattr(demo_module, "KERNELS", (BAD,))
    monkeypatch.setattr(demo_module, "RANKS", (2,))
    monkeypatch.setattr(demo_module, "SHOWN", (BAD, 2, 2))
    assert run("demo").exit_code == 0


# ---- true processes


def test_the_statuses_of_a_process():
    assert run_process("check", GOOD, "-P", "2").returncode == 0
    assert run_process("check", BAD, "-P", "2").returncode == 1
    assert run_process("check", "nothing:here").returncode == 2
    assert run_process("check", GOOD, PYTHONOPTIMIZE="", PYTHONDONTWRITEBYTECODE="1").stderr == ""


def test_a_process_with_a_bug_leaves_with_3():
    code = (
        "import asyncsim.cli.list as page\n"
        "def broken(): raise RuntimeError('oh no')\n"
        "page.all_kernels = broken\n"
        "from asyncsim.cli.main import main\n"
        "main(['list'])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert "RuntimeError: oh no" in result.stderr


def test_replay_gives_the_same_bytes_under_every_hash_seed():
    arguments = replay_arguments(run("check", BAD, "-P", "3").output)
    outputs = {run_process(*arguments, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "4711")}
    assert len(outputs) == 1
    assert run(*arguments).output in outputs


def test_ctrl_c_in_a_process_saves_what_was_found(tmp_path):
    arguments = ["explore", BAD, "-P", "2", "--runs", "100000000", "--save", str(tmp_path / "out"), "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "asyncsim", *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "out").glob("*.jsonl")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)  # another process finds it; there is nothing here to wait on
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, stderr) == (1, "")
    report = json.loads(stdout)
    assert (report["verdict"], report["interrupted"]) == (REFUTED, True)
    trace = report["findings"][0]["trace"]
    assert read_trace(trace).footer.verdict == REFUTED
    assert run("replay", trace).exit_code == 1


def test_a_reader_that_leaves_is_no_error():
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "asyncsim", "list"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 141
    process.stderr.close()
