"""What makes a result wrong: beyond the tolerance, not the same on all ranks, not the bits of the fair schedule."""

import ml_dtypes
import numpy as np
import pytest

from asyncsim import Signal, Window, barrier, kernel, simulate
from asyncsim.checking.diagnose.compare import compare
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.explore import explore
from asyncsim.machine.case import MISSING, Case
from asyncsim.schedulers.fifo import Fifo

NAN = float("nan")
QUIET_NAN, OTHER_NAN = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001))
BF16 = ml_dtypes.bfloat16


def f32(*numbers):
    return np.array(numbers, np.float32)


def off(got, want, rtol=1e-5, atol=1e-5):
    """Return how many elements differ."""
    found = compare(got, want, rtol=rtol, atol=atol)
    return 0 if found is None else found.elements


# Against the golden, within tolerance.


@pytest.mark.parametrize(
    ("got", "want", "elements"),
    [
        (f32(1, 2), f32(1, 2 + 1e-6), 0),
        (f32(1, 2), f32(1, 2.001), 1),
        (f32(NAN, 1), f32(NAN, 1), 0),
        (QUIET_NAN, OTHER_NAN, 0),
        (f32(NAN), f32(1), 1),
        (f32(1), f32(NAN), 1),
        (f32(0.0), f32(-0.0), 0),
        (f32(np.inf, -np.inf), f32(np.inf, -np.inf), 0),
        (f32(np.inf), f32(-np.inf), 1),
        (f32(np.inf), f32(3e38), 1),
        (np.array([1 + 1j, NAN]), np.array([1 + 1j, NAN]), 0),
        (np.array([1 + 1j]), np.array([1 - 1j]), 1),
        (f32(1), np.array([1 + 1j]), 1),
        (np.array([2**53 + 1]), np.array([2**53]), 1),
        (np.array([2**64 - 1], np.uint64), np.array([-1]), 1),
        (np.array([True]), np.array([1]), 0),
        (np.array([3], np.int32), f32(3), 0),
        (np.float32(3), 3.0, 0),
        (f32(3), np.float32(3), 1),
        (np.zeros((0, 4)), np.zeros((0, 4)), 0),
        (np.zeros((0, 4)), np.zeros((4, 0)), 1),
        (None, None, 0),
        (None, f32(1), 1),
        (None, NAN, 1),
        (NAN, None, 1),
        ("3", 3.0, 1),
        (3.0, "3", 1),
        (np.zeros((2, 1)), [f32(0), f32(0, 0)], 1),
        ([f32(0), f32(0, 0)], np.zeros((2, 1)), 2),
        ("left", "left", 0),
        ("left", "right", 1),
        ((f32(1), None), [f32(1), None], 0),
        ((f32(1), f32(2, 3)), (f32(1), f32(4, 5)), 2),
        ((f32(1),), (f32(1), f32(1)), 1),
    ],
)
def test_numbers_are_compared_within_tolerance_and_integers_exactly(got, want, elements):
    assert off(got, want) == elements


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_sixteen_bits_are_compared_as_the_numbers_they_are(dtype):
    one = np.array([1], dtype)
    assert off(one, f32(1)) == 0
    assert off(np.nextafter(one, np.array([2], dtype)), one) == 1
    assert off(np.array([NAN], dtype), np.array([NAN], dtype)) == 0
    assert off(np.array([0.0], dtype), np.array([-0.0], dtype)) == 0
    assert off(np.array([np.inf], dtype), f32(70000)) == 1


def test_a_half_does_not_overflow_while_it_is_compared():
    assert off(np.array([65504], np.float16), np.array([-65504], np.float16), rtol=0, atol=1e5) == 1


def test_a_difference_says_where_and_what():
    found = compare(f32(1, 2, 3, 4, 5), f32(1, 0, 0, 0, 0), rtol=0, atol=0)
    assert (
        found.text
        == "4 of 5 elements differ: [1] is 2.0 instead of 0.0, [2] is 3.0 instead of 0.0, [3] is 4.0 instead of 0.0, …"
    )
    assert compare(f32(1), f32(1, 2), rtol=0, atol=0).text == "got shape (1,), expected (2,)"
    assert compare((f32(1), 2), (f32(1), 3), rtol=0, atol=0).text == "output 1: 1 of 1 elements differ: 2 instead of 3"
    assert compare(f32(1), (1, 2), rtol=0, atol=0).text.startswith("got array([1.]")


# Between ranks, bit for bit.


def returning(outputs, **kinds):
    """Return a kernel whose ranks return the given outputs; its golden is that of rank 0 for all."""

    async def program(rank, signal):
        await rank.notify(signal[0], 1)
        return outputs[rank.id]

    return kernel(memory=[Signal("signal", (1,))], **kinds)(program)


def differing(*outputs):
    """Return the finding that ranks with these outputs give, where they promise equal ones."""
    case = Case(returning(outputs, same_on_all_ranks=True), len(outputs), 1)
    found = Judge(case).findings(simulate(case, Fifo()))
    return found[0] if found else None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f32(0.0), f32(-0.0)),
        (QUIET_NAN, OTHER_NAN),
        (f32(1), f32(1).astype(np.float64)),
        (np.zeros(2, np.int32), np.zeros(2, np.float32)),
        (np.zeros(2, np.float16), np.zeros(2, BF16)),
        (np.array([0.0], BF16), np.array([-0.0], BF16)),
    ],
)
def test_ranks_with_the_same_numbers_in_other_bits_differ(one, other):
    found = differing(one, one, other)
    assert (found.kind, found.pairs) == ("ranks-differ", 1)
    assert "rank 2's result of call 0 differs from rank 0's" in found.why
    assert found.shown == "they differ in sign of zero, NaN bits or dtype"


@pytest.mark.parametrize("same", [f32(NAN, -0.0), np.array([1, NAN], BF16), (f32(1), None), "done", None])
def test_ranks_with_the_same_bits_do_not(same):
    assert differing(same, same) is None


def test_ranks_that_differ_in_the_last_bit_are_shown_with_their_numbers():
    found = differing(f32(1), np.nextafter(f32(1), f32(2)))
    assert found.shown == "1 of 1 elements differ: [0] is 1.0000001 instead of 1.0"
    assert [side.rank for side in found.sides] == [0, 1]


def test_ranks_without_a_result_are_left_out():
    case = Case(returning([f32(0), f32(1), f32(1), f32(2)], same_on_all_ranks=True), 4, 1)
    run = simulate(case, Fifo())
    run.outputs[0][0] = MISSING
    (found,) = Judge(case).findings(run)
    assert "rank 3's result of call 0 differs from rank 1's" in found.why
    assert [side.rank for side in found.sides] == [1, 3]
    run.outputs[0] = [MISSING] * 4
    assert Judge(case).findings(run) == []


# Bit for bit with the golden: a remark.


def remarks(output, golden):
    case = Case(returning([output], golden=lambda _: [golden]), 1, 1)
    return Judge(case).notes(simulate(case, Fifo()))


@pytest.mark.parametrize(
    ("output", "golden"),
    [
        (f32(1), np.array([1 + 1e-12])),
        (np.array([1 / 3], np.float16), np.array([1 / 3], np.float16).astype(np.float64)),
        (np.array([1.5], BF16), f32(1.5)),
        ((f32(1), f32(2)), f32((1,), (2,))),
        (f32((1,), (2,)), [f32(1), f32(2)]),
        (f32(NAN), np.array([NAN])),
        (None, None),
        ("done", "done"),
    ],
)
def test_the_golden_to_the_bit_is_not_remarked_on(output, golden):
    assert remarks(output, golden) == []


@pytest.mark.parametrize(
    ("output", "golden"),
    [(np.nextafter(f32(1), f32(2)), f32(1)), (f32(0.0), f32(-0.0)), ((f32(1), f32(0)), (f32(1), f32(-0.0)))],
)
def test_the_golden_within_tolerance_is(output, golden):
    (remark,) = remarks(output, golden)
    assert remark.startswith("equal to the golden within tolerance, not bit for bit (rank 0)")


# Between schedules.


@kernel(
    memory=[Window("total", (1,), np.float32, initialised=True), Signal("done", ("P", 1))],
    inputs=lambda P, call, rng: list(f32(1e8, 3, -1e8)[:P]),
    golden=lambda xs: [np.float32(sum(float(x) for x in xs))] * len(xs),
    rtol=1,
    atol=4,
)
async def added_in_any_order(rank, x, total, done):
    await rank.store(total.at(0)[0], x, atomic="add")
    await barrier(rank, done)
    return await rank.load(total.at(0)[0])


async def test_another_order_of_a_sum_gives_other_bits_within_any_tolerance():
    report = await check.aio(added_in_any_order, ranks=3, calls=1)
    assert report.verdict == "REFUTED"
    (found,) = report.findings
    assert (found.kind, found.harmful) == ("order-dependent-sum", True)
    assert found.shown == "the outputs of the two orders differ in their bits, each within the tolerance"


async def test_sampled_schedules_with_other_bits_are_remarked_on():
    report = await explore.aio(added_in_any_order, ranks=3, calls=1, runs=30)
    assert (report.verdict, report.findings) == ("SURVIVED", [])
    (remark,) = [note for note in report.notes if "bits" in note]
    assert remark.endswith("the results differ in their bits from those of the fair one, each within the tolerance")


@kernel(memory=[Signal("first", (1,))])
async def who_came_first(rank, first):
    await rank.notify(first.at(0)[0], 1 + rank.id)
    return await rank.test(first[0] >= 2) if rank.id == 0 else None


async def test_without_a_golden_the_fair_schedule_stands_for_it():
    report = await explore.aio(who_came_first, ranks=2, calls=1, runs=30)
    assert [finding.kind for finding in report.findings] == ["wrong-result"]
    assert "is not the result of the fair schedule" in report.findings[0].why


def test_a_run_that_ended_early_is_no_reference():
    @kernel(memory=[Signal("never", (1,))])
    async def stuck(rank, never):
        await rank.wait(never[0] >= 1)

    case = Case(stuck, 1, 1)
    judge = Judge(case)
    run = simulate(case, Fifo())
    judge.set_reference(run)
    assert not judge.is_reference(run)
    assert not judge.differs_from_reference(run)
    assert judge.differences(run) == []
