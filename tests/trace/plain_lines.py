"""Runs with streams and landings, recorded, and the lines of their trace files without sums."""

from __future__ import annotations

import json

from everything import written
from everything_late import late

from asyncsim import Case, simulate
from asyncsim.schedulers.table import make


def recorded(program=late, text="fifo", **options):
    return simulate(Case(program, **{"ranks": 2, "calls": 1, **options}), make(text), record=text).trace


def plain(trace):
    """Return the lines of a trace, without sums."""
    lines = [json.loads(line) for line in written(trace).splitlines()]
    return [json.dumps({key: value for key, value in line.items() if key != "crc"}) for line in lines]
