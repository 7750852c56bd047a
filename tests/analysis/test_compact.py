"""Columns are events, and the analysis of columns is the analysis of events."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from programs import FAMILIES, kernel_of, program_number
from runs import RandomSchedule

import kernels.all_gather
import kernels.all_reduce
import kernels.broadcast
import kernels.reduce_scatter
import kernels.ring
from asyncsim import Case, Fifo, Kernel, Signal, Window, kernel, simulate
from asyncsim.analysis import segments
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.compact import analyse_columns
from asyncsim.trace.columns import Columns
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.event import Digest, Trace
from kernels.field import CASES

KERNELS = [
    made
    for module in (
        kernels.reduce_scatter,
        kernels.all_reduce,
        kernels.broadcast,
        kernels.all_gather,
        kernels.ring,
    )
    for made in vars(module).values()
    if isinstance(made, Kernel) and made is not kernels.reduce_scatter.wrong_op
]


def in_columns(trace):
    return Trace(trace.header, Columns.of(trace.events), trace.footer)


def fair_run(case):
    return simulate(case, Fifo(), record="fifo").trace


def said(analysis):
    return (
        analysis.findings,
        analysis.race_pairs,
        list(map(str, analysis.cells)),
        analysis.reasons,
        analysis.exact,
        analysis.fast,
        analysis.clean,
    )


def fields(event, *, exact):
    """What an event says, without its payload; and of long data only how long it is."""
    data = event.data
    if isinstance(data, bytes) and not exact:
        data = digest_bytes(data)
    elif isinstance(data, Digest):
        data = data.hex
    op = event.op
    return (
        event.step, op.actor, op.kind, op.accesses, op.cell is None or op.cell.slot, op.how, op.amount, op.consume,
        op.late, op.relaxed, op.link, op.deferred, event.call, event.phase, event.at, data, event.have,
        event.unwritten, event.time,
    )  # fmt: skip


@pytest.mark.parametrize("given", KERNELS, ids=lambda made: made.ref)
def test_the_columns_of_a_kernel_say_what_its_events_say(given):
    for ranks in (1, 2, 3, 5):
        trace = fair_run(Case(given, ranks))
        assert said(analyse(in_columns(trace))) == said(analyse(trace))


def test_most_kernels_are_decided_from_their_columns():
    decided = [analyse_columns(in_columns(t), in_columns(t)) for t in (fair_run(Case(made, 3)) for made in KERNELS)]
    assert sum(found is not None for found in decided) >= 0.8 * len(KERNELS)


def test_the_field_is_told_alike_from_columns():
    for case in CASES:
        for given in (case.buggy, case.fixed):
            for memory in ("sc", "nic") if case.memory == "auto" else (case.memory,):
                trace = fair_run(Case(given, case.ranks, case.calls, memory))
                assert said(analyse(in_columns(trace))) == said(analyse(trace))


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_are_told_alike_from_columns_whatever_the_run(family):
    for number in range(12):
        program = program_number(family, number)
        case = Case(kernel_of(program), len(program.actors), program.calls)
        trace = simulate(case, RandomSchedule(number), record="random").trace
        fair = fair_run(case)
        assert said(analyse(in_columns(trace), fair=in_columns(fair))) == said(analyse(trace, fair=fair))


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic:atom=4"])
def test_an_event_comes_back_as_it_went_in(memory):
    trace = fair_run(Case(kernels.reduce_scatter.hand, 3, memory=memory))
    columns = Columns.of(trace.events)
    assert len(columns) == len(trace.events)
    for event, again in zip(trace.events, columns, strict=True):
        long = isinstance(again.data, Digest)
        assert long == (isinstance(event.data, bytes) and len(event.data) > 16 * 4)
        assert fields(event, exact=not long) == fields(again, exact=True)


def test_streams_links_and_virtual_time_come_back_too():
    for case in CASES:
        if case.number in ("F25", "F26"):
            trace = fair_run(Case(case.fixed, case.ranks, case.calls, case.memory))
            for event in trace.events:
                event.time = 0.5 * event.step
            again = Columns.of(trace.events)
            assert [(e.op.link, e.op.late, e.time) for e in again] == [
                (e.op.link, e.op.late, e.time) for e in trace.events
            ]


def test_columns_are_a_sequence():
    columns = Columns.of(fair_run(Case(kernels.reduce_scatter.hand, 2)).events)
    assert columns[-1].step == len(columns) - 1
    assert [event.step for event in columns[2:8:3]] == [2, 5]
    with pytest.raises(IndexError, match=f"step {len(columns)} of {len(columns)}"):
        columns[len(columns)]
    assert not len(Columns())
    assert analyse_columns(Trace(None, Columns()), Trace(None, Columns())) is None


def test_two_runs_of_a_clean_kernel_differ_in_nothing_but_their_order():
    case = Case(kernels.reduce_scatter.builtin, 3)
    runs = [Columns.of(simulate(case, RandomSchedule(seed), record="r").trace.events) for seed in (1, 2)]
    assert [e.op.actor.name for e in runs[0]] != [e.op.actor.name for e in runs[1]]
    assert runs[0].differs_in(runs[1]) is None


CHANGES = {
    "an operation less": lambda events: events[:-1],
    "another amount": lambda events: [*events[:9], changed(events[9], amount=77), *events[10:]],
    "another kind": lambda events: [*events[:9], changed(events[9], kind="fence"), *events[10:]],
    "one byte of long data": lambda events: [*events[:3], with_data(events[3], b"\1"), *events[4:]],
}


def changed(event, **what):
    return replace(event, op=replace(event.op, **what))


def with_data(event, byte):
    return replace(event, data=byte + event.data[1:])


@pytest.mark.parametrize("how", CHANGES)
def test_the_first_difference_of_two_runs_is_found_in_its_actor(how):
    events = fair_run(Case(kernels.reduce_scatter.builtin, 3)).events
    other = CHANGES[how](events)
    for here, there in ((events, other), (other, events)):
        found = Columns.of(here).differs_in(Columns.of(there))
        assert found is not None
        name, index = found
        mine, others = ([e for e in run if e.op.actor.name == name] for run in (here, there))
        assert [fields(e, exact=True) for e in mine[:index]] == [fields(e, exact=True) for e in others[:index]]
        assert len(mine) == index or len(others) == index or mine[index] != others[index]


def test_an_actor_that_only_one_run_has_is_a_difference():
    events = fair_run(Case(kernels.reduce_scatter.builtin, 3)).events
    fewer = [event for event in events if event.op.actor.name != "1"]
    assert Columns.of(events).differs_in(Columns.of(fewer)) == ("1", 0)


def test_overlapping_regions_of_other_shapes_race_across_them():
    data = Window("data", ("P", 4), np.float32, initialised=True)
    done = Signal("done", ("P",))

    @kernel(memory=[data, done])
    async def overlap(rank, data, done):
        await rank.store(data[:, 1:3], np.zeros((rank.size, 2), np.float32))
        for peer in rank.peers:
            await rank.load(data.at(peer)[rank.id])
            await rank.load(data.at(peer)[rank.id, 3])
            await rank.load(data.at(peer)[:])

    trace = fair_run(Case(overlap, 3))
    found = analyse_columns(in_columns(trace), in_columns(trace))
    assert found.race_pairs() == analyse(trace).race_pairs
    assert len(found.race_pairs()) > 12


def test_pairs_are_the_same_however_few_are_looked_at_together(monkeypatch):
    trace = fair_run(Case(kernels.reduce_scatter.no_post_barrier, 4))
    monkeypatch.setattr("asyncsim.analysis.pairs.CHUNK", 7)
    assert said(analyse(in_columns(trace))) == said(analyse(trace))


def test_a_run_whose_vectors_would_be_too_many_is_left_to_the_events(monkeypatch):
    trace = fair_run(Case(kernels.reduce_scatter.builtin, 4))
    monkeypatch.setattr(segments, "MOST_NUMBERS", 10)
    assert analyse_columns(in_columns(trace), in_columns(trace)) is None
    assert said(analyse(in_columns(trace))) == said(analyse(trace))


LARGE = [1, 7, 2**30, 2**31 - 1, 2**31, 2**52, 2**53 + 1, 2**61, 2**62, 2**63 - 1]
STARTS = [0, 1, -1, 2**52, 2**62, 2**63 - 1, -(2**31), -(2**62), -(2**63)]


def large_numbers(rng):
    """Return a kernel of two ranks whose cells of int64 start anywhere and move by as much as they can hold."""
    memory, notifies, threshold = [Window("data", (1,), initialised=True)], [], []
    sizes, starts = rng.choice(((LARGE, STARTS), (LARGE[:5], STARTS[:3])))
    for number in range(2):
        start, amounts = (
            rng.choice(starts),
            [rng.choice((-1, 1, 1)) * rng.choice(sizes) for _ in range(rng.randint(1, 3))],
        )
        wrap = rng.random() < 0.3
        memory.append(Signal(f"cell{number}", (1,), "int64", start=start, wrap=wrap, self_cleaning=rng.random() < 0.3))
        notifies.append([amount if wrap else abs(amount) for amount in amounts])
        threshold.append(min(max(start + rng.choice((0, 1, *amounts, sum(amounts))), -(2**63)), 2**63 - 1))
    above = rng.random() < 0.5

    @kernel(memory=memory)
    async def moves(rank, data, *cells):
        if rank.id == 0:
            await rank.store(data.at(1)[0], 1.0)
            for cell, amounts in zip(cells, notifies, strict=True):
                for amount in amounts:
                    await rank.notify(cell.at(1)[0], amount)
        else:
            for cell, least in zip(cells, threshold, strict=True):
                await rank.wait(cell[0] > least if above else cell[0] >= least)
            await rank.load(data[0])

    return moves


def test_columns_say_of_large_numbers_what_events_say(pytestconfig):
    rng = random.Random(64)  # noqa: S311 - dice, no secret
    decided, told = 0, set()
    for _ in range(4_000 if pytestconfig.getoption("--thorough") else 400):
        trace = fair_run(Case(large_numbers(rng), 2, 1))
        found = analyse(trace)
        told.add((trace.footer.ending, *(finding.kind for finding in found.findings)))
        assert said(analyse(in_columns(trace))) == said(found)
        decided += analyse_columns(in_columns(trace), in_columns(trace)) is not None
    assert decided > 5
    assert {("complete",), ("complete", "race"), ("complete", "leftover-credit")} <= told


@kernel(memory=[Signal("cell", (2,), np.int64, start=2**63 - 1, wrap=True)])
async def wraps_at_the_end(rank, cell):
    """The wait holds only before the notify comes."""
    if rank.id == 0:
        await rank.wait(cell[0] >= 1)
    if rank.id == 1:
        await rank.notify(cell.at(0)[0], 1)


@kernel(memory=[Signal("cell", (2,), np.int64, self_cleaning=True)])
async def leaves_one(rank, cell):
    """2**53 + 1 is no float64."""
    if rank.id == 1:
        await rank.notify(cell.at(0)[0], 2**53 + 1)
    if rank.id == 0:
        await rank.wait(cell[0] >= 1)
        await rank.notify(cell[0], -(2**53))


@kernel(memory=[Signal("cell", (2,), np.int64, start=-(2**63)), Window("data", (1,), initialised=True)])
async def needs_much(rank, cell, data):
    """What the wait needs in all is no int64."""
    if rank.id == 1:
        await rank.store(data.at(0)[0], 1.0)
        await rank.notify(cell.at(0)[0], 2**63 - 1)
        await rank.notify(cell.at(0)[0], 2**62)
    if rank.id == 0:
        await rank.wait(cell[0] >= 2**62 - 1)
        await rank.load(data[0])


@kernel(memory=[Signal("cell", (1,), np.int64), Window("data", (1,), initialised=True)])
async def needs_one_more_than_the_largest(rank, cell, data):
    """All amounts are kept in 32 bits; what more than the largest of them needs is not."""
    if rank.id == 1:
        await rank.store(data.at(0)[0], 1.0)
        await rank.notify(cell.at(0)[0], 2**30)
        await rank.notify(cell.at(0)[0], 2**30)
    if rank.id == 0:
        await rank.wait(cell[0] > 2**31 - 1)
        await rank.load(data[0])


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (wraps_at_the_end, ["overflow"]),
        (leaves_one, ["leftover-credit"]),
        (needs_much, []),
        (needs_one_more_than_the_largest, []),
    ],
)
@pytest.mark.parametrize("ranks", [3, 33])
def test_numbers_at_the_end_of_64_bits_are_judged_alike_among_few_and_many(given, kinds, ranks):
    trace = simulate(Case(given, ranks, 1), Fifo(), record="fifo", engine="direct").trace
    assert isinstance(trace.events, Columns) == (ranks == 33)
    assert [finding.kind for finding in analyse(trace).findings] == kinds


def test_cells_and_credits_too_many_for_one_number_are_left_to_the_events(monkeypatch):
    trace = fair_run(Case(kernels.reduce_scatter.builtin, 4))
    monkeypatch.setattr(segments, "MOST_KEY", 10)
    assert analyse_columns(in_columns(trace), in_columns(trace)) is None
    assert said(analyse(in_columns(trace))) == said(analyse(trace))
