"""The end of a process is asyncsim's own: no exit function, thread or exception of the author's makes its status."""

import os
import signal
import subprocess
import sys

import pytest
from command import ctrl_c, last_line, run, run_process, start_process

from asyncsim import Case, Fifo, KernelError, MisuseError, Window, kernel, simulate
from asyncsim.trace.guest import GUEST, call, is_ctrl_c

HEAD = """\
import _thread, atexit, ctypes, os, posix, signal, sys, threading, time
from os import _exit
import numpy as np
from asyncsim import Window, kernel

x = Window("x", (1,), np.int64, initialised=True)

def endless(do):
    def loop():
        while True:
            try:
                do()
            except BaseException:
                time.sleep(0.001)
    threading.Thread(target=loop).start()

{}

@kernel(memory=[x])
async def k(rank, x):
    {}
    await rank.store(x.at(0)[0], rank.id)
    return await rank.load(x.at(0)[0])
"""
LATER = [
    "atexit.register(lambda: os._exit(0))",
    "atexit.register(_exit, 0)",
    "atexit.register(sys.exit, 0)",
    "atexit.register(posix._exit, 0)",
    "atexit.register(os.kill, os.getpid(), signal.SIGKILL)",
    "atexit.register(lambda: sys.stdout.close())",
    "threading.Thread(target=lambda: (time.sleep(0.2), os._exit(0))).start()",
    "endless(lambda: os._exit(0))",
    "endless(lambda: posix._exit(0))",
    "endless(lambda: None)",
]
"""Statements of a file that do their work when its kernel is not running."""


def in_file(folder, *, module="", body="pass"):
    path = folder / "mine.py"
    path.write_text(HEAD.format(module, body), encoding="utf-8")
    return f"{path}:k"


@pytest.mark.parametrize("later", LATER)
def test_what_runs_after_the_verdict_does_not_change_the_status(tmp_path, later):
    ended = run_process("check", in_file(tmp_path, module=later), "-P", "2")
    assert ended.stdout.startswith("REFUTED  ")
    assert ended.returncode == 1, ended.stderr


def test_a_thread_that_a_kernel_starts_does_not_end_the_process(tmp_path):
    body = "threading.Thread(target=lambda: (time.sleep(0.2), os._exit(0))).start()"
    ended = run_process("check", in_file(tmp_path, body=body), "-P", "2")
    assert (ended.returncode, ended.stdout[:7]) == (1, "REFUTED")
    assert "os._exit(0) would end asyncsim" in ended.stderr


def test_exit_functions_are_called_after_the_verdict(tmp_path):
    ended = run_process("check", in_file(tmp_path, module="atexit.register(print, 'a last word')"), "-P", "2")
    assert ended.stdout.startswith("REFUTED  ")
    assert ended.stdout.endswith("\na last word\n")


RAISED = [
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise KeyboardInterrupt('mine') from None", "KeyboardInterrupt: mine"),
    ("signal.raise_signal(signal.SIGINT)", "would end asyncsim"),
    ("os.kill(os.getpid(), signal.SIGINT)", "would end asyncsim"),
    ("os.killpg(os.getpgrp(), signal.SIGTERM)", "would end asyncsim"),
    ("signal.pthread_kill(threading.get_ident(), signal.SIGTERM)", "would end asyncsim"),
    ("_thread.interrupt_main()", "would end asyncsim"),
    ("posix._exit(0)", "posix._exit(0) would end asyncsim"),
]


@pytest.mark.parametrize(("statement", "words"), RAISED)
@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_an_interrupt_that_a_kernel_raises_is_its_error_and_has_its_line(tmp_path, statement, words, engine):
    result = run("check", in_file(tmp_path, body=statement), "-P", "2", "--engine", engine)
    assert result.exit_code == 2
    assert f"mine.py:21 ({statement}" in result.stderr
    assert words in result.stderr
    assert "interrupted" not in result.stderr


def test_an_interrupt_that_a_file_raises_is_its_error(tmp_path):
    result = run("check", in_file(tmp_path, module="raise KeyboardInterrupt"), "-P", "2")
    assert result.exit_code == 2
    assert "line 17 of mine.py" in result.stderr or "mine.py:17" in result.stderr


def test_from_python_it_is_an_error_of_the_kernel_too():
    @kernel(memory=[Window("x", (1,), int, initialised=True)])
    async def raises(rank, x):
        await rank.load(x[0])
        raise KeyboardInterrupt

    for engine in ("trio", "direct"):
        with pytest.raises(KernelError, match=r"test_process_end\.py:\d+ \(raise KeyboardInterrupt\)"):
            simulate(Case(raises, 1, 1), Fifo(), engine=engine)


def test_an_interrupt_in_inputs_is_told():
    def inputs():
        raise KeyboardInterrupt

    with pytest.raises(MisuseError, match=r"this raised KeyboardInterrupt at line \d+ of test_process_end\.py"):
        call("this", inputs)


def caught(function):
    try:
        function()
    except KeyboardInterrupt as error:
        return error


def test_a_signal_is_told_from_a_statement():
    def again():
        try:
            ctrl_c()
        except KeyboardInterrupt as error:
            raise error from None

    def mine():
        raise KeyboardInterrupt

    assert is_ctrl_c(caught(again))
    assert is_ctrl_c(caught(ctrl_c))
    assert not is_ctrl_c(caught(mine))
    assert is_ctrl_c(KeyboardInterrupt())
    assert not is_ctrl_c(ValueError())


def test_a_true_ctrl_c_in_a_kernel_is_still_an_interruption(tmp_path):
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    body = "print('here', flush=True)\n    while True: pass"
    words = ["check", in_file(tmp_path, body=body), "-P", "2"]
    process = start_process("-c", f"{heed}; from asyncsim.cli.process import run; run()", *words)
    try:
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, stderr) == (130, "asyncsim: interrupted in the reference run, after 0 steps\n")


# ---- output streams


def shell(line, *arguments):
    """Run the command with its streams as a shell line has them."""
    command = ["/bin/sh", "-c", line, sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - our own


STREAMS = ['"$0" "$@" >&-', '"$0" "$@" >&- 2>&-', '"$0" "$@" <&- >&- 2>&-']


@pytest.mark.parametrize("line", STREAMS)
def test_the_status_is_right_without_streams(tmp_path, line):
    done = shell(line, "-m", "asyncsim", "check", in_file(tmp_path), "-P", "2", "--save", str(tmp_path / "out"))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert all(path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir())


def test_without_stderr_the_verdict_is_printed(tmp_path):
    done = shell('"$0" "$@" 2>&-', "-m", "asyncsim", "check", in_file(tmp_path), "-P", "2")
    assert (done.returncode, done.stdout[:7]) == (1, "REFUTED")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")  # noqa: PTH110 - a word
def test_a_verdict_that_cannot_be_printed_is_no_success():
    done = shell('"$0" "$@" >/dev/full', "-m", "asyncsim", "check", "reduce_scatter:builtin", "-P", "2")
    assert done.returncode == 2
    assert "No space left" in done.stderr


def test_names_that_no_encoding_has_are_printed_as_escapes(tmp_path):
    body = "with rank.phase('\\ud800\\xe9'):\n        await rank.load(x[0])"
    words = ["check", in_file(tmp_path, body=body), "-P", "2", "--save", f"{tmp_path}/out"]
    ended = run_process(*words, PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stdout[:7]) == (1, "REFUTED"), ended.stderr
    trace = next((tmp_path / "out").iterdir())
    shown = run_process("show", str(trace), PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\\ud800\\xe9" in shown.stdout


def test_a_file_whose_name_is_no_text_is_judged(tmp_path):
    file = os.fsencode(tmp_path / "mine") + b"\xff.py"
    with open(file, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a name in bytes
        stream.write(HEAD.format("", "pass"))
    name = os.fsdecode(file) + ":k"
    ended = run_process("check", name, "-P", "2", "--save", f"{tmp_path}/out")
    assert (ended.returncode, ended.stdout[:7]) == (1, "REFUTED"), ended.stderr
    for recorded in (next((tmp_path / "out").iterdir()), last_line(ended.stdout, "replay").split()[3]):
        replayed = run_process("replay", str(recorded), "--kernel", name)
        assert (replayed.returncode, replayed.stderr) == (1, "")


# ---- from Python


def test_a_process_that_is_kept_shut_opens_nothing_after_a_block():
    code = (
        "import os\nfrom asyncsim.trace.guest import GUEST\nGUEST.keep_shut()\nwith GUEST:\n    pass\n"
        "try:\n    os._exit(5)\nexcept BaseException as error:\n    print(type(error).__name__)\n"
        "child = os.fork()\nif not child:\n    os._exit(6)\nprint(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240)  # noqa: S603 - ours
    assert (done.returncode, done.stdout, done.stderr) == (0, "MisuseError\n6\n", "")
    assert not GUEST.here
