"""What one run shows by itself, beside the fair run of the same case."""

from __future__ import annotations

import numpy as np
import pytest

from asyncsim import Case, Fifo, Signal, Window, kernel, simulate
from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.digest import digest_value

box = Window("box", (1,), np.float32, initialised=True)


@kernel(memory=[box])
async def last_wins(rank, box):
    """Return what the last one stored, with its sign."""
    await rank.store(box.at(0)[0], -0.0 if rank.id else 0.0)
    return await rank.load(box.at(0)[0])


@kernel(memory=[box], golden=lambda _: [np.float32(1.0)])
async def wrong(rank, box):
    """Return two where one is right."""
    await rank.store(box[0], 2.0)
    return await rank.load(box[0])


@kernel(memory=[Signal("left", (1,), self_cleaning=True)])
async def leaves(rank, left):
    """Leave a credit."""
    await rank.notify(left[0], 1)


@kernel(memory=[box])
async def raises(rank, box):
    """Raise unless rank 1 comes first."""
    if rank.id:
        await rank.store(box.at(0)[0], 1.0)
    elif await rank.load(box[0]) == 0.0:
        raise ValueError("too early")


def symptoms_of(made, choices, ranks=2, record=None):
    case = Case(made, ranks, 1)
    run = simulate(case, Replay(choices), record=record)
    symptoms = Symptoms(case)
    return symptoms.findings(run), symptoms.differences(run)


def test_the_fair_run_itself_has_none():
    case = Case(last_wins, 2, 1)
    symptoms = Symptoms(case)
    run = simulate(case, Fifo())
    assert (symptoms.findings(run), symptoms.differences(run)) == ([], [])


def test_a_result_that_differs_from_the_fair_one_in_one_bit_is_a_symptom():
    assert digest_value(np.float32(0.0)) != digest_value(np.float32(-0.0))
    findings, differences = symptoms_of(last_wins, ["1", "0", "0", "1"])
    assert [(found.kind, found.pairs, found.harmful) for found in findings] == [("wrong-result", 2, True)]
    assert (
        "rank 0's result of call 0 is not that of the fair schedule: the same numbers in other bits" in findings[0].why
    )
    assert [(call, rank) for call, rank, _ in differences] == [(0, 0), (0, 1)]


def test_a_result_that_is_not_the_golden_is_told_once():
    findings, differences = symptoms_of(wrong, ["0", "0"], ranks=1)
    assert [found.kind for found in findings] == ["wrong-result"]
    assert [difference.text for _, _, difference in differences] == ["1 of 1 elements differ: 2.0 instead of 1.0"]


@pytest.mark.parametrize(("record", "kinds"), [("replay", ["leftover-credit"]), (None, [])])
def test_left_credits_show_in_a_recorded_run(record, kinds):
    findings, _ = symptoms_of(leaves, ["0"], ranks=1, record=record)
    assert [found.kind for found in findings] == kinds
    assert all(found.harmful for found in findings)


def test_a_kernel_without_a_fair_run_can_still_be_looked_at():
    assert symptoms_of(raises, ["1", "0"]) == ([], [])
