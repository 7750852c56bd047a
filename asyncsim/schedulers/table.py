"""The schedulers by name, and their text form: ``pct:depth=3,seed=7``.

A new scheduler is one file and one line in `SCHEDULERS`. (Replaying needs a schedule, so `Replay` is
made from a trace or a token, not from its name.)
"""

from __future__ import annotations

import inspect
import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from asyncsim.schedulers.calls import Calls
from asyncsim.schedulers.delay import Delay
from asyncsim.schedulers.eager import Eager
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.latency import Latency
from asyncsim.schedulers.pct import Pct
from asyncsim.schedulers.pos import Pos
from asyncsim.schedulers.preempt import Preempt
from asyncsim.schedulers.random import Random
from asyncsim.schedulers.script import Script
from asyncsim.schedulers.starve import Starve
from asyncsim.schedulers.surw import Surw
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asyncsim.machine.pick import Scheduler

_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)


def _script(rules: str, base: str = "fifo", seed: int = 0) -> Script:
    return Script(str(rules), make(str(base), seed=seed))  # a number would be one by now


SCHEDULERS: dict[str, Callable[..., Scheduler]] = {
    "fifo": Fifo,
    "eager": Eager,
    "random": Random,
    "calls": Calls,
    "starve": Starve,
    "pct": Pct,
    "pos": Pos,
    "surw": Surw,
    "delay": Delay,
    "preempt": Preempt,
    "latency": Latency,
    "script": _script,
}
"""Name -> what makes one; the arguments are those of the text form."""


def make(text: str, *, seed: int | None = None) -> Scheduler:
    """Make a scheduler from its text: ``NAME[:argument=value[,argument=value]]``.

    Args:
        text: ``fifo``, ``starve:rank=1``, ``pct:depth=3``, …
        seed: for a scheduler that throws dice, unless the text gives one.

    Raises:
        MisuseError: there is no such scheduler or argument, or the value is none for it.

    """
    name, given = _parsed(text)
    parameters = _parameters(SCHEDULERS[name])
    if seed is not None and "seed" in parameters:
        given.setdefault("seed", seed)
    missing = [key for key, it in parameters.items() if it.default is it.empty and key not in given]
    if missing:
        raise MisuseError(f"{name} needs {' and '.join(missing)}; write {_usage(name)}")
    return SCHEDULERS[name](**given)


def throws_dice(text: str) -> bool:
    """Say whether runs of this scheduler differ: whether it takes a seed.

    Args:
        text: as for `make`.

    Raises:
        MisuseError: it names no scheduler.

    """
    return "seed" in _parameters(SCHEDULERS[_parsed(text)[0]])


@cache
def _parameters(maker: Callable[..., Scheduler]) -> Mapping[str, inspect.Parameter]:
    """Return what a scheduler takes; an exploration makes one a schedule, and to ask costs more than to make it."""
    return inspect.signature(maker).parameters


def _usage(name: str) -> str:
    """Write a name with all its arguments: ``pct:depth=...,seed=...``."""
    arguments = ",".join(f"{key}=..." for key in _parameters(SCHEDULERS[name]))
    return f"{name}:{arguments}" if arguments else name


def _parsed(text: str) -> tuple[str, dict[str, int | str]]:
    """Take a text apart: the name, and the arguments given."""
    if not isinstance(text, str):
        raise MisuseError(
            f"a scheduler is named by text here, such as 'random', and this is {text!r}; simulate() takes an object of "
            "your own, and so does this once it has a line in SCHEDULERS"
        )
    name, colon, rest = text.strip().partition(":")
    if name not in SCHEDULERS:
        near = get_close_matches(name, SCHEDULERS, n=3)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        raise MisuseError(f"no scheduler is called {name!r}; {meant}there are: {', '.join(SCHEDULERS)}")
    parameters = _parameters(SCHEDULERS[name])
    given: dict[str, int | str] = {}
    # The base of a script is itself such a text, with commas of its own, so it comes last.
    rest, *base = re.split(r",(?=\s*base\s*=)", rest, maxsplit=1) if "base" in parameters else [rest]
    for part in [*rest.split(","), *base] if colon else ():
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not value:
            raise MisuseError(f"{name}: {part!r} is no argument; write {_usage(name)}")
        if key not in parameters:
            raise MisuseError(f"{name} has no argument {key!r}; write {_usage(name)}")
        if key in given:
            raise MisuseError(f"{name}: {key} is given twice")
        given[key] = int(value) if _INTEGER.fullmatch(value) else value
    return name, given
