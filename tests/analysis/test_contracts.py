"""Contracts: what a run itself shows to be broken, in the values that cells really hold."""

import numpy as np
import pytest

from asyncsim import Case, Fifo, Signal, kernel, simulate
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.deadlock import deadlock
from asyncsim.analysis.linear import in_fair_order, in_given_order
from asyncsim.analysis.streams import Streams
from asyncsim.checking.verdict.check import check


def adding(*amounts, start=0):
    """Return a kernel that adds these to one self-cleaning cell of int8, which wraps."""

    @kernel(memory=[Signal("cell", (1,), np.int8, wrap=True, self_cleaning=True, start=start)])
    async def adds(rank, cell):
        if rank.id == 0:
            for amount in amounts:
                await rank.notify(cell[0], amount)

    return adds


def leftovers(given):
    trace = simulate(Case(given, 2, 1), Fifo(), record="fifo").trace
    return [finding.why for finding in analyse(trace).findings if finding.kind == "leftover-credit"]


@pytest.mark.parametrize(("amounts", "start"), [((127, 127, 2), 0), ((-128, -128), 5), ((100, 100, 56), -100)])
def test_a_cell_that_wraps_back_to_its_start_is_clean(amounts, start):
    assert leftovers(adding(*amounts, start=start)) == []


@pytest.mark.parametrize(
    ("amounts", "start", "left"),
    [((127, 127, 3), 0, "1 above"), ((127, 1), 0, "128 below"), ((-2,), -128, "254 above")],
)
def test_a_credit_is_left_over_in_a_cell_that_wraps_as_the_cell_shows_it(amounts, start, left):
    assert leftovers(adding(*amounts, start=start)) == [f"cell[0]@0 ends {left} its start; its signal is self-cleaning"]


async def test_a_cell_that_wraps_back_to_its_start_refutes_nothing():
    report = await check.aio(adding(127, 127, 2), ranks=2, calls=1)
    assert report.verdict == "EXHAUSTED"
    assert [(finding.kind, finding.harmful) for finding in report.findings] == [("overflow", False)]


def test_a_hang_tells_the_value_that_a_wrapping_cell_has_after_a_wait_took_from_it():
    @kernel(memory=[Signal("cell", (1,), np.int8, wrap=True, start=100)])
    async def takes(rank, cell):
        await rank.wait(cell[0] >= -100, consume=True)
        await rank.wait(cell[0] == -70)

    trace = simulate(Case(takes, 1, 1), Fifo(), record="fifo").trace
    assert trace.footer.pending[0].have == -56
    assert "left it at -56; nobody will write it any more" in deadlock(Streams(trace)).why


@pytest.mark.parametrize("ordered", [in_fair_order, in_given_order])
def test_a_wait_that_takes_beyond_the_range_of_a_wrapping_cell_fits_its_trace(ordered):
    @kernel(memory=[Signal("cell", (1,), np.int8, wrap=True, start=100)])
    async def takes(rank, cell):
        await rank.wait(cell[0] >= -100, consume=True)
        await rank.wait(cell[0] == -56)

    trace = simulate(Case(takes, 1, 1), Fifo(), record="fifo").trace
    trace.header.recorded = "elsewhere"
    assert [event.have for event in ordered(trace).events] == [100, -56]
