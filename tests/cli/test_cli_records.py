"""The commands on recorded runs, `replay` and `shrink`: what they show, and whose code they run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command import BAD, GOOD, KERNELS, last_line, replay_arguments, run, token_of

from asyncsim.checking.record.locate import locate
from asyncsim.cli import recorded
from asyncsim.frontends.torch_dist import replayed
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.finding import REFUTED
from asyncsim.trace.jsonl import read_trace, write_trace


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A present folder with a file of kernels."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(KERNELS)
    return tmp_path


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
    assert result.output.endswith("no failure: no result is wrong, and nothing hangs\n")


def test_a_hang_shows_who_waits_for_what(here):
    shown = run("check", "mine.py:hang", "-P", "2")
    arguments = replay_arguments(shown.output)
    assert arguments[2:] == ["--kernel", "mine.py:hang"]
    result = run(*arguments)
    assert result.exit_code == 1
    assert (
        "  rank 1, call 0, wait: waits for signal[0]@1 >= 2, and it is 0\n    mine.py:12: await rank" in result.output
    )


def test_many_hanging_ranks_are_counted(here):
    result = run(*replay_arguments(run("check", "mine.py:hang", "-P", "10").output))
    assert result.output.count(", and it is 0\n") == 8
    assert "  and 2 more\n" in result.output


def test_a_kernel_that_raises_under_the_schedule_fails_again(here):
    token = token_of(locate("mine.py:raises"), ["1"])
    result = run("replay", token, "--kernel", "mine.py:raises")
    assert result.exit_code == 1
    assert "replayed 1 steps" in result.output
    assert "the kernel raises: rank 1 failed in call 0 at mine.py:24" in result.output


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


def test_an_endless_run_shows_who_stands_where(here):
    token = token_of(locate("mine.py:fine"), ["0", "1", "0"], ending="step-limit", limit=3)
    result = run("replay", token, "--kernel", "mine.py:fine")
    assert result.exit_code == 1
    assert "step-limit: " in result.output
    assert "  rank 1, call 0: stands at load of data[0]@1\n    mine.py:33: return await rank.load" in result.output


def test_a_record_that_was_stopped_is_no_endless_run(here):
    token = token_of(locate("mine.py:fine"), ["0", "1"], ending="stopped")
    result = run("replay", token, "--kernel", "mine.py:fine")
    assert (result.exit_code, result.output.splitlines()[0][:16]) == (0, "replayed 2 steps")


def test_a_trace_that_breaks_off_is_refused(here):
    trace = simulate(Case(locate("mine.py:fine"), 2, 1), Fifo(), record="fifo").trace
    trace.footer = None
    write_trace(trace, here / "half.jsonl")
    result = run("replay", "half.jsonl", "--kernel", "mine.py:fine")
    assert result.exit_code == 2
    assert "half.jsonl, line " in result.stderr


def test_a_record_of_a_script_names_the_command_that_replays_it(here):
    script = "import numpy as np, os\nfrom asyncsim.frontends import torch_dist as dist\ndist.init_process_group()\n"
    (here / "two words.py").write_text(f"{script}dist.all_reduce(np.ones(1 + int(os.environ['RANK'])))\n")
    assert run("torchrun", "-n", "3", "--save", "out", "two words.py").exit_code == 1
    path = str(next(Path("out").iterdir()))
    told = run("replay", path)
    assert told.exit_code == 2
    command = f"asyncsim torchrun -n 3 --replay {path} 'two words.py'"
    assert f"If asyncsim torchrun ran that script, only it knows the calls: {command}, with the" in told.stderr
    again = run(*shlex.split(command)[1:])
    assert (again.exit_code, "replayed " in again.stdout) == (1, True)


def test_a_record_of_a_pypto_script_may_name_its_command_or_a_kernel(here):
    token = token_of(locate("mine.py:raises"), ["1"])
    told = run("replay", token).stderr
    assert "--kernel mine.py:raises. If asyncsim pypto ran that script, only it knows the calls: " in told
    assert f"asyncsim pypto --replay {token} mine.py, with the script's arguments" in told


def test_a_record_of_a_module_names_no_script():
    told = run("replay", token_of(locate(BAD), [], ref="somewhere.else:kernel")).stderr
    assert told.endswith("--kernel somewhere.else:kernel\n")


def test_a_script_of_torch_is_recognised_by_the_name_of_its_kernel():
    assert recorded._TORCHRUN == replayed.NAME


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


def test_a_run_that_was_cut_short_has_not_failed_by_that(here):
    token = token_of(locate("mine.py:fine"), ["0", "1", "0"], ending="step-limit")
    arguments = ("replay", token, "--kernel", "mine.py:fine")
    result = run(*arguments)
    assert result.exit_code == 0
    assert "cut short: the record ends after 3 steps" in result.output
    assert "step-limit" not in result.output
    told = json.loads(run(*arguments, "--json").stdout)
    assert (told["ending"], told["cut_short"], told["failure"], told["findings"]) == ("step-limit", True, False, [])
    shrunk = run("shrink", token, "--kernel", "mine.py:fine")
    assert shrunk.exit_code == 2
    assert "nothing to shrink" in shrunk.output


def test_a_failure_in_a_run_that_was_cut_short_is_shown_and_shrinks_to_one_that_is_cut_short(here):
    token = token_of(locate("mine.py:last_wins"), ["1", "0", "0"], ending="step-limit")
    for _ in range(2):
        result = run("replay", token, "--kernel", "mine.py:last_wins")
        assert result.exit_code == 1
        assert result.output.splitlines()[1].startswith("cut short: the record ends after ")
        assert result.output.splitlines()[2].startswith("wrong-result")
        token = replay_arguments(run("shrink", token, "--kernel", "mine.py:last_wins").output)[1]


def test_a_run_that_met_its_limit_shrinks_within_that_limit(here):
    token = token_of(locate("mine.py:fine"), ["0", "1", "0"], ending="step-limit", limit=3)
    result = run("shrink", token, "--kernel", "mine.py:fine")
    assert result.exit_code == 0
    assert result.output.startswith(
        "before  2 switches, 3 steps\nafter   1 switches, 3 steps\nreplay  asyncsim replay "
    )


@pytest.mark.parametrize("command", ["replay", "shrink"])
def test_what_is_asked_for_is_the_line_to_type(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my file.py").write_text(KERNELS, encoding="utf-8")
    run("check", "my file.py:last_wins", "-P", "2", "--save", "out")
    trace = next((tmp_path / "out").iterdir()).relative_to(tmp_path)
    result = run(command, str(trace))
    assert result.exit_code == 2
    line = f"{command} {shlex.quote(str(trace))} --kernel 'my file.py:last_wins'"
    assert line in result.stderr
    assert run(*shlex.split(line)).exit_code in {0, 1}


@pytest.mark.parametrize("counts", ["2,2", "3,2,3"])
def test_a_number_of_ranks_that_stands_twice_is_an_error(counts):
    result = run("check", GOOD, "-P", counts)
    assert result.exit_code == 2
    assert f"'{counts}' names a number twice" in result.stderr
