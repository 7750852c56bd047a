"""How a run ends when a kernel fails: who is named, what is kept, and that all the others stop."""

import pytest
import trio
from mistaken import DATA
from schedules import run

from asyncsim import (
    KernelError,
    MisuseError,
    RefusedError,
)


def test_the_trace_so_far_comes_with_the_error():
    async def program(rank, data):
        await rank.load(data[0])
        await rank.load(data[rank.id + rank.call])

    with pytest.raises(KernelError) as caught:
        run(program, [DATA], 0, 0, 0, calls=2, record="scripted")
    assert (caught.value.rank, caught.value.call) == (1, 1)
    trace = caught.value.trace
    assert trace.footer.ending == "stopped"
    assert isinstance(caught.value.__cause__, MisuseError)
    assert {event.op.actor.rank for event in trace.events} == {0, 1}


def test_of_several_failures_the_lowest_rank_is_named():
    async def program(rank, data):
        raise ValueError(rank.id)

    for _ in range(20):
        with pytest.raises(KernelError, match="rank 0 failed"):
            run(program, [DATA], ranks=4)


def test_a_kernel_that_awaits_while_it_is_stopped_is_stopped_all_the_same():
    async def program(rank, data):
        try:
            await rank.load(data[0])
            if rank.id == 1:
                raise ZeroDivisionError
            await rank.load(data[0])
        finally:
            await rank.load(data[1])

    with pytest.raises(KernelError, match="rank 1 failed"):
        run(program, [DATA], 1, 1)


def test_swallowing_the_error_of_a_foreign_await_does_not_help():
    async def program(rank, data):
        try:
            await trio.sleep(1)
        except MisuseError:
            await rank.load(data[0])

    with pytest.raises(KernelError, match="awaits methods of its Rank only"):
        run(program, [DATA])


def test_a_refusal_keeps_its_class():
    async def program(rank, data):
        raise RefusedError("no")

    with pytest.raises(KernelError) as caught:
        run(program, [DATA])
    assert isinstance(caught.value.__cause__, RefusedError)
