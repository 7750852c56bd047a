"""For tests: assertions on kernels, and the rules that other people's parts must keep.

Nothing here needs pytest; every failure is an AssertionError that says what would be right.
"""

from asyncsim.testing.asserting import assert_proved, assert_refuted, assert_same_result
from asyncsim.testing.collectives import check_collective
from asyncsim.testing.kernels import check_kernel
from asyncsim.testing.requirement import Requirement, VerdictError
from asyncsim.testing.schedulers import check_scheduler

__all__ = [
    "Requirement",
    "VerdictError",
    "assert_proved",
    "assert_refuted",
    "assert_same_result",
    "check_collective",
    "check_kernel",
    "check_scheduler",
]
