"""Waits and tests for `!=`, and notifies of 0: what they can miss, what they cannot, and what is no change at all."""

import pytest

from asyncsim import Case, Fifo, Set, Signal, check, kernel, simulate

CELL = Signal("cell", (2,), "int8")


async def judged(program, *, ranks=2, cell=CELL):
    """Judge one call of a program on a cell."""
    return await check.aio(kernel(memory=[cell])(program), ranks=ranks, calls=1)


def kinds(report):
    """Return the kinds of findings."""
    return {finding.kind for finding in report.findings}


async def test_a_value_that_comes_and_goes_can_be_missed():
    async def blinks(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 1)
            await rank.notify(cell.at(0)[0], -1)
        else:
            await rank.wait(cell[0] != 0)

    report = await judged(blinks)
    assert report.verdict == "REFUTED"
    assert kinds(report) <= {"signal-race", "unstable-wait"}
    assert "it hangs" in report.findings[0].shown


async def test_values_that_only_grow_are_not_missed():
    async def grows(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 1)
            await rank.notify(cell.at(0)[0], 1)
        else:
            await rank.wait(cell[0] != 0)
            await rank.wait(cell[0] != 1)

    report = await judged(grows)
    assert report.verdict in ("PROVED", "EXHAUSTED")
    assert not report.findings


async def test_a_wait_that_passes_at_once_can_be_wrong_for_ever():
    async def early(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 1)
        else:
            await rank.wait(cell[0] != 1)

    report = await judged(early)
    assert (report.verdict, kinds(report), report.one_run) == ("REFUTED", {"unstable-wait"}, True)


async def test_a_wait_that_comes_after_the_value_has_gone_by_is_stable():
    async def ordered(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 1)
            await rank.notify(cell.at(0)[0], 1)
            await rank.notify(cell.at(0)[1], 1)
        else:
            await rank.wait(cell[1] >= 1)
            await rank.wait(cell[0] != 1)
            await rank.wait(cell[0] != 0)

    assert (await judged(ordered)).verdict == "PROVED"


@pytest.mark.parametrize(
    ("expected", "decided"),
    [(0, False), (1, False), (2, True), (7, True), (-1, True)],
)
@pytest.mark.parametrize("how", ["__ne__", "__eq__"])
async def test_a_test_is_certain_of_what_no_schedule_makes_true(how, expected, decided):
    async def asks(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 1)
            return None
        return await rank.test(getattr(cell[0], how)(expected))

    report = await judged(asks)
    assert report.one_run == decided
    assert report.verdict == ("PROVED" if decided else "REFUTED")


@pytest.mark.parametrize(
    ("how", "expected", "decided"),
    [
        ("__ge__", 0, True), ("__ge__", 1, False), ("__ge__", 2, True), ("__gt__", -1, True), ("__gt__", 0, False),
        ("__gt__", 1, True), ("__le__", 1, True), ("__le__", 0, False), ("__le__", -1, True), ("__lt__", 2, True),
        ("__lt__", 1, False), ("__lt__", 0, True),
    ],
)  # fmt: skip
async def test_a_test_at_the_edge_of_what_can_come(how, expected, decided):
    async def asks(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 1)
            return None
        return await rank.test(getattr(cell[0], how)(expected))

    assert (await judged(asks)).one_run == decided


async def test_a_test_of_a_value_that_is_fixed_by_an_epoch_is_certain():
    async def asks(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 5, op=Set)
            await rank.notify(cell.at(0)[1], 1)
            return None
        await rank.wait(cell[1] >= 1)
        return await rank.test(cell[0] != 5)

    assert (await judged(asks)).verdict == "PROVED"


# ---- a notify of 0 changes nothing


@pytest.mark.parametrize("condition", [lambda c: c >= 1, lambda c: c > 0, lambda c: c == 1, lambda c: c != 0])
async def test_a_notify_of_nothing_takes_no_credit_away(condition):
    async def noise(rank, cell):
        if rank.id == 0:
            await rank.wait(condition(cell[0]))
        elif rank.id == 1:
            await rank.notify(cell.at(0)[0], 0)
        else:
            await rank.notify(cell.at(0)[0], 1)

    report = await judged(noise, ranks=3)
    assert (report.verdict, report.findings, report.one_run) == ("PROVED", [], True)


async def test_a_notify_of_nothing_lets_nobody_pass():
    async def noise(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 0)
        else:
            await rank.wait(cell[0] >= 1)

    report = await judged(noise)
    assert kinds(report) == {"deadlock"}
    assert "too few were sent" in report.findings[0].why


async def test_a_notify_of_nothing_makes_no_equal_wait_unstable():
    async def noise(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 0)
        else:
            await rank.wait(cell[0] == 0)

    assert (await judged(noise)).verdict == "PROVED"


async def test_a_culprit_is_a_notify_of_something():
    async def noise(rank, cell):
        if rank.id == 0:
            await rank.wait(cell[0] == 1)
        else:
            await rank.notify(cell.at(0)[0], 1)
            await rank.notify(cell.at(0)[0], 1)
            await rank.notify(cell.at(0)[0], 0)

    report = await judged(noise)
    (finding,) = (finding for finding in report.findings if finding.kind == "unstable-wait")
    assert "+= 1'" in finding.why
    assert "+= 0" not in finding.why


async def test_a_cell_that_holds_all_it_can_takes_a_notify_of_nothing():
    async def fills(rank, cell):
        if rank.id:
            await rank.notify(cell.at(0)[0], 0)
        await rank.notify(cell.at(0)[1], 0)

    full = Signal("cell", (2,), "int8", start=127)
    assert (await judged(fills, cell=full)).verdict == "PROVED"


# ---- a wait that consumes more than the cell can bear


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_a_consuming_wait_that_leaves_the_range_ends_the_run_and_stands_there_no_more(memory):
    @kernel(memory=[CELL])
    async def takes(rank, cell):
        await rank.notify(cell[0], 100)
        await rank.quiet()
        await rank.wait(cell[0] != -128, consume=True)

    run = simulate(Case(takes, 1, 1, memory), Fifo(), record="fifo")
    assert run.ending == "overflow"
    assert str(run.trace.events[-1].op) == "wait cell[0]@0 != -128 and subtract"
    assert [str(event.op) for event in run.trace.footer.pending] == []
    assert run.trace.events[-1].have == 100


def test_others_that_wait_at_the_cell_still_stand_there():
    async def waits(rank, cell):
        await rank.wait(cell[0] >= 120)

    @kernel(memory=[CELL])
    async def takes(rank, cell):
        stream = await rank.start(waits, cell)
        await rank.notify(cell[0], 100)
        await rank.wait(cell[0] != -128, consume=True)
        await rank.join(stream)

    run = simulate(Case(takes, 1, 1), Fifo(), record="fifo")
    assert run.ending == "overflow"
    assert [str(event.op) for event in run.trace.footer.pending] == ["wait cell[0]@0 >= 120"]
