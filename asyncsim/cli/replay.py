"""``asyncsim replay``: do a recorded run again, and show what it showed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.record.replay import replay
from asyncsim.cli.options import engine_option
from asyncsim.cli.recorded import Recorded, case_fields, kernel_option, load, recorded_argument, warn_if_changed
from asyncsim.machine.case import Case
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import Finding
from asyncsim.views.report import case_text
from asyncsim.views.run import run_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.simulate import Engine

BAD_INPUT = 2


@click.command("replay")
@recorded_argument
@kernel_option
@engine_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def replay_command(
    ctx: click.Context, recorded: str, *, name: str | None, engine: Engine | None, as_json: bool
) -> None:
    """Do a recorded run again, and show what it showed.

    The exit status is 1 if the failure is there again, 0 if the run shows none, and 2 if the run is
    not the recorded one: it diverged, or the kernel's source has changed. A record that is cut short
    is followed to its end, and what the run does after that is not known: 0, unless it failed before.

    \b
    Examples:
        asyncsim replay witnesses/race.jsonl
        asyncsim replay as1.eNq1... --kernel my_kernels.py:all_reduce
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    record = load(recorded, name)
    warn_if_changed(record)
    case = Case(record.kernel, **case_fields(record))
    try:
        again = replay(record.data, record.kernel, engine=engine)
    except KernelError as error:
        steps, ending = len(error.trace.events), STOPPED
        findings: Sequence[Finding] = [Finding("wrong-result", f"the kernel raises: {error}", harmful=True)]
        text, cut_short = f"{findings[0].why}\n", False
    else:
        steps, ending = again.steps, again.run.ending
        symptoms = Symptoms(case)
        findings = again.failures(symptoms.findings(again.run))
        text = run_text(again.run, findings, symptoms.differences(again.run), cut_short=again.cut_short)
        cut_short = again.cut_short
        for edit in again.run.unapplied:
            click.echo(f"asyncsim: the edit {edit!r} changed nothing: nothing that it is for came from there", err=True)
    if as_json:
        click.echo(json.dumps(_object(record, steps, ending, findings, cut_short=cut_short), indent=2))
    else:
        click.echo(f"replayed {steps} steps of {case_text(case)}\n{text}", nl=False)
    if record.source_changed:
        click.echo(f"asyncsim: it agrees to the end, all {steps} steps; but the source has changed", err=True)
        ctx.exit(BAD_INPUT)
    ctx.exit(int(bool(findings)))


def _object(
    record: Recorded, steps: int, ending: str, findings: Sequence[Finding], *, cut_short: bool
) -> dict[str, object]:
    return {
        "kernel": record.kernel.ref,
        **case_fields(record),
        "steps": steps,
        "ending": ending,
        "cut_short": cut_short,
        "failure": bool(findings),
        "source_changed": record.source_changed,
        "findings": [finding.to_json() for finding in findings],
    }
