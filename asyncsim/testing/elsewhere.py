"""A scheduler in another process, where hashes of texts are others: what depends on them shows there."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.machine.pick import Scheduler

SEEDS = ("1", "2")
"""Values of PYTHONHASHSEED; at most one of them is that of this process."""
_PROGRAM = """
from asyncsim.testing.elsewhere import answer
from asyncsim.testing.schedulers import choices_of
answer(choices_of)
"""
_UNKNOWN = 3
"""The exit status of a process that cannot load what it was named."""


def choices_elsewhere(make: Callable[[], Scheduler]) -> list[object]:
    """Return what `asyncsim.testing.schedulers.choices_of` gives in processes of other hashes.

    Args:
        make: makes the scheduler. It is named to the other processes, which load its module.

    Returns:
        One answer a process: choices by world, or a text that says what was raised. None if `make` has no name
        there, as a lambda or a function within a function has none.

    """
    try:
        named = pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError):
        return []
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)  # noqa: PTH109 - as Python itself does
    answers: list[object] = []
    for seed in SEEDS:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", _PROGRAM], input=named, capture_output=True, check=False,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        if done.returncode != _UNKNOWN:
            told = done.stdout.decode("utf-8", "replace") or json.dumps(f"exit status {done.returncode}")
            answers.append(json.loads(told.splitlines()[-1]))
    return answers


def answer(choices_of: Callable[[Callable[[], Scheduler]], object]) -> None:
    """Be the other process: read what makes the scheduler, print its choices as one line of JSON."""
    try:
        make = pickle.load(sys.stdin.buffer)  # noqa: S301 - the parent wrote it
    except Exception:  # noqa: BLE001 - whatever a module may raise that was not meant to be loaded here
        sys.exit(_UNKNOWN)
    told: object
    try:
        told = choices_of(make)
    except Exception as error:  # noqa: BLE001 - a scheduler may raise anything
        told = f"{type(error).__name__}: {error}"
    print("\n" + json.dumps(told))  # noqa: T201 - the parent reads it
