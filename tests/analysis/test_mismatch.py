"""Collectives that do not match: named side by side, with the lines, and before the hang that comes of it."""

import numpy as np
import pytest

from asyncsim import MisuseError, Signal, Window, barrier, kernel, simulate
from asyncsim.analysis.mismatch import call_mismatches
from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import Case
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import KernelError
from asyncsim.views.report import report_text

first = Signal("first", ("P", 1))
second = Signal("second", ("P", 1))


def alone(program, *memory):
    """Return a kernel of a program that takes no input."""
    return kernel(memory=list(memory))(program)


async def judged(program, *memory, ranks=3, calls=1):
    return await check.aio(alone(program, *memory), ranks=ranks, calls=calls)


def says(op="Sum", dtype=np.float32, shape=(4,), root=0):
    """Return a program in which rank 1 says something else than its peers."""

    async def program(rank, first):
        rank.collective("all_reduce", op="Sum", dtype=np.float32, shape=(4,), root=0)
        if rank.id == 1:
            rank.collective("reduce", op=op, dtype=dtype, shape=shape, root=root)
        else:
            rank.collective("reduce", op="Sum", dtype=np.float32, shape=(4,), root=0)
        await rank.notify(first[0], 0)

    return program


async def other_order(rank, first, second):
    """Rank 1 meets its peers at the second barrier first."""
    order = (second, first) if rank.id == 1 else (first, second)
    for signal in order:
        await barrier(rank, signal)


async def returns_early(rank, first):
    """Rank 2 has nothing to do."""
    if rank.id != 2:
        await barrier(rank, first)


async def test_another_order_is_named_side_by_side_and_explains_the_hang():
    report = await judged(other_order, first, second)
    assert report.verdict == "REFUTED"
    assert [finding.kind for finding in report.findings] == ["call-mismatch", "deadlock"]
    mismatch = report.findings[0]
    assert mismatch.harmful
    assert mismatch.why.startswith(
        "collective 0 of call 0 is not the same on all ranks of the world, in its signal: ranks"
    )
    assert "ranks 0, 2 call barrier(signal=first)" in mismatch.why
    assert "rank 1 calls barrier(signal=second)" in mismatch.why
    assert [(side.rank, side.region) for side in mismatch.sides] == [
        (0, "barrier(signal=first)"),
        (1, "barrier(signal=second)"),
    ]
    line = other_order.__code__.co_firstlineno + 4
    assert all(side.at[0].endswith(f"test_mismatch.py:{line}") for side in mismatch.sides)
    assert all(side.at[1].startswith("asyncsim/collectives/barrier.py:") for side in mismatch.sides)


async def test_the_report_shows_both_sides_with_their_lines():
    text = report_text(await judged(other_order, first, second))
    assert "1. call-mismatch: harmful\n" in text
    assert "rank 0, call 0: collective barrier(signal=first)\n" in text
    assert "rank 1, call 0: collective barrier(signal=second)\n" in text
    assert text.count("await barrier(rank, signal)\n") >= 2


async def test_a_rank_that_left_the_call_is_named():
    report = await judged(returns_early, first)
    assert [finding.kind for finding in report.findings] == ["call-mismatch", "deadlock"]
    assert "ranks 0, 1 call barrier(signal=first)" in report.findings[0].why
    assert "rank 2 calls none any more" in report.findings[0].why


async def test_a_rank_that_left_for_the_next_call_is_named_too():
    async def program(rank, first):
        if (rank.id, rank.call) != (2, 0):
            await barrier(rank, first, generation=rank.call + 1)

    report = await judged(program, first, calls=2)
    assert report.findings[0].kind == "call-mismatch"
    assert report.findings[0].why.startswith("collective 0 of call 0")
    assert "rank 2 calls none any more" in report.findings[0].why


async def test_a_rank_that_is_stuck_before_a_collective_may_yet_come_to_it():
    async def program(rank, first, second):
        if rank.id == 2:
            await rank.wait(second[0] >= 1)  # nobody ever sends it: this is the mistake
        await barrier(rank, first)

    report = await judged(program, first, second)
    assert [finding.kind for finding in report.findings] == ["deadlock"]


@pytest.mark.parametrize(("fact", "value"), [("op", "Max"), ("dtype", np.float16), ("shape", (4, 1)), ("root", 1)])
async def test_each_fact_is_compared(fact, value):
    report = await judged(says(**{fact: value}), first)
    (mismatch,) = report.findings
    assert (report.verdict, mismatch.kind) == ("REFUTED", "call-mismatch")
    assert mismatch.why.startswith(f"collective 1 of call 0 is not the same on all ranks of the world, in its {fact}: ")


async def test_facts_that_are_the_same_are_no_finding():
    async def program(rank, first):
        rank.collective("gather", dtype=np.dtype("float32") if rank.id else np.float32, shape=[4] if rank.id else (4,))
        await rank.notify(first[0], 0)

    report = await judged(program, first)
    assert (report.verdict, report.findings) == ("PROVED", [])


async def test_other_collectives_and_more_facts_are_told_apart():
    async def program(rank, first):
        if rank.id:
            rank.collective("all_gather", shape=(4,))
        else:
            rank.collective("all_reduce", shape=(4,), op="Sum")
        await rank.notify(first[0], 0)

    (mismatch,) = (await judged(program, first)).findings
    assert "rank 0 calls all_reduce(op=Sum, shape=(4))" in mismatch.why
    assert "ranks 1, 2 call all_gather(shape=(4))" in mismatch.why


A, B, C = ("all_gather", {}), ("barrier", {}), ("broadcast", {"root": 0})


async def says_all(rank, first, *said):
    """Say one collective after the other."""
    for name, facts in said:
        rank.collective(name, **facts)
        await rank.notify(first[0], 0)


async def says_at_once(rank, first, *streams):
    """Say the first ones oneself, the others in a stream each."""
    started = [await rank.start(says_all, first, *said) for said in streams[1:]]
    await says_all(rank, first, *streams[0])
    for stream in started:
        await rank.join(stream)


def says_by_rank(*of_ranks):
    async def program(rank, first):
        await says_at_once(rank, first, *of_ranks[rank.id])

    return program


RIGHT = {
    "streams are started in another order": ([[], [A], [B]], [[], [B], [A]]),
    "one rank leaves it to a stream": ([[A]], [[], [A]]),
    "what is a stream's at one rank is the task's own at the other": ([[A], [B]], [[B], [A]]),
    "one rank calls in a row what another calls at once": ([[A, B, C]], [[B], [A], [C]], [[A, B, C]]),
}
WRONG = {
    "another root": ([[C]], [[], [("broadcast", {"root": 1})]]),
    "another root in one of two streams": ([[A], [C]], [[A], [("broadcast", {"root": 1})]]),
    "one that a rank leaves out": ([[A], [B]], [[A], [B]], [[A]]),
    "one that a rank calls once more": ([[A], [B]], [[A], [B, B]]),
    "an order of those who call in a row": ([[A, B]], [[A], [B]], [[B, A]]),
    "an order within a stream": ([[], [A, B]], [[B, A]]),
}


@pytest.mark.parametrize("how", RIGHT)
async def test_collectives_of_streams_may_be_called_in_any_order(how):
    of_ranks = RIGHT[how]
    report = await judged(says_by_rank(*of_ranks), first, ranks=len(of_ranks), calls=2)
    assert (report.verdict, report.findings) == ("PROVED", [])


@pytest.mark.parametrize("how", WRONG)
async def test_collectives_of_streams_that_do_not_match_are_found(how):
    of_ranks = WRONG[how]
    report = await judged(says_by_rank(*of_ranks), first, ranks=len(of_ranks))
    assert [finding.kind for finding in report.findings] == ["call-mismatch"]
    assert len(report.findings[0].sides) == 2


async def test_a_mismatch_of_streams_names_what_only_some_call():
    report = await judged(says_by_rank(*WRONG["another root in one of two streams"]), first, ranks=2)
    why = report.findings[0].why
    assert why.startswith(
        "what streams call together, in any order, in call 0 is not the same on all ranks of the world, in its root: "
    )
    assert "rank 0 calls broadcast(root=0)" in why
    assert "rank 1 calls broadcast(root=1)" in why


async def test_a_stream_that_is_stuck_may_yet_come_to_its_collectives():
    async def waits_first(rank, first, second):
        await rank.wait(second[0] >= 1)  # nobody ever sends it: this is the mistake
        await says_all(rank, first, B)

    async def program(rank, first, second):
        if rank.id == 2:
            stream = await rank.start(waits_first, first, second)
            await says_all(rank, first, A)
            await rank.join(stream)
        else:
            await says_at_once(rank, first, [A], [B])

    report = await judged(program, first, second)
    assert [finding.kind for finding in report.findings] == ["deadlock"]


async def test_a_collective_that_a_stuck_rank_alone_called_is_found():
    async def waits_after(rank, first, second):
        await says_all(rank, first, A)
        await rank.wait(second[0] >= 1)

    async def program(rank, first, second):
        if rank.id == 2:
            stream = await rank.start(waits_after, first, second)
            await says_all(rank, first, B)
            await rank.join(stream)
        else:
            await says_all(rank, first, B)

    report = await judged(program, first, second)
    assert [finding.kind for finding in report.findings] == ["call-mismatch", "deadlock"]
    assert "rank 2 calls all_gather()" in report.findings[0].why


async def test_streams_that_are_all_stuck_say_nothing_yet():
    async def program(rank, first, second):
        if rank.id == 0:
            await says_at_once(rank, first, [A], [B])
        await rank.wait(second[0] >= 1)

    report = await judged(program, first, second)
    assert [finding.kind for finding in report.findings] == ["deadlock"]


async def test_the_verdict_is_the_same_from_any_reference_run():
    for scheduler in ("random:seed=1", "starve:rank=1"):
        report = await check.aio(alone(other_order, first, second), ranks=3, calls=1, scheduler=scheduler)
        assert report.findings[0].kind == "call-mismatch"
        assert [f.kind for f in report.findings].count("call-mismatch") == 1


def test_a_replay_says_it_and_a_run_that_is_not_recorded_keeps_nothing():
    case = Case(alone(other_order, first, second), 3, 1)
    recorded, bare = simulate(case, Fifo(), record="fifo"), simulate(case, Fifo())
    assert [finding.kind for finding in Symptoms(case).findings(recorded)][:2] == ["call-mismatch", "deadlock"]
    assert [finding.kind for finding in Symptoms(case).findings(bare)] == ["deadlock"]
    assert recorded.choices == bare.choices


def test_a_trace_that_was_broken_off_shows_no_mismatch():
    case = Case(alone(other_order, first, second), 3, 1)
    trace = simulate(case, Fifo(), record="fifo").trace
    trace.footer = None
    assert list(call_mismatches(trace)) == []


def test_a_run_that_ends_at_its_limit_says_nothing_of_who_came_later():
    case = Case(alone(returns_early, first), 3, 1, max_steps=1)
    trace = simulate(case, Fifo(), record="fifo").trace
    assert list(call_mismatches(trace)) == []


@pytest.mark.parametrize("said", [{"name": ""}, {"name": "reduce", "op": object()}])
def test_what_is_no_collective_is_refused(said):
    async def program(rank, data):
        rank.collective(**said)
        await rank.store(data[0], 1)

    case = Case(alone(program, Window("data", (1,))), 1, 1)
    with pytest.raises(KernelError, match="MisuseError: rank 0: collective") as raised:
        simulate(case, Fifo(), record="fifo")
    assert isinstance(raised.value.__cause__, MisuseError)
