"""The command line: what every command shares, which is how it fails.

Exit status: 0 nothing harmful was found; 1 REFUTED, or a replay shows the failure; 2 bad input;
3 a bug of asyncsim; 130 interrupted before there was anything to report.
"""

from __future__ import annotations

import ast
import os
import sys
import traceback
from collections.abc import MutableMapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from asyncsim import __version__
from asyncsim.cli import completion  # noqa: F401 - click asks for completion before it asks for a command
from asyncsim.trace.errors import AsyncsimError
from asyncsim.trace.guest import author_place, copy_onto, is_ctrl_c, raised, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BAD_INPUT, OUR_BUG, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141
COMMANDS = {
    "audit": "audit:audit_command",
    "bench": "bench:bench_command",
    "certify": "certify:certify_command",
    "check": "check:check_command",
    "cost": "cost:cost_command",
    "delays": "delays:delays_command",
    "demo": "demo:demo_command",
    "diff": "diff:diff_command",
    "explain": "explain:explain_command",
    "explore": "explore:explore_command",
    "list": "list:list_command",
    "lower": "lower:lower_command",
    "mscclpp": "mscclpp:mscclpp_command",
    "mpirun": "onesided:mpirun_command",
    "pypto": "pypto:pypto_command",
    "record": "record:record_command",
    "replay": "replay:replay_command",
    "shmemrun": "onesided:shmemrun_command",
    "show": "show:show_command",
    "shrink": "shrink:shrink_command",
    "table": "table:table_command",
    "torchrun": "torchrun:torchrun_command",
    "triton": "triton:triton_command",
    "validate": "validate:validate_command",
}
"""Each command: the module of this room that holds it, and its name there."""


class _Commands(MutableMapping[str, click.Command]):
    """The commands by name; each is imported when it is asked for, because most runs need one.

    Args:
        table: where each one is.

    """

    def __init__(self, table: Mapping[str, str]) -> None:
        self._places = dict(table)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            self._loaded[name] = getattr(import_module(f"asyncsim.cli.{module}"), attribute)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places[name] = ""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _summary(name: str) -> click.Command:
    """Return what stands for a command in the list of help: its docstring, from its source.

    To import all commands for that takes a second.
    """
    module, _, attribute = COMMANDS[name].partition(":")
    for node in ast.parse(Path(__file__).with_name(f"{module}.py").read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=known) if known == attribute:
                return click.Command(name, help=ast.get_docstring(node))
            case ast.Assign(
                targets=[ast.Name(id=known)], value=ast.Call(args=[*_, ast.Constant(value=str(about))])
            ) if known == attribute:
                return click.Command(name, help=about)
    return main.commands[name]


class _Guarded(click.Group):
    """A group whose commands fail with the right status."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, as click does.

        Args:
            ctx: of the group.
            formatter: takes the list.

        """
        names = self.list_commands(ctx)
        summaries = [_summary(name) if name in COMMANDS else self.commands[name] for name in names]
        listed = click.Group(commands=summaries)
        click.Group.format_commands(listed, click.Context(listed), formatter)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - whatever the command returns
        """Run the command, and turn what it raises into a message and a status."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort) as error:
            if author_place(error) is not None:  # click is not for us alone
                _fail(ctx, raised(error), BAD_INPUT)
            raise
        except BrokenPipeError:  # the reader of our output left: nothing is wrong, and nothing more is read
            copy_onto(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN_PIPE)
        except AsyncsimError as error:
            _fail(ctx, str(error), BAD_INPUT)
        except OSError as error:  # a file or folder of the user's
            _fail(ctx, f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
        except KeyboardInterrupt as error:
            _fail(ctx, *_interrupted(error))
        except MemoryError:
            _fail(ctx, "there is too little memory for this; judge fewer or smaller ranks, calls or windows", BAD_INPUT)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the last resort
            place = author_place(error)
            if place is not None or isinstance(error, SystemExit):  # an object of the author's, in our hands
                where = "" if place is None else f"{place[0]}:{place[1]}: "
                _fail(ctx, f"{where}{said(error)}", BAD_INPUT)
            traceback.print_exc()
            _fail(ctx, f"this is a bug of asyncsim, not of your kernel: {type(error).__name__}: {error}", OUR_BUG)


def _interrupted(error: KeyboardInterrupt) -> tuple[str, int]:
    """Return a message and a status: Ctrl-C's, whose text says where, if that is known; or a statement's."""
    return (f"interrupted {error}".rstrip(), INTERRUPTED) if is_ctrl_c(error) else (raised(error), BAD_INPUT)


def _fail(ctx: click.Context, message: str, status: int) -> NoReturn:
    """Print what failed, and exit. What came out of a file cannot steer the terminal."""
    message = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in message)
    click.echo(f"asyncsim: {message}", err=True)
    ctx.exit(status)


@click.group(cls=_Guarded, commands=_Commands(COMMANDS), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="asyncsim")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Prove or refute the synchronisation of collective kernels.

    From one run it says PROVED, or REFUTED with two accesses and a schedule that can be replayed.

    \b
    Start here:
        asyncsim demo
        asyncsim check reduce_scatter:builtin
        asyncsim check path/to/your_kernel.py:name
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if os.environ.get("NO_COLOR"):
        ctx.color = False
