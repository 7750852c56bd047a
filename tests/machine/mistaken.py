"""What mistaken kernels are written with: memory of every kind, and a note of what must be said of them."""

import numpy as np
import pytest

from asyncsim import (
    Signal,
    Window,
    World,
)

DATA = Window("data", ("P", 4), np.float32, initialised=True)
COUNT = Window("count", (2,), np.int32, initialised=True)
FLAGS = Window("flags", (2,), bool, initialised=True)
CELL = Signal("cell", ("P", 1))
SMALL = Signal("small", (1,), "int8")
MEMORY = [DATA, COUNT, FLAGS, CELL, SMALL]

OTHER_DATA, OTHER_CELL = World(2, [DATA, CELL]).views(0)


MISTAKES = []


def mistake(message):
    """Note a kernel with one mistake, on its last line, and what must be said of it."""

    def note(program):
        MISTAKES.append(pytest.param(program, message, id=program.__name__))

    return note
