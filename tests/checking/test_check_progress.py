"""Who watches a check sees its stages, its steps and its memory; who does not, sees nothing; nothing flickers."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from contextlib import suppress

import pytest
from command import GOOD, ROOT, Terminal

from asyncsim.checking.record.stage import Stage
from asyncsim.checking.search.tally import Progress
from asyncsim.cli import progress
from asyncsim.cli import progress as page
from asyncsim.cli.progress import Pace, clock, progress_bar

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BAR = "━"


def staged(name, choices=None, total=None, found=0):
    return Progress(1, 1, found, stage=Stage(name, True, choices, total))  # noqa: FBT003


@pytest.fixture(autouse=True)
def no_memory(monkeypatch):
    """Say how large the process is."""
    monkeypatch.setattr(page, "resident", lambda: 2_340_000_000)


# ---- what is known


def test_a_run_whose_length_is_known_is_measured_against_it():
    choices, pace = ["0"] * 500, Pace(100.0)
    pace.update(staged("second run", choices, 2000), 160.0)
    choices += ["1"] * 500
    assert pace.title("hand, P = 4") == "hand, P = 4: second run"
    assert (pace.done, pace.total) == (1000, 2000)
    assert pace.facts(162.0) == "1,000 of 2,000 steps, 500/s, 2.3 GB, 0:01:02, 0:00:02 left"
    choices += ["1"] * 2000
    assert (pace.done, pace.total) == (3000, 3000)  # a witness may take longer than the reference run


def test_a_run_of_unknown_length_says_how_far_it_is():
    pace = Pace(0.0)
    pace.update(staged("reference run", ["0"] * 12_345), 0.0)
    assert (pace.done, pace.total) == (12_345, None)
    assert pace.facts(10.0) == "12,345 steps, 1,234/s, 2.3 GB, 0:00:10"


def test_what_is_no_run_says_of_how_many_steps_it_is_and_what_was_found():
    pace = Pace(0.0)
    pace.update(staged("analysis", None, 14_673_920), 3.0)
    assert (pace.done, pace.total) == (0, None)
    assert pace.facts(3661.0) == "14,673,920 steps, 2.3 GB, 1:01:01"
    pace.update(staged("check at P = 2", found=1), 4.0)
    assert pace.facts(5.0) == "1 found, 2.3 GB, 0:00:05"


def test_where_the_system_does_not_say_how_large_it_is_nothing_is_said(monkeypatch):
    monkeypatch.setattr(page, "resident", lambda: None)
    pace = Pace(0.0)
    pace.update(staged("analysis", None, 10), 0.0)
    assert pace.facts(1.0) == "10 steps, 0:00:01"


def test_schedules_are_counted_from_the_first_that_was_told():
    pace = Pace(0.0)
    assert (pace.title("hand"), pace.done, pace.total) == ("hand", 0, None)
    assert pace.facts(1.0) == "0 found, 0:00:01"
    pace.update(staged("analysis", None, 10), 1.0)
    pace.update(Progress(901, 1000, 0), 2.0)  # 900 of them were read from a journal
    pace.update(Progress(920, 1000, 2, 57, 0.123), 3.0)
    assert pace.facts(4.0) == "920/1000, 10/s, 57 behaviours (12% unseen), 2 found, 0:00:04, 0:00:08 left"
    assert pace.title("hand") == "hand"


def test_a_time_is_read_in_hours_minutes_and_seconds():
    assert [clock(seconds) for seconds in (0.9, 61, 7322)] == ["0:00:00", "0:01:01", "2:02:02"]


# ---- what is shown


@pytest.fixture
def watch(monkeypatch):
    """Let somebody watch, from within the test: before it begins, pytest puts a stderr of its own there."""

    def begin(columns=120):
        shown = Terminal()
        monkeypatch.setattr(sys, "stderr", shown)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm-256color")
        return shown

    return begin


def test_what_is_over_soon_is_not_shown(watch):
    terminal = watch()
    with progress_bar("hand") as move:
        move(staged("reference run", ["0"]))
    assert terminal.getvalue() == ""


def test_a_bar_goes_on_by_itself_while_a_run_does(watch, monkeypatch):
    terminal = watch()
    monkeypatch.setattr(page, "DELAY", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.01)
    choices, shown = ["0"] * 10, threading.Event()
    drawn = page._Bar._drawn

    def watched(self, now, width):
        if len(choices) > 10:
            shown.set()
        return drawn(self, now, width)

    monkeypatch.setattr(page._Bar, "_drawn", watched)
    with progress_bar("hand, P = 4") as move:
        move(staged("second run", choices, 40))
        choices += ["1"] * 10  # nothing is told
        assert shown.wait(30)
    text = ESCAPES.sub("", terminal.getvalue())
    assert "hand, P = 4: second run" in text
    assert "20 of 40 steps" in text
    assert BAR in text
    assert not [thread for thread in threading.enumerate() if thread.name == "asyncsim ticker"]


def test_what_does_not_fit_is_cut_and_takes_no_more_lines(watch, monkeypatch):
    terminal = watch(columns=40)
    monkeypatch.setattr(page, "DELAY", 0.0)
    with progress_bar("a kernel with a long name, P = 1024") as move:
        move(staged("comparison of two runs", None, 14_673_920))
    lines = ESCAPES.sub("", terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 40
    assert len({line for line in lines if line.strip()}) == 2
    assert lines[0] == "a kernel with a long name, P = 1024: co…"


def test_who_does_not_watch_is_shown_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("hand") as move:
        assert move is None
    assert sys.stderr.getvalue() == ""


# ---- the command on a terminal


def on_a_terminal(code, *arguments, press=None):
    """Run the command with a terminal for stderr; return its status, and what stood there.

    Ctrl-C is pressed as soon as something stands there that matches `press`.
    """
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 120))
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    env.pop("COLUMNS", None)
    start = f"{code}\nfrom asyncsim.cli.main import main\nmain()"
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-c", start, *arguments], env=env, stdout=subprocess.DEVNULL, stderr=slave
    ) as process:
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 65536):
                shown += part
                if press is not None and re.search(press, ESCAPES.sub("", shown.decode("utf-8", "ignore"))):
                    process.send_signal(signal.SIGINT)
                    press = None
        except OSError:  # how a terminal says that the other side has closed
            pass
        finally:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            process.kill()
    os.close(master)
    return process.returncode, ESCAPES.sub("", shown.decode("utf-8"))


def test_a_short_check_leaves_a_terminal_as_it_was():
    assert on_a_terminal("import asyncsim.cli.progress as page\npage.DELAY = 60", "check", GOOD, "-P", "2") == (0, "")


def test_a_check_shows_each_stage_that_takes_its_time():
    code = "import asyncsim.cli.progress as page\npage.DELAY, page.PERIOD = 0, 0.01"
    status, shown = on_a_terminal(code, "check", GOOD, "-P", "32")
    assert status == 0
    for stage in ("reference run", "second run"):
        assert f"{GOOD}, P = 32: {stage}" in shown
    assert re.search(r"[\d,]+ steps, [\d,]+/s, \d+ MB, 0:00:\d\d\s", shown)
    assert re.search(r"[\d,]+ of 14,144 steps, [\d,]+/s, \d+ MB, 0:00:\d\d", shown)


@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_ctrl_c_in_the_reference_run_says_how_far_it_came(engine):
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # who starts the tests may ignore it
        "import asyncsim.cli.progress as page\n"
        "page.DELAY = 0"
    )
    arguments = ["check", GOOD, "-P", "256", "--engine", engine]
    status, shown = on_a_terminal(code, *arguments, press=r"reference run\s+━+ [1-9][\d,]+ steps")
    assert status == 130
    assert re.search(r"asyncsim: interrupted in the reference run, after [1-9][\d,]+ steps\s*$", shown)
    assert "Traceback" not in shown
