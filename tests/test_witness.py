"""Witnesses: what the schedules of a suspect showed, in words that say why."""

from asyncsim import Expected, Signal, kernel
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
    assert "signal[1, 0]@0 >= 1 (have 0, need 1): erased, rank 0's 'notify signal[1, 0]@0 := 0'" in finding.shown


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
