"""One call of a collective, run and compared with its golden; and reduce-scatter by its composite."""

from __future__ import annotations

from asyncsim import (
    Case,
    Fifo,
    ReduceOp,
    Signal,
    Window,
    golden,
    kernel,
    reduce_scatter,
    simulate,
)
from kernels.rows import SIZE, blocks


@kernel(
    memory=[Window("data", ("P", SIZE)), Signal("signal", ("P", 1), self_cleaning=True)],
    inputs=blocks,
    golden=golden.reduce_scatter,
)
async def scattered(rank, x, data, signal, *, op=ReduceOp.Sum):
    """Reduce-scatter by the composite."""
    await rank.store(data[...], x)
    await reduce_scatter(rank, data, signal, op=op, widen=True)
    return await rank.load(data[rank.id])


def run_once(made, ranks):
    """Run one call, and check that it ended as it should."""
    run = simulate(Case(made, ranks, 1), Fifo())
    assert run.ending == "complete"
    assert run.unwritten == []
    return run


def assert_golden(made, ranks, about):
    """Check the outputs bit for bit, and return the run."""
    run = run_once(made, ranks)
    for got, want in zip(run.outputs[0], run.case.goldens[0], strict=True):
        assert got.dtype == made.memory[0].dtype, about
        assert got.shape == want.shape, about
        assert got.tobytes() == want.tobytes(), about
    return run
