"""Reduction operators: dtypes, NaN, integers that wrap, accumulators."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from asyncsim import ReduceOp, RefusedError

FLOATING = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)


def reduced(op, *values, dtype=np.int32, **options):
    """Reduce single numbers."""
    return op.reduce([np.array([value], dtype) for value in values], **options)[0]


def test_the_first_four_have_upstreams_integers():
    assert [(op.name, int(op)) for op in ReduceOp][:4] == [("Sum", 0), ("Max", 1), ("Min", 2), ("Prod", 3)]


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("op", [ReduceOp.Max, ReduceOp.Min, ReduceOp.Sum, ReduceOp.Prod, ReduceOp.Avg])
def test_a_nan_stays_on_whichever_side_it_comes(op, dtype):
    for values in ((np.nan, 1, 2), (1, np.nan, 2), (1, 2, np.nan)):
        assert np.isnan(float(reduced(op, *values, dtype=dtype)))


@pytest.mark.parametrize("dtype", FLOATING)
def test_an_overflow_is_infinite_and_no_warning(dtype):
    largest = float(ml_dtypes.finfo(dtype).max)
    assert float(reduced(ReduceOp.Sum, largest, largest, dtype=dtype)) == np.inf
    assert float(reduced(ReduceOp.Prod, largest, -2, dtype=dtype)) == -np.inf


def test_a_wide_accumulator_may_still_round_to_infinity():
    assert np.isinf(reduced(ReduceOp.Sum, 60000, 60000, dtype=np.float16, accumulate=np.float32))
    assert reduced(ReduceOp.Avg, 60000, 60000, dtype=np.float16, accumulate=np.float32) == 60000


def test_integers_wrap():
    assert reduced(ReduceOp.Sum, 100, 100, dtype=np.int8) == -56
    assert reduced(ReduceOp.Prod, 2**31, 2, dtype=np.int64) == 2**32
    assert reduced(ReduceOp.Sum, 2**64 - 1, 2, dtype=np.uint64) == 1


def test_an_average_of_integers_is_the_sum_divided_and_rounded_down():
    assert reduced(ReduceOp.Avg, 3, 4, 4) == 3
    assert reduced(ReduceOp.Avg, -3, -4) == -4
    assert reduced(ReduceOp.Avg, 100, 100, dtype=np.int8) == -28  # the sum has wrapped
    assert reduced(ReduceOp.Avg, 100, 100, dtype=np.int8, accumulate=np.int32) == 100
    assert reduced(ReduceOp.Avg, 2**63, 2**63 - 2, dtype=np.uint64) == 2**63 - 1
    assert reduced(ReduceOp.Avg, *[1] * 200, dtype=np.int8) == -1  # 200 wraps to -56; int8 does not hold 200


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.complex64])
def test_an_average_keeps_its_dtype(dtype):
    result = ReduceOp.Avg.reduce([np.array([1], dtype), np.array([2], dtype)])
    assert (result.dtype, complex(result[0])) == (np.dtype(dtype), 1.5)


def test_bitwise_operators():
    assert [reduced(op, 0b1100, 0b1010) for op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)] == [8, 14, 6]
    assert [reduced(op, *(True, False), dtype=bool) for op in (ReduceOp.BAND, ReduceOp.BOR)] == [False, True]


def test_of_booleans_a_sum_is_or_and_a_product_is_and():
    assert [reduced(op, *(True, True, False), dtype=bool) for op in (ReduceOp.Sum, ReduceOp.Prod)] == [True, False]


def test_the_order_is_the_one_given():
    values = (2048.0, 1.0, 1.0)
    assert reduced(ReduceOp.Sum, *values, dtype=np.float16) == 2048
    assert reduced(ReduceOp.Sum, *reversed(values), dtype=np.float16) == 2050


def test_a_reduction_leaves_its_tiles_alone():
    tiles = [np.array([1]), np.array([2])]
    ReduceOp.Sum.reduce(tiles)
    assert [tile.tolist() for tile in tiles] == [[1], [2]]


@pytest.mark.parametrize(
    ("op", "dtype", "message"),
    [
        (ReduceOp.BAND, np.float32, "Cannot use ReduceOp.BAND with non-integral dtype"),
        (ReduceOp.BXOR, "bfloat16", "Cannot use ReduceOp.BXOR with non-integral dtype"),
        (ReduceOp.Max, np.complex64, "ReduceOp.Max of complex64: complex numbers have no order"),
        (ReduceOp.Avg, bool, "ReduceOp.Avg of bool: booleans cannot be divided; use BAND or BOR"),
    ],
)
def test_an_operator_without_a_meaning_is_refused(op, dtype, message):
    with pytest.raises(RefusedError) as caught:
        op.check(dtype)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("dtype", "accumulate"), [(np.float32, np.float16), (np.float16, "bfloat16"), (np.int32, np.float32)]
)
def test_an_accumulator_that_does_not_hold_the_tiles_is_refused(dtype, accumulate):
    with pytest.raises(RefusedError, match=r"accumulate=\w+ does not hold every \w+; accumulate in a wider dtype"):
        ReduceOp.Sum.start(np.zeros(1, dtype), accumulate)
