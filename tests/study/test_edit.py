"""Edits: what is left out or added, where, and that such a run is one like every other."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from command import run as run_command
from hypothesis import given
from hypothesis import strategies as st

from asyncsim import Group, KernelError, MisuseError, Signal, TraceError, Window, barrier, kernel, simulate
from asyncsim.checking.record.replay import replay
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import Case
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from asyncsim.trace.edit import Edit, edit_of
from asyncsim.trace.finding import PROVED, REFUTED
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.token import Token, decode, encode
from kernels import reduce_scatter


def at(mark, file=Path(__file__)):
    """Return the site of the one line that ends in this mark."""
    lines = Path(file).read_text("utf-8").splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}")]
    return f"{Path(file).name}:{number}"


box = Window("box", (2,), np.float32, initialised=True)
cell = Signal("cell", (2,))


@kernel(memory=[box, cell])
async def passes_on(rank, box, cell):
    """Each rank puts its number to the next one, which takes the credit that comes with it."""
    right = (rank.id + 1) % rank.size
    await rank.put_signal(box.at(right)[0:1], np.full(1, rank.id, np.float32), cell.at(right)[0])  # put
    await rank.wait(cell[0] >= 1, consume=True)  # take
    await rank.notify(cell.at(right)[1], 1)  # tell
    await rank.wait(cell[1] >= rank.call + 1)  # told
    await rank.fence()  # fence
    await rank.quiet()  # quiet
    return await rank.load(box[0])  # end


async def twice(rank, box):
    """Store two times."""
    for n in range(2):
        await rank.store(box[n], 1.0)  # inner


@kernel(memory=[box])
async def stores(rank, box):
    """Store four times, by one helper."""
    await twice(rank, box)  # first
    await twice(rank, box)  # second
    return rank.call


def recorded(program, *edits, ranks=3, calls=2, memory="sc", scheduler=None):
    """Return a recorded run with edits."""
    case = Case(program, ranks, calls, memory, edits=edits)
    return simulate(case, scheduler or Fifo(), record="fifo")


def kinds(run, rank=0, call=0):
    """Return what a rank does in a call, without landings."""
    return [
        event.op.kind
        for event in run.trace.events
        if (event.op.actor.name, event.call) == (str(rank), call) and not event.op.actor.wire
    ]


def added(run, rank=0):
    """Return where in its stream, and in which call, a rank begins a barrier that was added."""
    own = [event for event in run.trace.events if event.op.actor.name == str(rank)]
    signals = [None if event.op.cell is None else event.op.cell.signal for event in own]
    return [(n, own[n].call) for n, name in enumerate(signals) if name and name != ([None, *signals])[n]]


ALL = ["put_signal", "wait", "notify", "wait", "fence", "quiet", "load"]


# ---- texts


sites = st.lists(st.sampled_from(["kernels/x.py:9", "my files in it/y.py:10", "C:/z.py:123", "<stdin>:1"]), min_size=1)


@given(st.sampled_from(["skip", "drop", "relax", "narrow", "barrier"]), sites.map(tuple), st.booleans())
def test_an_edit_comes_back_from_its_text(what, site, every):
    edit = Edit(what, site, every=every and what == "barrier")
    assert edit_of(str(edit)) == edit


def test_a_barrier_can_stand_before_the_return():
    assert edit_of("barrier before return") == Edit("barrier", ())
    assert str(Edit("barrier", ())) == "barrier before return"


@pytest.mark.parametrize(
    "text",
    ["", "skip", "skip ", "skip x.py", "skip x.py:", "Skip x.py:1", "skip return", "drop return", "skip every x.py:1",
     "barrier x.py:1", "barrier before every return", "skip x.py:1 in", "skip x.py:1 in y.py", 7],
)  # fmt: skip
def test_what_is_no_edit_is_refused(text):
    with pytest.raises(MisuseError, match=r"is no edit; write 'skip SITE', "):
        edit_of(text)


def test_a_case_refuses_what_is_no_list_of_edits():
    with pytest.raises(MisuseError, match="give a list of texts"):
        Case(stores, edits="skip x.py:1")
    with pytest.raises(MisuseError, match="give a list of texts"):
        Case(stores, edits=[7])
    with pytest.raises(MisuseError, match=r"'skip x\.py:1' is given twice"):
        Case(stores, edits=["skip x.py:1", "skip x.py:1"])


def test_a_site_is_narrowed_by_lines_inside_it():
    lines = ["a.py:1", "b.py:2", "c.py:3", "b.py:2"]
    reached = {
        text: edit_of(f"skip {text}").reach(lines) for text in ("a.py:1", "a.py:1 in c.py:3", "c.py:3 in b.py:2")
    }
    assert reached == {"a.py:1": 0, "a.py:1 in c.py:3": 2, "c.py:3 in b.py:2": 3}
    assert edit_of("skip c.py:3 in a.py:1").reach(lines) is None
    assert edit_of("skip a.py:11").reach(lines) is None
    assert edit_of("barrier before return").reach(lines) is None


# ---- what is left out


def test_without_edits_a_run_is_what_it_was():
    assert kinds(recorded(passes_on)) == ALL
    assert recorded(passes_on).unapplied == ()


def test_a_skipped_wait_is_not_issued():
    run = recorded(passes_on, f"skip {at('told')}")
    assert kinds(run) == ["put_signal", "wait", "notify", "fence", "quiet", "load"]
    assert run.trace.header.edits == (f"skip {at('told')}",)


def test_a_skipped_wait_that_consumes_still_gives_its_credit_up():
    run = recorded(passes_on, f"skip {at('take')}")
    assert kinds(run) == ["put_signal", "notify", "notify", "wait", "fence", "quiet", "load"]
    given_up = [event for event in run.trace.events if event.at == (at("take"),)]
    assert {str(event.op) for event in given_up} == {f"notify cell[0]@{rank} += -1" for rank in range(3)}


@pytest.mark.parametrize("what", ["fence", "quiet"])
def test_a_fence_and_a_quiet_can_be_skipped(what):
    run = recorded(passes_on, f"skip {at(what)}", memory="nic")
    assert kinds(run) == [kind for kind in ALL if kind != what]


def test_a_dropped_notify_is_not_sent():
    run = recorded(passes_on, f"drop {at('tell')}")
    assert kinds(run) == ["put_signal", "wait"]
    assert run.ending == "deadlock"


def test_of_a_put_with_signal_the_data_is_sent():
    run = recorded(passes_on, f"drop {at('put')}", f"skip {at('take')}", calls=1)
    assert kinds(run) == ["put", "notify", "notify", "wait", "fence", "quiet", "load"]
    assert [float(y) for y in run.outputs[0]] == [2.0, 0.0, 1.0]


def test_a_line_inside_a_composite_can_be_meant():
    composite = "asyncsim/collectives/barrier.py"
    case = Case(reduce_scatter.builtin, 3, 1)
    waits = [event.at for event in simulate(case, Fifo(), record="fifo").trace.events if event.op.kind == "wait"]
    (ready, inner), (post, _) = dict.fromkeys(waits)
    assert inner.startswith(composite)
    for edit in (f"skip {ready}", f"skip {ready} in {inner}"):
        run = recorded(reduce_scatter.builtin, edit, calls=1)
        assert kinds(run).count("wait") == 2
        assert {event.at[0] for event in run.trace.events if event.op.kind == "wait"} == {post}
    assert recorded(reduce_scatter.builtin, f"skip {ready} in {composite}:1").unapplied


def test_an_edit_that_meets_nothing_is_said():
    edits = [f"drop {at('told')}", f"skip {at('told')}", "barrier before nowhere.py:1", "skip nowhere.py:1"]
    run = recorded(passes_on, *edits)
    assert run.unapplied == (edits[0], *edits[2:])
    report = check(passes_on, ranks=2, edits=[edits[3]])
    assert report.notes == ["the edit 'skip nowhere.py:1' changed nothing: nothing that it is for came from there"]


# ---- what is added


def test_a_barrier_stands_before_the_first_operation_at_its_site_in_each_call():
    for line, places in {"first": [(0, 0), (8, 1)], "second": [(2, 0), (10, 1)], "inner": [(0, 0), (8, 1)]}.items():
        run = recorded(stores, f"barrier before {at(line)}")
        assert [added(run, rank) for rank in range(3)] == [places] * 3
        assert run.outputs == [[0] * 3, [1] * 3]
        assert run.ending == "complete"


def test_a_barrier_can_stand_before_every_visit():
    assert added(recorded(stores, f"barrier before every {at('second')}")) == [(2, 0), (10, 1)]
    assert len(added(recorded(stores, f"barrier before every {at('inner')}"))) == 8
    narrowed = recorded(stores, f"barrier before every {at('second')} in {at('inner')}")
    assert [place for place, _ in added(narrowed)] == [2, 7, 14, 19]


def test_a_barrier_can_stand_at_the_end_of_a_call():
    run = recorded(stores, "barrier before return")
    assert added(run) == [(4, 0), (12, 1)]
    last = [event for event in run.trace.events if event.op.cell is not None][-1]
    assert last.at[0] == at("inner")
    assert last.at[1].startswith("asyncsim/machine/edit.py:")


def test_barriers_do_not_mix_and_are_not_handed_to_the_kernel():
    run = recorded(stores, f"barrier before {at('inner')}", "barrier before return", ranks=4, scheduler=Random(seed=3))
    assert [added(run, rank) for rank in range(4)] == [[(0, 0), (10, 0), (16, 1), (26, 1)]] * 4
    assert list(run.trace.header.world.layouts) == ["box", "added_barrier_1", "added_barrier_2"]
    assert len(run.case.views(0)) == 1


def test_a_barrier_of_one_rank_is_no_operation():
    run = recorded(stores, "barrier before return", ranks=1)
    assert kinds(run) == ["store"] * 4
    assert run.unapplied == ()


def test_a_place_to_which_not_all_ranks_come_hangs():
    @kernel(memory=[box])
    async def alone(rank, box):
        if rank.id == 0:
            await rank.store(box[0], 1.0)  # alone

    run = recorded(alone, f"barrier before {at('alone')}", ranks=2)
    assert run.ending == "deadlock"
    assert [event.at[1].partition(":")[0] for event in run.trace.footer.pending] == ["asyncsim/machine/edit.py"]


def test_streams_and_groups_meet_at_added_barriers_too():
    pair = Group("pair", (0, 1))

    async def beside(rank, box):
        await rank.store(box[0], 1.0)  # beside

    @kernel(memory=[box, Signal("met", ("P", 1), group=pair)])
    async def mixed(rank, box, met):
        stream = await rank.start(beside, box)
        await rank.join(stream)
        if rank.id < 2:
            await barrier(rank.within(pair), met, generation=rank.call + 1)
        return await rank.load(box[0])

    edits = (f"barrier before {at('beside')}", f"barrier before every {at('beside')}", "barrier before return")
    run = recorded(mixed, *edits, ranks=3)
    assert (run.ending, run.unapplied) == ("complete", ())
    adders = {event.op.actor.name for event in run.trace.events if event.op.cell and "added" in event.op.cell.signal}
    assert adders == {name for rank in "012" for name in (rank, f"{rank}.1", f"{rank}.2")}


def test_a_name_that_the_kernel_has_itself_is_refused():
    @kernel(memory=[Signal("added_barrier_1", (1,))])
    async def own(rank, signal):
        await rank.notify(signal[0], 1)

    with pytest.raises(MisuseError, match="two declarations are called 'added_barrier_1'"):
        recorded(own, "barrier before return")


# ---- the run is one like every other


EDITS = {
    "skip": (passes_on, (f"skip {at('told')}", f"skip {at('take')}")),
    "drop": (passes_on, (f"drop {at('tell')}",)),
    "barrier": (stores, (f"barrier before every {at('inner')}", "barrier before return")),
}


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic:atom=1"])
@pytest.mark.parametrize("name", EDITS)
def test_it_replays_from_its_file_and_from_its_token(name, memory):
    program, edits = EDITS[name]
    run = recorded(program, *edits, memory=memory, scheduler=Random(seed=1))
    written = io.StringIO()
    write_trace(run.trace, written)
    again = replay(read_trace(io.StringIO(written.getvalue())), program).run
    rewritten = io.StringIO()
    write_trace(again.trace, rewritten)
    assert rewritten.getvalue() == written.getvalue()
    token = decode(encode(Token.of(run.trace.header, run.choices, ending=run.ending)))
    assert token.edits == edits
    assert replay(token, program).run.choices == run.choices


def test_the_reader_checks_edits_and_the_memory_they_add():
    written = io.StringIO()
    write_trace(recorded(stores, "barrier before return").trace, written)
    lines = [line.rpartition(',"crc"')[0] + "}" for line in written.getvalue().splitlines()]

    def damaged(old, new):
        assert old in lines[0]
        return io.StringIO("\n".join([lines[0].replace(old, new), *lines[1:]]) + "\n")

    assert read_trace(damaged("", "")).header.edits == ("barrier before return",)
    with pytest.raises(TraceError, match="line 1: 'barrier behind return' is no edit"):
        read_trace(damaged("before return", "behind return"))
    with pytest.raises(TraceError, match=r"'skip x\.py:1' is given twice"):
        read_trace(damaged('"barrier before return"', '"skip x.py:1","skip x.py:1"'))
    for name, shape in (("other", "[3,1]"), ("added_barrier_1", "[3,2]")):
        was = '"added_barrier_1","shape":[3,1]'
        with pytest.raises(TraceError, match=r"the edits add the signals added_barrier_1 \(3, 1\) behind all other"):
            read_trace(damaged(was, f'"{name}","shape":{shape}'))


def test_a_kernel_that_raises_or_awaits_anything_else_is_told_at_its_line():
    class Foreign:
        def __await__(self):
            yield "nothing of ours"

    @kernel(memory=[box])
    async def foreign(rank, box, *, swallow):
        try:
            await Foreign()  # foreign
        except MisuseError:
            if not swallow:
                raise
        await rank.store(box[0], 1.0)

    @kernel(memory=[box])
    async def raises(rank, box):
        await rank.store(box[0], 1.0)
        raise ValueError("of the kernel's own")  # raises

    for swallow in (False, True):
        with pytest.raises(KernelError, match="awaits something that is no operation of its rank"):
            recorded(foreign.variant(swallow=swallow), "barrier before return")
    with pytest.raises(KernelError, match=rf"{at('raises')} .*ValueError: of the kernel's own") as caught:
        recorded(raises, "barrier before return", ranks=1)
    assert len(caught.value.trace.events) == 1


def test_a_run_can_be_watched():
    seen = []
    simulate(Case(stores, 1, 1), Fifo(), watch=lambda op, frames: seen.append((op.kind, [f.text for f in frames])))
    assert seen == [("store", [at(line), at("inner")]) for line in ("first", "first", "second", "second")]


# ---- judging


def test_edits_change_the_verdict():
    program = reduce_scatter.builtin
    sites = dict.fromkeys(e.at[0] for e in recorded(program).trace.events if e.op.kind == "wait")
    ready, post = sites
    assert check(program, ranks=2, calls=1, edits=[f"skip {post}"]).verdict == PROVED
    report = check(program, ranks=2, edits=[f"skip {ready}"])
    assert report.verdict == REFUTED
    assert report.findings[0].hazard == "RAW"
    repaired = check(reduce_scatter.no_post_barrier, ranks=2, edits=["barrier before return"])
    assert repaired.verdict == PROVED


def test_the_command_replays_a_token_with_edits():
    program = reduce_scatter.builtin
    ready = next(e.at[0] for e in recorded(program).trace.events if e.op.kind == "wait")
    token = check(program, ranks=2, edits=[f"skip {ready}", "skip nowhere.py:1"]).findings[0].token
    result = run_command("replay", token)
    assert result.exit_code == 1
    assert f"edited: skip {ready}; skip nowhere.py:1\n" in result.stdout
    assert "the edit 'skip nowhere.py:1' changed nothing" in result.stderr
