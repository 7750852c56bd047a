"""What kernels move and how long it takes: exact bytes, the critical path at given prices, lower bounds, tables."""

from __future__ import annotations

import json
import re
from functools import partial

import numpy as np
import pytest
from command import run

from asyncsim import Case, Fifo, MisuseError, Set, Signal, Window, barrier, golden, kernel, settle, simulate
from asyncsim.analysis.cost import costs, critical_path
from asyncsim.checking.cost import ALGORITHMS, Card, algorithms, bound_of, collective_of, compare, cost, resized
from asyncsim.checking.locate import locate
from asyncsim.trace.price import Price
from asyncsim.views.cost import card_text, comparison_text

PRICE = Price(alpha=1.0, beta=0.001, gamma=0.0)
SIZES = (2, 3, 4, 5, 8)


def card(name, ranks=4, **options) -> Card:
    return cost(locate(name), PRICE, ranks=ranks, **options)


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


@kernel(memory=[Signal("signal", ("P", 1), self_cleaning=True)])
async def only_a_barrier(rank, signal):
    """Meet once."""
    await barrier(rank, signal)
    await settle(rank, signal, credits=1)


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

box = Window("box", (8,), np.float32, initialised=True)
flag = Signal("flag", (2,))


def trace_of(made, ranks=2, scheduler=None, **options):
    return simulate(Case(made, ranks, 1, **options), scheduler or Fifo(), record="fifo").trace


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


# Lower bounds.


def test_the_bounds_of_the_collectives():
    def numbers(name, P):
        bound = bound_of(name, P, 1000 * P)
        return bound.messages, bound.moved, bound.reduced

    assert numbers("reduce-scatter", 4) == (2, 3000, 3000)
    assert numbers("all-reduce", 5) == (3, 8000, 4000)
    assert numbers("all-gather", 4) == (2, 12000, 0)
    assert numbers("broadcast", 8) == (3, 7000, 0)
    assert numbers("all-to-all", 1) == (0, 0, 0)
    assert bound_of("all-reduce", 4, 4000).seconds(Price(alpha=1, beta=2, gamma=9)) == 27000


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("reduce_scatter:builtin", "reduce-scatter"),
        ("all_reduce:ring", "all-reduce"),
        ("halving_doubling:in_place", "all-reduce"),
        ("all_gather:pull", "all-gather"),
        ("broadcast:safe", "broadcast"),
        ("all_to_all:safe", "all-to-all"),
        ("all_to_all:v_safe", None),
    ],
)
def test_a_collective_is_known_by_its_golden_or_its_place(name, collective):
    assert collective_of(locate(name)) == collective


def test_a_golden_with_some_arguments_given_is_known_too():
    made = only_a_barrier.variant(golden=partial(golden.all_reduce, accumulate=np.float64))
    assert collective_of(made) == "all-reduce"


@pytest.mark.parametrize("names", ALGORITHMS.values())
@pytest.mark.parametrize("P", [2, 3, 4])
def test_no_algorithm_beats_the_bound(names, P):
    for name in names.values():
        for price in (PRICE, Price(alpha=0, beta=1), Price(alpha=0, beta=0, gamma=1)):
            made = cost(locate(name), price, ranks=P)
            if made.bound is not None and (price.gamma == 0 or made.reductions_show):
                assert made.path.seconds >= made.bound.seconds(price) * (1 - 1e-9)


def test_reductions_that_leave_no_event_are_told():
    assert card("all_reduce:mesh").reductions_show
    hidden = card("ring:by_pull")
    assert not hidden.reductions_show
    assert "reductions     do not all show" in card_text(hidden)


@kernel(memory=[box], inputs=lambda P, call, rng: [np.ones(1)] * P, golden=golden.all_reduce)
async def two_tasks(rank, x, box):
    """Do nothing, in two tasks."""

    async def other(rank):
        await rank.load(box[0])

    await rank.join(await rank.start(other))


def test_no_bound_is_claimed_where_a_rank_has_several_tasks():
    assert collective_of(two_tasks) == "all-reduce"
    assert cost(two_tasks, PRICE, ranks=2).bound is None


# Tables.


def test_where_each_algorithm_wins():
    cards = compare("all_reduce", Price(), ranks=[4], sizes=[1024, 1 << 17])
    best = {size: min(made, key=lambda name: made[name].path.seconds) for (_, size), made in cards.items()}
    assert best == {1024: "doubling", 1 << 17: "halving"}
    text = comparison_text("all_reduce", cards)
    lines = text.splitlines()
    assert lines[3].split()[:6] == ["P", "N", "mesh", "ring", "two-phase", "halving"]
    assert re.search(r"^4  131072 .* us \* ", text, re.MULTILINE)
    assert len(lines) == 14


def test_exhibits_are_made_of_the_size_that_is_asked_for():
    for names in ALGORITHMS.values():
        for name in names.values():
            assert cost(resized(locate(name), 4, 4096), PRICE).input_bytes == 4096
    with pytest.raises(MisuseError, match=r"8 bytes are less than one element a row of kernels\.all_reduce:two_phase"):
        resized(locate("all_reduce:two_phase"), 4, 8)
    with pytest.raises(MisuseError, match="its inputs take no size"):
        resized(locate("reduce_scatter:builtin"), 4, 4096)
    with pytest.raises(MisuseError, match="its inputs take no size"):
        resized(only_a_barrier, 4, 4096)
    with pytest.raises(MisuseError, match="there are tables of all_reduce, "):
        algorithms("reduce")


# The command.


def test_a_card_has_a_line_a_rank_and_the_total():
    assert (
        card_text(card("reduce_scatter:builtin", 2))
        == """\
kernels.reduce_scatter:builtin, P = 2, 1 call; N = 512 bytes of input a rank

rank  received B  sent B  messages  notifies  waits  barriers  credits  reduced B  windows B
----  ----------  ------  --------  --------  -----  --------  -------  ---------  ---------
0     256         256     1         2         2      2         2        256        512
1     256         256     1         2         2      2         2        256        512
all   512         512     2         4         4      4         4        512        1024

critical path  3256000.00 us: 3 alpha + 256 beta + 256 gamma
lower bound    1000000.00 us, 3.26 times as long: reduce-scatter takes 1 alpha, 256 beta or 256 gamma a call, \
whichever is most
               alpha = 1 s a message or notify, beta = 0.001 s a byte moved, gamma = 0 s a byte reduced
"""
    )
    assert "2 calls" in card_text(card("reduce_scatter:builtin", 2, calls=2))
    assert "not claimed" in card_text(cost(only_a_barrier, PRICE))
    alone = card_text(card("reduce_scatter:builtin", 1))
    assert "lower bound    0.00 us: reduce-scatter takes 0 alpha" in alone


def test_the_command_prints_cards_and_tables_and_json():
    assert run("cost", "reduce_scatter:builtin", "-P", "2,3").output.count("critical path") == 2
    table = run("cost", "--table", "all_gather", "-P", "2", "--bytes", "64")
    assert table.output.startswith("all_gather: the critical path of one call")
    (made,) = json.loads(run("cost", "all_reduce:mesh", "--alpha", "2", "--json").output)
    assert (made["alpha"], made["bound"]["collective"], made["total"]["received"]) == (2.0, "all-reduce", 12 * 256)
    (other,) = json.loads(run("cost", "all_to_all:v_safe", "--json").output)
    assert other["bound"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give kernels for their cards, or --table"),
        (("reduce_scatter:hand", "--table", "all_reduce"), "give kernels for their cards, or --table"),
        (("reduce_scatter:hand", "-P", "0"), "'0'; give integers of at least 1"),
        (("reduce_scatter:hand", "-P", "two"), "'two'; give integers of at least 1"),
    ],
)
def test_what_cannot_be_computed_is_refused(arguments, words):
    result = run("cost", *arguments)
    assert (result.exit_code, words in result.stderr) == (2, True)


@kernel(memory=[flag])
async def hangs(rank, flag):
    """Wait for nobody."""
    await rank.wait(flag[0] >= 1)


def test_a_run_that_hangs_has_no_card():
    with pytest.raises(MisuseError, match="the run ends in deadlock"):
        cost(hangs, PRICE)
