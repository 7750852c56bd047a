"""``asyncsim pypto``: run a PyPTO script as it is, then judge what it dispatched."""

from __future__ import annotations

import json
import shlex
from contextlib import redirect_stdout
from dataclasses import KW_ONLY, dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncsim.cli.guest import GUEST_SETTINGS, guest_options, replayed_text
from asyncsim.cli.judge import coloured, width
from asyncsim.cli.options import Whole
from asyncsim.cli.outputs import check_outputs
from asyncsim.cli.progress import progress_bar
from asyncsim.frontends.pypto.script import Ended, script_run
from asyncsim.frontends.pypto.session import Session
from asyncsim.machine.case import Case
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import DivergenceError, KernelError, MisuseError
from asyncsim.trace.finding import EXHAUSTED, PROVED
from asyncsim.trace.late import model_of
from asyncsim.trace.token import read_record
from asyncsim.views.report import count_text, report_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.verdict.report import Report
    from asyncsim.frontends.pypto.dispatched import Dispatched
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Trace
    from asyncsim.trace.token import Token

BAD_INPUT = 2
SHRINKING = 2000
"""How many steps it may cost to shrink one witness: the reports come with every run of a script."""
REUSED = "if the windows are reused, by a second dispatch with other inputs:"
KEPT = "the script keeps its windows; in the next call on them, with other inputs, when this one has ended:"
SYNCHRONOUS = (
    "a put or a get of PyPTO is complete when it returns, and each write that others wait for is fenced: nothing lands "
    "late, which is sc (ldst, which lets stores land later, is weaker)"
)


@dataclass(frozen=True, slots=True)
class _Judged:
    """One dispatched program, judged.

    Args:
        program: what was dispatched.
        once: the report of it as it was dispatched.
        reused: of further calls on the same windows; None where the other inputs do not fit the kernel.
        why_not: what it raised then.

    """

    program: Dispatched
    once: Report
    _: KW_ONLY
    reused: Report | None = None
    why_not: str = ""


@click.command("pypto", context_settings=GUEST_SETTINGS)
@click.option(
    "--calls", type=Whole(min=1), default=1, show_default=True,
    help="With 2 or more, what so many calls on the same windows give counts for the exit status.",
)  # fmt: skip
@click.option("--widen", is_flag=True, help="Let reduce_scatter take Max, Min and Prod, as upstream does later.")
@guest_options(
    schedule="The schedule whose results the script sees.", seed="Of the other inputs.", reports="the reports",
    program="its program",
)  # fmt: skip
@click.pass_context
def pypto_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context,
    script: str,
    arguments: tuple[str, ...],
    *,
    scheduler: str,
    seed: int,
    memory: str,
    calls: int,
    save: Path | None,
    json_file: Path | None,
    widen: bool,
    recorded: str | None,
) -> None:
    """Run a PyPTO script as it is, then prove or refute each program that it dispatched.

    The script prints what it prints under PyPTO. Then the verdict follows for each program as it was
    dispatched, on fresh windows; and beside it, what happens if the same windows are used again.

    The exit status is the script's own if it fails; else 1 if a program is refuted as it was dispatched (with
    --calls 2: or on windows that are used again), 0 if not; 2 for a program that cannot be right, or that
    does not do again what it did when it was dispatched.

    \b
    Examples:
        asyncsim pypto 14_reduce_scatter.py -d 0,1,2,3
        asyncsim pypto --calls 2 --save witnesses 14_reduce_scatter.py --mode hand
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    make(scheduler, seed=seed)
    if model_of(memory).adapter or model_of(memory).scoped:
        raise MisuseError(f"--memory {memory} lets happen what PyPTO rules out: {SYNCHRONOUS}")
    if json_file is not None and not json_file.parent.is_dir():  # now, not when all is done
        raise MisuseError(f"--json {json_file}: there is no folder {str(json_file.parent)!r}; make it first")
    check_outputs({"--json": json_file}, reads=[script, recorded])
    record = None if recorded is None else read_record(recorded)
    session = Session(script, scheduler=scheduler, memory=memory, seed=seed, widen=widen)
    command = _Command(script, arguments, widen=widen)
    judged = []
    here = Path.cwd()
    with script_run(script, arguments, session) as ended:
        click.echo(ended.message + _misplaced(ctx, arguments, ended), err=True, nl=False)
        if Path.cwd() != here:  # the script has left the folder that the options are about
            save, json_file = save and here / save, json_file and here / json_file
        if record is not None:
            ctx.exit(ended.status or _replay(record, session))
        for program in session.dispatched:
            with progress_bar(f"{script}:{program.name}") as progress:
                judged.append(_judge(program, calls, memory=memory, seed=seed, save=save, progress=progress))
            click.echo("\n" + _text(judged[-1], command), nl=False)
    status = ended.status
    if status and status != BAD_INPUT:
        click.echo(_alike(judged), nl=False)
    if not session.dispatched and not status:
        click.echo(f"\nasyncsim: {script} dispatched nothing; there is nothing to judge")
    status = status or int(any(_refuted(each, calls) for each in judged))
    status = status or (0 if all(each.program.repeats() for each in judged) else BAD_INPUT)
    if json_file is not None:
        json_file.write_text(json.dumps(_object(command, judged, status), indent=2) + "\n", "utf-8")
    ctx.exit(status)


def _alike(judged: Sequence[_Judged]) -> str:
    """Say of a script that failed, though no schedule changes a result, that the fault is not one of order."""
    alike = [each for each in judged if each.once.verdict in {PROVED, EXHAUSTED} and each.program.repeats()]
    if not judged or len(alike) < len(judged) or any(each.once.findings for each in alike):
        return ""
    names = ", ".join(each.program.name for each in alike)
    return (
        f"\nasyncsim: the script failed, and every schedule of {names} gives the results that it saw: "
        "the fault is not one of order, but of what the kernels compute, or of what the script expects\n"
    )


def _misplaced(ctx: click.Context, arguments: Sequence[str], ended: Ended) -> str:
    """Return a hint where argparse ended a script that was given an option of asyncsim."""
    ours = {option for parameter in ctx.command.params for option in parameter.opts if option.startswith("--")}
    found = [argument for argument in arguments if argument.partition("=")[0] in ours]
    if ended != Ended(BAD_INPUT) or not found:
        return ""
    return f"asyncsim: the script was given {found[0]}; if that was meant for asyncsim, it stands before the script\n"


@dataclass(frozen=True, slots=True)
class _Command:
    """The script with its arguments, as the user gave them."""

    script: str
    arguments: Sequence[str]
    _: KW_ONLY
    widen: bool

    def replay(self, witness: str, _kernel: Kernel) -> str:
        """Return the command that replays a witness: only a run of the script knows its program and inputs."""
        widened = ["--widen"] if self.widen else []
        return shlex.join(["asyncsim", "pypto", *widened, "--replay", witness, self.script, *self.arguments])


def _judge(program: Dispatched, calls: int, **options: Any) -> _Judged:  # noqa: ANN401 - as `check` takes them
    options["shrinking"] = SHRINKING
    with redirect_stdout(StringIO()):  # what a kernel prints it has printed
        once = program.judge(calls=1, **options)
        try:
            return _Judged(program, once, reused=program.judge(calls=max(calls, 2), **options))
        except KernelError as error:
            return _Judged(program, once, why_not=str(error))


def _refuted(judged: _Judged, calls: int) -> bool:
    return judged.once.refuted or (calls > 1 and judged.reused is not None and judged.reused.refuted)


def _text(judged: _Judged, command: _Command) -> str:

    def text(report: Report) -> str:
        return coloured(report_text(report, width=width(), replay=command.replay))

    often = judged.program.times
    times = f"dispatched {count_text(often, 'time')}; judged with the inputs of the first\n" if often > 1 else ""
    if judged.program.unlike:
        times += f"{judged.program.unlike} of these dispatches did other operations, and are not judged\n"
    reused = f"  not judged: {judged.why_not}\n" if judged.reused is None else text(judged.reused)
    again = KEPT if judged.program.launch.joined else REUSED
    return f"{times}{text(judged.once)}\n{again}\n{reused}"


def _object(command: _Command, judged: Sequence[_Judged], status: int) -> dict[str, Any]:
    return {
        "script": command.script,
        "arguments": list(command.arguments),
        "status": status,
        "programs": [
            {
                "program": each.program.name,
                "dispatched": each.program.times,
                "with_other_operations": each.program.unlike,
                "repeats": each.program.repeats(),
                "as_dispatched": each.once.to_json(),
                "if_reused": {"not_judged": each.why_not} if each.reused is None else each.reused.to_json(),
            }
            for each in judged
        ],
    }


def _replay(record: Token | Trace, session: Session) -> int:
    """Replay a recorded run of a program that the script has dispatched, and show what it shows."""
    run = record.header
    name = run.kernel.rpartition(":")[2]
    found = [program for program in session.dispatched if program.name == name]
    if not found:
        names = ", ".join(program.name for program in session.dispatched) or "none"
        raise MisuseError(f"the record is of the program {name!r}; the script dispatched {names}")
    program = found[0]
    if run.ranks != program.launch.ranks:
        raise MisuseError(f"the record is of {run.ranks} ranks; the script dispatched to {program.launch.ranks}")
    with redirect_stdout(StringIO()):
        text, status = _again(record, program, run.calls, run.memory, run.seed)
    click.echo("\n" + text, nl=False)
    return status


def _again(record: Token | Trace, program: Dispatched, calls: int, memory: str, seed: int) -> tuple[str, int]:
    """Return what a replay shows, and the exit status."""
    try:
        again = program.again(record, calls=calls, memory=memory, seed=seed)
    except KernelError as error:
        return f"the kernel raises: {error}\n", 1
    except DivergenceError as error:
        reason = "the memory differs" if error.reason.startswith("the memory") else error.reason
        hint = "is the script given the arguments of the recorded run?"
        raise DivergenceError(f"{reason}; {hint}", step=error.step) from None
    case = again.run.case
    text, failed = replayed_text(
        again, Case(case.kernel, ranks=case.ranks, calls=calls, memory=memory, seed=seed, edits=case.edits)
    )
    changed = "the script has changed since the run was recorded; " if again.source_changed else ""
    return changed + text, BAD_INPUT if again.source_changed else int(failed)
