"""Declarations that no run could use, and what is said of them."""

import pytest
from mistaken import DATA
from schedules import Scripted

from asyncsim import (
    Case,
    MisuseError,
    Signal,
    Window,
    World,
    kernel,
    simulate,
)


def plain(rank, data):
    """Forget the async."""


async def fine(rank, x, data):
    """Do nothing."""


DECLARATIONS = {
    "a window needs a name that is an identifier, such as 'data'; got 'my data'": lambda: Window("my data", (1,)),
    "a signal needs a name that is an identifier, such as 'data'; got 3": lambda: Signal(3, (1,)),
    "window 'w': a shape is a tuple, such as ('P', 64); got 64": lambda: Window("w", 64),
    "window 'w': a shape is a tuple, such as ('P', 64); got 'P'": lambda: Window("w", "P"),
    "window 'w': -1 is no extent; give an integer >= 0, 'P', or a function of P": lambda: Window("w", (-1,)),
    "window 'w': 'N' is no extent; give an integer >= 0, 'P', or a function of P": lambda: Window("w", ("N",)),
    "window 'w': True is no extent; give an integer >= 0, 'P', or a function of P": lambda: Window("w", (True,)),
    "window 'w': 'fp32' is no dtype; give a numpy one, such as numpy.float32": lambda: Window("w", (1,), "fp32"),
    "window 'w': dtype object holds no numbers": lambda: Window("w", (1,), object),
    "window 'w': dirty='junk'; give a number or 'random'": lambda: Window("w", (1,), dirty="junk"),
    "signal 's' has dtype float32; a signal is one of int8, int16, int32, int64": lambda: Signal("s", (1,), "float32"),
    "signal 's': start=200 is no int8 (-128 to 127)": lambda: Signal("s", (1,), "int8", start=200),
    "two declarations are called 'data'; give each a name of its own": lambda: World(2, [DATA, DATA]),
    "memory holds 'data'; declare Window(...) and Signal(...)": lambda: World(2, ["data"]),
    "@kernel stands on plain, which is not async; write async def": lambda: kernel(memory=[DATA])(plain),
    "@kernel stands on 3; it belongs on an async function": lambda: kernel(memory=[DATA])(3),
    "inputs(P=2, call=0) gave 1 inputs; give one a rank": lambda: simulate(
        Case(kernel(memory=[DATA], inputs=lambda P, call, rng: [0])(fine), ranks=2), Scripted()
    ),
    "golden gave 1 outputs for 2 ranks; give one a rank": lambda: (
        Case(kernel(memory=[DATA], inputs=lambda P, call, rng: [0] * P, golden=lambda xs: [0])(fine), ranks=2).goldens
    ),
}


@pytest.mark.parametrize("message", DECLARATIONS)
def test_a_declaration_that_no_run_could_use_is_refused(message):
    with pytest.raises(MisuseError) as caught:
        DECLARATIONS[message]()
    assert message in str(caught.value)


def test_a_shape_that_needs_more_ranks_is_refused_only_with_fewer():
    window = Window("w", (lambda P: P - 2,))
    assert World(3, [window]).windows[0].shape == (1,)
    with pytest.raises(MisuseError, match="window 'w'"):
        World(1, [window])
