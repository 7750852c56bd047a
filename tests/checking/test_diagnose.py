"""A wrong result, in words: where the numbers say so, how sure that is, and nothing where they do not."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from wrong_results import SIZE, case, integer_rows, rows, said, sums

from asyncsim import KernelError
from asyncsim.checking.diagnose.hypotheses import diagnose
from asyncsim.checking.diagnose.oracle import Oracle, WrongResult, each, leaves, numbers_of
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import MISSING
from kernels import all_reduce, reduce_scatter

# The tutorial's table of symptoms.


async def findings(made, **options):
    report = await check.aio(made, **{"ranks": 3, **options})
    return {finding.title: f"{finding.why} {finding.shown}" for finding in report.findings}


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            reduce_scatter.zero_seed,
            "own contribution, rank 0's (it equals the golden of inputs in which that one is zero, exactly)",
        ),
        (
            reduce_scatter.row_zero,
            "every rank has the same chunk (it equals what rank 0 must get, exactly)",
        ),
        (
            reduce_scatter.chunk_offset,
            "the chunk boundaries are shifted by -1 element (it equals the golden of inputs rotated by +1, exactly)",
        ),
    ],
)
async def test_wrong_arithmetic_is_named(made, words):
    assert words in (await findings(made))["wrong-result"]


async def test_another_order_is_remarked_on():
    report = await check.aio(reduce_scatter.other_order, ranks=4)
    assert report.notes[0].startswith("equal to the golden within tolerance, not bit for bit")


async def test_an_operator_that_is_not_lowered_is_refused():
    with pytest.raises(KernelError, match=r"op must be ReduceOp\.Sum \(got int 1\)"):
        await check.aio(reduce_scatter.wrong_op, ranks=4)


# The witnesses of races: stale values.


@pytest.mark.parametrize(
    ("ranks", "made", "title", "words"),
    [
        (
            3,
            reduce_scatter.hand,
            "WAR race, next call",
            "rank 1's contribution is that of the next call, call 1 (it equals the golden with that one, exactly)",
        ),
        (
            3,
            reduce_scatter.hand_no_epilogue,
            "RAW race, same call",
            "rank 1's contribution is that of the previous call, call 0 (it equals the golden with that one, exactly)",
        ),
        (
            2,
            all_reduce.no_post_barrier,
            "WAR race, same call",
            "rank 1's finished total was taken for an input (it equals the golden with that total as input, exactly)",
        ),
        (
            3,
            all_reduce.ring_without_read_barriers,
            "WAR race, next call",
            "input of the next call, call 1, as it was (the 64 elements that differ equal that input, exactly)",
        ),
    ],
)
async def test_a_stale_value_is_named(ranks, made, title, words):
    assert words in (await findings(made, ranks=ranks))[title]


# Honest: exactly, within tolerance, in part, or not at all.


def test_what_is_equal_within_tolerance_only_is_called_so():
    made = case()
    xs = made.inputs[0]
    near = (xs[0] + xs[1] + xs[2]) * np.float32(1 + 1e-6)
    assert said(made, near).endswith("(it equals the golden of inputs in which that one is zero, within tolerance)")
    mixed = case(golden=lambda xs: [(np.sum(xs, axis=0), float(np.sum(xs)))] * len(xs))
    summed = np.sum(mixed.inputs[0][1:], axis=0)
    assert said(mixed, (summed, float(summed.sum()))).endswith("within tolerance)")


def test_what_explains_the_wrong_part_alone_is_called_so():
    made = case()
    got = made.goldens[0][0].copy()
    got[2:4] = made.inputs[1][3][2:4]
    assert said(made, got).endswith("as it was (the 2 elements that differ equal that input, exactly)")
    got = made.goldens[0][0].copy()
    got[2] = made.inputs[1][3][2]
    assert said(made, got) is None  # one number alone may be chance


def test_integers_have_no_tolerance():
    made = case(inputs=integer_rows)
    xs = made.inputs[0]
    short = xs[1] + xs[2] + xs[3]
    assert said(made, short).endswith("exactly)")
    assert said(made, short + np.eye(SIZE, dtype=int)[5]) is None


@pytest.mark.parametrize("got", [None, "done", (None, 1.0), np.zeros((0,)), MISSING, np.full(SIZE, np.inf)])
def test_nothing_is_said_of_what_is_no_number_or_nothing_known(got):
    assert said(case(), got) is None


def test_nothing_is_said_without_a_golden_or_of_a_right_result():
    made = case(golden=None)
    assert diagnose(Oracle(made), 0, 0, [np.zeros(SIZE)] * 4) is None
    made = case()
    assert said(made, made.goldens[0][0] + np.float32(1e-7)) is None


def test_a_golden_that_refuses_other_inputs_says_nothing():
    def strict(xs):
        if not all(x.all() for x in xs):
            raise ValueError("a zero")
        return sums(xs)

    made = case(golden=strict, calls=1)
    assert said(made, np.sum(made.inputs[0][1:], axis=0)) is None


def test_a_nan_equals_a_nan():
    def with_nan(P, call, rng):
        xs = rows(P, call, rng)
        xs[1][0] = np.nan
        return xs

    made = case(inputs=with_nan)
    assert said(made, np.sum(made.inputs[0][1:], axis=0)).startswith("it is short of exactly the own contribution")


def test_the_same_wrong_result_is_looked_at_once():
    made = case()
    asked = Oracle(made)
    outputs = [made.goldens[0][0] + 1, *made.goldens[0][1:]]
    assert diagnose(asked, 0, 0, outputs) is None
    answers = len(asked._answers)
    asked._answers.clear()
    assert diagnose(asked, 0, 0, outputs) is None
    assert (answers > 50, len(asked._answers)) == (True, 0)


# What the oracle changes.


class Pair(NamedTuple):
    """An input of two parts."""

    data: np.ndarray
    counts: np.ndarray


def test_counts_beside_numbers_are_left_alone():
    x = Pair(np.ones(2), np.array([1, 2]))
    changed = each(x, np.zeros_like)
    assert isinstance(changed, Pair)
    assert (changed.data.tolist(), changed.counts.tolist()) == ([0, 0], [1, 2])
    assert each([np.array([1, 2])], np.zeros_like)[0].tolist() == [0, 0]
    assert each(3, np.zeros_like) == 3
    assert each("text", np.zeros_like) == "text"


def test_outputs_are_taken_apart_into_plain_numbers():
    numbers = numbers_of((np.array([1, 2], ml_dtypes.bfloat16), np.float32(3)))
    assert (numbers.flat.tolist(), numbers.shapes, numbers.dtype) == ([1, 2, 3], ((2,), ()), None)
    assert numbers_of(np.array([1j])).flat.dtype == np.complex128
    assert numbers_of(np.array([2**63], np.uint64)).exact
    assert leaves(np.array(["text"])) is None


def test_large_inputs_are_asked_about_less():
    assert Oracle(case()).limit == 128
    assert Oracle(case(inputs=lambda P, call, rng: [np.zeros(1 << 17)] * P)).limit == 16


def test_a_result_of_another_shape_is_off_nowhere():
    made = case()
    assert WrongResult(Oracle(made), 0, 0, [np.zeros(2), *made.goldens[0][1:]]).off is None
