"""The options that all judging commands share, as one decorator and one frozen record."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.verdict.models import AUTO
from asyncsim.checking.verdict.report import HARMFUL, RACES
from asyncsim.machine.simulate import ENGINES
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.late import MODELS, model_of

if TYPE_CHECKING:
    from collections.abc import Callable


_WHOLE = re.compile(r"[+-]?\d{1,40}", re.ASCII)


def whole(text: str) -> int | None:
    """Return the integer that a text writes in ASCII digits; None if it is none, or a very long one."""
    text = text.strip()
    return int(text) if _WHOLE.fullmatch(text) else None


def whole_list(text: str | None) -> tuple[int, ...]:
    """Return the integers of a list such as ``2,3,4``; empty if one of its parts is none."""
    numbers = [whole(part) for part in (text or "").split(",")]
    return tuple(number for number in numbers if number is not None) if None not in numbers else ()


class Whole(click.IntRange):
    """An integer within bounds, in ASCII digits: what is written out is read again by others."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Return the number, or refuse the text.

        Args:
            value: what was typed, or a default that is a number already.
            param: named in the message.
            ctx: named in the message.

        Raises:
            click.BadParameter: it is no integer in the digits 0 to 9, or out of range.

        """
        if isinstance(value, str) and whole(value) is None:
            self.fail(f"{value!r} is not an integer that can be used; write it in the digits 0 to 9", param, ctx)
        return super().convert(value, param, ctx)


class Amount(click.FloatRange):
    """A number within bounds, in ASCII digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Return the number, or refuse the text.

        Args:
            value: what was typed, or a default that is a number already.
            param: named in the message.
            ctx: named in the message.

        Raises:
            click.BadParameter: it is no number in ASCII, or out of range.

        """
        if isinstance(value, str) and not value.isascii():
            self.fail(f"{value!r} is not a number; write it in the digits 0 to 9", param, ctx)
        return super().convert(value, param, ctx)


RANKS = (4,)
SEVERAL = (2, 3, 4)
"""What `check` judges: most mistakes show at 3, and some kernels are right at 4 alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is asked of a judging command.

    Args:
        ranks: one or more P.
        chosen: whether the user named them.
        calls: calls back to back.
        memory: the memory model, or "auto".
        seed: of the inputs, and of what a scheduler draws.
        save: the folder for witnesses, or None.
        json: print JSON on stdout instead of words.

    """

    ranks: tuple[int, ...]
    chosen: bool
    calls: int
    memory: str
    seed: int
    save: Path | None
    json: bool


def _rank_counts(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:  # noqa: ARG001 - click's signature
    """Return each P of ``4`` or ``2,3,4``; empty if the option is not given."""
    counts = whole_list(value)
    if value is not None and (not counts or min(counts) < 1):
        raise click.BadParameter(f"{value!r} is not a number of ranks; give integers of at least 1, such as 4 or 2,3,4")
    if len(set(counts)) < len(counts):
        raise click.BadParameter(f"{value!r} names a number twice; each P is judged once")
    return counts


def _devices(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:  # noqa: ARG001 - as above
    """Return the devices of ``0,1,2,3``; empty if the option is not given."""
    devices = whole_list(value)
    if value is not None and (not devices or min(devices) < 0 or len(set(devices)) < len(devices)):
        raise click.BadParameter(f"{value!r} is not a list of devices; give different integers, such as 0,1,2,3")
    return devices


def _memory(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001 - as above
    """Return the memory model as it was given, if there is one of this name."""
    if value == AUTO == param.default:
        return value
    try:
        model_of(value)
    except MisuseError as error:
        raise click.BadParameter(str(error)) from None
    return value


_BEFORE = (
    click.option("-d", "--devices", callback=_devices, metavar="LIST", help="One rank a device: 0,1,2,3 is -P 4."),
    click.option("--calls", type=Whole(min=1), default=2, show_default=True, help="Calls back to back."),
)
_AFTER = (
    click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Of the inputs and of the schedules."),
    click.option(
        "--save",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write the trace of each witness to this folder.",
    ),
    click.option("--json", is_flag=True, help="Print JSON: one object for one kernel and one P, else an array."),
)


races_option = click.option(
    "--races",
    type=click.Choice(RACES),
    default=HARMFUL,
    show_default=True,
    help="Which races refute: those shown to be harmful, or benign ones, too.",
)


engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=None,
    help="What drives the reference run; direct is a bare loop, and the run is the same. "
    "[default: trio; from 32 ranks on direct, which takes a third of the time]",
)


_PIECES = "ldst:atom=4 lets larger tiles land in pieces."
_BY_WORDS = (
    "auto is sc, and ldst and nic too for a kernel that says when something is there "
    "(put, non-blocking, relaxed, fence, quiet)"
)
_MEMORY = {
    "sc": (MODELS, f"The memory model; {_PIECES}"),
    AUTO: ((AUTO, *MODELS), f"The memory model; {_BY_WORDS}; {_PIECES}"),
}
"""What --memory can be and says of itself, by its default."""


def shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options; it gets them as one argument, `options`."""
    return _with_options(command, "sc", RANKS)


def shared_options_and_auto(command: Callable[..., None]) -> Callable[..., None]:
    """Do the same for a command that chooses the memory models by the kernel, unless one is named."""
    return _with_options(command, AUTO, RANKS)


def shared_options_of_check(command: Callable[..., None]) -> Callable[..., None]:
    """Do the same for `check`, which judges at several P unless one is named."""
    return _with_options(command, AUTO, SEVERAL)


def _with_options(command: Callable[..., None], model: str, several: tuple[int, ...]) -> Callable[..., None]:
    @functools.wraps(command)
    def with_options(  # noqa: PLR0913 - one argument an option; the command itself gets one record
        *,
        ranks: tuple[int, ...],
        devices: tuple[int, ...],
        calls: int,
        memory: str,
        seed: int,
        save: Path | None,
        json: bool,
        **own: Any,  # noqa: ANN401 - the command's own parameters
    ) -> None:
        if ranks and devices:
            raise click.UsageError("--ranks and --devices both say how many ranks there are; give one of them")
        chosen = ranks or ((len(devices),) if devices else ())
        command(
            options=Options(
                ranks=chosen or several,
                chosen=bool(chosen),
                calls=calls,
                memory=memory,
                seed=seed,
                save=save,
                json=json,
            ),
            **own,
        )

    names, words = _MEMORY[model]
    memory_option = click.option(
        "--memory", callback=_memory, metavar="|".join(names), default=model, show_default=True, help=words
    )
    ranks_option = click.option(
        "-P", "--ranks", callback=_rank_counts, metavar="N[,N…]",
        help=f"How many ranks.  [default: {','.join(map(str, several))}]",
    )  # fmt: skip
    decorated: Callable[..., None] = with_options
    for option in reversed((ranks_option, *_BEFORE, memory_option, *_AFTER)):
        decorated = option(decorated)
    return decorated
