"""What the file tells of memory and of the other order is what a run of the kernel does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedules import Scripted, run
from shown import EVERY, RACE, small, small_trace

from asyncsim import Case, Signal, Window, kernel, simulate
from asyncsim.checking.record.locate import locate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.event import Digest
from asyncsim.trace.jsonl import read_trace
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_contents import START, Contents, cells_after, sum_of
from asyncsim.views.timeline_orders import delayed_with, orders_of, other_schedule, pair_of, value_text

RACES = [path for path in EVERY if read_trace(path).footer.findings[0]["kind"] in ("race", "signal-race")]
"""Those of the kept witnesses that are about the order of two steps."""
TOLD = {path for path in RACES if (t := timeline_of(read_trace(path))) and orders_of(t, t.findings[0]).other}


def test_most_kept_races_are_told_both_ways():
    assert len(RACES) >= 32
    assert len(TOLD) / len(RACES) > 0.7


@pytest.mark.parametrize("path", sorted(TOLD), ids=lambda path: path.stem)
def test_the_other_order_as_told_is_what_a_run_in_that_order_does(path):
    timeline = timeline_of(read_trace(path))
    first, second = pair_of(timeline.findings[0])
    header = timeline.trace.header
    schedule = other_schedule(timeline, first, second)
    case = Case(locate(header.kernel), header.world.ranks, header.calls, header.memory, header.seed)
    again = simulate(case, Scripted(*schedule), record="again").trace
    after = timeline_of(again).after
    assert again.choices[: second + 1] == schedule[: second + 1]
    later = [step for step in range(second) if step not in (delayed_with(timeline, first, second) or ())]
    for place, turn in zip((len(later), len(later) + 1), orders_of(timeline, timeline.findings[0]).other, strict=True):
        event = again.events[place]
        assert str(event.op) == str(timeline.events[turn.step].op)
        if event.data is not None and event.op.kind in ("load", "remote_load", "fetch"):
            region = event.op.accesses[0].region
            read, _, writers = turn.outcome.partition(", written by ")
            # A part of a larger tile has a digest that the trace does not hold; who wrote it is told all the same.
            assert read in (f"reads {value_text(event.data, region.dtype)}", f"reads {value_text(None, region.dtype)}")
            assert writers
        elif event.data is not None:
            assert event.op.deferred or "writes " in turn.outcome
        elif event.op.cell is not None:
            assert turn.outcome == f"{event.op.cell} is {after[place]}"


def test_both_orders_of_the_barrier_that_is_missing():
    timeline = timeline_of(read_trace(RACE))
    orders = orders_of(timeline, timeline.findings[0])
    assert [turn.step for turn in orders.run] == [12, 17]
    assert [turn.step for turn in orders.other] == [17, 12]
    assert "written by step 12 (rank 1)" in orders.run[1].outcome
    assert "written by step 3 (rank 1)" in orders.other[0].outcome
    assert (
        orders.note
        == "told from the file: step 12 can wait until step 17 is done, and with it 2 steps that came after it"
    )


def test_what_the_file_cannot_tell_is_said():
    (path,) = (path for path in RACES if "f26_source_reused" in path.name)
    timeline = timeline_of(read_trace(path))
    orders = orders_of(timeline, timeline.findings[0])
    assert orders.other == ()
    assert "the file does not tell more" in orders.note
    first, second = pair_of(timeline.findings[0])
    schedule = other_schedule(timeline, first, second)
    assert sorted(schedule) == sorted(timeline.trace.choices)
    assert schedule != timeline.trace.choices


def test_what_a_rank_sees_before_it_lands_is_not_guessed():
    timeline = timeline_of(read_trace(RACE))
    read = timeline.events[17]
    read.data = Digest("0" * 16, 64)
    assert "have not landed" in orders_of(timeline, timeline.findings[0]).note


def test_nearly_all_that_is_told_of_the_other_order_is_told_with_its_value():
    outcomes = [
        turn.outcome
        for path in TOLD
        if (timeline := timeline_of(read_trace(path)))
        for turn in orders_of(timeline, timeline.findings[0]).other
    ]
    assert sum("does not hold" in outcome for outcome in outcomes) / len(outcomes) < 0.1


def test_contents_are_those_of_the_run():
    trace = small_trace()
    result = simulate(Case(small, 2, 1), Fifo(), record="fifo")
    contents, end = Contents(trace), len(trace.events)
    for layout, rank in ((layout, rank) for layout in trace.header.world.windows for rank in (0, 1)):
        region = layout.region(rank, slice(None), rank)
        seen = contents.before(region, end)
        number = [window.name for window in trace.header.world.windows].index(layout.name)
        assert seen.data == result.windows[2 * number + rank].tobytes()
    tally = trace.header.world.layouts["tally"]
    start = contents.before(tally.region(0, slice(None), 0), 0)
    assert (np.frombuffer(start.data, np.int32).tolist(), start.writers) == ([5, 5, 5, 5], (START,))
    count = [value for value in cells_after(trace) if value is not None]
    assert count == [5, 5]


PLACES = st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(1, 3), st.booleans(), st.integers(0, 9))


@settings(max_examples=60)
@given(st.lists(PLACES, min_size=1, max_size=6), st.sampled_from([None, 3, "random"]))
def test_contents_after_any_writes_are_those_of_the_run(places, dirty):
    async def program(rank, row):
        for start, length, step, add, value in places:
            region = row[start : min(start + length, 6) : step]
            await rank.store(region, np.full(region.shape, value), atomic="add" if add else None)

    memory = [Window("row", (6,), np.int64, dirty=dirty)]
    result = run(program, memory, ranks=1, calls=1, record="scripted")
    layout = result.trace.header.world.windows[0]
    seen = Contents(result.trace).before(layout.region(0, slice(None), 0), len(places))
    if dirty != "random":
        assert seen.data == result.windows[0].tobytes()
    elif START in seen.writers:
        assert seen.data is None


def test_a_consuming_wait_takes_its_credits_from_the_cell():
    async def program(rank, cell):
        await rank.notify(cell[0], 3)
        await rank.wait(cell[0] >= 2, consume=True)

    trace = run(program, [Signal("cell", (1,), start=1)], ranks=1, calls=1, record="scripted").trace
    assert cells_after(trace) == [4, 2]


def test_large_values_have_digests_and_complex_ones_their_digits():
    assert value_text(b"\0" * 68, np.dtype(np.float32)).startswith("17 elements, digest ")
    assert value_text(np.array([1 + 2j], np.complex64).tobytes(), np.dtype(np.complex64)) == "(1+2j)"
    assert value_text(np.arange(6, dtype=np.int8).tobytes(), np.dtype(np.int8)) == "0, 1, 2, 3, … 2 more"
    assert value_text(b"", np.dtype(np.int8)) == "nothing"
    assert value_text(None, np.dtype(np.int8)) == "a value that the trace does not hold"


def test_a_sum_is_known_only_if_both_its_parts_are():
    region = small_trace().header.world.layouts["tally"].region(0, slice(0, 1), 0)
    one = np.array([2**31 - 1], np.int32).tobytes()
    assert np.frombuffer(sum_of(region, one, one), np.int32)[0] == -2
    assert sum_of(region, None, one) is None
    assert sum_of(region, one, Digest("0" * 16, 17)) is None


@kernel(memory=[Window("row", (1,), np.int32, initialised=True), Signal("cell", (1,))])
async def published(rank, row, cell, *, scope):
    """Put by a stream, and tell the receiver after a quiet."""
    if rank.id == 0:
        await rank.join(await rank.start(_put, row))
        await rank.quiet(scope=scope)
        await rank.notify(cell.at(1)[0], order="relaxed")
    else:
        await rank.wait(cell[0] >= 1)
        await rank.load(row[0])


async def _put(rank, row):
    await rank.put(row.at(1)[0], 7)


@pytest.mark.parametrize(("scope", "held"), [("stream", True), ("rank", False)])
def test_a_quiet_of_the_rank_is_held_with_what_any_of_its_streams_put(scope, held):
    case = Case(published.variant(scope=scope), ranks=2, calls=1, memory="nic")
    trace = simulate(case, Scripted(0, "0.1", 0, "0.1>0", 0, 0, "0>3", 1), record="by hand").trace
    timeline = timeline_of(trace)
    kinds = [(event.op.kind, event.op.cell) for event in timeline.events]
    landing, load = kinds.index(("land", None)), kinds.index(("load", None))
    assert (delayed_with(timeline, landing, load) is not None) is held
