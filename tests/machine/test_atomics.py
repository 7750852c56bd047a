"""Atomic sets and reads beside atomic adds: no race among them, a race with all else; and their order may show."""

import io

import numpy as np
import pytest

from asyncsim import Case, Fifo, KernelError, Signal, Window, check, explore, kernel, simulate
from asyncsim.analysis.certificate import certificate
from asyncsim.certify import certify
from asyncsim.checking.record.replay import replay
from asyncsim.schedulers.pos import Pos
from asyncsim.trace.finding import ATOMIC
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.schema import schema

box = Window("box", (2,), np.int32, initialised=True)
floats = Window("floats", (2,), np.float32, over="box")
flag = Signal("flag", (1,))
MODELS = ("sc", "ldst", "nic")


@kernel(memory=[box])
async def sets(rank, box, *, same=True, atomic="set"):
    """Ranks 1 and 2 set one element at rank 0."""
    if rank.id:
        await rank.store(box.at(0)[0], 7 if same else rank.id, atomic=atomic)


@kernel(memory=[box])
async def set_and_read(rank, box, *, atomic=True, returned=True):
    """Rank 1 sets what rank 2 reads."""
    if rank.id == 1:
        await rank.put(box.at(0)[0], np.int32(7), atomic="set")
    if rank.id == 2:
        seen = await rank.load(box.at(0)[0], atomic=atomic)
        return seen if returned else None
    return None


@kernel(memory=[box, flag])
async def ordered(rank, box, flag):
    """The read waits for the set."""
    if rank.id == 1:
        await rank.store(box.at(0)[0], 7, atomic="set")
        await rank.notify(flag.at(2)[0], 1)
    if rank.id == 2:
        await rank.wait(flag[0] >= 1)
        return await rank.load(box.at(0)[0], atomic=True)
    return None


def titles(report):
    return [(finding.kind, finding.harmful) for finding in report.findings]


@pytest.mark.parametrize("memory", MODELS)
def test_two_sets_are_no_race_and_two_of_one_value_show_nothing(memory):
    report = check(sets, ranks=3, calls=1, memory=memory)
    assert (report.verdict, titles(report)) == ("EXHAUSTED", [(ATOMIC, False)])


@pytest.mark.parametrize("memory", MODELS)
def test_two_sets_of_two_values_leave_what_the_order_says(memory):
    report = check(sets.variant(same=False), ranks=3, calls=1, memory=memory)
    assert (report.verdict, titles(report)) == ("REFUTED", [(ATOMIC, True)])
    assert "no race" in report.findings[0].why


@pytest.mark.parametrize("memory", MODELS)
def test_a_read_beside_a_set_is_no_race_but_shows_the_order(memory):
    shown = check(set_and_read, ranks=3, calls=1, memory=memory)
    assert (shown.verdict, titles(shown)) == ("REFUTED", [(ATOMIC, True)])
    hidden = check(set_and_read.variant(returned=False), ranks=3, calls=1, memory=memory)
    assert (hidden.verdict, titles(hidden)) == ("EXHAUSTED", [(ATOMIC, False)])


@pytest.mark.parametrize("kernel", [sets.variant(atomic=None), set_and_read.variant(atomic=False)])
def test_what_is_not_atomic_on_both_sides_is_a_race(kernel):
    report = check(kernel, ranks=3, calls=1, memory="sc")
    assert [finding.kind for finding in report.findings] == ["race"]


def test_a_set_and_a_plain_store_are_a_race():
    @kernel(memory=[box])
    async def half(rank, box):
        if rank.id:
            await rank.store(box.at(0)[0], 7, atomic="set" if rank.id == 1 else None)

    assert [finding.kind for finding in check(half, ranks=3, calls=1).findings] == ["race"]


def test_a_set_and_an_add_are_no_race_and_the_order_shows():
    @kernel(memory=[box])
    async def both(rank, box):
        if rank.id:
            await rank.store(box.at(0)[0], 7, atomic="set" if rank.id == 1 else "add")

    assert titles(check(both, ranks=3, calls=1)) == [(ATOMIC, True)]


def test_atomics_of_two_dtypes_over_the_same_bytes_are_a_race():
    @kernel(memory=[box, floats])
    async def mixed(rank, box, floats):
        if rank.id == 1:
            await rank.store(box.at(0)[0], 7, atomic="set")
        if rank.id == 2:
            await rank.store(floats.at(0)[0], np.float32(7), atomic="set")

    assert [finding.kind for finding in check(mixed, ranks=3, calls=1).findings] == ["race"]


@pytest.mark.parametrize("memory", MODELS)
def test_atomics_that_a_wait_orders_are_proved(memory):
    report = check(ordered, ranks=3, calls=1, memory=memory)
    assert (report.verdict, report.findings) == ("PROVED", [])


def test_exploration_tells_of_atomics_too():
    report = explore(set_and_read.variant(returned=False), ranks=3, calls=1, exhaustive=True)
    assert (report.verdict, titles(report)) == ("EXHAUSTED", [(ATOMIC, False)])


@pytest.mark.parametrize("memory", MODELS)
def test_the_proof_of_atomics_has_a_certificate(memory):
    report = check(ordered, ranks=3, calls=1, memory=memory)
    assert certify(certificate(*report.proof)).steps == report.steps


@pytest.mark.parametrize("memory", [*MODELS, "ldst:atom=1"])
def test_a_trace_keeps_what_is_atomic_and_replays(memory):
    import jsonschema  # noqa: PLC0415 - slow to import

    run = simulate(Case(set_and_read, ranks=3, calls=1, memory=memory), Pos(seed=3), record="pos")
    written = io.StringIO()
    write_trace(run.trace, written)
    back = read_trace(io.StringIO(written.getvalue()))
    atomics = [access.atomic for event in back.events for access in event.op.accesses]
    assert atomics == [access.atomic for event in run.trace.events for access in event.op.accesses]
    assert any(atomics)
    validator = jsonschema.Draft202012Validator(schema())
    import json  # noqa: PLC0415 - beside it

    assert all(validator.is_valid(json.loads(line)) for line in written.getvalue().splitlines())
    assert replay(back, set_and_read).steps == len(run.choices)


def test_an_unknown_atomic_is_refused_with_what_would_be_right():
    @kernel(memory=[box])
    async def wrong(rank, box):
        await rank.store(box[0], 7, atomic="swap")

    with pytest.raises(KernelError, match="atomic='swap'; use 'add' or 'set', or leave it out"):
        simulate(Case(wrong, ranks=1, calls=1), Fifo())
