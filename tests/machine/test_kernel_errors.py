"""How a run ends when a kernel fails: who is named, what is kept, and that all the others stop."""

import sys

import pytest
import trio
from command import replay_arguments
from command import run as entered
from mistaken import DATA
from schedules import run

from asyncsim import Case, Fifo, KernelError, MisuseError, RefusedError, check, kernel, simulate
from asyncsim.trace.digest import MOST_NESTED, digest_value


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


def holding_itself():
    """Return a list that holds itself."""
    ring = []
    ring.append(ring)
    return ring


def deep(levels):
    """Return a number in so many lists, one in the other."""
    value = 1
    for _ in range(levels):
        value = [value]
    return value


class Unspeakable:
    """Cannot be written down."""

    def __repr__(self):
        """Fail."""
        raise ZeroDivisionError


ENDLESS = [holding_itself, lambda: (0, holding_itself()), lambda: deep(5_000)]


@pytest.mark.parametrize("endless", ENDLESS)
def test_an_output_that_holds_itself_is_refused_with_its_rank_and_call(endless):
    async def program(rank, data):
        return endless() if rank.id and rank.call else 0

    with pytest.raises(
        KernelError, match=r"rank 1 failed in call 1.*: an output holds itself.*; a kernel returns arrays"
    ):
        run(program, [DATA], calls=2)


@pytest.mark.parametrize("endless", ENDLESS)
@pytest.mark.parametrize("inside", [lambda value: value, lambda value: {"a": value}])
def test_an_input_that_holds_itself_is_refused_with_its_rank_and_call(endless, inside):
    def made(ranks, call, _):
        return [0] * (ranks - 1) + [inside(endless()) if call else 0]

    @kernel(memory=[DATA], inputs=made)
    async def takes(rank, x, data):
        return 0

    with pytest.raises(MisuseError, match=r"takes: what inputs\(P=2, call=1\) gave rank 1 holds itself.*; give arrays"):
        simulate(Case(takes, 2, 2), Fifo())


@pytest.mark.parametrize("endless", ENDLESS)
def test_a_golden_that_holds_itself_is_refused_with_its_rank_and_call(endless):
    @kernel(memory=[DATA], golden=lambda xs: [0] * (len(xs) - 1) + [endless()])
    async def gives(rank, data):
        return 0

    with pytest.raises(MisuseError, match=r"gives: what golden gave rank 1 \(call 0\) holds itself"):
        check(gives, ranks=2)


def test_what_is_nested_as_deep_as_is_allowed_is_an_output_and_an_input():
    @kernel(memory=[DATA], inputs=lambda ranks, call, _: [deep(MOST_NESTED)] * ranks, golden=lambda xs: xs)
    async def passes(rank, x, data):
        return x

    assert check(passes, ranks=2, calls=1).verdict == "PROVED"


@pytest.mark.parametrize("value", [Unspeakable(), {"a": deep(5_000)}])
def test_an_output_that_cannot_even_be_shown_is_refused(value):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)  # a library may have raised it: then this dict could be shown
    try:
        _refuses_to_show(value)
    finally:
        sys.setrecursionlimit(limit)


def _refuses_to_show(value):
    with pytest.raises(MisuseError, match=r"an output is an object of type (Unspeakable|dict); a kernel returns"):
        digest_value(value)


RAISES = """
from asyncsim import Signal, kernel

@kernel(memory=[Signal("ready", (1,))])
async def early(rank, ready):
    if rank.id == 1:
        await rank.notify(ready.at(0)[0], 1)
    elif not await rank.test(ready[0] >= 1):
        raise ValueError("not yet")

@kernel(memory=[Signal("ready", (1,))])
async def misused(rank, ready):
    await rank.notify(ready[0], 1)
    await rank.notify(ready[1], 1)
"""


@pytest.mark.parametrize("command", ["check", "explore"])
def test_a_kernel_that_raises_in_the_fair_run_is_no_verdict_and_can_be_replayed(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(RAISES)
    result = entered(command, "mine.py:early", "-P", "2", "--calls", "1")
    assert result.exit_code == 2
    assert "rank 0 failed in call 0 at mine.py:9 (raise ValueError" in result.stderr
    assert "no verdict" in result.stderr
    assert "(the fair one, fifo), after step 1; under others it may not" in result.stderr
    again = entered(*replay_arguments(result.stderr))
    assert again.exit_code == 1
    assert "the kernel raises: rank 0 failed in call 0 at mine.py:9" in again.stdout


def test_a_mistake_is_to_be_mended_not_replayed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(RAISES)
    result = entered("check", "mine.py:misused", "-P", "2")
    assert result.exit_code == 2
    assert "outside dimension 0" in result.stderr
    assert "replay" not in result.stderr


@pytest.mark.parametrize("endless", ENDLESS)
def test_a_fact_of_a_collective_that_holds_itself_is_refused(endless):
    async def program(rank, data):
        rank.collective("barrier", shape=endless())
        await rank.load(data[0])

    with pytest.raises(KernelError, match=r"rank 0: collective\(\.\.\., shape=\.\.\.\) holds itself"):
        run(program, [DATA], record="scripted")
