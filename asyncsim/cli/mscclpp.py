"""``asyncsim mscclpp``: judge execution plans of MSCCL++ before they run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.record.replay import replay
from asyncsim.cli.guest import replayed_text
from asyncsim.cli.judge import coloured, width
from asyncsim.cli.options import Whole
from asyncsim.cli.outputs import check_outputs
from asyncsim.cli.progress import progress_bar
from asyncsim.frontends.mscclpp.judging import MODELS, Judged, judge, neighbours
from asyncsim.frontends.mscclpp.launch import Launches
from asyncsim.frontends.mscclpp.pairing import EXECUTED, MEANT
from asyncsim.frontends.mscclpp.reading import load_plan
from asyncsim.frontends.mscclpp.repair import repair, superfluous
from asyncsim.machine.case import Case
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.late import model_of
from asyncsim.trace.token import read_record
from asyncsim.views.report import case_text, count_text, report_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.machine.kernel import Kernel

SIMPLE, DOUBLE = 2, 3
"""How many launches show what one does to the next; with two halves of scratch each half must be met again."""


@click.command("mscclpp")
@click.option("--calls", type=Whole(min=1), help="How many launches; of several plans: how often all of them, in turn.")
@click.option("--memory", metavar="MODELS", default=",".join(MODELS), show_default=True, help="The memory models.")
@click.option("--sizes", metavar="BYTES,…", help="Sizes of the input; each is checked and judged.")
@click.option(
    "--as", "mode", type=click.Choice([MEANT, EXECUTED]), default=MEANT, show_default=True,
    help="Operations as they are documented, or as the executor has them.",
)  # fmt: skip
@click.option("--args", "arguments", default="", metavar="TEXT", help="What a script in the DSL finds behind its name.")
@click.option("--pairs", type=Whole(min=1), default=1, show_default=True, help="Pairs of buffers, used in turn.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Of the inputs.")
@click.option("--budget", type=Whole(min=0), help="How many executions an exploration may take.")
@click.option("--save", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Write the trace of each witness to this folder.")  # fmt: skip
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the reports to this file, as one JSON object.")  # fmt: skip
@click.option("--write", "fixed", type=click.Path(dir_okay=False, path_type=Path), metavar="FIXED.json",
              help="Look for a change by which a refuted plan is not, and write the changed plan.")  # fmt: skip
@click.option("--audit", is_flag=True, help="Say which nops, signals, flushes and barriers guard nothing.")
@click.option("--replay", "recorded", metavar="TRACE|TOKEN", help="Run this schedule of the plans.")
@click.argument("files", metavar="PLAN.json...", nargs=-1, required=True)
@click.pass_context
def mscclpp_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context,
    files: tuple[str, ...],
    *,
    calls: int | None,
    memory: str,
    sizes: str | None,
    mode: str,
    arguments: str,
    pairs: int,
    seed: int,
    budget: int | None,
    save: Path | None,
    json_file: Path | None,
    fixed: Path | None,
    audit: bool,
    recorded: str | None,
) -> None:
    """Prove or refute execution plans of MSCCL++ (or scripts in its DSL, or algorithms of MSCCL in XML).

    A plan is launched twice, three times if it has two halves of scratch; several plans are launched one after the
    other, on one scratch if they share it. Nothing meets between launches but what the plans themselves do. Each
    finding names the plan's operations, and where they stand in the JSON.

    The exit status is 1 if a plan is refuted, 0 if not, and 2 for a plan that cannot be run.

    \b
    Examples:
        asyncsim mscclpp allreduce.json
        asyncsim mscclpp a.json b.json a.json --memory sc
        asyncsim mscclpp allreduce.json --sizes 1024,1048576 --as executed
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    check_outputs({"--json": json_file, "--write": fixed}, reads=[*files, recorded])
    models = tuple(memory.split(","))
    late = any(model_of(model).late for model in models)
    plans = {file: load_plan(file, shlex.split(arguments)) for file in files}
    turn = [plans[file] for file in files]
    times = calls or (1 if len(turn) > 1 else DOUBLE if turn[0].double else SIMPLE)
    judged: list[Judged] = []
    for size in _sizes(sizes):
        launches = Launches(tuple(turn * times), mode, pairs, size, late)
        if recorded is not None:
            ctx.exit(_replay(recorded, launches))
        with progress_bar(_title(launches, models)) as progress:
            judged.append(judge(launches, memory=models, seed=seed, budget=budget, save=save, progress=progress))
        click.echo(coloured(_text(judged[-1], arguments)), nl=False)
        if fixed is not None and judged[-1].report.refuted:
            _repair(judged[-1], models, fixed)
        if audit and not judged[-1].report.refuted:
            _audit(judged[-1], models)
    if json_file is not None:
        json_file.write_text(json.dumps([_object(each) for each in judged], indent=2) + "\n", "utf-8")
    ctx.exit(int(any(each.report.refuted for each in judged)))


def _sizes(text: str | None) -> Sequence[int | None]:
    if text is None:
        return (None,)
    if not all(part.isascii() and part.isdecimal() and int(part) for part in text.split(",")):
        raise MisuseError(f"--sizes {text}: give sizes in bytes: --sizes 1024,65536")
    return [int(part) for part in text.split(",")]


def _title(launches: Launches, models: Sequence[str]) -> str:
    names = ", ".join(plan.file for plan in launches.plans)
    first = launches.plans[0]
    if len(set(launches.plans)) == 1:
        names = f"{first.file}, {count_text(len(launches.plans), 'launch').replace('launchs', 'launches')}"
    size = "" if launches.size is None else f", {launches.size} bytes"
    return f"{names}, P = {first.ranks}{size}, as {launches.mode}, {' and '.join(models)}"


def _repair(judged: Judged, models: Sequence[str], fixed: Path) -> None:
    found = repair(judged, memory=models)
    if found is None:
        click.echo("\nno repair found: nops, flushes, orders, barriers and handshakes were tried, up to three together")
        return
    fixed.write_text(json.dumps(found.plan.tree, indent=2) + "\n", "utf-8")
    click.echo(f"\nrepair, judged {found.judged.verdict}, written to {fixed}:")
    for edit in found.edits:
        click.echo(f"  {edit.text}")


def _audit(judged: Judged, models: Sequence[str]) -> None:
    found = list(superfluous(judged, memory=models))
    many = count_text(len(found), "place") if found else "nothing"
    click.echo(f"\nguards nothing, each taken by itself: {many}")
    for edit, saved in found:
        click.echo(f"  {edit.text}; saves {count_text(saved, 'operation')} a call")


def _text(judged: Judged, arguments: str) -> str:
    """Return the report, in which each launch is a call, with the plan's operations below it."""
    report = judged.report

    def again(witness: str, _kernel: Kernel) -> str:
        files = [plan.file for plan in judged.launches.plans]
        command = ["asyncsim", "mscclpp", *(["--calls", "1"] if len(files) > 1 else [])]
        args = ["--args", arguments] if arguments else []
        pairs = ["--pairs", str(judged.launches.pairs)] if judged.launches.pairs > 1 else []
        size = [] if judged.launches.size is None else ["--sizes", str(judged.launches.size)]
        mode = [] if judged.launches.mode == MEANT else ["--as", judged.launches.mode]
        late = ["--memory", report.case.memory] if judged.launches.late else []
        return shlex.join([*command, *args, *pairs, *size, *mode, *late, "--replay", witness, *files])

    text = report_text(report, width=width(), replay=again)
    text = text.replace(case_text(report.case, report.models), _title(judged.launches, judged.models), 1)
    count = len(judged.launches.plans)
    text = re.sub(
        r"\b1(\s+)call(\s+)and(\s+)these(\s+)inputs", rf"{count}\g<1>launches\g<2>and\g<3>these\g<4>inputs", text
    )
    head, *rest = text.replace("(call 0, ", "(").replace(", call 0, launch", ", launch").split("\n\n")
    lines = [f"  known before it runs: {remark}" for remark in judged.remarks]
    return "\n\n".join([head, *(["\n".join(lines)] if lines else []), *rest]) + "".join(
        f"{line}\n" for line in _operations(judged)
    )


def _operations(judged: Judged) -> Iterator[str]:
    """Yield the plan's operations that findings are about, each between its neighbours."""
    shown: set[str] = set()
    for finding in judged.report.findings:
        for plan, op in judged.operations(finding):
            if op.path in shown:
                continue
            shown.add(op.path)
            yield ""
            yield f"{plan.file}:{op.line}  {op.path}"
            for itself, other in neighbours(plan, op):
                number = other.index if other.inside < 0 else other.inside
                yield f"  {'>' if itself else ' '} {number}: {other}"


def _object(judged: Judged) -> dict[str, Any]:
    launches = judged.launches
    return {
        "plans": [plan.file for plan in launches.plans], "as": launches.mode, "size": launches.size,
        "verdict": judged.verdict, "memory": list(judged.models), "remarks": [str(each) for each in judged.remarks],
        "operations": [
            [
                {"plan": plan.file, "path": op.path, "line": op.line, "op": str(op)}
                for plan, op in judged.operations(finding)
            ]
            for finding in judged.report.findings
        ],
        "reports": [report.to_json() for report in judged.reports],
    }  # fmt: skip


def _replay(recorded: str, launches: Launches) -> int:
    """Replay a recorded run of the plans, and show what it shows."""
    record = read_record(recorded)
    kernel = launches.kernel()
    again = replay(record, kernel)
    case = again.run.case
    text, failed = replayed_text(again, Case(kernel, ranks=case.ranks, calls=1, memory=case.memory, seed=case.seed))
    click.echo(text, nl=False)
    return int(failed)
