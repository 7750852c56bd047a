"""The command as a process: what it prints comes out, and what it found is the status that it leaves with.

The author's code is in this process, and goes on after its verdict: in threads, and in functions that it gave to
`atexit`. So what ends a process is shut to it to the end, and the end is asyncsim's own.
"""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

from asyncsim.cli.main import BAD_INPUT, BROKEN_PIPE, OUR_BUG, main
from asyncsim.trace.guest import GUEST, copy_onto, end_process
from asyncsim.trace.lent import flush_streams

if TYPE_CHECKING:
    from typing import NoReturn, TextIO


def run() -> NoReturn:
    """Run the command that the arguments of the process name, and end the process."""
    GUEST.keep_shut()
    _complete_streams()
    status = _status()
    own = sys.stdout, sys.stderr
    for stream in own:
        status = _let_out(stream, status)
    with GUEST:
        atexit._run_exitfuncs()  # noqa: SLF001 - as Python does at its end, which is not waited for
    sys.stdout, sys.stderr = own
    flush_streams()
    end_process(status)


def _complete_streams() -> None:
    """Open what the process was started without, and have what cannot be encoded printed as its escape."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r+" if number == 0 else "w", closefd=False))  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _status() -> int:
    """Run the command; return the status that it leaves with."""
    try:
        main(prog_name="asyncsim")
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - before or after the command itself
        traceback.print_exc()
        return OUR_BUG
    return 0


def _let_out(stream: TextIO, status: int) -> int:
    """Let out what was printed; return the status, which is another one if that failed."""
    try:
        stream.flush()
    except BrokenPipeError:
        status = BROKEN_PIPE
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            print(f"asyncsim: the output cannot be written: {error}", file=sys.stderr)  # noqa: T201 - a stream is broken
        status = BAD_INPUT
    else:
        return status
    with suppress(OSError, ValueError):
        copy_onto(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is left in it goes nowhere
    return status
