"""Streams: what of them is refused, and what hangs."""

from __future__ import annotations

import pytest
from schedules import run
from streaming import CELL, ROW, answer

from asyncsim import KernelError, MisuseError
from asyncsim.analysis.analyse import analyse
from asyncsim.trace.world import STREAM_BITS, STREAM_DEPTH, World


def refused(program, memory=(ROW, CELL), **options):
    """Return the error of a program on one rank."""
    with pytest.raises(KernelError) as caught:
        run(program, list(memory), **{"ranks": 1, "record": "x", **options})
    return caught.value


# What is refused.


def test_an_exception_in_a_stream_carries_its_rank_and_line():
    async def side(rank):
        await rank.fence()
        if rank.id == 1:
            raise ValueError("lost")  # the line

    async def program(rank, *memory):
        await rank.join(await rank.start(side))

    error = refused(program, ranks=2)
    assert (error.rank, error.call) == (1, 0)
    assert 'raise ValueError("lost")  # the line' in str(error)
    assert isinstance(error.__cause__, ValueError)
    assert error.trace.footer.ending == "stopped"


def test_a_stream_must_be_joined_by_the_call_that_started_it():
    async def side(rank):
        await rank.start(answer)

    async def program(rank, *memory):
        await rank.start(side)

    assert "rank 0 returns while its stream 0.1 runs; join each stream" in str(refused(program))

    async def joined(rank, *memory):
        await rank.join(await rank.start(side))

    assert "rank 0 returns while its stream 0.1.1 runs" in str(refused(joined))


async def join_twice(rank, *memory):
    stream = await rank.start(answer)
    await rank.join(stream)
    await rank.join(stream)


async def join_something_else(rank, *memory):
    await rank.join(answer)


async def join_a_grandchild(rank, *memory):
    async def side(rank, kept):
        kept.append(await rank.start(answer))
        await rank.join(kept[0])

    kept = []
    await rank.join(await rank.start(side, kept))
    await rank.join(kept[0])


async def start_no_function(rank, *memory):
    await rank.start(3)


async def start_no_coroutine(rank, *memory):
    await rank.join(await rank.start(lambda _: 3))


async def start_with_too_few_arguments(rank, *memory):
    async def side(rank, number):
        return number

    await rank.join(await rank.start(side))


async def barrier_of_none(rank, *memory):
    rank.stream_barrier(0)


async def sync_with_a_signal(rank, row, cell):
    await rank.sync(cell)


async def three_at_a_barrier_for_two(rank, *memory):
    async def side(rank, barrier):
        await rank.sync(barrier)

    barrier = rank.stream_barrier(2)
    streams = [await rank.start(side, barrier) for _ in range(3)]
    for stream in streams:
        await rank.join(stream)


async def foreign_barrier(rank, *memory, kept=[]):  # noqa: B006 - it is the ranks that share it here
    kept.append(rank.stream_barrier(1))
    await rank.sync(kept[0])


async def await_what_is_no_operation(rank, *memory):
    async def side(rank):
        import trio  # noqa: PLC0415 - as a mistaken author would

        await trio.lowlevel.checkpoint()

    await rank.join(await rank.start(side))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (join_twice, "rank 0: join(0.1); join a stream that this actor started, once"),
        (join_something_else, "join a stream that this actor started, once"),
        (join_a_grandchild, "rank 0: join(0.1.1); join a stream that this actor started, once"),
        (start_no_function, "rank 0: start(3); give an async function"),
        (start_no_coroutine, "a program returned an object of type int at once; give an async function"),
        (start_with_too_few_arguments, "missing 1 required positional argument: 'number'"),
        (barrier_of_none, "rank 0: stream_barrier(0); give the number of streams that meet"),
        (sync_with_a_signal, "rank 0: sync takes a stream barrier of this rank, rank.stream_barrier(n)"),
        (three_at_a_barrier_for_two, "stream barrier 0/1 is for 2 streams; 0.3 is one too many"),
        (await_what_is_no_operation, "the kernel awaits something that is no operation of its rank"),
    ],
)
def test_misuse_of_streams_is_explained(program, message):
    error = refused(program)
    assert message in str(error)
    assert "0x" not in str(error)


def test_a_barrier_of_another_rank_is_refused():
    assert "rank 1: sync takes a stream barrier of this rank" in str(refused(foreign_barrier, ranks=2))


def test_there_are_limits_to_streams():
    actor = World(1, []).actors[0]
    with pytest.raises(MisuseError, match=r"actor 0: too many streams; they go 4 deep and 4095 an actor"):
        actor.stream(1 << STREAM_BITS)
    for _ in range(STREAM_DEPTH):
        actor = actor.stream(1)
    with pytest.raises(MisuseError, match=r"actor 0\.1\.1\.1\.1: too many streams"):
        actor.stream(1)


# What hangs.


def test_a_deadlock_names_blocked_streams_joins_and_meetings():
    async def waits(rank, cell):
        await rank.wait(cell[0] >= 5)

    async def meets(rank, barrier):
        await rank.sync(barrier)

    async def program(rank, cell):
        barrier = rank.stream_barrier(3)
        one, two = await rank.start(waits, cell), await rank.start(meets, barrier)
        await rank.join(one)
        await rank.sync(barrier)
        await rank.join(two)

    result = run(program, [CELL], ranks=1, record="x")
    assert result.ending == "deadlock"
    pending = [(event.op.actor.name, str(event.op)) for event in result.trace.footer.pending]
    assert pending == [("0", "join 0.1"), ("0.1", "wait cell[0]@0 >= 5"), ("0.2", "sync 0/1#0")]
    (finding,) = analyse(result.trace).findings
    assert (finding.kind, finding.pairs) == ("deadlock", 3)
    assert "to join stream 0.1, which waits itself" in finding.why
    assert "cell[0]@0 >= 5 (have 0, need 5): not there" in finding.why
    assert "a stream barrier to which 1 of 3 streams have come; rank 0 and stream 0.1 wait elsewhere" in finding.why


def test_a_poll_that_nobody_satisfies_hangs():
    async def program(rank, row):
        await rank.poll(row[0], lambda tile: tile == 3)

    result = run(program, [ROW], ranks=1, record="x")
    assert result.ending == "deadlock"
    (finding,) = analyse(result.trace).findings
    assert "its predicate refuses what is there, 0: nobody has written there; nobody will write it" in finding.why
