"""What programs with streams share: memory, and the smallest stream."""

from __future__ import annotations

import numpy as np

from asyncsim import Signal, Window

ROW = Window("row", (4,), np.int32, initialised=True)
CELL = Signal("cell", ("P",))


async def answer(rank, number=42):
    """Do nothing and return a number."""
    return number
