"""A wrong result, in words: what it equals instead, one hypothesis after the other."""

from __future__ import annotations

import numpy as np
from wrong_results import SIZE, blocks, case, chunks, integer_rows, maxima, said, stacked

from asyncsim.checking.diagnose.hypotheses import HYPOTHESES
from asyncsim.machine.case import MISSING


def test_there_is_a_hypothesis_for_each_mistake_and_a_sentence_on_it():
    assert len(HYPOTHESES) == len(set(HYPOTHESES.values())) == 14
    assert all(hypothesis.__doc__ for hypothesis in HYPOTHESES.values())


def test_contributions_that_are_missing_are_named_the_own_one_first():
    made = case()
    xs = made.inputs[0]
    assert said(made, xs[0] + xs[1] + xs[3], rank=2).startswith("it is short of exactly the own contribution, rank 2's")
    assert said(made, xs[0] + xs[2] + xs[3], rank=2).startswith("it is short of the contribution of rank 1 (")
    two = said(made, xs[1] + xs[2])
    assert two.startswith("it is short of the contribution of ranks 0 and 3 (")
    assert "in which these are zero" in two


def test_contributions_of_other_calls_are_named_with_the_nearest_call():
    made = case(calls=4)
    xs, before, after, far = (made.inputs[call] for call in (1, 0, 2, 3))
    assert said(made, xs[0] + xs[1] + xs[2] + before[3], call=1).startswith(
        "rank 3's contribution is that of the previous call, call 0"
    )
    assert said(made, xs[0] + after[1] + xs[2] + after[3], call=1).startswith(
        "ranks 1 and 3's contribution is that of the next call, call 2"
    )
    assert said(made, far[0] + xs[1] + xs[2] + xs[3], call=1).startswith("rank 0's contribution is that of call 3")
    assert said(made, made.goldens[0][0], call=1).startswith("it is the result of the previous call, call 0")


def test_the_contribution_of_another_rank_is_named():
    made = case()
    xs = made.inputs[0]
    assert said(made, xs[0] + xs[1] + xs[2] + xs[2]).startswith("rank 3's contribution is that of rank 2")


def test_finished_totals_are_named_also_of_an_earlier_call():
    made = case(golden=chunks, inputs=blocks)
    want, xs = made.goldens[1], made.inputs[1]
    assert said(made, want[0] - xs[2][0] + want[2], call=1).startswith("rank 2's finished total was taken for an input")
    before = made.goldens[0]
    assert said(made, want[0] - xs[2][0] + before[2], call=1).startswith(
        "rank 2's finished total of the previous call, call 0 was taken for an input"
    )


def test_stale_inputs_and_totals_together_are_named():
    made = case()
    xs, total = made.inputs[0], made.goldens[0][0]
    assert said(made, xs[0] + total + made.inputs[1][2] + total) == (
        "rank 2's contribution is that of the next call, call 1, and the finished totals of ranks 1 and 3 were taken "
        "for inputs (it equals the golden with these, exactly)"
    )


def test_totals_are_no_inputs_where_they_do_not_fit():
    made = case(golden=stacked)
    assert said(made, made.goldens[0][0] + 1) is None


def test_it_works_for_any_operator():
    made = case(golden=maxima)
    stale = [made.inputs[1][0], *made.inputs[0][1:]]
    assert said(made, np.max(stale, axis=0)).startswith("rank 0's contribution is that of the next call")


def test_the_result_of_another_rank_is_not_yet_that_of_all():
    made = case(golden=chunks, inputs=blocks)
    want = made.goldens[0]
    assert said(made, want[2], rank=1) == "it is rank 2's result (it equals what rank 2 must get, exactly)"
    same = [want[2]] * 4
    assert said(made, want[2], rank=1, others=same).startswith("every rank has the same chunk")
    assert said(made, want[2], rank=1, others=[*same[:3], MISSING]).startswith("it is rank 2's result")
    assert said(made, want[0] + 1, others=[want[0] + 1] * 4) is None


def test_averages_and_sums_are_told_apart():
    made = case(golden=lambda xs: [np.mean(xs, axis=0)] * len(xs))
    assert said(made, 4 * made.goldens[0][0]) == "it is not divided by P = 4 (it equals 4 times the golden, exactly)"
    made = case(inputs=integer_rows)
    assert said(made, made.goldens[0][0] // 4) == "it is divided by P = 4 (it equals the golden divided by 4, exactly)"
    alone = case(ranks=1)
    assert said(alone, alone.goldens[0][0] * 3) is None
    flags = case(golden=lambda xs: [np.all(np.greater(xs, 9), axis=0)] * len(xs))
    assert said(flags, np.ones(SIZE, bool)) is None


def test_shifted_boundaries_are_named_in_both_directions():
    made = case(golden=chunks, inputs=blocks)
    flat = np.sum([x.ravel() for x in made.inputs[0]], axis=0)
    early, late = flat[SIZE - 2 : 2 * SIZE - 2], flat[SIZE + 1 : 2 * SIZE + 1]
    assert said(made, early, rank=1).startswith("the chunk boundaries are shifted by -2 elements (")
    assert said(made, late, rank=1).startswith("the chunk boundaries are shifted by +1 element (")


def test_a_tail_that_was_dropped_is_zero_or_missing():
    made = case()
    want = made.goldens[0][0]
    assert said(made, np.where(np.arange(SIZE) < 4, want, 0)) == (
        "the tail is dropped (the first 4 of 6 elements are right, the rest is zero)"
    )
    assert said(made, want[:5]) == "the tail is dropped (the first 5 of 6 elements are right, the rest is missing)"
    assert said(made, want[1:]) is None
    assert said(made, np.append(want, 1)) is None
    assert said(made, np.zeros(SIZE)) == "it is zero everywhere"


def test_sixteen_bits_come_before_what_they_may_look_like():
    def large_and_small(P, call, rng):
        return [np.full(SIZE, 2048 if rank == 0 else 1, np.float32) for rank in range(P)]

    words = said(case(inputs=large_and_small), np.full(SIZE, 2048, np.float32), rank=1)
    assert words.startswith("adding up in float16")
