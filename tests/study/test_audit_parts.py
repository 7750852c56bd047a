"""What the parts of a kernel that are no barriers are for, and those of which nothing can be said."""

from __future__ import annotations

from audits import box, cell, check_witnesses, guards, numbers, verdicts

from asyncsim import Case, Fifo, Signal, Window, kernel, simulate
from asyncsim.checking.record.locate import locate
from asyncsim.study.audit import audit
from asyncsim.trace.edit import DROP, NARROW, RELAX, SKIP
from asyncsim.trace.finding import EXHAUSTED, PROVED, REFUTED
from asyncsim.views.audit import audit_text
from kernels import reduce_scatter


def test_a_fence_is_a_part_where_things_land_later():
    kernel = locate("field.f27_flag_overtakes_data:fixed_by_fence")
    (fence, *_) = audit(kernel, ranks=2, memory="nic").rows
    assert (fence.part.kind, guards(fence)[0]) == ("fence", ("RAW", "within the call", 1, 2))


def test_a_flag_that_is_set_back_is_a_credit_and_a_put_may_notify():
    @kernel(memory=[box, cell], inputs=numbers)
    async def by_set(rank, x, box, cell):
        await rank.put_signal(box.at((rank.id + 1) % rank.size)[:], x, cell.at((rank.id + 1) % rank.size)[0])
        await rank.wait(cell[0] >= 1)
        await rank.notify(cell[0], 0, "Set")
        return await rank.load(box[:])

    put, wait, back = audit(by_set, ranks=2, calls=1).rows
    assert [row.part.kind for row in (put, wait, back)] == ["notify", "wait", "credits"]
    assert [guards(row)[-1][0] for row in (put, wait, back)] == ["deadlock", "signal-race", "credits"]


def test_a_kernel_that_raises_without_a_part_is_refuted_with_the_schedule():
    @kernel(memory=[box, cell])
    async def checks(rank, box, cell):
        """Rank 1 insists on what rank 0 stores."""
        if rank.id == 0:
            for _ in range(3):
                await rank.load(box[0])
            await rank.store(box.at(1)[0], 1.0)
            await rank.notify(cell.at(1)[0], 1)
        else:
            await rank.wait(cell[0] >= 1)
            await rank.notify(cell[0], -1)
            if await rank.load(box[0]) != 1.0:
                raise ValueError("too early")

    audited = audit(checks, ranks=2, calls=1)
    wait = next(row for row in audited.rows if row.part.kind == "wait")
    assert "ValueError: too early" in wait.guards[0].finding.why
    check_witnesses(audited)


def test_what_goes_wrong_anyhow_is_not_what_a_part_guards():
    audited = audit(reduce_scatter.post_barrier_off_by_one, ranks=2)
    (wait,) = [row for row in audited.rows if row.part.kind == "wait"]
    assert (verdicts(wait), guards(wait)) == ([PROVED, REFUTED], [])
    text = audit_text(audited)
    assert text.startswith("REFUTED")
    assert "as it stands: WAR race, next call: 2 pairs, harmful\n  for one call it is PROVED\n" in text
    assert "nothing more than goes wrong with it" in text


def test_outside_the_theory_nothing_is_called_redundant():
    @kernel(memory=[cell])
    async def looks(rank, cell):
        """Rank 1 looks whether rank 0 was there, and does nothing with it."""
        if rank.id == 0:
            await rank.notify(cell.at(1)[0], 1)
        elif rank.id == 1:
            await rank.test(cell[0] >= 1)
            await rank.wait(cell[0] >= 1, consume=True)

    audited = audit(looks, ranks=2, calls=1)
    assert audited.report.verdict == EXHAUSTED
    wait = audited.rows[-1]
    assert (verdicts(wait), guards(wait), wait.redundant) == ([EXHAUSTED], [], False)
    text = audit_text(audited)
    assert "as it stands: one run does not decide" in text
    assert "nothing was found: EXHAUSTED" in text


def test_a_kernel_without_synchronisation_has_no_parts():
    @kernel(memory=[box])
    async def alone(rank, box):
        await rank.store(box[0], 1.0)

    audited = audit(alone, ranks=2)
    assert audited.rows == []
    assert "there is nothing to take away" in audit_text(audited)


tile = Window("tile", (1,), "int64")
up = Signal("up", (1,))


@kernel(memory=[tile, up], golden=lambda xs: [[7, 7]] * len(xs))
async def two_blocks(rank, tile, up):
    """Block 1 reads what block 0 stores; the signal is fenced on one side, and released and acquired on both."""
    producer = await rank.start(stores, tile, up, block="b0")
    consumer = await rank.start(loads, tile, up, block="b1")
    await rank.join(producer)
    return await rank.join(consumer)


async def stores(rank, tile, up):
    await rank.store(tile[0], 7)
    await rank.fence(order="release", scope="rank")
    await rank.notify(up[0], 1)


async def loads(rank, tile, up):
    await rank.wait(up[0] >= 1)
    first = int(await rank.load(tile[0]))
    again = await rank.read(up[0])
    return [first, 7 * again]


def test_an_order_and_a_scope_may_be_weaker():
    audited = audit(two_blocks, ranks=1, calls=1)
    assert (audited.report.verdict, audited.report.case.memory) == (PROVED, "gpu")
    weaker = [(row.part.kind, row.redundant) for row in audited.rows if row.part.edit.what in (RELAX, NARROW)]
    assert weaker == [
        ("scope", True), ("acquire", False), ("scope", True), ("release", True), ("scope", True), ("acquire", True),
        ("scope", True),
    ]  # fmt: skip
    text = audit_text(audited)
    assert "nothing: it may be relaxed" in text
    assert "nothing: it may be narrower" in text
    assert "Relaxed, with the value before: rank 0's result" in text
    check_witnesses(audited)


def test_orders_and_scopes_are_no_parts_where_they_mean_nothing():
    audited = audit(two_blocks, ranks=1, calls=1, memory="sc")
    assert {row.part.edit.what for row in audited.rows} == {SKIP, DROP}


def test_two_edits_may_weaken_one_operation():
    line = next(row.part.edit.site[0] for row in audit(two_blocks, ranks=1, calls=1).rows if row.part.kind == "acquire")
    run = simulate(Case(two_blocks, 1, memory="gpu", edits=(f"relax {line}", f"narrow {line}")), Fifo(), record="fifo")
    (wait,) = {event.op.said[:2] for event in run.recorded.events if event.op.kind == "wait"}
    assert wait == ("relaxed", "rank")
