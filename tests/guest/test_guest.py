"""No silent end: whatever an author's code exits, closes or raises, there is a message with its line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from command import ctrl_c, run, run_process

from asyncsim import Case, Fifo, KernelError, MisuseError, Window, check, explore, kernel, simulate
from asyncsim.trace.guest import GUEST, author_place, call, raised, said
from asyncsim.trace.lent import Lent

ENDS = ["sys.exit(0)", "os._exit(0)", "os.abort()", "raise SystemExit", "raise GeneratorExit", "exec_other()"]
"""Statements that would end a process, most of them as if all were well."""
HEAD = """\
import os, signal, sys
import click
import numpy as np
from asyncsim import Group, Signal, Window, kernel
from os import _exit

def exec_other():
    os.execv("/bin/true", ["true"])

class Odd:
    def __repr__(self):
        sys.exit(0)
    def __deepcopy__(self, memo):
        os._exit(0)

class Wordless(Exception):
    def __str__(self):
        raise RuntimeError

x = Window("x", (1,), np.int64, initialised=True)
"""
PLACES = {
    "kernel": "@kernel(memory=[x])\nasync def k(rank, x):\n    await rank.load(x[0])\n    {}\n",
    "before": "@kernel(memory=[x])\nasync def k(rank, x):\n    {}\n    await rank.load(x[0])\n",
    "golden": (
        "def golden(xs):\n    {}\n@kernel(memory=[x], inputs=lambda P, call, rng: [1] * P, golden=golden)\n"
        "async def k(rank, i, x):\n    return i\n"
    ),
    "inputs": (
        "def inputs(P, call, rng):\n    {}\n@kernel(memory=[x], inputs=inputs)\n"
        "async def k(rank, i, x):\n    return i\n"
    ),
    "late inputs": (
        "def inputs(P, call, rng):\n    yield 1\n    {}\n@kernel(memory=[x], inputs=inputs)\n"
        "async def k(rank, i, x):\n    return i\n"
    ),
    "predicate": (
        "def full(tile):\n    {}\n@kernel(memory=[x])\nasync def k(rank, x):\n    await rank.poll(x[0], full)\n"
    ),
    "stream": (
        "async def other(rank):\n    {}\n@kernel(memory=[x])\nasync def k(rank, x):\n"
        "    await rank.join(await rank.start(other))\n"
    ),
    "extent": (
        "def extent(P):\n    {}\n@kernel(memory=[Window('y', (extent,), np.int8)])\nasync def k(rank, y):\n    pass\n"
    ),
    "group": (
        "def ranks(P):\n    {}\n@kernel(memory=[Window('y', (1,), np.int8, group=Group('g', ranks))])\n"
        "async def k(rank, y):\n    pass\n"
    ),
    "module": "{}\n",
}


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return a function that runs a command on the kernel of a file."""
    monkeypatch.chdir(tmp_path)

    def go(text, *command, name="mine"):
        (tmp_path / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
        words = command or ("check",)
        return run(words[0], f"{name}.py:k", *words[1:])

    return go


def assert_told(result, *words, name="mine"):
    """See that a command ended with a message that has the line, and not with success."""
    assert result.exit_code == 2, result.output
    assert not result.stdout
    assert name in result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def line_of(text, statement):
    """Return the number of the line that a statement is on."""
    return [n for n, line in enumerate((HEAD + text).splitlines(), 1) if line.strip() == statement][-1]


EVERYWHERE = [(place, end) for place in PLACES for end in ("sys.exit(0)", "os._exit(0)")]
IN_A_KERNEL = [("kernel", end) for end in (*ENDS, "raise Wordless", "_exit(0)", "os.kill(os.getpid(), signal.SIGTERM)")]


@pytest.mark.parametrize(("place", "end"), [*EVERYWHERE, *IN_A_KERNEL[2:]])
def test_whatever_ends_a_process_is_told_with_its_line(judged, place, end):
    text = PLACES[place].format(end)
    where = line_of(text, end) if end != "exec_other()" else line_of("", 'os.execv("/bin/true", ["true"])')
    result = judged(text, "check", "-P", "2")
    assert_told(result)
    assert f"mine.py:{where}" in result.stderr or f"line {where} of mine.py" in result.stderr


COMMANDS = [
    ("explore", "--runs", "3"),
    ("explore", "--exhaustive"),
    ("audit",),
    ("record", "out.jsonl"),
    ("lower",),
    ("cost",),
    ("check", "--memory", "nic"),
    ("check", "--engine", "direct"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("place", ["kernel", "inputs", "golden"])
def test_no_command_ends_in_silence(judged, command, place):
    result = judged(PLACES[place].format("os._exit(0)"), *command)
    if place == "golden" and command[0] in {"record", "lower", "cost"}:
        assert result.output.strip()  # nobody asked for it
    else:
        assert result.exit_code in {1, 2}
        assert "mine.py" in result.output
        assert result.output.strip()


def test_a_process_of_its_own_ends_with_a_message_too(tmp_path):
    (tmp_path / "ends.py").write_text(HEAD + PLACES["kernel"].format("os._exit(0)"), encoding="utf-8")
    ended = run_process("check", f"{tmp_path}/ends.py:k", "-P", "2")
    assert ended.returncode == 2
    assert "os._exit(0) would end asyncsim" in ended.stderr


@pytest.mark.parametrize("end", ["sys.stdout.close()", "sys.stdout = sys.stderr = None", "sys.stdout.buffer.close()"])
def test_the_verdict_is_printed_whatever_becomes_of_the_streams(tmp_path, end):
    text = HEAD + PLACES["kernel"].format(end)
    (tmp_path / "closes.py").write_text(text, encoding="utf-8")
    ended = run_process("check", f"{tmp_path}/closes.py:k", "-P", "2")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("PROVED  ")


@pytest.mark.parametrize("end", ["os.close(1)", "os.dup2(0, 1)"])
def test_closing_the_output_itself_is_told_with_its_line(tmp_path, end):
    (tmp_path / "closes.py").write_text(HEAD + PLACES["kernel"].format(end), encoding="utf-8")
    ended = run_process("check", f"{tmp_path}/closes.py:k", "-P", "2")
    assert ended.returncode == 2
    assert f"closes.py:24 ({end})" in ended.stderr


def test_printing_to_a_closed_stream_is_told_with_its_line(judged):
    text = PLACES["before"].format("sys.stdout.close()\n    print(1)")
    assert_told(judged(text), "I/O operation on closed file", "(print(1))")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("Odd()", "an object of type Odd"),
        ("type('T', (tuple,), {'__iter__': lambda self: sys.exit(0)})()", "SystemExit: 0"),
        ("type('A', (), {'__array__': lambda self: sys.exit(0)})()", "an output is"),
    ],
)
def test_an_output_that_cannot_be_looked_at_is_told(judged, returned, words):
    text = f"@kernel(memory=[x])\nasync def k(rank, x):\n    return {returned}\n"
    assert_told(judged(text), "rank 0 failed in call 0", words)


def test_an_input_that_cannot_be_copied_is_told(judged):
    text = "@kernel(memory=[x], inputs=lambda P, call, rng: [Odd()] * P)\nasync def k(rank, i, x):\n    pass\n"
    assert_told(judged(text, "check", "-P", "2"))


def test_a_golden_of_odd_objects_is_told(judged):
    text = (
        "class Golden:\n    def __array__(self, *a, **k):\n        raise click.exceptions.Exit(0)\n"
        "@kernel(memory=[x], inputs=lambda P, call, rng: [1] * P, golden=lambda xs: [Golden() for _ in xs])\n"
        "async def k(rank, i, x):\n    return i\n"
    )
    assert_told(judged(text, "check", "-P", "2"), " of mine.py")


def test_what_is_returned_by_a_lone_surrogate_is_a_text_like_others(judged):
    result = judged("@kernel(memory=[x])\nasync def k(rank, x):\n    return '\\ud800'\n")
    assert result.exit_code == 0
    assert result.stdout.startswith("PROVED")


SWALLOWS = """
c = Signal("c", (1,))
@kernel(memory=[c])
async def k(rank, c):
    while True:
        try:
            await rank.wait(c[0] >= 1)
        except BaseException:
            pass
"""


@pytest.mark.parametrize("command", [("check",), ("check", "--engine", "direct")], ids=" ".join)
def test_a_kernel_that_cannot_be_ended_is_judged_without_noise(tmp_path, command):
    (tmp_path / "swallows.py").write_text(HEAD + SWALLOWS, encoding="utf-8")
    ended = run_process(command[0], f"{tmp_path}/swallows.py:k", *command[1:], "-P", "2", "--calls", "1")
    assert ended.returncode == 1
    assert "deadlock" in ended.stdout
    assert ended.stderr == ""


# From Python: a clear exception.

x = Window("x", (1,), int, initialised=True)


@kernel(memory=[x])
async def exits(rank, x):
    await rank.load(x[0])
    os._exit(0)


@pytest.mark.parametrize("judge", [check, explore])
@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_from_python_an_exit_is_an_exception(judge, engine):
    with pytest.raises(KernelError, match=r"test_guest\.py:\d+ \(os\._exit\(0\)\): MisuseError: os\._exit\(0\) would"):
        judge(exits, ranks=2, engine=engine)


def test_from_python_a_golden_that_exits_is_an_exception():
    @kernel(memory=[], inputs=lambda P, call, rng: [1] * P, golden=lambda xs: sys.exit(0))
    async def leaving(rank, i):
        return i

    with pytest.raises(MisuseError, match=r"golden, for call 0, raised SystemExit at line \d+ of test_guest\.py: 0"):
        _ = Case(leaving, 2).goldens


def test_afterwards_all_is_as_it_was():
    before = (os._exit, os.abort, os.kill, os.close, signal.raise_signal, sys.stdout, sys.stderr)
    with pytest.raises(KernelError):
        simulate(Case(exits, 2, 1), Fifo())
    assert (os._exit, os.abort, os.kill, os.close, signal.raise_signal, sys.stdout, sys.stderr) == before


def test_a_block_may_lie_in_another_and_overlap_with_others():
    real = os._exit
    inside, leave = threading.Event(), threading.Event()

    def other():
        with GUEST:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other, daemon=True)
    with GUEST:
        thread.start()
        inside.wait(10)
        with GUEST, pytest.raises(MisuseError):
            os._exit(0)
    assert os._exit is not real
    leave.set()
    thread.join(timeout=60)
    assert os._exit is real


def test_who_kept_a_shut_door_finds_it_open_afterwards(tmp_path):
    code = (
        "import sys\nfrom asyncsim.trace.guest import GUEST\nwith GUEST:\n    from os import _exit\n"
        "    out = sys.stdout\n"
        "    out.close()\nout.write('open\\n')\nout.flush()\n_exit(7)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240)  # noqa: S603 - ours
    assert (done.returncode, done.stdout, done.stderr) == (7, "open\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_was_forked_ends_as_it_likes():
    code = (
        "import os\nfrom asyncsim.trace.guest import GUEST\nwith GUEST:\n    child = os.fork()\n    if not child:\n"
        "        os._exit(5)\n    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240)  # noqa: S603 - ours
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")


def test_signals_that_somebody_handles_and_other_files_are_open():
    came = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append(1))
    try:
        with GUEST:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), 0)
            signal.raise_signal(signal.SIGCHLD)
            read, write = os.pipe()
            os.close(read)
            os.close(fd=write)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == [1]


def test_ctrl_c_is_nobodys_mistake():
    with pytest.raises(KeyboardInterrupt):
        call("this", ctrl_c)

    class InterruptingError(Exception):
        def __str__(self):
            return ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        said(InterruptingError())


def test_ctrl_c_in_a_predicate_reaches_the_caller():
    @kernel(memory=[x])
    async def polls(rank, x):
        await rank.poll(x[0], lambda _: ctrl_c())

    with pytest.raises(KeyboardInterrupt):
        simulate(Case(polls, 1, 1), Fifo(), engine="direct")


def test_an_error_is_told_at_the_authors_line_and_not_in_a_library():
    with pytest.raises(TypeError) as caught:
        json.loads(5)
    assert author_place(caught.value)[0] == __file__
    assert "test_guest.py" in raised(caught.value)
    assert raised(ValueError("x")) == "ValueError: x"
    assert author_place(ValueError()) is None


def test_a_process_without_streams_lends_none(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with GUEST:
        assert sys.stdout is None
        assert isinstance(sys.stderr, Lent)


def test_the_plugin_tells_an_exit_as_a_failure(pytester):
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:hypothesispytest -p no:cov -p no:xdist")
    pytester.makepyfile(
        test_it=HEAD.replace("x = Window", "import pytest\nx = Window")
        + "@pytest.mark.asyncsim\n@kernel(memory=[x])\nasync def k(rank, x):\n    os._exit(0)\n"
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*os._exit(0) would end asyncsim*"])


pytest_plugins = ["pytester"]
