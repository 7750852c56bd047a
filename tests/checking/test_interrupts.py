"""Deafness to Ctrl-C: from the first one to the end of what it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from asyncsim.checking.record.interrupts import InterruptMask, interrupts_deferred, interrupts_stay_masked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends this process a signal, as a terminal does")


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def test_between_begin_and_end_ctrl_c_is_not_heard():
    before = signal.getsignal(signal.SIGINT)
    mask = InterruptMask()
    mask.end()  # of nothing
    for _ in range(2):
        mask.begin()
        mask.begin()
        ctrl_c()
        mask.end()
        assert signal.getsignal(signal.SIGINT) is before
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()


def test_in_a_block_deafness_lasts_to_its_end():
    before = signal.getsignal(signal.SIGINT)
    mask = InterruptMask()
    with interrupts_stay_masked():
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
        mask.begin()
        mask.end()
        ctrl_c()
    assert signal.getsignal(signal.SIGINT) is before
    with interrupts_stay_masked():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_who_was_deaf_in_a_block_is_so_again_while_the_process_ends():
    program = (
        "import atexit, signal\n"
        "from asyncsim.checking.record.interrupts import InterruptMask, interrupts_stay_masked\n"
        "atexit.register(lambda: print(signal.getsignal(signal.SIGINT)))\n"  # the last that was registered is first
        "with interrupts_stay_masked():\n"
        "    InterruptMask().begin()\n"
        "print(signal.getsignal(signal.SIGINT))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=240)  # noqa: S603
    heard, at_the_end = done.stdout.split("\n", 1)
    assert "default_int_handler" in heard
    assert "default_int_handler" not in at_the_end
    assert at_the_end.strip() == str(signal.SIG_IGN)


def test_what_is_short_is_done_first():
    done = []

    @interrupts_deferred()
    def both():
        ctrl_c()
        done.append(1)
        ctrl_c()
        done.append(2)

    with pytest.raises(KeyboardInterrupt):
        both()
    assert done == [1, 2]
    with interrupts_deferred():
        done.append(3)
    mask = InterruptMask()
    mask.begin()
    with interrupts_deferred():
        ctrl_c()
    ctrl_c()  # deaf it was, and is
    mask.end()
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_another_thread_changes_nothing():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def other():
        mask = InterruptMask()
        with interrupts_stay_masked(), interrupts_deferred():
            mask.begin()
            seen.append(signal.getsignal(signal.SIGINT))
            mask.end()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert seen == [before]
    assert signal.getsignal(signal.SIGINT) is before
