"""Whether 64 bits are enough: numpy's integers wrap and its floats round, and neither says a word.

A signal of int64 may start at either end of its range and be moved by as much in one step. Where such
numbers may add up to more than a float holds exactly, the events tell, with Python's integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from asyncsim.trace.columns import Steps
    from asyncsim.trace.world import World

MOST = 1 << 52
"""All sums below this are exact, in float64 too, with room for a difference of two, and for rounding on the way."""


def sums_are_exact(world: World, steps: Steps) -> bool:
    """Say whether whatever the amounts of a run, of one step or more, add up to with a start is less than `MOST`.

    Args:
        world: of the run; the starts of its signals are looked at.
        steps: its columns; the amounts are integers.

    """
    start = max((abs(signal.start) for signal in world.signals), default=0)
    largest = max(abs(int(steps.amount.min())), abs(int(steps.amount.max())))
    if start + largest * len(steps.amount) < MOST:
        return True
    return start + float(np.abs(steps.amount.astype(np.float64)).sum()) < MOST
