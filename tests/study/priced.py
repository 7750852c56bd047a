"""Prices, and kernels and their runs to be priced."""

from __future__ import annotations

import numpy as np

from asyncsim import Case, Fifo, Signal, Window, barrier, kernel, settle, simulate
from asyncsim.checking.record.locate import locate
from asyncsim.study.cost import Card, cost
from asyncsim.trace.price import Price

PRICE = Price(alpha=1.0, beta=0.001, gamma=0.0)
SIZES = (2, 3, 4, 5, 8)


def card(name, ranks=4, **options) -> Card:
    return cost(locate(name), PRICE, ranks=ranks, **options)


box = Window("box", (8,), np.float32, initialised=True)
flag = Signal("flag", (2,))


def trace_of(made, ranks=2, scheduler=None, **options):
    return simulate(Case(made, ranks, 1, **options), scheduler or Fifo(), record="fifo").trace


@kernel(memory=[Signal("signal", ("P", 1), self_cleaning=True)])
async def only_a_barrier(rank, signal):
    """Meet once."""
    await barrier(rank, signal)
    await settle(rank, signal, credits=1)
