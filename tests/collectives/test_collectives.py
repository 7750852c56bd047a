"""Every composite and algorithm against its golden: at any P, size and dtype, for every operator that applies.

The goldens reduce in the order of the algorithm, so results must be equal bit for bit. What the goldens
themselves are worth is asked of plain numpy, in double precision and in integers that do not wrap.
"""

from __future__ import annotations

from itertools import cycle, product

import ml_dtypes
import numpy as np
import pytest
from golden_runs import assert_golden, run_once, scattered

from asyncsim import (
    Case,
    Fifo,
    Group,
    ReduceOp,
    Signal,
    Window,
    golden,
    kernel,
    reduce_scatter,
    simulate,
    two_phase_all_reduce,
)
from asyncsim import broadcast as from_root
from kernels import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    dissemination_barrier,
    halving_doubling,
    one_shot,
    recursive_doubling,
    ring,
    two_shot,
)
from kernels.rows import make

RANKS = (1, 2, 3, 4, 5, 8)
SIZES = (0, 1, 7, 64)
FLOATING = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
INTEGER = (np.int8, np.int32, np.int64)
DTYPES = (*FLOATING, *INTEGER)
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)

MOVING = {
    "broadcast": broadcast.composite,
    "broadcast, safe": broadcast.safe,
    "all-gather": all_gather.push_composite,
    "all-gather, safe": all_gather.push,
    "all-gather by pull": all_gather.pull,
    "all-gather around a dissemination barrier": dissemination_barrier.all_rounds,
    "all-to-all": all_to_all.composite,
    "all-to-all, safe": all_to_all.safe,
    "all-to-all-v": all_to_all.v_composite,
    "all-to-all-v, safe": all_to_all.v_safe,
}
"""They only move data."""

REDUCING = {
    "reduce-scatter": scattered,
    "mesh": all_reduce.builtin,
    "mesh by hand": all_reduce.mesh,
    "ring": all_reduce.ring,
    "ring by hand": all_reduce.ring_by_hand,
    "ring by pull": ring.by_pull,
    "two-phase": all_reduce.two_phase,
    "two-phase by pull": all_reduce.two_phase_pull,
    "recursive doubling": recursive_doubling.two_syncs,
    "halving and doubling": halving_doubling.in_place,
    "one-shot": one_shot.double_buffer,
    "two-shot": two_shot.double_buffer,
}
"""They take an operator."""


def operators(dtype):
    """Return the operators that a dtype has a meaning for."""
    return [op for op in ReduceOp if dtype in INTEGER or op not in BITWISE]


@pytest.fixture
def shapes(ranks, request):
    """Return sizes and dtypes: every second pair, the others at the next P; with ``--thorough`` all of them."""
    every = list(product(SIZES, DTYPES))
    return every if request.config.getoption("thorough") else every[RANKS.index(ranks) % 2 :: 2]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", MOVING)
def test_what_moves_data_moves_it_right(name, ranks, shapes):
    for size, dtype in shapes:
        assert_golden(make(MOVING[name], size=size, dtype=dtype), ranks, (size, dtype))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", REDUCING)
def test_what_reduces_gives_its_golden_to_the_bit(name, ranks, shapes):
    turns = {dtype: cycle(operators(dtype)) for dtype in DTYPES}
    for size, dtype in shapes:
        op = next(turns[dtype])
        assert_golden(make(REDUCING[name], size=size, dtype=dtype, op=op), ranks, (size, dtype, op))


@pytest.mark.parametrize("name", REDUCING)
def test_every_operator_of_every_dtype_is_what_numpy_makes_of_it(name):
    ranks = 3
    for dtype in DTYPES:
        for op in operators(dtype):
            run = assert_golden(make(REDUCING[name], size=7, dtype=dtype, op=op), ranks, (dtype, op))
            xs = np.stack(run.case.inputs[0])
            for rank, got in enumerate(run.outputs[0]):
                terms = xs[:, rank] if name == "reduce-scatter" else xs
                assert_reduced(got, terms, op)


def assert_reduced(got, terms, op):
    """Compare a result with what numpy makes of its terms, stacked, in wider numbers."""
    dtype = got.dtype
    if dtype in INTEGER:
        reduced = UFUNCS[op].reduce(terms.astype(np.int64), axis=0).astype(dtype)
        want = reduced.astype(np.int64) // len(terms) if op is ReduceOp.Avg else reduced
        np.testing.assert_array_equal(got, want)
        return
    wide = terms.astype(np.float64)
    want = UFUNCS[op].reduce(wide, axis=0) / (len(terms) if op is ReduceOp.Avg else 1)
    scale = np.prod(np.abs(wide), axis=0) if op is ReduceOp.Prod else np.sum(np.abs(wide), axis=0)
    unit = float(ml_dtypes.finfo(dtype).eps)
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    assert np.all(np.abs(got.astype(np.float64) - want) <= len(terms) * (unit * scale + tiny))


UFUNCS = {
    ReduceOp.Sum: np.add,
    ReduceOp.Avg: np.add,
    ReduceOp.Prod: np.multiply,
    ReduceOp.Max: np.maximum,
    ReduceOp.Min: np.minimum,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}


@pytest.mark.parametrize("name", [name for name in REDUCING if name != "reduce-scatter"])
def test_a_nan_anywhere_is_a_nan_on_all_ranks(name):
    ranks = 3
    for dtype, op, poisoned in product(FLOATING, (ReduceOp.Max, ReduceOp.Min), range(ranks)):
        made = make(REDUCING[name], size=3, dtype=dtype, op=op)
        case = Case(made, ranks, 1)
        case.inputs[0][poisoned][..., 1] = np.nan
        run = simulate(case, Fifo())
        for y in run.outputs[0]:
            assert (np.isnan(y.astype(np.float64)) == ([False, True, False])).all(), (dtype, op, poisoned)


# Sixteen bits: in which dtype a sum is accumulated.


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("accumulate", [None, np.float32])
def test_a_sum_of_16_bits_is_accumulated_in_16_unless_asked_otherwise(dtype, accumulate):
    # The neighbours of `large` are two apart: adding ones to it one by one changes nothing.
    large = 2 / float(ml_dtypes.finfo(dtype).eps)

    @kernel(
        memory=[Window("data", ("P", 1), dtype), Signal("signal", ("P", 1), self_cleaning=True)],
        inputs=lambda P, call, rng: [np.full((P, 1), 1 if r else large, dtype) for r in range(P)],
        golden=lambda xs: golden.reduce_scatter(xs, accumulate=accumulate),
    )
    async def made(rank, x, data, signal):
        await rank.store(data[...], x)
        await reduce_scatter(rank, data, signal, accumulate=accumulate)
        return await rank.load(data[rank.id])

    run = assert_golden(made, 5, accumulate)
    assert float(run.outputs[0][0][0]) == large + (4 if accumulate else 0)


def test_a_mesh_accumulates_in_the_dtype_it_is_asked_for():
    @kernel(
        memory=[Window("data", (1, 1), np.int8), Signal("signal", ("P", 1))],
        inputs=lambda P, call, rng: [np.full((1, 1), 100, np.int8)] * P,
        golden=lambda xs: golden.all_reduce(xs, op=ReduceOp.Avg, accumulate=np.int64),
    )
    async def average(rank, x, data, signal):
        await rank.store(data[...], x)
        await all_reduce.all_reduce(rank, data, signal, op=ReduceOp.Avg, accumulate=np.int64, widen=True)
        return await rank.load(data[...])

    assert int(assert_golden(average, 3, "int64").outputs[0][0][0, 0]) == 100


# Within a group.


def test_composites_use_the_numbers_of_their_group():
    ends = Group("ends", (3, 1))

    @kernel(
        memory=[
            Window("data", ("P", 2), group=ends),
            Window("gathered", ("P", 2), group=ends),
            Signal("signal", ("P", 1), self_cleaning=True, group=ends),
        ],
        inputs=lambda P, call, rng: [np.full((2, 2), 10.0**r, np.float32) for r in range(P)],
    )
    async def by_the_ends(rank, x, data, gathered, signal):
        if rank.id not in (1, 3):
            return None
        team = rank.within(ends)
        await team.store(data[...], x)
        await two_phase_all_reduce(team, data, gathered, signal)
        await from_root(team, gathered, signal, root=1)
        return await team.load(gathered[...])

    run = run_once(by_the_ends, 4)
    assert [None if y is None else y.tolist() for y in run.outputs[0]] == [None, [[1010] * 2] * 2] * 2
