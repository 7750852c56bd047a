"""Virtual time: who is done first goes first, and every event carries its time."""

from __future__ import annotations

import io

import numpy as np
import pytest

from asyncsim import Case, MisuseError, Signal, Window, barrier, kernel, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.latency import Latency
from asyncsim.schedulers.replay import Replay
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import TraceError
from asyncsim.trace.jsonl import read_trace, write_trace
from kernels.reduce_scatter import builtin

box = Window("box", (100,), np.uint8, initialised=True)
flag = Signal("flag", ("P",))


@kernel(memory=[box, flag])
async def reads(rank, box, flag):
    """Each rank reads 10, 100, 50 bytes of its right neighbour, and tells it."""
    right = (rank.id + 1) % rank.size
    for size in (10, 100, 50):
        await rank.load(box.at(right)[:size])
    await rank.notify(flag.at(right)[rank.id], 1)
    await rank.wait(flag[(rank.id - 1) % rank.size] >= 1)


def events(made, scheduler, ranks=2, **options):
    run = simulate(Case(made, ranks, 1, **options), scheduler, record=str(scheduler))
    assert run.ending == "complete"
    return run.trace.events


def times(made, scheduler, **options):
    return [(event.op.actor.name, event.time) for event in events(made, scheduler, **options)]


def test_each_operation_is_done_when_the_model_says():
    assert times(reads, Latency(alpha=1, beta=0.5)) == [
        ("0", 6), ("1", 6), ("0", 57), ("1", 57), ("0", 83), ("1", 83), ("0", 84), ("1", 84), ("0", 84), ("1", 84),
    ]  # fmt: skip


def test_a_slow_rank_takes_longer_and_its_peer_waits_for_it():
    seen = times(reads, Latency(alpha=1, beta=0.5, speeds="1/0.5"))
    assert [time for name, time in seen if name == "1"][:4] == [12, 114, 166, 168]
    assert seen[-1] == ("1", 168)
    assert [time for name, time in seen if name == "0"][-1] == 168


def test_times_never_go_back_and_start_with_what_costs_nothing():
    seen = [event.time for event in events(builtin, Latency(jitter=2, seed=3), ranks=4)]
    assert seen == sorted(seen)
    assert seen[0] == 0.0


def test_jitter_differs_from_run_to_run_and_is_the_same_for_the_same_seed():
    one, two = Latency(jitter="0.5", seed=7), Latency(jitter="0.5", seed=7)
    first = [times(reads, one) for _ in range(2)]
    assert first == [times(reads, two) for _ in range(2)]
    assert first[0] != first[1]
    plain = times(reads, Latency())
    for slow, fast in zip(sorted(first[0]), sorted(plain), strict=True):
        assert fast[1] <= slow[1] <= 1.5 * fast[1]


def test_a_wait_is_done_when_its_cell_is_not_when_its_actor_came():
    @kernel(memory=[flag])
    async def toggles(rank, flag):
        if rank.id == 0:
            await rank.wait(flag[0] == 1)
        else:
            for _ in range(3):
                await rank.notify(flag.at(0)[0], 1)

    with_pass = times(toggles, Latency(alpha=2))
    assert with_pass == [("1", 2.0), ("0", 2.0), ("1", 4.0), ("1", 6.0)]


def test_what_lands_later_is_in_flight_and_costs_its_issuer_nothing():
    @kernel(memory=[box, flag])
    async def pushes(rank, box, flag):
        if rank.id == 0:
            await rank.store(box.at(1)[:10], np.ones(10, np.uint8))
            await rank.notify(flag.at(1)[0], 1)
        else:
            await rank.wait(flag[0] >= 1)

    assert times(pushes, Latency(alpha=1, beta=1), memory="ldst") == [
        ("0", 0.0), ("0", 0.0), ("0>0", 11.0), ("0>1", 12.0), ("1", 12.0),
    ]  # fmt: skip


def test_streams_begin_when_they_are_started():
    @kernel(memory=[box])
    async def starts(rank, box):
        async def load(rank):
            await rank.load(box.at(0)[0])

        if rank.id:
            await rank.load(box.at(0)[0])
            await rank.join(await rank.start(load))

    assert times(starts, Latency(alpha=1, beta=0)) == [("1", 1.0), ("1", 1.0), ("1.1", 2.0), ("1", 2.0)]


# Traces.


def text_of(run):
    stream = io.StringIO()
    write_trace(run.trace, stream)
    return stream.getvalue()


def test_a_trace_keeps_the_times():
    text = text_of(simulate(Case(builtin, 2, 1), make("latency:jitter=1"), record="latency:jitter=1"))
    again = read_trace(io.StringIO(text))
    stream = io.StringIO()
    write_trace(again, stream)
    assert stream.getvalue() == text
    assert all(event.time is not None for event in again.events)
    assert '"time":0.0' in text


def test_other_schedulers_have_no_clock_and_their_traces_no_times():
    run = simulate(Case(builtin, 2, 1), Fifo(), record="fifo")
    assert {event.time for event in run.trace.events} == {None}
    assert '"time"' not in text_of(run)
    timed = simulate(Case(builtin, 2, 1), Latency(), record="latency")
    assert {event.time for event in simulate(timed.case, Replay(timed.choices), record="replay").trace.events} == {None}


@pytest.mark.parametrize("time", ["-1.0", '"now"', "true", "null"])
def test_a_time_that_is_none_is_refused(time):
    lines = text_of(simulate(Case(builtin, 2, 1), Latency(), record="latency")).splitlines()
    bare = [line.partition(',"crc"')[0] + "}" for line in lines]  # a hand-written trace needs no sums
    bare[1] = bare[1].replace('"time":0.0', f'"time":{time}')
    with pytest.raises(TraceError, match=r"line 2.*'time' is"):
        read_trace(io.StringIO("\n".join(bare) + "\n"))


# As a scheduler.


def test_its_text_makes_it_again():
    text = "latency:alpha=2e-06,beta=1e-10,jitter=0.25,speeds=1/0.5,seed=4"
    assert str(make(text)) == text
    assert str(make(str(make("latency")))) == str(Latency())


def test_a_straggler_meets_what_the_others_do_later():
    @kernel(memory=[box])
    async def unguarded(rank, box):
        """Rank 0 overwrites after two messages what rank 1 reads with its first."""
        if rank.id:
            return int(await rank.load(box.at(0)[0]))
        for _ in range(2):
            await rank.load(box.at(1)[1])
        await rank.store(box[0], 7)
        return None

    def read(speeds):
        return simulate(Case(unguarded, 2, 1), Latency(speeds=speeds)).outputs[0][1]

    assert (read("1"), read("1/0.1")) == (0, 7)


@pytest.mark.parametrize(
    "arguments",
    [
        {"alpha": -1},
        {"alpha": "soon"},
        {"beta": float("nan")},
        {"jitter": float("inf")},
        {"jitter": True},
        {"speeds": "1/0"},
        {"speeds": "1//2"},
        {"seed": -1},
        {"alpha": None},
    ],
)
def test_what_is_no_number_is_refused(arguments):
    with pytest.raises(MisuseError, match="latency: "):
        Latency(**arguments)


def test_barriers_take_their_notifies():
    @kernel(memory=[Signal("signal", ("P", 1))])
    async def meets(rank, signal):
        await barrier(rank, signal)

    assert times(meets, Latency(alpha=1), ranks=5)[-1][1] == 4
