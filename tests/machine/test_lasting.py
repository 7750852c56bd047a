"""Streams with a name, which are the same actor in every call; and those that outlive the call that started them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from exhaust import exhaust
from naive import EverySchedule, end_of

from asyncsim import (
    Case,
    Fifo,
    KernelError,
    MisuseError,
    Signal,
    Window,
    check,
    explore,
    kernel,
    replay,
    shrink,
    simulate,
)
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.certificate import certificate
from asyncsim.certify import certify
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.machine.direct import drive
from asyncsim.schedulers.table import make
from asyncsim.trace.jsonl import write_trace
from asyncsim.trace.jsonl_read import read_trace
from asyncsim.trace.token import decode
from asyncsim.views.report import report_text
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_page import page_text

ROW = Window("row", (2,), np.int64, initialised=True)
BOX = Window("box", (2,), np.int64, initialised=True)
WORK = Signal("work", (1,))
DONE = Signal("done", (1,))
FREE = Signal("free", (1,))
MEMORY = [ROW, BOX, WORK, DONE, FREE]


def rows(P, call, rng):
    return [rng.integers(1, 100, 2, np.int64) for _ in range(P)]


def rolled(xs):
    return list(np.roll(np.stack(xs), 1, axis=0))


async def copies(rank, row, box, work, done):
    """A proxy: each time there is work, it copies the row to the right, and says so there."""
    right, times = (rank.id + 1) % rank.size, 0
    while True:
        times += 1
        await rank.wait(work[0] >= times)
        await rank.store(box.at(right)[:], await rank.load(row[:]))
        await rank.notify(done.at(right)[0], 1)


@kernel(memory=MEMORY, inputs=rows, golden=rolled)
async def by_proxy(rank, x, row, *views, waits=True):
    """A network proxy copies; it lives as long as the kernel is called."""
    box, work, done, free = views
    await rank.start(copies, row, box, work, done, name="proxy", lasting=True)
    await rank.store(row[:], x)
    await rank.wait(free[0] >= rank.call)
    await rank.notify(work[0], 1)
    if waits:
        await rank.wait(done[0] >= rank.call + 1)
    y = await rank.load(box[:])
    await rank.notify(free.at((rank.id - 1) % rank.size)[0], 1)
    await rank.wait(free[0] >= rank.call + 1)
    return y


too_early = by_proxy.variant(about="Nobody waits until the proxy has copied.", waits=False)


async def consumes(rank, row, box, done):
    await rank.store(box.at((rank.id + 1) % rank.size)[:], await rank.load(row[:]))
    await rank.notify(done.at((rank.id + 1) % rank.size)[0], 1)
    await rank.wait(done[0] >= 1, consume=True)
    return await rank.load(box[:])


@kernel(memory=MEMORY, inputs=rows, golden=rolled)
async def by_block(rank, x, row, *views):
    """The same block consumes its own credits in each call."""
    box, _, done, free = views
    await rank.store(row[:], x)
    await rank.wait(free[0] >= rank.call)
    y = await rank.join(await rank.start(consumes, row, box, done, name="block"))
    await rank.notify(free.at((rank.id - 1) % rank.size)[0], 1)
    await rank.wait(free[0] >= rank.call + 1)
    return y


def run_of(program, *, ranks=1, calls=2, memory=(ROW,), scheduler=None):
    made = kernel(memory=list(memory))(program)
    return drive(Case(made, ranks, calls), scheduler or Fifo(), record="fifo")


def text_of(trace):
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue()


# ---- what they do


def test_a_named_stream_is_one_actor_and_runs_what_it_is_started_with():
    async def says(rank, what):
        await rank.fence()
        return what, rank.actor.name, rank.call

    async def program(rank, row):
        first = await rank.start(says, "other")
        found = [await rank.join(await rank.start(says, word, name="b0")) for word in ("one", "two")]
        return [await rank.join(first), *found]

    run = run_of(program)
    assert run.outputs[0] == [[("other", "0.1", 0), ("one", "0.b0", 0), ("two", "0.b0", 0)]]
    assert run.outputs[1] == [[("other", "0.3", 1), ("one", "0.b0", 1), ("two", "0.b0", 1)]]
    actors = {event.op.actor for event in run.trace.events}
    assert sorted(actor.name for actor in actors) == ["0", "0.1", "0.3", "0.b0"]
    (named,) = (actor for actor in actors if actor.name == "0.b0")
    assert (named.title, named.lasts, named.depth) == ("stream 0.b0", True, 1)
    fences = [event.call for event in run.trace.events if event.op.actor is named and event.op.kind == "fence"]
    assert fences == [0, 0, 1, 1]
    assert run.ending == "complete"
    assert not run.trace.footer.pending


def test_streams_of_a_named_stream_go_on_being_numbered():
    async def inner(rank):
        return rank.actor.name

    async def outer(rank):
        return await rank.join(await rank.start(inner))

    async def program(rank, row):
        return await rank.join(await rank.start(outer, name="b"))

    assert run_of(program).outputs == [["0.b.1"], ["0.b.2"]]


def test_a_lasting_stream_runs_on_until_the_last_rank_has_returned():
    async def forever(rank, row, work):
        times = 0
        while True:
            times += 1
            await rank.wait(work[0] >= times)
            await rank.store(row[0], times)

    async def program(rank, row, work):
        await rank.start(forever, row, work, name="engine", lasting=True)
        await rank.notify(work[0], 1)

    run = run_of(program, calls=3, memory=(ROW, WORK))
    assert (run.ending, run.standing, run.windows[0].tolist()) == ("complete", True, [3, 0])
    (left,) = run.trace.footer.pending
    assert str(left.op) == "wait work[0]@0 >= 4"
    starts = [event for event in run.trace.events if event.op.kind == "start"]
    assert len(starts) == 1


def test_a_lasting_stream_may_return_by_itself_and_be_joined_in_a_later_call():
    async def counts(rank, row):
        for number in range(3):
            await rank.store(row[0], number)
        return "done", rank.call

    async def program(rank, row):
        stream = await rank.start(counts, row, name="engine", lasting=True)
        if rank.call == 1:
            return await rank.join(stream)
        return None

    assert run_of(program, calls=2).outputs == [[None], [("done", 0)]]
    again = run_of(program, calls=4)
    assert again.ending == "complete"
    assert again.outputs == [[None], [("done", 0)], [None], [None]]
    assert len({event.call for event in again.trace.events if event.op.actor.lasts}) == 2  # started in calls 0 and 2


def test_a_rank_that_waits_for_ever_hangs_whatever_a_lasting_stream_does():
    report = check(
        by_proxy.variant(about="-", memory=[*MEMORY[:2], Signal("work", (1,)), DONE, FREE]), ranks=2, calls=1
    )
    assert report.verdict == "PROVED"

    async def program(rank, row, work, done):
        await rank.start(idle, work, name="engine", lasting=True)
        await rank.wait(done[0] >= 1)

    async def idle(rank, work):
        await rank.wait(work[0] >= 1)

    run = run_of(program, calls=1, memory=(ROW, WORK, DONE))
    assert run.ending == "deadlock"
    assert [event.op.actor.name for event in run.trace.footer.pending] == ["0", "0.engine"]


# ---- what is refused


async def nothing(rank):
    return None


async def starts_twice(rank, row):
    await rank.start(nothing, name="b")
    await rank.start(nothing, name="b")


async def lasts_without_a_name(rank, row):
    await rank.start(nothing, lasting=True)


async def does_not_join(rank, row):
    await rank.start(nothing, name="b")


async def joins_twice(rank, row):
    stream = await rank.start(nothing, name="b", lasting=True)
    await rank.join(stream)
    await rank.join(stream)


async def changes_its_block(rank, row):
    await rank.join(await rank.start(nothing, name="b", block="one"))
    await rank.start(nothing, name="b", block="two")


async def leaves_a_stream(rank):
    await rank.start(nothing)


async def starts_what_leaves(rank, row):
    await rank.join(await rank.start(leaves_a_stream, name="b"))


def plain(rank):
    return 3


async def starts_no_coroutine(rank, row):
    await rank.join(await rank.start(plain, name="b"))


def named(name):
    async def program(rank, row):
        await rank.start(nothing, name=name)

    return program


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (starts_twice, r"start\(0.b\): it runs already; join it first, or make it lasting"),
        (lasts_without_a_name, r"start\(..., lasting=True\) without a name; give name='proxy'"),
        (does_not_join, "returns while its stream 0.b runs; join each stream"),
        (joins_twice, r"join\(0.b\); join a stream that this actor started, once"),
        (changes_its_block, "stream 0.b stays in the block that it was first started in"),
        (starts_what_leaves, "returns while its stream 0.b.1 runs"),
        (starts_no_coroutine, "a program returned an object of type int at once; give an async function"),
        (named("1"), "name a stream as a variable: 'proxy'"),
        (named(3), "name a stream as a variable: 'proxy'"),
        (named("é"), "name a stream as a variable: 'proxy'"),
    ],
)
def test_what_cannot_be_started_or_joined_is_refused(program, said):
    with pytest.raises(KernelError, match=said):
        run_of(program)


# ---- engines, traces, tokens


@pytest.mark.parametrize("made", [by_proxy, by_block])
@pytest.mark.parametrize("memory", ["sc", "nic", "gpu"])
def test_both_engines_make_one_trace_which_is_read_back_and_replayed(made, memory):
    for scheduler in ("fifo", "random:seed=3", "starve:rank=0"):
        case = Case(made, 2, 3, memory)
        one, other = (simulate(case, make(scheduler), record=scheduler, engine=engine) for engine in ("trio", "direct"))
        assert one.ending == "complete"
        assert text_of(one.trace) == text_of(other.trace)
        again = read_trace(io.StringIO(text_of(one.trace)))
        assert text_of(again) == text_of(one.trace)
        assert [e.op.actor.order for e in again.events] == [e.op.actor.order for e in one.trace.events]
        assert replay(again, made).steps == len(one.choices)


def test_a_run_in_columns_is_the_same_run():
    case = Case(by_proxy, 32, 2)
    one, other = (simulate(case, Fifo(), record="fifo", engine=engine) for engine in ("trio", "direct"))
    assert text_of(one.trace) == text_of(other.trace)
    assert (one.ending, analyse(one.trace).clean) == ("complete", True)
    assert check(by_proxy, ranks=32, calls=2, memory="sc").verdict == "PROVED"


@pytest.mark.parametrize("change", [("0.block", "0.block.x/"), ('"link":"0.block"', '"link":"0.2bad"')])
def test_a_trace_with_a_name_that_is_none_is_refused(change):
    text = text_of(drive(Case(by_block, 2, 1), Fifo(), record="fifo").trace)
    damaged = io.StringIO(text.replace(*change, 1))
    with pytest.raises(Exception, match=r"line \d+"):
        read_trace(damaged)


# ---- judging


@pytest.mark.parametrize("made", [by_proxy, by_block])
@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_they_are_proved_over_the_calls_and_nothing_is_claimed_of_more(made, memory):
    report = check(made, ranks=2, calls=2, memory=memory)
    assert report.verdict == "PROVED", report_text(report)
    assert report.later_calls == ""


@pytest.mark.parametrize("made", [by_proxy, by_block])
def test_what_is_proved_is_so_in_every_execution(made):
    everything = explore(made, ranks=2, calls=1, exhaustive=True)
    assert everything.verdict == "EXHAUSTED"
    assert "different results" not in everything.scope


def test_a_race_with_a_proxy_names_it_and_its_witness_replays_and_shrinks():
    report = check(too_early, ranks=2, calls=2, memory="sc")
    assert report.verdict == "REFUTED"
    text = report_text(report)
    assert "stream 0.proxy of rank 0" in text
    assert "stream 0.proxy's remote_store" in text
    race = next(finding for finding in report.findings if finding.kind == "race")
    token = decode(race.token)
    assert "0.proxy" in token.choices
    again = replay(token, too_early)
    assert again.run.ending == "complete"
    shorter = shrink(again.run.case, token.choices, lambda run: bool(Judge(run.case).findings(run)))
    assert shorter
    assert any("proxy" in name for name in shorter)
    assert "0.proxy" in page_text(timeline_of(drive(again.run.case, Fifo(), record="fifo").trace))


def test_a_proof_of_named_streams_has_a_certificate_and_one_of_who_stands_has_none():
    proved, standing = (check(made, ranks=2, calls=2, memory="sc") for made in (by_block, by_proxy))
    lines = certificate(*proved.proof)
    assert certify(lines)
    with pytest.raises(MisuseError, match=r"stream 0\.proxy stands where the run ends"):
        certificate(*standing.proof)


def test_two_consumers_of_one_cell_are_two_even_if_each_has_a_name():
    async def takes(rank, work):
        await rank.wait(work[0] >= 1, consume=True)

    async def program(rank, row, work):
        await rank.notify(work[0], 1)
        for name in ("a", "b")[rank.call :][:1]:
            await rank.join(await rank.start(takes, work, name=name))

    one = kernel(memory=[ROW, WORK])(program)
    assert check(one, ranks=1, calls=2, memory="sc").verdict == "PROVED"


# ---- the law


OPERATIONS = ("store", "load", "notify", "notify", "wait", "wait", "take")


def drawn(rng, length):
    return [(OPERATIONS[rng.integers(len(OPERATIONS))], int(rng.integers(2))) for _ in range(length)]


async def does(rank, ops, row, work, base):
    seen = []
    for index, (what, peer) in enumerate(ops):
        if what == "store":
            await rank.store(row.at(peer)[0], 10 * base + index)
        elif what == "load":
            seen.append(int(await rank.load(row[0])))
        elif what == "notify":
            await rank.notify(work.at(peer)[0], 1)
        elif what == "wait":
            await rank.wait(work[0] >= 1 + peer)
        else:
            await rank.wait(work[0] >= 1, consume=True)
    return seen


def of_ranks(drawn, *, lasting):
    """Return a program: each rank does what was drawn, a proxy of rank 0 in addition, and of rank 1 if it lasts."""

    async def program(rank, row, work):
        """Do what was drawn."""
        if rank.id and not lasting:
            return await does(rank, drawn[1][rank.call : rank.call + 1], row, work, 2)
        ops = drawn[2 + rank.id] if lasting else drawn[2][rank.call : rank.call + 1]
        proxy = await rank.start(does, ops, row, work, 5 + rank.id, name="proxy", lasting=lasting)
        seen = await does(rank, drawn[rank.id] if lasting else drawn[0][:1], row, work, 1 + rank.id + 2 * rank.call)
        return seen if lasting else [*seen, *await rank.join(proxy)]

    return program


@pytest.mark.parametrize("lasting", [True, False])
def test_where_the_analysis_finds_nothing_every_schedule_ends_alike(lasting):
    rng = np.random.default_rng(15 + lasting)
    clean = ends_differ = 0
    for _ in range(100):
        ops = [drawn(rng, int(rng.integers(0, 3))) for _ in range(4)]
        made = kernel(memory=[Window("row", (1,), np.int64, initialised=True), WORK])(of_ranks(ops, lasting=lasting))
        case = Case(made, 2, 2)
        fair = drive(case, Fifo(), record="fifo")
        analysis = analyse(fair.trace)
        ends = every_end(case)
        if ends is None:
            continue
        if analysis.clean:
            clean += fair.ending == "complete"
            assert ends == {end_of(fair)}, ops
        else:
            ends_differ += len(ends) > 1
        explored = exhaust(case, budget=5000, judge=Judge(case))
        assert (explored.complete, len(explored.contents)) == (True, len(ends)), ops
    assert clean >= 8
    assert ends_differ >= 4


def every_end(case, limit=600):
    """Return the ends of all schedules; None if they are too many."""
    every = EverySchedule()
    ends = set()
    for _ in range(limit):
        ends.add(end_of(drive(case, every)))
        if not every.turn():
            return ends
    return None
