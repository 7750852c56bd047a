"""The table that decides the demonstrations: what each algorithm gives for one call, and for calls back to back.

A cell is what one run says of all schedules: the hazards, with how many pairs of operations nothing orders.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from asyncsim import Fifo, Signal, Window, allgather, barrier, golden, kernel, reduce_scatter, settle, simulate
from asyncsim import all_to_all as all_to_all_of
from asyncsim.analysis.analyse import analyse
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import Case
from kernels import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    dissemination_barrier,
    halving_doubling,
    one_shot,
    recursive_doubling,
    ring,
    two_shot,
)
from kernels import reduce_scatter as scatter
from kernels.all_to_all import counted_golden
from kernels.rows import blocks, make, rows

CLEAN: dict = {}


def each_with_each(P):
    """P(P - 1): a fast rank and a slow peer."""
    return P * (P - 1)


def war(pairs):
    """WAR, so many pairs by P; None leaves the count open."""
    return {"WAR": pairs}


ROWS = {
    "hand": (scatter.hand, CLEAN, war(each_with_each)),
    "hand, no epilogue": (scatter.hand_no_epilogue, CLEAN, {"WAR": each_with_each, "RAW": each_with_each}),
    "builtin": (scatter.builtin, CLEAN, CLEAN),
    "no post barrier": (scatter.no_post_barrier, CLEAN, war(each_with_each)),
    "MPI in place": (scatter.mpi_in_place, war(lambda P: P - 1), war(None)),
    "whole window in place": (scatter.whole_window_in_place, war(each_with_each), war(None)),
    "mesh in place, ready barrier only": (all_reduce.no_post_barrier, war(each_with_each), war(None)),
    "mesh": (all_reduce.mesh, CLEAN, CLEAN),
    "mesh composite": (all_reduce.builtin, CLEAN, CLEAN),
    "double buffer": (scatter.double_buffer, CLEAN, CLEAN),
    "all-gather by push": (all_gather.push_composite, CLEAN, war(each_with_each)),
    "all-gather by push, safe": (all_gather.push, CLEAN, CLEAN),
    "all-gather by pull": (all_gather.pull_no_end_barrier, CLEAN, war(each_with_each)),
    "all-gather by pull, safe": (all_gather.pull, CLEAN, CLEAN),
    "all-to-all": (all_to_all.composite, CLEAN, war(each_with_each)),
    "all-to-all, safe": (all_to_all.safe, CLEAN, CLEAN),
    "all-to-all-v": (all_to_all.v_composite, CLEAN, war(each_with_each)),
    "all-to-all-v, safe": (all_to_all.v_safe, CLEAN, CLEAN),
    "broadcast": (broadcast.composite, CLEAN, war(lambda P: P - 1)),
    "broadcast, safe": (broadcast.safe, CLEAN, CLEAN),
    "two-phase by pull, no end barrier": (all_reduce.two_phase_no_end_barrier, CLEAN, war(each_with_each)),
    "two-phase by pull": (all_reduce.two_phase_pull, CLEAN, CLEAN),
    "two-phase of composites": (all_reduce.two_phase, CLEAN, CLEAN),
    "ring composite": (all_reduce.ring, CLEAN, CLEAN),
    "ring": (all_reduce.ring_by_hand, CLEAN, CLEAN),
    "ring without read barriers": (all_reduce.ring_without_read_barriers, CLEAN, war(lambda P: P)),
    "ring by pull, ready only": (ring.ready_only, CLEAN, war({2: 2, 3: 6, 4: 16, 5: 30}.get)),
    "ring by pull": (ring.by_pull, CLEAN, CLEAN),
    "recursive doubling, one sync": (recursive_doubling.in_place_one_sync, war(None), war(None)),
    "recursive doubling, two syncs": (recursive_doubling.two_syncs, CLEAN, CLEAN),
    "halving and doubling, no end sync": (halving_doubling.no_end_sync, CLEAN, war(None)),
    "halving and doubling": (halving_doubling.in_place, CLEAN, CLEAN),
    "dissemination barrier": (dissemination_barrier.all_rounds, CLEAN, CLEAN),
    "dissemination barrier, none at the end": (dissemination_barrier.no_end_barrier, CLEAN, war(each_with_each)),
    "one-shot": (one_shot.double_buffer, CLEAN, CLEAN),
    "one-shot, single buffer": (one_shot.single_buffer, CLEAN, war(each_with_each)),
    "two-shot": (two_shot.double_buffer, CLEAN, CLEAN),
    "two-shot, single buffer": (two_shot.single_buffer, CLEAN, war(each_with_each)),
}
"""Of each algorithm: the hazards with their pairs for one call, and for two."""


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("row", ROWS)
async def test_the_hazards_of_a_row_and_their_pairs(row, calls, ranks):
    made, *hazards = ROWS[row]
    run = await simulate.aio(Case(made, ranks, calls), Fifo(), record="fifo")
    analysis = analyse(run.trace)
    assert analysis.exact
    assert_hazards(analysis.findings, hazards[calls - 1], ranks)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("row", ROWS)
async def test_the_verdict_on_a_row_each_race_of_which_is_shown_to_do_harm(row, calls, request):
    made, *hazards = ROWS[row]
    for ranks in (2, 3, 4, 5) if request.config.getoption("thorough") else (3,):
        report = await check.aio(made, ranks=ranks, calls=calls)
        assert report.verdict == ("REFUTED" if hazards[calls - 1] else "PROVED")
        assert all(finding.harmful for finding in report.findings)
        assert_hazards(report.findings, hazards[calls - 1], ranks)


def assert_hazards(findings, wanted, ranks):
    """Compare the hazards and their counts of pairs; every finding must be a race."""
    counted = Counter()
    for finding in findings:
        counted[finding.hazard] += finding.pairs
    assert set(counted) == set(wanted)
    assert all(pairs is None or counted[hazard] == pairs(ranks) for hazard, pairs in wanted.items())


@pytest.mark.parametrize(("ranks", "pairs"), [(2, 2), (3, 2), (4, 12), (5, 12)])
async def test_one_sync_a_step_is_too_few_within_a_call_already(ranks, pairs):
    run = await simulate.aio(Case(recursive_doubling.in_place_one_sync, ranks, 1), Fifo(), record="fifo")
    (finding,) = analyse(run.trace).findings
    assert (finding.title, finding.pairs) == ("WAR race, same call", pairs)


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
async def test_a_dissemination_barrier_that_does_not_wait_in_its_last_round_is_none(ranks):
    made = dissemination_barrier.all_rounds.variant(unheard=1)
    report = await check.aio(made, ranks=ranks, calls=1)
    assert report.verdict == "REFUTED"
    assert {finding.title for finding in report.findings} == {"RAW race, same call"}


async def test_the_post_reduce_barrier_is_redundant_where_an_all_gather_follows():
    @kernel(memory=all_reduce.two_phase.memory, inputs=blocks, golden=golden.two_phase)
    async def without(rank, x, data, gathered, signal):
        await rank.store(data[...], x)
        await barrier(rank, signal)
        acc = await rank.load(data[rank.id])
        for peer in rank.peers:
            acc += await rank.load(data.at(peer)[rank.id])
        await rank.store(data[rank.id], acc)
        await settle(rank, signal, credits=1)
        await allgather(rank, data[rank.id], gathered, signal)
        return await rank.load(gathered[...])

    report = await check.aio(without, ranks=4)
    assert report.verdict == "PROVED"


# Sizes that change from call to call, on windows that are large enough.

SIZES = (3, 1, 1, 3)
WIDTH = max(SIZES)


def padded(x):
    """Return `x` with zeros up to the width of a window."""
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, WIDTH - x.shape[-1])])


def own_memory(rows):
    """Declare a window of so many rows, and a signal for barriers."""
    return [Window("data", (rows, WIDTH)), Signal("signal", ("P", 1), self_cleaning=True)]


@kernel(memory=own_memory("P"), inputs=rows, golden=golden.allgather)
async def pushed(rank, x, data, signal):
    """All-gather by the composite, which takes whole rows."""
    await allgather(rank, padded(x), data, signal, safe=True)
    return await rank.load(data[:, : x.size])


@kernel(memory=own_memory("P"), inputs=blocks, golden=golden.all_to_all)
async def exchanged(rank, x, data, signal):
    """All-to-all by the composite."""
    await all_to_all_of(rank, padded(x), data, signal, safe=True)
    return await rank.load(data[:, : x.shape[1]])


@kernel(memory=own_memory("P"), inputs=blocks, golden=golden.reduce_scatter)
async def scattered(rank, x, data, signal):
    """Reduce-scatter by the composite, on rows that are partly those of an earlier call."""
    await rank.store(data[:, : x.shape[1]], x)
    await reduce_scatter(rank, data, signal)
    return await rank.load(data[rank.id, : x.shape[1]])


def counted(P, call, rng):
    """Give each rank whole rows, and counts that change from call to call instead."""
    return [(block, np.full((P, P), SIZES[call])) for block in blocks(P, call, rng, size=WIDTH)]


def varied(made):
    """Return an exhibit on windows of the greatest size, with inputs that differ in theirs from call to call."""
    wide = make(made, size=WIDTH)
    if made in (all_to_all.v_safe, all_to_all.v_composite):
        return replace(wide, inputs=counted, golden=counted_golden)
    return replace(wide, inputs=lambda P, call, rng: made.inputs(P, call, rng, size=SIZES[call]))


WHOLE_ROWS = {all_gather.push, all_gather.push_composite, all_to_all.safe, all_to_all.composite}
VARIED = {
    **{row: cells for row, cells in ROWS.items() if cells[0].module != scatter.__name__ and cells[0] not in WHOLE_ROWS},
    **{made.name: (made, CLEAN, CLEAN) for made in (pushed, exchanged, scattered)},
}


@pytest.mark.parametrize("row", ROWS)
async def test_three_calls_have_the_hazards_of_two_at_every_number_of_ranks(row):
    made, _, hazards = ROWS[row]
    for ranks in (1, 2, 3, 4, 5, 8):
        run = await simulate.aio(Case(made, ranks, 3), Fifo(), record="fifo")
        analysis = analyse(run.trace)
        found = {finding.hazard for finding in analysis.findings}
        assert analysis.exact
        assert found == (set(hazards) if ranks > 1 else set()), ranks


@pytest.mark.parametrize("row", VARIED)
async def test_four_calls_with_sizes_3_1_1_3(row):
    made, once, again = VARIED[row]
    case = Case(varied(made), 3, len(SIZES))
    run = await simulate.aio(case, Fifo(), record="fifo")
    assert [y.shape[-1] for y in run.outputs[1]] != [y.shape[-1] for y in run.outputs[0]]
    assert_hazards(analyse(run.trace).findings, dict.fromkeys({**once, **again}), 3)
    if not again:
        report = await check.aio(case.kernel, ranks=3, calls=len(SIZES))
        assert report.verdict == "PROVED"
