"""``asyncsim validate``: whether a file is a trace; if not, from which line on, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from asyncsim.study.explain import read_run
from asyncsim.trace.errors import MisuseError, TraceError
from asyncsim.trace.schema import schema

INVALID = 2


@click.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--schema",
    "kind",
    type=click.Choice(["asyncsim", "elsewhere"]),
    help="Print the JSON Schema of a line, recorded by asyncsim or elsewhere, and do nothing else.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array, one object a file.")
@click.pass_context
def validate_command(ctx: click.Context, files: tuple[Path, ...], *, kind: str | None, as_json: bool) -> None:
    """Say of each file whether it is a trace, or which line is wrong and why.

    A trace that was broken off is as good as its whole lines, and it is said how many these are; it is
    not valid. Exit status 0: all are valid; 2: some are not.

    \b
    Examples:
        asyncsim validate witnesses/*.jsonl
        asyncsim validate --schema asyncsim > trace.schema.json
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if kind is not None:
        click.echo(json.dumps(schema(elsewhere=kind == "elsewhere"), indent=2))
        return
    if not files:
        raise click.UsageError("which file? Give one or more: asyncsim validate witnesses/*.jsonl")
    found = [_validated(file) for file in files]
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        for each in found:
            text = _text(each)
            click.echo("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))
    ctx.exit(0 if all(each["valid"] for each in found) else INVALID)


def _validated(file: Path) -> dict[str, Any]:
    told: dict[str, Any] = {"file": str(file), "valid": False, "lines": None, "steps": None, "line": None}
    try:
        survey = read_run(file)
    except TraceError as error:
        return {**told, "line": error.line, "reason": error.reason}
    except MisuseError as error:
        return {**told, "reason": str(error)}
    except OSError as error:
        return {**told, "reason": error.strerror or str(error)}
    events = survey.trace.events
    told |= {"lines": survey.lines, "steps": sum(not event.op.actor.wire for event in events)}
    if survey.trace.header.recorded:
        # Nobody promised a footer there.
        return {**told, "valid": survey.cut in ("", "it has no footer"), "reason": survey.cut}
    return {**told, "valid": not survey.cut, "steps": len(events), "reason": survey.cut}


def _text(told: dict[str, Any]) -> str:
    lines = told["lines"]
    if told["valid"]:
        rest = f" ({told['reason']})" if told["reason"] else ""
        return f"{told['file']}: valid, {lines} lines, {told['steps']} steps{rest}"
    if lines is not None:
        return f"{told['file']}: broken off: {told['reason']}; whole up to line {lines}, {told['steps']} steps"
    where = "" if told["line"] is None else f", line {told['line']}"
    return f"{told['file']}{where}: {told['reason']}"
