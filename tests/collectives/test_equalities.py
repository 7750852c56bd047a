"""Reduce-scatter, then all-gather, is all-reduce: where to the bit, and where only the bits differ.

Each row of `EQUAL` says what is claimed of an operator and a kind of dtype, for the all-reduce by a mesh (every rank
reduces everything, its own first) against the two composites one after the other (each chunk is reduced by its owner,
its own first). The two-phase all-reduce is those two, so to it they are always equal to the bit.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from asyncsim import (
    Case,
    Fifo,
    ReduceOp,
    Signal,
    Window,
    all_reduce,
    allgather,
    golden,
    kernel,
    reduce_scatter,
    simulate,
    two_phase_all_reduce,
)
from asyncsim.study.worked import OPS, work
from asyncsim.trace.declare import dtype_of
from asyncsim.views.worked import worked_text

INTEGER = ("int8", "int32", "int64", "uint8")
FLOATING = ("float16", "bfloat16", "float32", "float64")
SAME, BITS = "equal to the bit", "only bits differ"
EQUAL = {
    # operator: (integers, floats); None: the operator has no meaning there
    ReduceOp.Sum: (SAME, BITS),  # integers wrap the same way in every order; a rounded sum depends on it
    ReduceOp.Avg: (SAME, BITS),  # of the same sum
    ReduceOp.Prod: (SAME, BITS),
    ReduceOp.Max: (SAME, SAME),  # one of the numbers is chosen: nothing is rounded
    ReduceOp.Min: (SAME, SAME),
    ReduceOp.BAND: (SAME, None),
    ReduceOp.BOR: (SAME, None),
    ReduceOp.BXOR: (SAME, None),
}
ROWS = [
    (op, dtype, claim)
    for op, claims in EQUAL.items()
    for dtypes, claim in zip((INTEGER, FLOATING), claims, strict=True)
    for dtype in dtypes
    if claim is not None
]
SIZE = 16


def draw(rng, shape, dtype):
    """Return numbers over the whole range of an integer dtype; of a floating one, of several magnitudes."""
    dtype = dtype_of(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return (rng.standard_normal(shape) * 4.0 ** rng.integers(-2, 3, shape)).astype(dtype)


def outputs_of(program, ranks, op, dtype):
    """Run a program on one window of P rows and one to gather in; return what each rank got."""
    made = kernel(
        memory=[
            Window("data", ("P", SIZE), dtype),
            Window("gathered", ("P", SIZE), dtype),
            Signal("signal", ("P", 1), self_cleaning=True),
        ],
        inputs=lambda P, call, rng: [draw(rng, (P, SIZE), dtype) for _ in range(P)],
    )(program).variant(op=op)
    run = simulate(Case(made, ranks, 1), Fifo())
    return run.case.inputs[0], run.outputs[0]


async def mesh(rank, x, data, gathered, signal, *, op):  # noqa: PLR0913
    await rank.store(data[...], x)
    await all_reduce(rank, data, signal, op=op, widen=True)
    return await rank.load(data[...])


async def two_phase(rank, x, data, gathered, signal, *, op):  # noqa: PLR0913
    await rank.store(data[...], x)
    await two_phase_all_reduce(rank, data, gathered, signal, op=op, widen=True)
    return await rank.load(gathered[...])


async def one_after_the_other(rank, x, data, gathered, signal, *, op):  # noqa: PLR0913
    await rank.store(data[...], x)
    await reduce_scatter(rank, data, signal, op=op, widen=True)
    await allgather(rank, await rank.load(data[rank.id]), gathered, signal, safe=True)
    return await rank.load(gathered[...])


def bits(arrays):
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize(("op", "dtype", "claim"), ROWS)
def test_reduce_scatter_then_all_gather_is_all_reduce(op, dtype, claim, ranks):
    xs, composed = outputs_of(one_after_the_other, ranks, op, dtype)
    assert bits(composed) == bits(outputs_of(two_phase, ranks, op, dtype)[1]) == bits(golden.two_phase(xs, op=op))
    _, reduced = outputs_of(mesh, ranks, op, dtype)
    assert len(set(bits(composed))) == 1
    for rank in range(ranks):  # in its own chunk each rank has the same order in both
        assert reduced[rank][rank].tobytes() == composed[rank][rank].tobytes()
    if claim is SAME or ranks == 2:  # of two numbers both orders give the same bits
        assert bits(reduced) == bits(composed)
        return
    assert bits(reduced) != bits(composed)
    assert_near(reduced, composed, xs, op)


def assert_near(reduced, composed, xs, op):
    """Check that two orders are as near as rounding each step allows."""
    wide = np.abs(np.stack(xs).astype(np.float64))
    scale = np.prod(wide, axis=0) if op is ReduceOp.Prod else np.sum(wide, axis=0)
    unit = float(ml_dtypes.finfo(xs[0].dtype).eps)
    tiny = float(ml_dtypes.finfo(xs[0].dtype).smallest_normal)
    for got, want in zip(reduced, composed, strict=True):
        off = np.abs(got.astype(np.float64) - want.astype(np.float64))
        assert np.all(off <= 2 * len(xs) * (unit * scale + tiny))


@pytest.mark.parametrize(("op", "dtype", "claim"), [row for row in ROWS if row[0] in OPS.values()])
def test_the_command_says_the_same(op, dtype, claim):
    rng = np.random.default_rng(3)
    worked = work("reduce_scatter", [draw(rng, 3 * SIZE, dtype) for _ in range(3)], op=op, then_gather=True)
    assert worked.agrees
    said = "gives the same, bit for bit." if claim is SAME else "gives the same but for bits:"
    assert f"An all_reduce of the same inputs {said}" in worked_text(worked)


@pytest.mark.parametrize("dtype", FLOATING)
def test_a_nan_is_gathered_where_an_all_reduce_has_one(dtype):
    rng = np.random.default_rng(4)
    xs = [draw(rng, 3 * SIZE, dtype) for _ in range(3)]
    xs[1][5] = np.nan
    for op in (ReduceOp.Sum, ReduceOp.Max):
        worked = work("reduce_scatter", xs, op=op, then_gather=True)
        reduced = work("all_reduce", xs, op=op)
        for got, want in zip(worked.gathered, reduced.outputs, strict=True):
            assert np.flatnonzero(np.isnan(got.astype(np.float64))).tolist() == [5]
            assert np.flatnonzero(np.isnan(want.astype(np.float64))).tolist() == [5]
