"""Sixteen bits as the reason of a wrong number: claimed where the numbers say so, and nowhere else."""

import ml_dtypes
import numpy as np
import pytest

from asyncsim import Case, Signal, Window, barrier, kernel
from asyncsim.checking.diagnose.narrow import sixteen_bits

SIZE = 3


def full(value, dtype=np.float32):
    return np.full(SIZE, value, dtype)


def inputs(P, call, rng):
    return [full(2052 if rank == 0 else 1) for rank in range(P)]


def sums(xs):
    return [np.sum(xs, axis=0, dtype=np.float32)] * len(xs)


def case(golden=sums, inputs=inputs, ranks=4):
    @kernel(memory=[Window("data", (SIZE,)), Signal("signal", ("P", 1))], inputs=inputs, golden=golden)
    async def any_sum(rank, x, data, signal):
        await barrier(rank, signal)

    return Case(any_sum, ranks=ranks)


@pytest.mark.parametrize(
    ("large", "rank", "order"),
    [
        (0, 0, "from rank 0 up"),  # 2052 + 1 is 2052, three times
        (2, 2, "the own share first"),
        (2, 1, "around the ring from the own share"),  # 1 + 2052 is 2052, and so it stays
        (3, 0, "from the last rank down"),
    ],
)
def test_the_order_that_explains_it_is_named(large, rank, order):
    def one_large(P, call, rng):
        return [full(2052 if number == large else 1) for number in range(P)]

    said = sixteen_bits(case(inputs=one_large), 0, rank, full(2052))
    assert said == f"adding up in float16, {order}, gives exactly this: a 16-bit accumulator explains it"


def test_rounding_once_at_the_end_is_told_from_rounding_at_each_step():
    assert sixteen_bits(case(), 0, 0, full(2056)) == "it is the golden rounded to float16"  # 2055 lies in the middle


def test_bfloat16_is_tried_too():
    def powers(P, call, rng):
        return [full(256 if rank == 0 else 1) for rank in range(P)]

    said = sixteen_bits(case(inputs=powers), 0, 0, full(256, ml_dtypes.bfloat16))
    assert said == "adding up in bfloat16, from rank 0 up, gives exactly this: a 16-bit accumulator explains it"


def test_a_share_is_what_the_golden_makes_of_one_input_alone():
    def chunks(P, call, rng):
        return [np.full((P, SIZE), 2052 if rank == 0 else 1, np.float32) for rank in range(P)]

    def reduce_scatter(xs):
        return list(np.sum(xs, axis=0, dtype=np.float32))

    said = sixteen_bits(case(golden=reduce_scatter, inputs=chunks), 0, 3, full(2052))
    assert "float16, from rank 0 up" in said


@pytest.mark.parametrize(
    "got",
    [
        full(2053),  # 16 bits cannot hold it
        full(1000),  # they can, but no order of adding up gives it
        full(2052, np.int32),
        full(np.nan),
        np.zeros(SIZE + 1, np.float32),
        (full(2052), full(2052)),
        None,
        "2052",
    ],
)
def test_nothing_is_claimed_that_the_numbers_do_not_say(got):
    assert sixteen_bits(case(), 0, 0, got) is None


@pytest.mark.parametrize(
    "golden",
    [
        None,
        lambda xs: [np.max(xs, axis=0) + 3] * len(xs),  # no sum of shares
        lambda xs: [np.sum(xs, axis=0)[: SIZE - 1]] * len(xs),  # another shape
    ],
)
def test_nothing_is_claimed_of_a_golden_that_is_no_sum(golden):
    assert sixteen_bits(case(golden=golden), 0, 0, full(2052)) is None


def test_a_golden_that_takes_no_zeros_explains_nothing():
    def refuses_zeros(xs):
        if not all(x.all() for x in xs):
            raise ValueError("a zero")
        return sums(xs)

    assert sixteen_bits(case(golden=refuses_zeros), 0, 0, full(2052)) is None


def test_inputs_that_are_no_arrays_explain_nothing():
    def pairs(P, call, rng):
        return [(full(2052 if rank == 0 else 1), full(1)) for rank in range(P)]

    def first(xs):
        return [np.sum([x[0] for x in xs], axis=0)] * len(xs)

    assert sixteen_bits(case(golden=first, inputs=pairs), 0, 0, full(2052)) is None
