"""``asyncsim shrink``: the same failure with the fewest task switches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.record.replay import replay
from asyncsim.checking.witness.shrink import segments_of, shrink
from asyncsim.cli.recorded import case_fields, kernel_option, load, recorded_argument, warn_if_changed
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import STEP_LIMIT
from asyncsim.trace.finding import REFUTED
from asyncsim.trace.jsonl import write_trace
from asyncsim.trace.token import Token, encode
from asyncsim.views.report import replay_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.cli.recorded import Recorded
    from asyncsim.machine.case import Run
    from asyncsim.trace.finding import Finding

SCHEDULER = "shrunk"


@click.command("shrink")
@recorded_argument
@kernel_option
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to write NAME.shrunk.jsonl.  [default: beside the trace]",
)
def shrink_command(recorded: str, *, name: str | None, save: Path | None) -> None:
    """Find the same failure with fewer task switches.

    Writes NAME.shrunk.jsonl and prints the line that replays it.

    \b
    Example:
        asyncsim shrink witnesses/race.jsonl
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    record = load(recorded, name)
    warn_if_changed(record)
    again = replay(record.data, record.kernel)
    run = again.run
    whole = Case(record.kernel, **case_fields(record))
    case = run.case if run.ending == STEP_LIMIT else whole
    symptoms = Symptoms(whole if again.cut_short else case)
    run.trace = None  # what is left of a failure without a record is what shrinking can look for
    kinds = {finding.kind for finding in again.failures(symptoms.findings(run))}
    if not kinds:
        raise MisuseError("the recorded run shows no failure that its schedule decides, so there is nothing to shrink")

    def fails(tried: Run) -> bool:
        return any(finding.kind in kinds for finding in symptoms.findings(tried))

    choices = shrink(case, run.choices, fails)
    shrunk = simulate(case, Replay(choices), record=SCHEDULER)
    path = _path(record, save)
    if path is not None:
        _write(shrunk, path, known=record, findings=again.failures(symptoms.findings(shrunk)))
    header = case.header(SCHEDULER)
    header.max_steps = None if again.cut_short else case.max_steps  # where a record was cut, no limit was met
    token = encode(Token.of(header, choices, ending=shrunk.ending))
    click.echo(f"before  {_size(run.choices)}")
    click.echo(f"after   {_size(choices)}")
    if path is not None:
        click.echo(f"trace   {path}")
    click.echo(f"replay  {replay_line(token, record.kernel)}")


def _size(choices: Sequence[str]) -> str:
    switches = max(len(segments_of(choices)) - 1, 0)
    return f"{switches} switches, {len(choices)} steps"


def _path(record: Recorded, save: Path | None) -> Path | None:
    """Return where the shrunk trace goes; None for a token, unless there is a folder to write to."""
    if record.path is None:
        return None if save is None else save / "token.shrunk.jsonl"
    folder = record.path.parent if save is None else save
    return folder / f"{record.path.name.removesuffix('.jsonl')}.shrunk.jsonl"


def _write(run: Run, path: Path, *, known: Recorded, findings: Sequence[Finding]) -> None:
    """Write the trace, with what is known of the failure in its footer."""
    trace = run.trace
    assert trace is not None  # noqa: S101 - for the type checker: it was recorded,
    assert trace.footer is not None  # noqa: S101 - to its end
    footer = None if isinstance(known.data, Token) else known.data.footer
    trace.footer.verdict = REFUTED
    trace.footer.findings = (footer.findings if footer is not None else []) or [f.to_json() for f in findings]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_trace(trace, path)
