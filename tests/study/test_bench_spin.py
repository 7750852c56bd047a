"""The Promela model is the same protocol as the kernel: the same steps, the same states, the same verdicts."""

from __future__ import annotations

from functools import cache, partial

import pytest
from bench_spin import MODEL, missing, understood
from bench_spin import search as any_search

from asyncsim import check
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.kinds import NOTIFY, WAIT
from kernels.reduce_scatter import builtin, no_post_barrier

needs_spin = pytest.mark.skipif(bool(missing()), reason=f"{' and '.join(missing())} not installed")
pytestmark = pytest.mark.oracle

search = cache(partial(any_search, optimise="-O0"))  # the compiler takes longer than these searches

SUMMARY = """
State-vector 44 byte, depth reached 108, errors: 0
 1.5e+07 states, stored

  133.536	total actual memory usage
"""


def reachable(case):
    """Count the states that the kernel can reach, from the operations of one run: how far each rank can be."""
    trace = drive(case, Fifo(), record="fifo").trace
    streams = [[e.op for e in trace.events if e.op.actor.rank == rank] for rank in range(case.ranks)]
    start = (0,) * case.ranks
    seen, front = {start}, [start]
    while front:
        at = front.pop()
        cells = {}
        for stream, done in zip(streams, at, strict=True):
            for op in stream[:done]:
                if op.kind == NOTIFY:
                    cells[op.cell.slot] = cells.get(op.cell.slot, 0) + op.amount
        for rank, stream in enumerate(streams):
            if at[rank] < len(stream):
                op = stream[at[rank]]
                if op.kind == WAIT and cells.get(op.cell.slot, 0) < op.amount:
                    continue
                then = (*at[:rank], at[rank] + 1, *at[rank + 1 :])
                if then not in seen:
                    seen.add(then)
                    front.append(then)
    return len(seen)


@needs_spin
@pytest.mark.parametrize("ranks", [2, 3])
def test_spin_searches_the_states_and_the_steps_of_the_kernel(ranks):
    found = search(ranks, grain=0)
    report = check(builtin, ranks=ranks)
    assert (found.complete, found.errors, report.verdict) == (True, 0, "PROVED")
    assert found.depth == report.steps
    assert found.states == reachable(Case(builtin, ranks))


@needs_spin
@pytest.mark.parametrize(("ranks", "grain"), [(2, 0), (3, 0), (3, 1), (3, 2), (3, 3)])
def test_spin_refutes_the_kernel_without_its_second_barrier(ranks, grain):
    found = search(ranks, grain=grain, post=False)
    assert (found.errors, check(no_post_barrier, ranks=ranks).verdict) == (1, "REFUTED")


@needs_spin
@pytest.mark.parametrize("grain", [1, 2, 3])
def test_a_coarser_grain_has_fewer_states_and_the_same_verdict(grain):
    fine, coarse = search(3, grain=0), search(3, grain=grain)
    assert coarse.complete
    assert coarse.errors == 0
    assert coarse.states < fine.states


@needs_spin
def test_a_search_over_its_memory_is_reported_as_incomplete():
    assert not search(4, grain=0, megabytes=135).complete


def test_the_summary_of_a_search_is_understood():
    found = understood(SUMMARY, 2.5)
    assert (found.states, found.depth, found.errors, found.seconds, found.megabytes, found.complete) == (
        15_000_000, 108, 0, 2.5, 133.536, True,
    )  # fmt: skip
    assert not understood("Warning: Search not completed\n" + SUMMARY, 2.5).complete
    assert understood("Warning: Search not completed" + SUMMARY.replace("errors: 0", "errors: 1"), 2.5).complete


def test_what_is_no_summary_is_refused():
    with pytest.raises(ValueError, match="no summary: Segmentation fault"):
        understood("Segmentation fault", 0.0)


def test_the_model_names_the_kernels_that_it_stands_for():
    text = MODEL.read_text("ascii")
    assert builtin.ref.partition(":")[2] in text
    assert "reduce_scatter:no_post_barrier" in text
