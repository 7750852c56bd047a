"""What kernels move and how long it takes: exact bytes, and the critical path at given prices."""

from __future__ import annotations

import numpy as np
import pytest
from priced import PRICE, SIZES, box, card, flag, only_a_barrier, trace_of

from asyncsim import MisuseError, Set, Signal, kernel
from asyncsim.analysis.cost import costs, critical_path
from asyncsim.checking.record.locate import locate
from asyncsim.study.cost import ALGORITHMS, cost
from asyncsim.trace.price import Price

# Exactly: N is the bytes of the whole input of one rank.


@pytest.mark.parametrize("P", SIZES)
@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("reduce_scatter:hand", lambda P: (P - 1) / P),
        ("reduce_scatter:builtin", lambda P: (P - 1) / P),
        ("all_reduce:mesh", lambda P: P - 1),
        ("all_reduce:builtin", lambda P: P - 1),
        ("all_reduce:ring_by_hand", lambda P: 2 * (P - 1) / P),
        ("ring:by_pull", lambda P: 2 * (P - 1) / P),
        ("all_reduce:two_phase", lambda P: 2 * (P - 1) / P),
        ("all_reduce:two_phase_pull", lambda P: 2 * (P - 1) / P),
        ("all_gather:push", lambda P: P - 1),
        ("all_to_all:safe", lambda P: (P - 1) / P),
    ],
)
def test_the_bytes_that_a_rank_receives_are_exact(name, times, P):
    made = card(name, P)
    assert [cost.received for cost in made.ranks] == [round(times(P) * made.input_bytes)] * P
    assert made.total.received == made.total.sent == round(P * times(P) * made.input_bytes)


@pytest.mark.parametrize("P", [2, 4, 8])
def test_the_ring_composite_moves_as_much_where_its_segments_are_equal(P):
    made = card("all_reduce:ring", P)
    assert {cost.received for cost in made.ranks} == {2 * (P - 1) * made.input_bytes // P}


@pytest.mark.parametrize("P", [1, *SIZES])
def test_a_barrier_is_p_minus_1_notifies_and_as_many_waits(P):
    made = cost(only_a_barrier, PRICE, ranks=P)
    for own in made.ranks:
        assert (own.notifies, own.waits, own.credits, own.barriers) == (P - 1, P - 1, P - 1, 1)
        assert (own.received, own.sent, own.messages, own.windows) == (0, 0, 0, 0)
    assert made.path.seconds == P - 1
    assert made.input_bytes == 0


def test_what_is_pushed_is_received_by_its_owner_and_costs_its_sender():
    made = card("all_gather:push", 3)
    assert [(cost.messages, cost.reduced) for cost in made.ranks] == [(2, 0)] * 3
    assert made.ranks[0].windows == 3 * made.input_bytes


# Counting, event by event.


@kernel(memory=[box, flag])
async def all_sorts(rank, box, flag):
    """Rank 1 adds, puts with signal, sets, gets; rank 0 waits."""
    if rank.id == 0:
        await rank.wait(flag[0] >= 3, consume=True)
        await rank.wait(flag[1] >= 7)
        await rank.store(box[4:8], np.ones(4, np.float32))
        return
    await rank.store(box.at(0)[0:2], np.ones(2, np.float32), atomic="add")
    await rank.put_signal(box.at(0)[1:3], np.ones(2, np.float32), flag.at(0)[0], 3)
    await rank.notify(flag.at(0)[1], 7, Set)
    await rank.get(box[0:1], box[0:1])
    with rank.phase("all"), rank.phase("reduce it"):
        await rank.get(box[2:4], box.at(0)[6:8])


def test_each_sort_of_operation_is_counted_where_it_belongs():
    waiting, doing = costs(trace_of(all_sorts))
    assert (doing.sent, doing.received, doing.messages) == (16, 8, 3)
    assert (waiting.sent, waiting.received, waiting.messages) == (8, 16, 0)
    assert (doing.notifies, doing.credits, waiting.notifies, waiting.waits) == (2, 3, 0, 2)
    assert doing.reduced == 8 + 8  # the add, and the get in a phase that reduces
    assert (waiting.windows, doing.windows) == (12 + 16, 4 + 8)  # overlaps count once


def test_the_path_goes_through_the_notify_that_a_wait_was_for():
    path = critical_path(trace_of(all_sorts), Price(alpha=1.0, beta=0.0, gamma=0.0))
    assert (path.seconds, path.messages, path.moved, path.reduced) == (4.0, 4, 24, 16)
    assert [event.op.kind for event in path.events] == ["remote_store", "put_signal", "notify", "get"]
    assert critical_path(trace_of(all_sorts), Price(alpha=0.0, beta=0.0, gamma=1.0)).seconds == 16


@kernel(memory=[Signal("count", (1,)), Signal("begin", (1,), start=1)])
async def two_producers(rank, count, begin):
    """Rank 0 waits for three credits, of which slow rank 2 gives the last; it need not wait for a start value."""
    if rank.id == 0:
        await rank.wait(begin[0] >= 1)
        await rank.wait(count[0] >= 3)
        await rank.notify(count.at(1)[0], 1)
    elif rank.id == 1:
        await rank.notify(count.at(0)[0], 2)
    else:
        for _ in range(4):
            await rank.notify(begin.at(1)[0], 1)
        await rank.notify(count.at(0)[0], 1)


def test_of_several_producers_the_latest_decides():
    path = critical_path(trace_of(two_producers, 3), PRICE)
    assert path.seconds == 6
    assert [event.op.actor.rank for event in path.events] == [2] * 5 + [0]


@kernel(memory=[box, flag])
async def with_streams(rank, box, flag):
    """A stream loads twice; both meet, and the rank joins it; then rank 1 polls what rank 0 stores late."""

    async def loads(rank, meeting):
        await rank.load(box.at(1 - rank.id)[0])
        await rank.load(box.at(1 - rank.id)[1])
        await rank.sync(meeting)

    async def nothing(rank):
        pass

    meeting = rank.stream_barrier(2)
    stream, idle = await rank.start(loads, meeting), await rank.start(nothing)
    await rank.join(idle)
    await rank.sync(meeting)
    await rank.join(stream)
    if rank.id == 0:
        await rank.store(box.at(1)[0], 1)
    else:
        await rank.poll(box[0], lambda tile: tile == 1)
        await rank.notify(flag.at(0)[0], 1)


def test_streams_meetings_and_polls_are_followed():
    assert critical_path(trace_of(with_streams), Price(alpha=1.0, beta=0.0)).seconds == 4  # two loads, store, notify


@kernel(memory=[box])
async def polls_what_is_there(rank, box):
    """Poll for what holds from the start."""
    await rank.poll(box[0], lambda tile: tile == 0)


def test_an_empty_run_or_one_that_waits_for_nothing_takes_no_time():
    path = critical_path(trace_of(polls_what_is_there), PRICE)
    assert (path.seconds, path.events) == (0.0, [])


@kernel(memory=[])
async def does_nothing(rank):
    """Return at once."""


def test_no_event_is_no_path():
    assert critical_path(trace_of(does_nothing), PRICE).seconds == 0


def test_landings_are_counted_with_their_issue_and_have_no_path():
    late = trace_of(locate("all_gather:push"), 3, memory="nic")
    assert costs(late) == costs(trace_of(locate("all_gather:push"), 3))
    with pytest.raises(MisuseError, match="that of a run under sc"):
        critical_path(late, PRICE)


def test_a_trace_without_a_footer_says_nothing_of_barriers():
    made = trace_of(only_a_barrier)
    made.footer = None
    assert [own.barriers for own in costs(made)] == [0, 0]


def test_the_path_is_what_the_clock_of_virtual_time_shows():
    for names in ALGORITHMS.values():
        for name in names.values():
            made = card(name, 3, calls=2)
            assert sum(PRICE.seconds(event.op) for event in made.path.events) == pytest.approx(made.path.seconds)
            assert made.path.seconds == pytest.approx(made.path.messages + made.path.moved / 1000)


@pytest.mark.parametrize("prices", [{"alpha": -1.0}, {"beta": float("nan")}, {"gamma": True}, {"alpha": "1"}])
def test_what_is_no_time_is_refused(prices):
    with pytest.raises(MisuseError, match="give seconds, at least 0"):
        Price(**prices)
