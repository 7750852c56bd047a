"""Kernels on an NCCL communicator, run once: what the tests of that dialect share."""

from __future__ import annotations

from asyncsim import Case, Fifo, kernel, simulate
from asyncsim.frontends import nccl

ROOM = 4
"""Elements in a row of the workspace, less than most calls have."""


def numbers(rng, shape, dtype):
    """Return small integers, of any dtype."""
    low = 0 if dtype.kind == "u" else -9
    return rng.integers(low, 10, shape).astype(dtype)


def made(datatype, elements, body, *, golden=None, count=ROOM):
    """Return a kernel that hands a communicator and its input, shape (elements(P),), to `body`."""

    async def program(rank, x, *memory):
        return await body(nccl.Comm(rank, *memory), x)

    return kernel(
        memory=nccl.workspace(datatype, count=count),
        inputs=lambda P, call, rng: [numbers(rng, elements(P), datatype.dtype) for _ in range(P)],
        golden=golden,
    )(program)


def ran(made_kernel, ranks, calls=1):
    run = simulate(Case(made_kernel, ranks, calls), Fifo())
    assert (run.ending, run.unwritten) == ("complete", [])
    return run.case.inputs[0], run.outputs[0]
