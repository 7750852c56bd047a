"""The judge of runs, asked of runs that are made up: what is wrong with each, beside a golden and beside a fair run."""

import numpy as np
import pytest

from asyncsim import Case, Window, kernel
from asyncsim.checking.diagnose.compare import compare
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.machine.case import MISSING, Run

WINDOW = Window("window", (1,), np.float32)
ONE, TWO = np.float32(1), np.float32(2)
NEAR = np.float32(1 + 1e-6)


def judge(*, golden=None, same=False):
    """Return the judge of a kernel of two ranks, of one call."""

    async def program(rank, x, window):
        return x

    made = kernel(
        memory=[WINDOW],
        inputs=lambda P, call, rng: [ONE] * P,
        golden=None if golden is None else lambda xs: golden,
        same_on_all_ranks=same,
    )(program)
    return Judge(Case(made, 2, 1))


def run_of(judge, *outputs, ending="complete", unwritten=()):
    """Return a run with these results of the ranks."""
    return Run(judge.case, ["0", "1", "0"], [list(outputs)], ending, list(unwritten))


def kinds(found):
    """Return the kinds of findings, in order."""
    return [finding.kind for finding in found]


@pytest.mark.parametrize(
    ("one", "other"),
    [(None, ONE), (ONE, None), ("a", ONE), (ONE, "a"), ([ONE], ONE), (ONE, [ONE]), ("a", "b"), (None, "None")],
)
def test_values_of_different_kinds_are_never_equal(one, other):
    assert compare(one, other, rtol=1.0, atol=1.0).elements == 1


@pytest.mark.parametrize(
    ("got", "want", "said"),
    [
        (None, ONE, "got None, expected"), (ONE, None, "expected None"), ([ONE], ONE, "got list of 1"),
        (ONE, (ONE,), "expected tuple of 1"), ("a", ONE, "got 'a'"), (ONE, "a", "expected 'a'"),
    ],
)  # fmt: skip
def test_what_is_of_another_kind_is_named(got, want, said):
    assert said in compare(got, want, rtol=0.0, atol=0.0).text


@pytest.mark.parametrize("value", [None, "a", ONE, [ONE, (TWO, "b")]])
def test_a_value_is_itself(value):
    assert compare(value, value, rtol=0.0, atol=0.0) is None


@pytest.mark.parametrize(("dtype", "other"), [(np.int32, np.float32), (np.float32, np.int32)])
def test_integers_are_exact_only_among_themselves(dtype, other):
    assert compare(dtype(100), other(101), rtol=0.1, atol=0.0) is None
    assert compare(np.int32(100), np.int32(101), rtol=0.1, atol=0.0) is not None


@pytest.mark.parametrize(("dtype", "other"), [(np.complex64, np.float32), (np.float32, np.complex64)])
def test_complex_numbers_are_compared_with_their_imaginary_part(dtype, other):
    assert compare(dtype(1), other(1), rtol=0.0, atol=0.0) is None
    assert compare(np.complex64(1 + 1j), np.float32(1), rtol=0.1, atol=0.1) is not None


def test_without_a_reference_and_a_golden_only_the_ending_tells():
    own = judge()
    assert own.findings(run_of(own, ONE, TWO)) == []
    assert not own.is_reference(run_of(own, ONE, TWO))
    assert not own.differs_from_reference(run_of(own, ONE, TWO))
    assert kinds(own.findings(run_of(own, ONE, MISSING, ending="deadlock"))) == ["deadlock"]


def test_a_run_is_compared_with_the_fair_one_bit_for_bit():
    own = judge()
    own.set_reference(run_of(own, ONE, ONE))
    assert own.is_reference(run_of(own, ONE, ONE))
    assert not own.differs_from_reference(run_of(own, ONE, ONE))
    assert own.differs_from_reference(run_of(own, ONE, NEAR))
    assert not own.is_reference(run_of(own, ONE, NEAR))
    assert not own.is_reference(run_of(own, ONE, MISSING, ending="deadlock"))
    assert kinds(own.findings(run_of(own, ONE, NEAR))) == ["wrong-result"]
    assert own.steps == 3


def test_a_golden_is_met_within_tolerance():
    own = judge(golden=[ONE, ONE])
    own.set_reference(run_of(own, ONE, ONE))
    assert own.findings(run_of(own, ONE, NEAR)) == []
    assert own.differs_from_reference(run_of(own, ONE, NEAR))


@pytest.mark.parametrize("with_golden", [False, True])
def test_a_result_that_is_missing_is_not_wrong(with_golden):
    own = judge(golden=[ONE, ONE] if with_golden else None)
    own.set_reference(run_of(own, ONE, ONE))
    assert own.differences(run_of(own, MISSING, TWO, ending="deadlock"))[0][:2] == (0, 1)
    assert own.differences(run_of(own, MISSING, ONE, ending="deadlock")) == []


def test_what_the_fair_run_lacks_is_not_compared():
    own = judge()
    own.set_reference(run_of(own, ONE, MISSING))
    assert own.differences(run_of(own, ONE, TWO)) == []
    assert own.differences(run_of(own, TWO, TWO))[0][:2] == (0, 0)


def test_the_same_bits_are_right_only_in_a_run_that_is_whole():
    own = judge(golden=[ONE, ONE])
    assert own.findings(run_of(own, ONE, ONE)) == []
    assert own.findings(run_of(own, ONE, ONE)) == []
    assert kinds(own.findings(run_of(own, ONE, ONE, unwritten=["window[0]@0"]))) == ["unwritten-read"]
    assert kinds(own.findings(run_of(own, ONE, ONE, ending="overflow"))) == ["overflow"]
    assert own.failures(run_of(own, ONE, ONE)) == frozenset()
    assert own.failures(run_of(own, ONE, ONE, unwritten=["window[0]@0"])) == {"window[0]@0"}


@pytest.mark.parametrize("bad", [{"ending": "overflow"}, {"unwritten": ["window[0]@0"]}])
def test_a_run_that_fails_in_another_way_teaches_no_right_bits(bad):
    own = judge(golden=[ONE, ONE])
    assert own.findings(run_of(own, ONE, ONE, **bad))
    assert own.findings(run_of(own, TWO, TWO))
    assert kinds(own.findings(run_of(own, TWO, TWO))) == ["wrong-result"]


def test_a_wrong_result_stays_wrong_when_it_comes_again():
    own = judge(golden=[ONE, ONE])
    for _ in range(3):
        assert kinds(own.findings(run_of(own, ONE, TWO))) == ["wrong-result"]
    assert own.findings(run_of(own, ONE, ONE)) == []
    assert kinds(own.findings(run_of(own, ONE, TWO))) == ["wrong-result"]


def test_what_is_told_beside_teaches_no_right_bits():
    own = judge(golden=[ONE, ONE])
    wrong = run_of(own, ONE, TWO)
    beside = frozenset(own.failures(wrong))
    assert own.findings(wrong, beside) == []
    assert kinds(own.findings(wrong)) == ["wrong-result"]


def test_ranks_differ_only_where_equal_ones_are_promised():
    assert judge().findings(run_of(judge(), ONE, TWO)) == []
    own = judge(same=True)
    assert kinds(own.findings(run_of(own, ONE, TWO))) == ["ranks-differ"]
    assert own.findings(run_of(own, MISSING, TWO)) == []


def test_failures_name_each_thing():
    own = judge(golden=[ONE, ONE], same=True)
    wrong = own.failures(run_of(own, ONE, TWO))
    assert len(wrong) == 2
    hung = own.failures(run_of(own, ONE, MISSING, ending="deadlock"))
    assert hung == {"deadlock [(0, 1)]"}


def test_a_remark_is_for_a_result_that_is_right_but_not_to_the_bit():
    own = judge(golden=[ONE, ONE])
    assert own.notes(run_of(own, ONE, ONE)) == []
    assert "(rank 1)" in own.notes(run_of(own, ONE, NEAR))[0]
    assert own.notes(run_of(own, TWO, NEAR)) == []
    assert own.notes(run_of(own, ONE, MISSING, ending="deadlock")) == []
    assert judge().notes(run_of(judge(), ONE, NEAR)) == []


@pytest.mark.parametrize(
    ("golden", "got", "remarked"),
    [
        ([[ONE, ONE], None], ([ONE, NEAR], None), True),
        ([[ONE, ONE], None], ((ONE, ONE), None), False),
        (["a", None], ("a", None), False),
        ([[ONE], "b"], ([ONE], "b"), False),
        ([np.array([0.1, 0.5]), "b"], ([np.float32(0.1), 0.5], "b"), False),
    ],
)
def test_a_remark_looks_into_tuples_and_past_texts(golden, got, remarked):
    own = judge(golden=golden)
    assert bool(own.notes(run_of(own, *got))) == remarked


def test_a_silent_kernel_is_one_whose_fair_run_returns_nothing():
    own = judge()
    assert not own.silent
    own.set_reference(run_of(own, None, None))
    assert own.silent
    own.set_reference(run_of(own, None, ONE))
    assert not own.silent


def test_a_run_that_did_not_end_is_no_reference():
    own = judge()
    own.set_reference(run_of(own, ONE, MISSING, ending="deadlock"))
    assert not own.is_reference(run_of(own, ONE, MISSING, ending="deadlock"))
    own.set_fair_run(run_of(own, ONE, MISSING, ending="deadlock"))
    assert own.usual == {"deadlock [(0, 1)]"}
