"""Seeds: how a scheduler that throws dice gets the same dice again."""

from __future__ import annotations

from random import Random

from asyncsim.trace.errors import MisuseError

_RUNS = 32
"""Bits for the number of the run, below those of the seed."""


def generator(seed: int, run: int) -> Random:
    """Return the generator of one run: another one for every seed and every run.

    Only ``random()`` is used of it: its values are promised to stay the same from one Python
    to the next; those of ``shuffle`` and ``randrange`` are not.

    Args:
        seed: the scheduler's, any integer >= 0.
        run: the number of the run under this scheduler, from 0.

    """
    return Random((seed << _RUNS) + run)  # noqa: S311 - schedules, not secrets


def checked(scheduler: str, name: str, value: object, *, low: int = 0) -> int:
    """Return `value` if it is an integer of at least `low`; otherwise say whose argument is wrong.

    Args:
        scheduler: its name, for the message.
        name: the argument's.
        value: what was given for it; a bool is no integer here.
        low: the least that is right.

    Raises:
        MisuseError: it is no integer, or less than `low`.

    """
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise MisuseError(f"{scheduler}: {name}={value!r}; give an integer >= {low}")
    return value
