"""Scripts in MSCCL++'s DSL: run where `mscclpp.language` is installed; what they print is the plan."""

from __future__ import annotations

import runpy
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from traceback import extract_tb
from typing import TYPE_CHECKING

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Sequence


def plan_of_script(file: str, arguments: Sequence[str]) -> str:
    """Return what a script prints.

    Args:
        file: the script.
        arguments: what it finds behind its name in ``sys.argv``.

    Raises:
        MisuseError: the DSL is not installed, or the script fails; the message has the script's line.

    """
    try:
        installed = find_spec("mscclpp.language") is not None
    except ModuleNotFoundError:
        installed = False
    if not installed:
        raise MisuseError(
            f"{file} is a script in MSCCL++'s DSL, and mscclpp.language is not installed; print its plan where it is "
            f"(python {file} > plan.json), and judge that"
        )
    argv, printed = sys.argv, StringIO()
    sys.argv = [file, *arguments]
    try:
        with redirect_stdout(printed):
            runpy.run_path(file, run_name="__main__")
    except OSError as error:
        raise MisuseError(f"{file} cannot be read: {error.strerror or error}") from error
    except SystemExit as error:
        if error.code:
            text = f"{file} left with status {error.code}; --args has what it finds behind its name"
            raise MisuseError(text) from error
    except Exception as error:
        line = next((frame.lineno for frame in reversed(extract_tb(error.__traceback__)) if frame.filename == file), "")
        raise MisuseError(f"{file}:{line}: {type(error).__name__}: {error}") from error
    finally:
        sys.argv = argv
    return printed.getvalue()
