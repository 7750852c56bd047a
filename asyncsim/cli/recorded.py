"""A recorded run as a user gives it: a trace file or a token, and the kernel that may be run for it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.record.locate import is_shipped, locate
from asyncsim.cli.completion import complete_kernels
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.token import Token, read_record

if TYPE_CHECKING:
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Trace

recorded_argument = click.argument("recorded", metavar="TRACE|TOKEN")
kernel_option = click.option(
    "--kernel", "name", metavar="KERNEL", shell_complete=complete_kernels,
    help="Run this kernel; needed if it does not come with asyncsim.",
)  # fmt: skip


_TORCHRUN = "collectives"
"""What the kernel of a torch.distributed script is called; to import it would load that dialect with every replay."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded run and the kernel to do it again with.

    Args:
        data: the trace or token.
        kernel: shipped, or named by the user.
        path: of the trace file; None for a token.

    """

    data: Trace | Token
    kernel: Kernel
    path: Path | None

    @property
    def source_changed(self) -> bool:
        """Whether the kernel's file is not the one that was recorded."""
        return self.data.header.source != self.kernel.source


def load(text: str, name: str | None) -> Recorded:
    """Read a recorded run, and find its kernel.

    A record is data. The kernel that it names is run only if it comes with asyncsim; any other one
    the user must name.

    Args:
        text: a path or a token.
        name: the kernel as the user names it, or None.

    Raises:
        MisuseError: there is no such file, or the kernel must be named and is not, or cannot be found.
        TraceError: the record cannot be read.

    """
    data = read_record(text)
    ref = data.header.kernel
    if name is None and not is_shipped(ref):
        raise MisuseError(
            f"the record is of the kernel {ref!r}, which does not come with asyncsim. "
            f"A record is data and runs no code; if you trust that kernel, name it: {_named_line(ref, text)}"
            + _of_script(ref, text, data.header.ranks)
        )
    return Recorded(data, locate(ref if name is None else name), None if isinstance(data, Token) else Path(text))


def _named_line(ref: str, recorded: str) -> str:
    """Return the line to type: the command that runs now, with the kernel."""
    command = click.get_current_context().command_path
    return f"{command} {shlex.join([recorded, '--kernel', ref])}"


def _of_script(ref: str, recorded: str, ranks: int) -> str:
    """Return how a record is replayed if a command ran a script for it; a name in a file may be a kernel's, too."""
    script, _, name = ref.rpartition(":")
    if not script.endswith(".py"):
        return ""
    command = ["torchrun", "-n", str(ranks)] if name == _TORCHRUN else ["pypto"]
    line = shlex.join(["asyncsim", *command, "--replay", recorded, script])
    return f". If asyncsim {command[0]} ran that script, only it knows the calls: {line}, with the script's arguments"


def case_fields(recorded: Recorded) -> dict[str, Any]:
    """Return what was run: the fields of a case but for the kernel."""
    run = recorded.data.header
    return {"ranks": run.ranks, "calls": run.calls, "memory": run.memory, "seed": run.seed, "edits": run.edits}


def warn_if_changed(recorded: Recorded) -> None:
    """Warn on stderr if the kernel is not the recorded one."""
    if recorded.source_changed:
        ref = recorded.kernel.ref
        text = f"the source of {ref} has changed since the run was recorded; following it as far as it agrees"
        click.echo(f"asyncsim: {text}", err=True)
