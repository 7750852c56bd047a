"""What asyncsim says of the exhibits: the table that decides everything else, one row a kernel."""

from __future__ import annotations

import itertools

import pytest

from asyncsim.analysis.analyse import analyse
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.locate import all_kernels
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.explore import explore
from asyncsim.checking.witness.shrink import shrink
from asyncsim.machine.case import Case, Run
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.table import make
from kernels import all_reduce, reduce_scatter

ANY = None
"""A count that the table leaves open."""


def each_with_each(P: int) -> int:
    """P(P - 1): a fast rank and a slow peer."""
    return P * (P - 1)


ROWS = {
    "hand": (reduce_scatter.hand, {}, {"WAR": each_with_each}),
    "hand_no_epilogue": (reduce_scatter.hand_no_epilogue, {}, {"WAR": each_with_each, "RAW": each_with_each}),
    "builtin": (reduce_scatter.builtin, {}, {}),
    "no_post_barrier": (reduce_scatter.no_post_barrier, {}, {"WAR": each_with_each}),
    "mpi_in_place": (reduce_scatter.mpi_in_place, {"WAR": lambda P: P - 1}, {"WAR": ANY}),
    "whole_window_in_place": (reduce_scatter.whole_window_in_place, {"WAR": ANY}, {"WAR": ANY}),
    "mesh in place": (all_reduce.no_post_barrier, {"WAR": each_with_each}, {"WAR": ANY}),
    "double_buffer": (reduce_scatter.double_buffer, {}, {}),
}
"""Of each kernel: the hazards with their counts of pairs for one call, and for two calls back to back."""


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("row", ROWS)
async def test_each_row_of_the_table_is_judged_as_it_stands(row, calls, ranks):
    kernel, *hazards = ROWS[row]
    wanted = hazards[calls - 1]
    report = await check.aio(kernel, ranks=ranks, calls=calls)
    assert report.verdict == ("REFUTED" if wanted else "PROVED")
    counted = {hazard: sum(f.pairs for f in report.findings if f.hazard == hazard) for hazard in wanted}
    assert {finding.hazard for finding in report.findings} == set(wanted)
    assert counted == {hazard: counted[hazard] if n is ANY else n(ranks) for hazard, n in wanted.items()}
    assert all(finding.harmful for finding in report.findings)


OWN = sorted(name for name in all_kernels() if name.startswith(("reduce_scatter:", "all_reduce:")))


@pytest.mark.parametrize("name", OWN)
async def test_each_exhibit_gives_the_findings_it_names_and_no_other(name):
    kernel = all_kernels()[name]
    if any(expected.kind == "refused" for expected in kernel.finds):
        pytest.skip("refused before anything runs: test_kernels has it")
    report = await check.aio(kernel, ranks=3)
    assert report.verdict == ("REFUTED" if kernel.finds else "PROVED")
    for expected in kernel.finds:
        assert any(expected.matches(finding, 3) for finding in report.findings), expected
    for finding in report.findings:
        assert any(expected.matches(finding) for expected in kernel.finds), finding.title


async def test_the_pairs_that_a_missing_post_barrier_leaves_are_twelve_at_four_ranks():
    (finding,) = (await check.aio(reduce_scatter.no_post_barrier)).findings
    assert (finding.title, finding.pairs, finding.harmful) == ("WAR race, next call", 12, True)
    first, second = finding.sides
    assert (first.op, first.call, second.op, second.call) == ("remote_load", 0, "store", 1)
    assert first.at[0].startswith("kernels/reduce_scatter.py:")
    assert "last wait" in finding.why
    assert "instead of" in finding.shown


@pytest.mark.parametrize("ranks", [3, 4, 8])
async def test_an_off_by_one_barrier_is_refuted_from_one_run_of_any_schedule(ranks):
    case = Case(reduce_scatter.post_barrier_off_by_one, ranks)
    fair = (await simulate.aio(case, Fifo(), record="fifo")).trace
    found = []
    for seed in range(60):
        run = await simulate.aio(case, make("random", seed=seed), record="random")
        assert run.trace is not None
        analysis = analyse(run.trace, fair=fair)
        found.append([(finding.title, finding.pairs) for finding in analysis.findings])
    assert found == [[("WAR race, next call", ranks * (ranks - 1))]] * 60
    report = await check.aio(reduce_scatter.post_barrier_off_by_one, ranks=ranks, scheduler="random:seed=5")
    assert report.verdict == "REFUTED"
    assert report.findings[0].harmful


@pytest.mark.parametrize("scheduler", [None, "pct:depth=3"])
async def test_adversarial_schedules_show_a_missing_barrier_within_twenty(scheduler):
    report = await explore.aio(reduce_scatter.no_post_barrier, scheduler=scheduler, runs=20)
    assert report.verdict == "REFUTED"
    assert report.findings[0].kind == "wrong-result"


@pytest.mark.parametrize("rank", range(4))
async def test_starving_any_rank_shows_a_missing_barrier_at_once(rank):
    report = await explore.aio(reduce_scatter.no_post_barrier, scheduler=f"starve:rank={rank}", runs=1)
    assert report.findings[0].kind == "wrong-result"


async def test_the_witness_of_a_missing_barrier_shrinks_to_at_most_four_task_switches():
    case = Case(reduce_scatter.no_post_barrier, ranks=2)
    judge = Judge(case)

    def fails(run: Run) -> bool:
        return bool(judge.differences(run))

    runs = [await simulate.aio(case, make("random", seed=seed)) for seed in range(50)]
    failing = next(run for run in runs if fails(run))
    small = await shrink.aio(case, failing.choices, fails)
    switches = sum(a != b for a, b in itertools.pairwise(small))
    assert switches <= 4
    assert len(small) <= len(failing.choices)


@pytest.mark.parametrize("scheduler", ["eager", "pos:seed=2", "pct:depth=3,seed=1", "starve:rank=0", "random:seed=9"])
@pytest.mark.parametrize("kernel", ["builtin", "hand", "double_buffer"])
async def test_the_verdict_does_not_depend_on_the_reference_schedule(kernel, scheduler):
    chosen = getattr(reduce_scatter, kernel)
    fair = await check.aio(chosen, ranks=3)
    other = await check.aio(chosen, ranks=3, scheduler=scheduler)
    assert fair.verdict == other.verdict
    assert [(f.title, f.pairs, f.sides) for f in fair.findings] == [(f.title, f.pairs, f.sides) for f in other.findings]


@pytest.mark.parametrize("scheduler", ["fifo", "eager", "random", "starve:rank=1", "pct:depth=3", "pos"])
@pytest.mark.parametrize("kernel", [reduce_scatter.builtin, reduce_scatter.double_buffer, all_reduce.mesh])
async def test_no_scheduler_ever_refutes_a_correct_kernel(kernel, scheduler):
    report = await explore.aio(kernel, ranks=3, scheduler=scheduler, runs=40)
    assert report.verdict == "SURVIVED"
    assert report.findings == []
