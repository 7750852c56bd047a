"""Witnesses: what the schedules of a suspect showed, in words that say why."""

import inspect

import numpy as np
import pytest

from asyncsim import Expected, Signal, Window, kernel
from asyncsim.checking.check import check
from kernels.field import f05_set_zero_erases_next_credit as f05
from kernels.field import f06_flags_zeroed_too_late as f06
from kernels.field import f23_signed_counter_wraps as f23


async def test_a_witness_that_hangs_says_who_waits_for_what_and_why_for_ever():
    report = await check.aio(f05.buggy, ranks=2)
    (finding,) = report.findings
    assert Expected("signal-race").matches(finding)
    assert "it hangs after" in finding.shown
    assert "rank 0 waits at kernels/field/f05_set_zero_erases_next_credit.py:" in finding.shown
    assert "signal[1, 0]@0 >= 1 (have 0, need 1): erased: rank 0's 'notify signal[1, 0]@0 := 0'" in finding.shown


async def test_an_erased_flag_is_named_in_the_witness_of_its_signal_race():
    report = await check.aio(f06.buggy, ranks=2, calls=1)
    (finding,) = report.findings
    assert finding.harmful
    assert "(have 0, need 1): erased" in finding.shown


async def test_a_cell_that_may_overflow_has_a_witness_too():
    report = await check.aio(f23.buggy, ranks=2, calls=4)
    kinds = {finding.kind: finding for finding in report.findings}
    assert set(kinds) == {"deadlock", "overflow"}
    assert "wrapped" in kinds["deadlock"].why


async def test_an_overflow_without_wrapping_is_shown_by_the_run_itself():
    @kernel(memory=[Signal("counter", (1,), "int8", start=126)])
    async def counts_on(rank, counter):
        await rank.notify(counter.at((rank.id + 1) % rank.size)[0], 1)

    report = await check.aio(counts_on, ranks=2, calls=3)
    assert report.verdict == "REFUTED"
    assert report.findings[0].kind == "overflow"


data = Window("data", (4,), np.int32, initialised=True)
flag = Signal("flag", ("P",))


def spinning(then, *, first=None):
    """Return a kernel: rank 1 does `first`, raises rank 0's flag, does `then`; rank 0 spins on it, then loads."""

    @kernel(memory=[data, flag])
    async def spins(rank, data, flag):
        if rank.id == 1:
            if first is not None:
                await rank.store(data.at(0)[first], np.int32(5))
            await rank.notify(flag.at(0)[1], 1)
            if then is not None:
                await rank.store(data.at(0)[then], np.int32(6))
            return None
        if rank.id == 0:
            while not await rank.test(flag[1] >= 1):
                pass
            return await rank.load(data[0])
        return None

    return spins


async def judged(given, ranks=2):
    return await check.aio(given, ranks=ranks, calls=1, samples=20)


async def test_a_load_after_a_spin_that_saw_the_notify_races_with_no_store_before_it():
    report = await judged(spinning(None, first=0))
    assert report.findings == []
    assert report.verdict == "SURVIVED"


async def test_loads_in_the_order_of_arrival_race_with_no_store_before_their_notify():
    @kernel(memory=[data, flag])
    async def arrival(rank, data, flag):
        if rank.id:
            await rank.store(data.at(0)[rank.id], np.int32(rank.id))
            await rank.notify(flag.at(0)[rank.id], 1)
            return None
        total, left = 0, list(rank.peers)
        while left:
            for peer in list(left):
                if await rank.test(flag[peer] >= 1):
                    total += await rank.load(data[peer])
                    left.remove(peer)
        return total

    report = await judged(arrival, ranks=3)
    assert report.findings == []


async def test_a_store_after_the_notify_of_a_spin_races_with_the_load_behind_it():
    report = await judged(spinning(0, first=1))
    (race,) = report.findings
    assert Expected("race", "RAW").matches(race)
    assert (report.verdict, race.harmful, race.pairs) == ("REFUTED", True, 1)
    assert [side.op for side in race.sides] == ["remote_store", "load"]


async def test_a_load_that_comes_whatever_a_test_said_races():
    @kernel(memory=[data, flag])
    async def looks_once(rank, data, flag):
        if rank.id == 1:
            await rank.store(data.at(0)[0], np.int32(5))
            await rank.notify(flag.at(0)[1], 1)
            return None
        await rank.test(flag[1] >= 1)
        return await rank.load(data[0])

    report = await judged(looks_once)
    assert [finding.title for finding in report.findings] == ["RAW race, same call"]
    assert report.verdict == "REFUTED"


@pytest.mark.parametrize("other", ["another line", "another region", "another kind"])
async def test_another_operation_in_the_place_of_a_load_is_no_evidence_of_it(other):
    @kernel(memory=[data, flag])
    async def either(rank, data, flag):
        if rank.id == 1:
            await rank.store(data.at(0)[0], np.int32(5))
            await rank.notify(flag.at(0)[1], 1)
            return
        for _ in range(4):
            await rank.load(data[3])
        if await rank.test(flag[1] >= 1):
            await rank.load(data[0])
        elif other == "another region":
            await rank.load(data[0:2])
        elif other == "another kind":
            await rank.store(data[1], np.int32(0))
        else:
            await rank.load(data[0])

    report = await judged(either)
    # The branch that the fair run took does not race. The other one may; that shows in the executions that take it.
    loads = [side for found in report.findings for side in found.sides if side.op == "load"]
    assert [side.region for side in loads] == {"another line": ["data[0]@0"], "another region": ["data[0:2]@0"]}.get(
        other, []
    )
    lines, first = inspect.getsourcelines(either.program)
    if other == "another line":
        last = max(number for number, line in enumerate(lines) if "load(data[0])" in line)
        assert [side.at[0].rpartition(":")[2] for side in loads] == [str(first + last)]
    assert not any(found.harmful for found in report.findings)
    assert report.verdict == "EXHAUSTED"


async def test_another_operation_in_the_place_of_a_wait_is_no_evidence_of_it():
    @kernel(memory=[data, flag])
    async def waits_if_raised(rank, data, flag):
        if rank.id == 1:
            await rank.notify(flag.at(0)[0], -1)
            await rank.notify(flag.at(0)[1], 1)
            return
        for _ in range(4):
            await rank.load(data[3])
        if await rank.test(flag[1] >= 1):
            await rank.wait(flag[0] >= -1)
        else:
            await rank.load(data[0])

    report = await judged(waits_if_raised)
    assert report.findings == []


async def test_who_spins_for_ever_on_one_that_a_witness_holds_is_no_harm():
    @kernel(memory=[Signal("small", (1,), np.int8, wrap=True), flag])
    async def wraps_and_spins(rank, small, flag):
        if rank.id == 1:
            await rank.notify(small.at(0)[0], 127)
            await rank.notify(small.at(0)[0], 127)
            await rank.notify(flag.at(0)[1], 1)
            return
        while not await rank.test(flag[1] >= 1):
            pass

    report = await judged(wraps_and_spins)
    assert [(finding.kind, finding.harmful) for finding in report.findings] == [("overflow", None)]
    assert report.verdict == "SURVIVED"


async def test_a_third_rank_that_spins_on_a_side_does_not_keep_the_sides_from_meeting():
    @kernel(memory=[data, flag])
    async def third_spins(rank, data, flag):
        if rank.id == 0:
            await rank.store(data[0], np.int32(1))
            await rank.notify(flag.at(2)[0], 1)
        elif rank.id == 1:
            await rank.store(data.at(0)[0], np.int32(1))
        else:
            while not await rank.test(flag[0] >= 1):
                pass

    report = await judged(third_spins, ranks=3)
    # Both orders give the same bits; but who spins has endlessly many executions, so they are not followed to all ends.
    assert [(finding.title, finding.harmful) for finding in report.findings] == [("WAW race, same call", None)]
