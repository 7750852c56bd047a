"""The command line: what every command shares, which is how it fails.

Exit status: 0 nothing harmful was found; 1 REFUTED, or a replay shows the failure; 2 bad input;
3 a bug of asyncsim; 130 interrupted before there was anything to report.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, NoReturn

import click

from asyncsim import __version__
from asyncsim.cli.audit import audit_command
from asyncsim.cli.certify import certify_command
from asyncsim.cli.check import check_command
from asyncsim.cli.cost import cost_command
from asyncsim.cli.demo import demo_command
from asyncsim.cli.diff import diff_command
from asyncsim.cli.explain import explain_command
from asyncsim.cli.explore import explore_command
from asyncsim.cli.list import list_command
from asyncsim.cli.lower import lower_command
from asyncsim.cli.pypto import pypto_command
from asyncsim.cli.record import record_command
from asyncsim.cli.replay import replay_command
from asyncsim.cli.show import show_command
from asyncsim.cli.shrink import shrink_command
from asyncsim.cli.table import table_command
from asyncsim.cli.torchrun import torchrun_command
from asyncsim.cli.validate import validate_command
from asyncsim.trace.errors import AsyncsimError

BAD_INPUT, OUR_BUG, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141


class _Guarded(click.Group):
    """A group whose commands fail with the right status."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - whatever the command returns
        """Run the command, and turn what it raises into a message and a status."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # the reader of our output left: nothing is wrong, and nobody listens
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN_PIPE)
        except AsyncsimError as error:
            _fail(ctx, str(error), BAD_INPUT)
        except OSError as error:  # a file or folder of the user's
            _fail(ctx, f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - the last resort
            traceback.print_exc()
            _fail(ctx, f"this is a bug of asyncsim, not of your kernel: {type(error).__name__}: {error}", OUR_BUG)


def _fail(ctx: click.Context, message: str, status: int) -> NoReturn:
    """Say what failed, and leave. What came out of a file cannot steer the terminal."""
    message = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in message)
    click.echo(f"asyncsim: {message}", err=True)
    ctx.exit(status)


@click.group(cls=_Guarded, context_settings={"help_option_names": ["-h", "--help"]})
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


for _command in (
    list_command,
    check_command,
    certify_command,
    audit_command,
    lower_command,
    cost_command,
    explore_command,
    explain_command,
    diff_command,
    validate_command,
    record_command,
    replay_command,
    shrink_command,
    show_command,
    torchrun_command,
    pypto_command,
    demo_command,
    table_command,
):
    main.add_command(_command)
