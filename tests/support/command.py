"""How the tests of the command line run it: in this process, or in one of its own."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

import asyncsim
from asyncsim.cli.main import main
from asyncsim.machine.case import Case
from asyncsim.trace.token import Token, encode

ROOT = Path(asyncsim.__file__).parents[1]
BAD = "reduce_scatter:no_post_barrier"
GOOD = "reduce_scatter:builtin"
KERNELS = """
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
"""


def run(*arguments, **options):
    """Run the command in this process."""
    return CliRunner().invoke(main, list(arguments), **options)


def run_process(*arguments, **environment):
    """Run ``python -m asyncsim`` to its end."""
    process = start_process("-m", "asyncsim", *arguments, **environment)
    stdout, stderr = process.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


def start_process(*arguments, **environment):
    """Start a Python that finds this asyncsim."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=env, text=True, **pipes)  # noqa: S603 - our own command


def ctrl_c():
    """Do what Python does where Ctrl-C came."""
    signal.default_int_handler(signal.SIGINT, None)


def last_line(text, word):
    """Return the last line that holds `word`."""
    return next(line for line in reversed(text.splitlines()) if word in line)


def replay_arguments(output):
    """Return what stands behind ``asyncsim`` in the line to paste."""
    return last_line(output, "asyncsim replay").partition("asyncsim ")[2].split()


def token_of(kernel, choices, *, ending=None, ref=None, limit=None):
    """Return the token of one call on two ranks."""
    header = Case(kernel, 2, 1, max_steps=limit).header("test")
    header.kernel = ref or kernel.ref
    return encode(Token.of(header, choices, ending=ending))


class Terminal(io.StringIO):
    """A stderr with somebody who watches."""

    def isatty(self):
        """Say yes."""
        return True
