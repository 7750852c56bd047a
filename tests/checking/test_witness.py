"""Witnesses: what the schedules of a suspect showed, in words that say why."""

import inspect

import numpy as np
import pytest

from asyncsim import Expected, Signal, Window, kernel
from asyncsim.checking.record.replay import replay
from asyncsim.checking.verdict.check import check
from asyncsim.trace.token import decode
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


x = Window("x", (2,), np.int64, initialised=True)
credit = Signal("credit", (1,))
SEVEN = np.array([7, 7], np.int64)


async def shown_again(report):
    """Replay every witness of a report; return what the report says of each finding."""
    for finding in report.findings:
        if finding.token is not None:
            await replay.aio(decode(finding.token), report.case.kernel)
    return {finding.title: finding for finding in report.findings}


async def test_a_witness_that_shrinks_into_another_ending_replays():
    @kernel(memory=[x, credit])
    async def exactly_one(rank, x, credit):
        if rank.id == 0:
            await rank.wait(credit[0] == 1)
            return None
        if rank.id == 1:
            seen = await rank.load(x.at(2)[:])
            await rank.notify(credit.at(0)[0], 1)
            return seen
        await rank.store(x[:], SEVEN)
        for _ in range(3):
            await rank.load(x[:])
        await rank.notify(credit.at(0)[0], 2)
        return None

    found = await shown_again(await judged(exactly_one, ranks=3))
    wait = found["unstable-wait, same call"]
    assert [(side.actor, side.op) for side in wait.sides] == [("0", "wait"), ("2", "notify")]
    assert "overshot by rank 2's 'notify credit[0]@0 += 2'" in wait.why
    assert all(finding.harmful for finding in found.values())


byte = Signal("byte", (1,), np.int8, start=125)
done = Signal("done", (1,))


def counting(start, *, wrap=False, racing=False, order=True):
    """Return a kernel in which rank 0 adds 2 twice to a byte of rank 1, which gives 2 back in between."""

    @kernel(memory=[x, Signal("byte", (1,), np.int8, start=start, wrap=wrap), done])
    async def counts(rank, x, byte, done):
        seen = None
        if racing:
            seen = None if rank.id == 0 else await rank.load(x[:])
            await (rank.store(x.at(1)[:], SEVEN) if rank.id == 0 else rank.load(x[1]))
        if rank.id == 0:
            await rank.notify(byte.at(1)[0], 2)
            if order:
                await rank.wait(done[0] >= 1)
            else:
                for _ in range(6):
                    await rank.load(x[0])
            await rank.notify(byte.at(1)[0], 2)
        else:
            await rank.wait(byte[0] >= start + 2)
            await rank.notify(byte[0], -2)
            await rank.quiet()
            await rank.notify(done.at(0)[0], 1)
            await rank.wait(byte[0] >= start + 2)
        return seen

    return counts


@pytest.mark.parametrize("memory", ["ldst", "nic"])
async def test_a_cell_that_stays_in_its_range_does_not_overflow_beside_a_race(memory):
    report = await check.aio(counting(124, racing=True), ranks=2, calls=1, memory=memory, samples=20)
    assert report.refuted
    assert {finding.kind for finding in report.findings if finding.harmful} == {"race"}
    assert not any(finding.kind == "overflow" for finding in report.findings)


async def test_an_overflow_is_shown_by_a_run_in_which_the_cell_leaves_its_range():
    report = await judged(counting(125, order=False))
    found = await shown_again(report)
    overflow = found["overflow"]
    assert (overflow.harmful, overflow.pairs) == (True, 1)
    assert overflow.shown.startswith("rank 0's notify byte[0]@1 += 2 takes it from 127 to 129, in step ")
    (side,) = overflow.sides
    assert (side.actor, side.index, side.region) == ("0", 7, "byte[0]@1")


async def test_a_cell_that_wraps_and_keeps_a_wait_from_passing_is_harmful():
    found = await shown_again(await judged(counting(125, wrap=True, order=False)))
    assert found["overflow"].harmful
    assert "takes it from 127 to 129, in step " in found["overflow"].shown
    assert "it hangs after" in found["overflow"].shown


async def test_each_signal_that_overflows_has_a_finding():
    signals = [Signal(name, (1,), np.int8, start=126) for name in ("one", "two")]

    @kernel(memory=[*signals, done])
    async def both(rank, one, two, done):
        if rank.id == 0:
            for cell in (one, two):
                await rank.notify(cell.at(1)[0], 1)
            await rank.wait(done[0] >= 1)
            for cell in (one, two):
                await rank.notify(cell.at(1)[0], 1)
        else:
            await rank.notify(done.at(0)[0], 1)
            for cell in (one, two):
                await rank.notify(cell[0], -1)

    found = [finding for finding in (await judged(both)).findings if finding.kind == "overflow"]
    assert [(finding.window, finding.harmful) for finding in found] == [("one", True), ("two", True)]
    assert [finding.sides[0].region for finding in found] == ["one[0]@1", "two[0]@1"]


async def test_a_credit_that_nobody_misses_is_not_harmful_beside_a_race():
    @kernel(memory=[x, Signal("many", (1,), start=5)])
    async def plenty(rank, x, many):
        if rank.id == 0:
            await rank.wait(many[0] >= 4)
            await rank.store(x.at(1)[:], SEVEN)
            return None
        await rank.notify(many.at(0)[0], -1)
        return await rank.load(x[:])

    report = await judged(plenty)
    assert [finding.kind for finding in report.findings if finding.harmful] == ["race"]


@pytest.mark.parametrize("flagged", ["a test", "a poll"])
async def test_beside_a_flag_only_pairs_that_can_race_are_counted_and_told(flagged):
    @kernel(memory=[x, data, flag])
    async def pushes(rank, x, data, flag):
        if rank.id == 2:
            await rank.store(x.at(1)[0:2], SEVEN)
            await rank.store(data.at(0)[0], np.int32(1))
            await rank.notify(flag.at(0)[2], 1)
            return None
        if rank.id == 0 and flagged == "a test":
            while not await rank.test(flag[2] >= 1):
                pass
        elif rank.id == 0:
            await rank.poll(data[0], bool)
        else:
            for _ in range(8):
                await rank.load(data[3])
        return await rank.load(x.at(1)[rank.id])

    (race,) = [finding for finding in (await judged(pushes, ranks=3)).findings if finding.kind == "race"]
    assert race.pairs == 1
    assert [(side.rank, side.region) for side in race.sides] == [(2, "x[0:2]@1"), (1, "x[1]@1")]
    assert "rank 1's load" in race.why


async def test_an_old_credit_that_a_set_was_to_erase_is_harmful_where_the_wait_takes_it():
    @kernel(memory=[x, flag])
    async def stale(rank, x, flag):
        if rank.id == 1:
            await rank.notify(flag.at(0)[0], 1)
            await rank.store(x.at(0)[:], SEVEN)
            await rank.notify(flag.at(0)[0], 1)
            return None
        for _ in range(2):
            await rank.load(x[0])
        await rank.notify(flag[0], 0, op="Set")
        await rank.wait(flag[0] >= 1)
        return await rank.load(x[:])

    report = await judged(stale)
    await shown_again(report)
    races = [finding for finding in report.findings if finding.kind == "signal-race"]
    assert [finding.harmful for finding in races] == [True, True]
    assert [finding.sides[0].op for finding in races] == ["notify", "notify"]
    assert {finding.shown.split()[0] for finding in races} == {"it", "rank"}


async def test_a_race_that_makes_the_kernel_raise_is_harmful():
    @kernel(memory=[x])
    async def raises(rank, x):
        if rank.id == 0:
            await rank.store(x.at(1)[:], SEVEN)
        elif (await rank.load(x[0])) == 0:
            raise ValueError("too early")

    report = await judged(raises)
    (race,) = report.findings
    assert race.harmful
    assert race.shown.startswith("the kernel raises in one order: ")


async def test_where_the_fair_run_fails_itself_the_order_of_the_fair_run_may_be_the_wrong_one():
    @kernel(memory=[x], inputs=lambda P, call, rng: [7] * P, golden=lambda xs: [None, 0])
    async def reads_late(rank, _, x):
        if rank.id == 0:
            await rank.store(x.at(1)[:], SEVEN)
            return None
        return int(await rank.load(x[0]))

    report = await judged(reads_late)
    race = next(finding for finding in report.findings if finding.kind == "race")
    assert (race.harmful, race.pairs) == (True, 1)
    assert decode(race.token).choices == ("0", "1")
    assert race.shown.startswith("rank 1's result of call 0 is not the golden: 1 of 1 elements differ: 7 instead of 0")


async def test_the_pair_of_the_title_is_one_that_does_harm():
    @kernel(memory=[x])
    async def first_is_harmless(rank, x):
        if rank.id < 2:
            return await rank.load(x.at(2)[0]) * rank.id
        await rank.store(x[:], SEVEN)
        return None

    (race,) = (await judged(first_is_harmless, ranks=3)).findings
    assert (race.harmful, race.pairs) == (True, 2)
    assert [side.rank for side in race.sides] == [1, 2]
    assert race.why.startswith("nothing orders rank 1's remote_load")


async def test_beside_a_flag_pairs_that_were_not_tried_are_not_counted():
    @kernel(memory=[Window("wide", (40,), np.int64, initialised=True), flag])
    async def many(rank, wide, flag):
        if rank.id == 1:
            await rank.test(flag[1] >= 1)
            return sum([int(await rank.load(wide.at(0)[n])) for n in range(40)])
        await rank.notify(flag.at(1)[1], 1)
        for n in range(40):
            await rank.store(wide[n], n)
        return None

    race = next(finding for finding in (await judged(many)).findings if finding.kind == "race")
    assert race.pairs == 32
    assert race.why.endswith("(counted are the pairs that were brought together; 8 more were not tried)")


async def test_two_races_that_only_come_together_are_told_by_what_changes():
    @kernel(memory=[x], inputs=lambda P, call, rng: [0] * P, golden=lambda xs: [None, 0])
    async def overwritten(rank, _, x):
        if rank.id == 0:
            await rank.store(x.at(1)[:], SEVEN)
            await rank.store(x.at(1)[:], 2 * SEVEN)
            return None
        return int(await rank.load(x[0]))

    races = [finding for finding in (await judged(overwritten)).findings if finding.kind == "race"]
    assert len(races) == 2
    assert all(finding.harmful is not False for finding in races)


async def test_where_every_run_overflows_a_race_is_told_by_the_outputs_alone():
    @kernel(memory=[x, Signal("low", (1,), np.int8, start=126)])
    async def overflows(rank, x, low):
        if rank.id == 0:
            return await rank.load(x[0])
        await rank.store(x.at(0)[:], SEVEN)
        for _ in range(9):
            await rank.load(x[0])
        await rank.notify(low[0], 2)
        return None

    found = await shown_again(await judged(overflows))
    assert found["WAR race, same call"].shown == "the outputs of the two orders differ in their bits"


async def test_a_hang_that_is_in_both_orders_is_not_told_of_a_race():
    @kernel(memory=[x, flag], inputs=lambda P, call, rng: [7] * P, golden=lambda xs: [None, 0, None])
    async def hangs_anyway(rank, _, x, flag):
        if rank.id == 2:
            await rank.wait(flag[0] >= 1)
        if rank.id == 0:
            await rank.store(x.at(1)[:], SEVEN)
            return None
        return int(await rank.load(x[0]))

    report = await judged(hangs_anyway, ranks=3)
    race = next(finding for finding in report.findings if finding.kind == "race")
    assert race.harmful
    assert race.shown.startswith("rank 1's result of call 0 is not the golden: 1 of 1 elements differ: 7 instead of 0")
