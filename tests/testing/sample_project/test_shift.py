"""Tests that judge kernels which stand elsewhere."""

import pytest
from shift import careless, shift

from asyncsim.testing import assert_proved, assert_refuted, assert_same_result


@pytest.mark.asyncsim(ranks=[1, 2, 3, 4], memory=["sc", "ldst"])
def test_shift():
    return shift


@pytest.mark.asyncsim(ranks=3, require="refuted", finds="WAR, next call")
def test_the_second_wait_is_needed():
    return careless


@pytest.mark.asyncsim(ranks=3, calls=1)
def test_one_call_needs_no_second_wait():
    return careless


def test_one_run_decides(judge):
    report = judge(shift, ranks=5)
    assert report.one_run


async def test_within_a_trio_program(judge):
    report = await judge.aio(shift, ranks=3)
    assert judge(shift, ranks=3).steps == report.steps


def test_without_the_plugin():
    assert_proved(shift, ranks=[2, 3])
    assert_refuted(careless, ranks=3, finds="WAR")
    assert_same_result(shift, ranks=3, schedules=50)
