"""What the commands for guests share: their options, and showing a run that is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.cli.completion import complete_schedulers
from asyncsim.cli.options import Whole
from asyncsim.trace.late import MODELS
from asyncsim.views.report import case_text
from asyncsim.views.run import run_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.checking.record.replay import Replayed
    from asyncsim.machine.case import Case

GUEST_SETTINGS = {"allow_interspersed_args": False}
"""What stands behind SCRIPT is the script's own."""


def guest_options(*, schedule: str, seed: str, reports: str, program: str, memory: str = "sc") -> Callable[[Any], Any]:
    """Give a command the options and arguments that every guest has.

    Args:
        schedule: what --scheduler is, for the help.
        seed: what --seed is of.
        reports: what --json writes.
        program: what --replay runs again.
        memory: the memory model unless another one is named.

    """
    added = (
        click.option("--scheduler", default="fifo", show_default=True, metavar="NAME",
                     shell_complete=complete_schedulers, help=schedule),
        click.option("--memory", metavar="|".join(MODELS), default=memory, show_default=True, help="The memory model."),
        click.option("--seed", type=Whole(min=0), default=0, show_default=True, help=seed),
        click.option("--save", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                     help="Write the trace of each witness to this folder."),
        click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help=f"Write {reports} to this file, as one JSON object."),
        click.option("--replay", "recorded", metavar="TRACE|TOKEN",
                     help=f"Run the script, then this schedule of {program}."),
        click.argument("script", metavar="SCRIPT.py"),
        click.argument("arguments", metavar="[ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED),
    )  # fmt: skip

    def decorate(command: Any) -> Any:  # noqa: ANN401 - a function, as click takes it
        for option in reversed(added):
            command = option(command)
        return command

    return decorate


def replayed_text(again: Replayed, case: Case) -> tuple[str, bool]:
    """Return what a replay shows of a case, in words, and whether something failed.

    Args:
        again: the replay.
        case: what was replayed, to judge its results.

    """
    symptoms = Symptoms(case)
    findings = again.failures(symptoms.findings(again.run))
    shown = run_text(again.run, findings, symptoms.differences(again.run), cut_short=again.cut_short)
    return f"replayed {again.steps} steps of {case_text(case)}\n{shown}", bool(findings)
