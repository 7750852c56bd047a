"""Cases with a golden, and what is said of a wrong result of theirs."""

from __future__ import annotations

import numpy as np

from asyncsim import Case, Signal, Window, barrier, kernel
from asyncsim.checking.diagnose.hypotheses import diagnose
from asyncsim.checking.diagnose.oracle import Oracle

SIZE = 6


def rows(P, call, rng):
    return [rng.standard_normal(SIZE, np.float32) for _ in range(P)]


def integer_rows(P, call, rng):
    return [rng.integers(1, 1000, SIZE) for _ in range(P)]


def blocks(P, call, rng):
    return [rng.standard_normal((P, SIZE), np.float32) for _ in range(P)]


def sums(xs):
    return [np.sum(xs, axis=0)] * len(xs)


def chunks(xs):
    return list(np.sum(xs, axis=0))


def maxima(xs):
    return [np.max(xs, axis=0)] * len(xs)


def stacked(xs):
    return [np.stack(xs)] * len(xs)


def case(golden=sums, inputs=rows, ranks=4, calls=2, **kinds):
    @kernel(memory=[Window("data", (SIZE,)), Signal("signal", ("P", 1))], inputs=inputs, golden=golden, **kinds)
    async def any_kernel(rank, x, data, signal):
        await barrier(rank, signal)

    return Case(any_kernel, ranks=ranks, calls=calls)


def said(made, got, *, call=0, rank=0, others=None):
    """Say what is said of one wrong result; the other ranks' are right unless given."""
    outputs = list(made.goldens[call]) if others is None else list(others)
    outputs[rank] = got
    return diagnose(Oracle(made), call, rank, outputs)
