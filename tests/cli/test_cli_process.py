"""The command in a process of its own: statuses, Ctrl-C, hash seeds, a reader that leaves."""

from __future__ import annotations

import json
import signal
import time

from command import BAD, GOOD, replay_arguments, run, run_process, start_process

from asyncsim.trace.finding import REFUTED
from asyncsim.trace.jsonl import read_trace


def test_the_statuses_of_a_process():
    assert run_process("check", GOOD, "-P", "2").returncode == 0
    assert run_process("check", BAD, "-P", "2").returncode == 1
    assert run_process("check", "nothing:here").returncode == 2
    assert run_process("check", GOOD, PYTHONOPTIMIZE="", PYTHONDONTWRITEBYTECODE="1").stderr == ""


def test_a_process_with_a_bug_leaves_with_3():
    code = (
        "import asyncsim.cli.list as page\n"
        "exec(\"def all_kernels(): raise RuntimeError('oh no')\", vars(page))\n"
        "from asyncsim.cli.main import main\n"
        "main(['list'])"
    )
    process = start_process("-c", code)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "RuntimeError: oh no" in stderr


def test_replay_gives_the_same_bytes_under_every_hash_seed():
    arguments = replay_arguments(run("check", BAD, "-P", "3").output)
    outputs = {run_process(*arguments, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "4711")}
    assert len(outputs) == 1
    assert run(*arguments).output in outputs


def test_ctrl_c_in_a_process_saves_what_was_found(tmp_path):
    arguments = ["explore", BAD, "-P", "2", "--runs", "100000000", "--save", str(tmp_path / "out"), "--json"]
    # What starts the tests may ignore SIGINT, and a child inherits that.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    process = start_process("-c", f"{heed}; from asyncsim.cli.main import main; main()", *arguments)
    try:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "out").glob("*.jsonl")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)  # another process finds it; there is nothing here to wait on
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1, stderr
    assert "Traceback" not in stderr
    report = json.loads(stdout)
    assert (report["verdict"], report["interrupted"]) == (REFUTED, True)
    trace = report["findings"][0]["trace"]
    assert read_trace(trace).footer.verdict == REFUTED
    assert run("replay", trace).exit_code == 1


def test_a_reader_that_leaves_is_no_error():
    process = start_process("-m", "asyncsim", "list")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 141
    process.stderr.close()
