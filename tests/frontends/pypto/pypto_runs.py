"""How the tests of PyPTO scripts run them: as a user does, through ``asyncsim pypto``."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from command import run

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a script.

    Args:
        status: the exit status of the command.
        output: what it printed, the script's own lines first.
        dispatched: the report of the program as dispatched, as JSON gives it; None if there is none.
        reused: that of a second dispatch on the same windows.

    """

    status: int
    output: str
    dispatched: dict | None
    reused: dict | None


def run_script(script, *arguments, options=(), folder):
    """Run a script in this process, with `options` before its name and `arguments` after it; JSON goes to `folder`."""
    report = folder / f"{Path(script).stem}.json"
    report.unlink(missing_ok=True)
    result = run("pypto", "--json", str(report), *options, str(script), *arguments)
    assert not {"pypto", "tensors"} & set(sys.modules), "what a script imports is its own"
    programs = json.loads(report.read_text("utf-8"))["programs"] if report.exists() else []
    (program,) = programs or [{}]
    return Judged(result.exit_code, result.output, program.get("as_dispatched"), program.get("if_reused"))
