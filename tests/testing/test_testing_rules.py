"""The kits for kernels and collectives say which rule a part breaks, one broken part a rule; the assertions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import trio

from asyncsim import WAR, Expected, KernelError, MisuseError, Signal, Window, all_reduce, check, golden, kernel
from asyncsim.checking.verdict.report import Report
from asyncsim.machine.case import Case
from asyncsim.testing import (
    Requirement,
    VerdictError,
    assert_proved,
    assert_refuted,
    assert_same_result,
    check_collective,
    check_kernel,
)
from asyncsim.testing.asserting import sample
from kernels import reduce_scatter

row = Window("data", (1, "P"))
signal = Signal("signal", ("P", 1), self_cleaning=True)
box = Window("box", (1,), np.float32, initialised=True)


# Kernels.


def shift(**changes):
    """Return a kernel that keeps the rules, but for these changes."""

    async def program(rank, x, box):
        """Store a number, and load it."""
        await rank.store(box[:], x)
        return await rank.load(box[:])

    how = {"inputs": lambda P, call, rng: rng.standard_normal((P, 1), np.float32), "golden": list}
    program.__doc__ = changes.pop("doc", program.__doc__)
    program = changes.pop("program", program)
    return kernel(memory=[box], **{**how, **changes})(program)


calls = itertools.count()
seeds = itertools.count()


@kernel(memory=[box], golden=lambda xs: [1.0] * len(xs))
async def moody(rank, box):
    """Do something else in every second run."""
    if next(calls) // (2 * rank.size) % 2:  # two calls a rank and run
        await rank.load(box[0])
    return 1.0


@kernel(memory=[box])
async def returns(rank, box):
    """Return something, without a golden."""
    return rank.id


def grow(xs):
    """Change what is only lent."""
    for x in xs:
        x[0] += 1
    return [x - 1 for x in xs]


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (shift(doc=""), "what it is: give the program a docstring"),
        (shift(inputs=lambda P, call, rng: np.ones((P, 1), np.float32)), "inputs: those of call 1 are those of call 0"),
        (
            shift(inputs=lambda P, call, rng: np.full((P, 1), next(seeds), np.float32)),
            "inputs: other values the second time; draw them from rng alone",
        ),
        (shift(golden=grow), "golden: it changes the inputs; copy before you add"),
        (
            shift(golden=lambda xs: [x[0] for x in xs]),
            r"golden: of rank 0 it has shape \(\), and the result has \(1,\)",
        ),
        (returns, "golden: it returns results, so give golden="),
        (moody, "the same run again: the second one differs in actor 0's operation 0"),
        (shift(golden=lambda xs: [x + 1 for x in xs]), "verdict: it does not declare wrong-result"),
        (shift(finds=Expected("deadlock")), "verdict: REFUTED is required, and it is PROVED"),
        (shift(finds=Expected("refused")), "finds: it declares that it is refused, and it ran to its end"),
        (reduce_scatter.hand.variant(about="Undeclared."), "verdict: it does not declare WAR race, next call"),
    ],
)
def test_a_kernel_is_told_which_rule_it_breaks(made, rule):
    with pytest.raises(AssertionError, match=rule):
        check_kernel(made, ranks=2)


def test_a_kernel_that_raises_is_not_one_that_is_refused():
    @kernel(memory=[box], finds=Expected("refused"))
    async def raises(rank, box):
        """Raise, but not in upstream's words."""
        raise ValueError("no")

    with pytest.raises(KernelError, match="ValueError: no"):
        check_kernel(raises, ranks=2)


def test_a_kernel_that_keeps_the_rules_gives_its_reports():
    assert [report.case.ranks for report in check_kernel(shift())] == [1, 2, 3, 4]
    assert [report.verdict for report in check_kernel(reduce_scatter.hand, ranks=[1, 3])] == ["PROVED", "REFUTED"]


def test_tuples_have_shapes_part_by_part():
    async def program(rank, x, box):
        """Return two things."""
        await rank.store(box[:], x)
        return await rank.load(box[:]), 1

    assert check_kernel(shift(program=program, golden=lambda xs: [(x, 1) for x in xs]), ranks=2)
    with pytest.raises(AssertionError, match=r"golden: of rank 0 it has shape \[\(1,\)\], and the result has \["):
        check_kernel(shift(program=program, golden=lambda xs: [(x,) for x in xs]), ranks=2)


# Collectives.


async def mesh(rank, x, data, signal):
    """Stage, reduce, read."""
    await rank.store(data[...], x)
    await all_reduce(rank, data, signal)
    return await rank.load(data[...])


async def hangs(rank, x, data, signal):
    """Wait for nobody."""
    await rank.store(data[...], x)
    await rank.wait(signal[0, 0] >= 1)


async def reads_nothing(rank, x, data, signal):
    """Read before anybody wrote."""
    return await rank.load(data[...])


async def leaves(rank, x, data, signal):
    """Keep a credit."""
    await rank.store(data[...], x)
    await rank.notify(signal[0, 0], 1)
    return await rank.load(data[...])


def wide(xs):
    """Return the result in another dtype."""
    return [y.astype(np.float64) for y in golden.all_reduce(xs)]


def other_order(xs):
    """Add from the last to the first."""
    return [np.sum(np.stack(xs[::-1]), axis=0, dtype=xs[0].dtype) for _ in xs]


FEW = {"memory": [row, signal], "shape": (1, "SIZE"), "golden": golden.all_reduce, "ranks": 3, "dtypes": [np.float32]}


@pytest.mark.parametrize(
    ("program", "changes", "rule"),
    [
        (hangs, {}, r"every P, size and dtype: the run ends with deadlock \(P = 3, 0 elements of float32\)"),
        (reads_nothing, {}, r"what is read was written: nobody wrote data\[.*\]@0 \(P = 3, 1 elements of float32\)"),
        (mesh, {"golden": wide}, "the golden, bit for bit: .* it has dtype float32, the golden float64"),
        (mesh, {"golden": lambda xs: [x[0] for x in golden.all_reduce(xs)]}, r"got shape \(1, 0\), expected \(0,\)"),
        (mesh, {"golden": other_order, "sizes": [64]}, "bit for bit: .* elements differ"),
        (mesh, {"golden": lambda xs: [None] * len(xs)}, "got array.*, expected None"),
        (leaves, {"golden": list}, "two calls back to back: PROVED is required, and it is REFUTED"),
        (mesh, {"finds": "WAR"}, "two calls back to back: REFUTED is required, and it is PROVED"),
    ],
)
def test_a_collective_is_told_which_rule_it_breaks(program, changes, rule):
    with pytest.raises(AssertionError, match=rule) as caught:
        check_collective(program, **{**FEW, **changes})
    assert "asyncsim replay" not in str(caught.value)


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_order_of_reduction_is_blamed_only_where_there_is_one(ranks):
    with pytest.raises(AssertionError, match="the golden, bit for bit") as caught:
        check_collective(mesh, **{**FEW, "ranks": ranks, "golden": lambda xs: [x + 1 for x in golden.all_reduce(xs)]})
    assert ("in the order of the collective" in str(caught.value)) == (ranks > 1)


def test_a_collective_is_tried_in_a_group():
    async def world_order(rank, x, data, signal):
        """Give the right result to whom the world's numbers are the group's."""
        got = await mesh(rank, x, data, signal)
        return got if rank.group == "world" else got + 1

    check = {**FEW, "sizes": [1]}
    with pytest.raises(AssertionError, match="a group of 3 ranks in reverse order"):
        check_collective(world_order, **check)


def test_bits_count_not_numbers():
    async def negative_zero(rank, x, data, signal):
        """Return minus zero."""
        await rank.store(data[...], x)
        return -0.0 * abs(await rank.load(data[...]))

    with pytest.raises(AssertionError, match="the same numbers in other bits"):
        check_collective(negative_zero, **{**FEW, "golden": lambda xs: [0 * abs(x) for x in xs]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (1, 64)}, "write 'SIZE' where the elements are"),
        ({"sizes": []}, "give at least one size and one dtype"),
        ({"ranks": []}, "ranks=.*; give a number of ranks"),
    ],
)
def test_a_wrong_argument_is_misuse(changes, message):
    with pytest.raises(MisuseError, match=message):
        check_collective(mesh, **{**FEW, **changes})


# The assertions.


def test_assertions_return_their_reports_and_take_what_check_takes():
    reports = assert_proved(reduce_scatter.hand, ranks=[2, 3], calls=1)
    assert [report.case.ranks for report in reports] == [2, 3]
    (report,) = assert_refuted(reduce_scatter.hand, ranks=3, finds=WAR("next call", pairs=lambda P: P * (P - 1)))
    assert report.refuted
    assert_same_result(reduce_scatter.builtin, ranks=2, schedules=20)


def test_an_assertion_that_fails_tells_the_whole_report_and_how_to_replay_it():
    with pytest.raises(VerdictError) as caught:
        assert_proved(reduce_scatter.hand, ranks=3)
    text = str(caught.value)
    assert text.startswith("PROVED is required, and it is REFUTED: kernels.reduce_scatter:hand, P = 3, 2 calls, sc\n\n")
    assert "asyncsim replay as1." in text
    assert isinstance(caught.value.report, Report)
    caught.value.brief = True
    assert str(caught.value).splitlines()[1:] == ["  WAR race, next call: 6 pairs, harmful"]


def test_other_findings_than_asked_for_are_named():
    with pytest.raises(VerdictError, match="it is REFUTED, but not by RAW: what was found is WAR race, next call"):
        assert_refuted(reduce_scatter.hand, ranks=3, finds="RAW")


def test_another_result_names_the_schedule():
    with pytest.raises(VerdictError, match="the same result is required of 9 schedules, and one differs") as caught:
        assert_same_result(reduce_scatter.hand, ranks=3, schedules=9)
    (finding,) = caught.value.report.findings
    assert finding.shown == "in schedule 1 of 9, under starve:rank=0"
    assert finding.token.startswith("as1.")


async def test_assertions_work_within_a_trio_program():
    assert_proved(reduce_scatter.builtin, ranks=2)
    assert_same_result(reduce_scatter.builtin, ranks=2, schedules=5)
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("schedules", [0, True, "9"])
def test_schedules_are_counted(schedules):
    with pytest.raises(MisuseError, match=r"schedules=.*; run at least one"):
        assert_same_result(reduce_scatter.builtin, schedules=schedules)


def test_a_check_that_was_interrupted_meets_nothing():
    report = Report(Case(reduce_scatter.hand, 2), "SURVIVED", "", interrupted=True)
    assert Requirement.of("survived").unmet(report) == "the check was interrupted"
    assert Requirement.of("survived").unmet(Report(report.case, "SURVIVED", "")) == ""


def test_what_is_no_kernel_is_told_so():
    raw = reduce_scatter.hand.program
    for call in (
        lambda: assert_proved(raw, ranks=2),
        lambda: assert_proved("ring.py:shift", ranks=2),
        lambda: assert_refuted(raw),
        lambda: assert_same_result(raw, ranks=2),
        lambda: check_kernel(raw),
        lambda: check(raw),
    ):
        with pytest.raises(MisuseError, match=r"is no kernel; decorate it with @kernel\(memory=\[\.\.\.\]\)"):
            call()


@pytest.mark.parametrize("finds", ["", [], ()])
def test_findings_that_name_none_are_refused(finds):
    with pytest.raises(MisuseError, match=r"finds=.*(leave finds out|a finding is one of)"):
        assert_refuted(reduce_scatter.hand, ranks=3, finds=finds)
    assert_refuted(reduce_scatter.hand, ranks=3)


def test_one_schedule_is_one():
    with pytest.raises(VerdictError, match="of 1 schedule, and one differs"):
        assert_same_result(reduce_scatter.hand, ranks=3, schedules=1)
    assert sample(Case(reduce_scatter.builtin, 2), 1).scope == "1 schedule gives the same bits"
