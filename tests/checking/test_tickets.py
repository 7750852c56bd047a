"""Who arrives last does the rest: proved by one run for each that can be last."""

import numpy as np
import pytest

from asyncsim import Set, Signal, Window, check, kernel
from asyncsim.checking.verdict import tickets
from asyncsim.trace.errors import KernelError, MisuseError

parts = Window("parts", (8,), np.int64, initialised=True)
total = Window("total", (1,), np.int64, initialised=True)
come, go = Signal("come", (1,)), Signal("go", (1,))
MEMORY = [parts, total, come, go]


async def released(rank, come, go):
    """Reset the counter, and let everybody go on."""
    await rank.notify(come.at(0)[0], 0, Set)
    for peer in range(rank.size):
        await rank.notify(go.at(peer)[0], 1)


@kernel(memory=MEMORY)
async def last_reduces(rank, parts, total, come, go):
    """Each stores its part; who comes last adds them up."""
    await rank.store(parts.at(0)[rank.id], 10 * rank.call + rank.id + 1)
    if await rank.arrive(come.at(0)[0], of=rank.size):
        every = await rank.load(parts.at(0)[: rank.size])
        await rank.store(total.at(0)[0], int(every.sum()))
        await released(rank, come, go)
    await rank.wait(go[0] >= 1, consume=True)
    return int(await rank.load(total.at(0)[0]))


@kernel(memory=MEMORY)
async def last_reduces_too_early(rank, parts, total, come, go):
    """The part is stored after the arrival."""
    last = await rank.arrive(come.at(0)[0], of=rank.size)
    await rank.store(parts.at(0)[rank.id], 10 * rank.call + rank.id + 1)
    if last:
        every = await rank.load(parts.at(0)[: rank.size])
        await rank.store(total.at(0)[0], int(every.sum()))
        await released(rank, come, go)
    await rank.wait(go[0] >= 1, consume=True)
    return int(await rank.load(total.at(0)[0]))


@kernel(memory=MEMORY)
async def last_signs(rank, parts, total, come, go):
    """Who comes last leaves its number: of one run it looks as if that were always the same one."""
    if await rank.arrive(come.at(0)[0], of=rank.size):
        await rank.store(total.at(0)[0], rank.id + 1)
        await released(rank, come, go)
    await rank.wait(go[0] >= 1, consume=True)


@kernel(memory=MEMORY)
async def last_forgets_one(rank, parts, total, come, go):
    """If rank 1 comes last, it lets nobody go on but itself."""
    if await rank.arrive(come.at(0)[0], of=rank.size):
        await rank.notify(come.at(0)[0], 0, Set)
        for peer in range(rank.size) if rank.id != 1 else (1,):
            await rank.notify(go.at(peer)[0], 1)
    await rank.wait(go[0] >= 1, consume=True)


@pytest.mark.parametrize(("ranks", "calls", "cases"), [(2, 1, 2), (3, 1, 3), (3, 2, 9), (4, 2, 16)])
def test_a_run_for_each_that_can_be_last_proves_the_kernel(ranks, calls, cases):
    report = check(last_reduces, ranks=ranks, calls=calls, memory="sc")
    assert report.verdict == "PROVED"
    assert report.scope.startswith(f"{cases} runs, one for each that can arrive last, decide for every schedule")
    assert not report.findings
    assert not any("outside" in note for note in report.notes)


def test_such_a_proof_has_no_certificate_and_says_nothing_of_later_calls():
    report = check(last_reduces, ranks=2, memory="sc")
    assert report.proof is None
    assert not report.later_calls


def test_what_is_wrong_whoever_is_last_is_refuted():
    assert check(last_reduces_too_early, ranks=3, calls=1, memory="sc").verdict == "REFUTED"


def test_what_the_last_one_does_may_not_depend_on_who_it_is():
    report = check(last_signs, ranks=3, calls=1, memory="sc")
    assert report.verdict == "EXHAUSTED"


def test_a_hang_if_a_certain_one_is_last_is_found():
    report = check(last_forgets_one, ranks=3, calls=1, memory="sc")
    assert report.verdict == "REFUTED"
    assert "deadlock" in {finding.kind for finding in report.findings}


def test_what_depends_on_something_outside_is_not_proved():
    runs = []

    @kernel(memory=MEMORY)
    async def counted(rank, parts, total, come, go):
        runs.append(rank.id)
        if await rank.arrive(come.at(0)[0], of=rank.size):
            for _ in range(len(runs) % 4):
                await rank.load(total.at(0)[0])
            await released(rank, come, go)
        await rank.wait(go[0] >= 1, consume=True)

    assert check(counted, ranks=3, calls=1, memory="sc").verdict != "PROVED"


def test_what_raises_in_some_case_is_not_proved_by_cases():
    @kernel(memory=MEMORY)
    async def refuses(rank, parts, total, come, go):
        if await rank.arrive(come.at(0)[0], of=rank.size):
            if rank.id == 1:
                raise MisuseError("not me")
            await released(rank, come, go)
        await rank.wait(go[0] >= 1, consume=True)

    report = check(refuses, ranks=3, calls=1, memory="sc")
    assert report.verdict == "REFUTED"


def test_too_many_cases_are_left_to_exploration(monkeypatch):
    monkeypatch.setattr(tickets, "MOST_STEPS", 20)
    assert check(last_reduces, ranks=2, calls=1, memory="sc").verdict == "EXHAUSTED"


@pytest.mark.parametrize("memory", ["ldst", "nic", "gpu"])
def test_other_models_are_left_to_exploration(memory):
    assert check(last_reduces, ranks=2, calls=1, memory=memory, budget=200).verdict in ("EXHAUSTED", "SURVIVED")


def test_arrivals_say_what_cannot_be():
    @kernel(memory=MEMORY)
    async def none(rank, parts, total, come, go):
        await rank.arrive(come.at(0)[0], of="all")

    with pytest.raises(KernelError, match="arrive of come"):
        check(none, ranks=2, memory="sc")
