"""A front end makes kernels of its authors' blocking functions, with inputs, goldens and parameters like any kernel."""

import numpy as np
import pytest

from asyncsim import MisuseError, Window, check
from asyncsim.guest.host import blocking
from asyncsim.guest.program import guest

box = Window("box", (1,), np.int64, initialised=True)


class Box:
    """A dialect of one name."""

    def __init__(self, rank, box):
        """Keep what it needs."""
        self.rank, self.box = rank, box

    def add(self, value):
        blocking(self.rank.store(self.box[0], value))
        return int(blocking(self.rank.load(self.box[0])))


@guest(Box, memory=[box], inputs=lambda P, call, rng: list(range(P)), golden=lambda xs: [2 * x for x in xs])
def twice(box, x, *, factor=2):
    """Store and load twice the input."""
    return box.add(factor * x)


@guest(Box, memory=[box])
def seven(box):
    return box.add(7)


def test_it_is_judged_with_its_inputs_and_golden_and_is_called_as_its_function():
    report = check(twice, ranks=2)
    assert (report.verdict, report.case.kernel.name) == ("PROVED", "twice")
    assert twice.first_line == "Store and load twice the input."


def test_a_variant_gives_the_function_other_parameters():
    report = check(twice.variant(factor=3), ranks=2)
    assert report.findings[0].kind == "wrong-result"


def test_without_inputs_the_function_takes_the_dialect_alone():
    assert check(seven, ranks=2).verdict == "PROVED"


async def asynchronous(box):
    return box


@pytest.mark.parametrize("wrong", [asynchronous, 7, Box])
def test_what_is_no_blocking_function_is_refused(wrong):
    with pytest.raises(MisuseError, match="is no guest; decorate a plain, blocking function"):
        guest(Box, memory=[box])(wrong)
