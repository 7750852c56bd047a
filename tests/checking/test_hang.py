"""Hangs in words: who waits, at which line, on what, what it sees; and of the future only what is so."""

import io
import json

import numpy as np
import pytest
from command import run as command

from asyncsim import Set, Signal, Window, check, explore, kernel
from asyncsim.analysis.analyse import analyse
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.event import Event, Footer, Header, Trace
from asyncsim.trace.jsonl import write_trace
from asyncsim.trace.jsonl_read import read_trace
from asyncsim.trace.kinds import FENCE, QUIET
from asyncsim.trace.op import Op
from asyncsim.trace.world import World
from asyncsim.views.report import report_text
from asyncsim.views.run import run_text

WORD = Window("word", (2,), np.int64, initialised=True)
CELL = Signal("cell", (2,))
LINE = r"test_hang\.py:\d+"


async def hang(program, *memory, ranks=2, calls=1, memory_model="sc"):
    """Return the finding of a kernel that hangs, or does not end, in the fair run."""
    made = kernel(memory=list(memory))(program)
    report = await check.aio(made, ranks=ranks, calls=calls, memory=memory_model, max_steps=2000)
    return next(finding for finding in report.findings if finding.kind in ("deadlock", "step-limit"))


def shorter(text):
    """Leave out where the lines are."""
    return " ".join(word.replace("test_hang.py:", ":") for word in text.split())


# ---- polls


@pytest.mark.parametrize("model", ["sc", "ldst", "nic"])
async def test_a_poll_tells_what_it_refuses_who_wrote_it_and_what_it_would_have_taken(model):
    async def lost(rank, word):
        if rank.id == 0:
            await rank.store(word.at(1)[0], 1)
            await rank.quiet()
            await rank.store(word.at(1)[0], 2)
        else:
            for _ in range(3):
                await rank.load(word[1])
            await rank.poll(word[0], lambda seen: seen == 1)

    finding = await hang(lost, WORD, memory_model=model)
    assert (finding.kind, finding.window, finding.pairs) == ("deadlock", "word", 1)
    assert finding.why.startswith("rank 1 polls word[0]@1 at ")
    assert "and its predicate refuses what is there, 2: rank 0's " in finding.why
    assert "wrote there last, in step" in finding.why
    assert "it would have taken 1, which rank 0's " in finding.why
    assert finding.why.endswith("nobody will write it any more: rank 0 has finished")
    assert [side.at[0].partition(":")[0] for side in finding.sides] == ["test_hang.py"]


async def test_polls_that_wait_for_one_another_are_a_cycle():
    async def sentinel(rank, word):
        await rank.store(word.at(1 - rank.id)[0], 0)
        await rank.poll(word[0], bool)
        await rank.store(word.at(1 - rank.id)[0], 5)

    first, second, cycle = (await hang(sentinel, WORD)).why.split(";\n")
    assert "refuses what is there, 0: rank 1's 'remote_store to word[0]@0'" in first
    assert "rank 1 would write it at test_hang.py:" in first
    assert first.endswith("but waits itself")
    assert second.startswith("rank 1 polls word[0]@1")
    assert cycle == "a cycle of waits: rank 0 waits for rank 1, which waits for rank 0"


async def test_a_tile_is_shown_by_its_first_elements():
    wide = Window("wide", (6,), np.int64, dirty=7, initialised=True)

    async def looks(rank, wide):
        await rank.poll(wide[:], lambda tile: tile.sum() == 0)

    finding = await hang(looks, wide, ranks=1)
    assert "what is there, [7, 7, 7, 7, …]: nobody has written there" in finding.why
    assert finding.why.endswith("there is nobody else")


async def test_a_predicate_that_fails_for_another_value_would_not_have_taken_it():
    async def picky(rank, word):
        if rank.id == 0:
            await rank.store(word.at(1)[0], 1)
            await rank.store(word.at(1)[0], 2)
        else:
            for _ in range(3):
                await rank.load(word[1])
            await rank.poll(word[0], lambda seen: {2: False}[int(seen)])

    finding = await hang(picky, WORD)
    assert "refuses what is there, 2" in finding.why
    assert "would have taken" not in finding.why


async def test_what_a_pending_poll_refuses_is_in_the_trace_and_read_back():
    @kernel(memory=[WORD])
    async def looks(rank, word):
        await rank.poll(word[0], bool)

    trace = drive(Case(looks, 1, 1), Fifo(), record="fifo").trace
    text = io.StringIO()
    write_trace(trace, text)
    footer = json.loads(text.getvalue().splitlines()[-1])
    assert footer["pending"][0]["value"] == [0]
    again = read_trace(io.StringIO(text.getvalue()))
    assert again.footer.pending[0].data == np.int64(0).tobytes()
    assert "refuses what is there, 0" in analyse(again).findings[0].why


# ---- waits on cells


async def test_signals_in_inverted_order_are_a_cycle_and_were_not_sent_yet():
    async def inverted(rank, s, t):
        for signal in (s, t) if rank.id == 0 else (t, s):
            await rank.notify(signal.at(1 - rank.id)[0], 1)
            await rank.wait(signal[0] >= 1)

    finding = await hang(inverted, Signal("s", (1,)), Signal("t", (1,)))
    assert finding.window is None  # it is about both
    first, second, cycle = map(shorter, finding.why.split(";\n"))
    assert "s[0]@0 >= 1 (have 0, need 1): not sent yet: nobody has written it; rank 1 would write it at :" in first
    assert "t[0]@1 >= 1 (have 0, need 1): not sent yet: nobody has written it; rank 0 would write it at :" in second
    assert cycle == "a cycle of waits: rank 0 waits for rank 1, which waits for rank 0"
    assert "never" not in finding.why


async def test_a_ring_in_which_everybody_waits_first_is_one_cycle():
    async def ring(rank, cell):
        await rank.wait(cell[0] >= 1)
        await rank.notify(cell.at((rank.id + 1) % rank.size)[0], 1)

    assert (await hang(ring, CELL, ranks=3)).why.split(";\n")[-1] == (
        "a cycle of waits: rank 0 waits for rank 2, which waits for rank 1, which waits for rank 0"
    )


async def test_of_many_that_wait_at_one_line_one_is_told_and_the_others_are_named():
    async def ring(rank, cell):
        await rank.wait(cell[0] >= 1)
        await rank.notify(cell.at((rank.id + 1) % rank.size)[0], 1)

    finding = await hang(ring, CELL, ranks=12)
    first, cycle = finding.why.split(";\n")
    assert first.endswith("; so do rank 1, rank 2, rank 3, rank 4 and 7 more")
    assert cycle.endswith("which waits for rank 5, which waits for …, which waits for rank 0")
    assert finding.pairs == len(finding.sides) == 12


async def test_the_shortest_cycle_is_told_and_not_who_only_leads_to_it():
    async def tail(rank, cell):
        await rank.wait(cell[0] >= 1)
        if rank.id > 0:
            await rank.notify(cell.at(rank.id - 1)[0], 1)
        if rank.id == 1:
            await rank.notify(cell.at(2)[0], 1)

    assert (await hang(tail, CELL, ranks=3)).why.endswith(
        "a cycle of waits: rank 1 waits for rank 2, which waits for rank 1"
    )


async def test_never_sent_is_said_where_nobody_would_send_it_even_if_nobody_had_to_wait():
    async def forgets(rank, cell):
        await rank.wait(cell[rank.id] >= 1)

    first, second = (await hang(forgets, CELL)).why.split(";\n")
    assert shorter(first).endswith(
        "(have 0, need 1): never sent: nobody has written it; nobody will write it, not even if rank 1 had not to wait"
    )
    assert "never sent" in second


async def test_who_alone_would_send_it_after_its_own_wait_is_told():
    async def too_late(rank, cell):
        await rank.wait(cell[rank.id] >= 1)
        await rank.notify(cell[rank.id], 1)

    assert "nobody will write it but rank 0 itself at test_hang.py:" in (await hang(too_late, CELL)).why


async def test_of_enough_waiters_and_too_few_credits_the_last_credit_is_named():
    async def few(rank, cell):
        if rank.id == 0:
            await rank.wait(cell[0] > 2)
        else:
            await rank.notify(cell.at(0)[0], 1)

    why = shorter((await hang(few, CELL, ranks=3)).why)
    assert "cell[0]@0 > 2 (have 2, need 3): too few were sent: rank 2's 'notify cell[0]@0 += 1' at :" in why
    assert why.endswith("left it at 2; nobody will write it any more: rank 1 and rank 2 have finished")


@pytest.mark.parametrize(("how", "need"), [("__le__", 0), ("__lt__", -1), ("__eq__", 0)])
async def test_a_cell_that_has_not_come_down_far_enough_was_not_overshot(how, need):
    high = Signal("high", (1,), start=3)

    async def down(rank, high):
        if rank.id == 0:
            await rank.wait(getattr(high[0], how)(0))
        else:
            await rank.notify(high.at(0)[0], -2)

    why = (await hang(down, high)).why
    assert f"(have 1, need {need}): never sent: rank 1's 'notify high[0]@0 += -2'" in why
    assert "overshot" not in why


async def test_a_value_that_was_jumped_over_was_overshot():
    async def jumps(rank, cell):
        if rank.id == 0:
            await rank.wait(cell[0] == 1)
        else:
            await rank.notify(cell.at(0)[0], 2)

    assert "overshot: rank 1's 'notify cell[0]@0 += 2'" in (await hang(jumps, CELL)).why


async def test_a_value_that_was_passed_by_one_credit_too_many_was_overshot():
    async def passes(rank, cell):
        if rank.id == 0:
            for _ in range(3):
                await rank.test(cell[1] >= 0)
            await rank.wait(cell[0] == 1)
        else:
            await rank.notify(cell.at(0)[0], 1)
            await rank.notify(cell.at(0)[0], 1)

    why = (await hang(passes, CELL)).why
    assert "overshot: rank 1's 'notify cell[0]@0 += 1'" in why
    assert "took it from 1 to 2; without that it would be 1" in why


async def test_an_old_value_that_did_its_work_is_neither_overshot_nor_erased():
    """Rank 0 goes 1, 3, 1, 3…; rank 1 misses the 2 in between, so nobody sends the second 1 yet."""

    @kernel(memory=[Signal("s", (1,))])
    async def chat(rank, s):
        if rank.id == 0:
            await rank.wait(s[0] == 1)
            await rank.notify(s.at(1)[0], 1, op=Set)
            await rank.wait(s[0] == 3)
            await rank.notify(s.at(1)[0], 2, op=Set)
            await rank.notify(s.at(1)[0], 0, op=Set)
        else:
            await rank.notify(s.at(0)[0], 1, op=Set)
            await rank.wait(s[0] == 1)
            await rank.notify(s.at(0)[0], 3, op=Set)
            await rank.wait(s[0] == 2)

    report = await check.aio(chat, ranks=2)
    (shown,) = (finding.shown for finding in report.findings)
    old, missed = (shorter(line) for line in shown.split(";\n")[:2])
    assert "s[0]@0 == 1 (have 3, need 1): not sent yet: rank 1's 'notify s[0]@0 := 3' at :" in old
    assert "rank 1 would write it at :" in old
    assert "s[0]@1 == 2 (have 0, need 2): erased: rank 0's 'notify s[0]@1 := 0' at :" in missed
    assert "took it from 2 to 0; without that it would be 2" in missed


async def test_a_reset_after_the_flag_was_seen_erases_nothing():
    async def again(rank, cell):
        if rank.id == 0:
            await rank.wait(cell[0] >= 1)
            await rank.notify(cell[0], 0, op=Set)
            await rank.wait(cell[0] >= 1)
        else:
            await rank.notify(cell.at(0)[0], 1, op=Set)

    why = (await hang(again, CELL)).why
    assert "too few were sent: rank 0's 'notify cell[0]@0 := 0'" in why
    assert "erased" not in why


async def test_a_credit_that_another_stream_took_was_taken_away():
    async def takes(rank, cell):
        await rank.wait(cell[0] >= 1, consume=True)

    async def two(rank, cell):
        streams = [await rank.start(takes, cell), await rank.start(takes, cell)]
        await rank.notify(cell[0], 1)
        for stream in streams:
            await rank.join(stream)

    why = (await hang(two, CELL, ranks=1)).why
    assert "rank 0 waits at" in why
    assert "to join stream 0.2, which waits itself" in why
    assert "stream 0.2 waits at" in why
    assert "taken away: stream 0.1's 'wait cell[0]@0 >= 1 and subtract'" in why


async def test_a_credit_that_its_own_wait_used_was_not_taken_away():
    async def twice(rank, cell):
        if rank.id == 0:
            await rank.wait(cell[0] >= 1, consume=True)
            await rank.wait(cell[0] >= 1, consume=True)
        else:
            await rank.notify(cell.at(0)[0], 1)

    why = (await hang(twice, CELL)).why
    assert "too few were sent" in why
    assert "taken" not in why


async def test_not_equal_is_helped_by_any_change():
    async def differs(rank, cell):
        await rank.wait(cell[rank.id] != 0)
        await rank.notify(cell.at(1 - rank.id)[1 - rank.id], -1)

    assert "rank 1 would write it" in (await hang(differs, CELL)).why


# ---- streams


async def test_streams_are_called_by_their_own_names():
    async def one_after_the_other(rank, cell, number):
        await rank.wait(cell[number] >= 1)
        await rank.notify(cell[1 - number], 1)

    async def two(rank, cell):
        streams = [await rank.start(one_after_the_other, cell, number) for number in (0, 1)]
        for stream in streams:
            await rank.join(stream)

    joins, first, second, cycle = map(shorter, (await hang(two, CELL, ranks=1, calls=2)).why.split(";\n"))
    assert joins.endswith("to join stream 0.1, which waits itself")
    assert first.startswith("stream 0.1 waits at :")
    assert "stream 0.2 would write it at :" in first
    assert first.endswith("but waits itself")
    assert second.startswith("stream 0.2 waits at :")
    assert cycle == "a cycle of waits: stream 0.1 waits for stream 0.2, which waits for stream 0.1"


async def test_what_only_a_stream_would_send_that_has_not_begun_is_its_parents_to_begin():
    async def sends(rank, cell):
        await rank.notify(cell[0], 1)

    async def waits(rank, cell):
        await rank.wait(cell[0] >= 1)

    async def too_late(rank, cell):
        first = await rank.start(waits, cell)
        await rank.join(first)
        await rank.join(await rank.start(sends, cell))

    why = (await hang(too_late, CELL, ranks=1)).why
    assert "stream 0.2 would write it at test_hang.py:" in why
    assert "but has not begun" in why
    assert why.endswith("a cycle of waits: rank 0 waits for stream 0.1, which waits for rank 0")


async def test_a_meeting_that_too_few_can_reach_tells_how_many_came():
    async def meets(rank, barrier):
        await rank.sync(barrier)

    async def three(rank, cell):
        barrier = rank.stream_barrier(3)
        streams = [await rank.start(meets, barrier), await rank.start(meets, barrier)]
        for stream in streams:
            await rank.join(stream)

    why = (await hang(three, CELL, ranks=1)).why
    assert "at a stream barrier to which 2 of 3 streams have come; rank 0 waits elsewhere" in why


# ---- what is known of the future, and what is not


async def test_a_kernel_that_fails_beyond_the_hang_is_told_as_far_as_it_came():
    async def fragile(rank, cell):
        await rank.wait(cell[0] >= 1)
        if rank.id:
            raise ValueError("it never comes here")
        await rank.notify(cell.at(1)[0], 1)

    why = (await hang(fragile, CELL)).why
    assert "never sent" not in why
    assert "not there: nobody has written it; rank 1 waits too; what would be written after that is not known" in why
    assert "cycle" not in why


@pytest.mark.parametrize(
    ("kind", "words"), [(QUIET, "until all that it wrote has landed"), (FENCE, "stands at 'fence'")]
)
def test_any_operation_that_stands_for_ever_is_told(kind, words):
    world = World(1, [CELL])
    pending = Event(None, Op(world.actors[0], kind), 0, "", ())
    trace = Trace(Header("a:b", "", world, 1, "nic", 0, ""), [], Footer("deadlock", [], [pending]))
    (finding,) = analyse(trace).findings
    assert f"rank 0 {words.partition(' ')[0] if kind == FENCE else 'waits'}" in finding.why
    assert words in finding.why


def test_a_meeting_to_which_nobody_else_is_left_to_come():
    world = World(1, [CELL])
    stream = world.actors[0].stream(1)
    pending = Event(None, Op(stream, "sync", link="0/1#0", amount=2), 0, "", ())
    trace = Trace(Header("a:b", "", world, 1, "sc", 0, ""), [], Footer("deadlock", [], [pending]))
    assert "1 of 2 streams have come; nobody else of this rank is left" in analyse(trace).findings[0].why


# ---- wherever it is found


@kernel(memory=[WORD])
async def sometimes(rank, word):
    """It hangs if both stores come before the first look."""
    if rank.id == 0:
        await rank.store(word.at(1)[0], 1)
        await rank.load(word[1])
        await rank.load(word[1])
        await rank.store(word.at(1)[0], 2)
    else:
        await rank.poll(word[0], lambda seen: seen == 1)


EXPECTED = "its predicate refuses what is there, 2: rank 0's 'remote_store to word[0]@1' at test_hang.py:"


@pytest.mark.parametrize("how", ["check", "explore", "explore exhaustively"])
async def test_a_hang_that_exploration_finds_is_told_as_well(how):
    if how == "check":
        report = await check.aio(sometimes, ranks=2, calls=1)
    else:
        report = await explore.aio(sometimes, ranks=2, calls=1, runs=40, exhaustive=how == "explore exhaustively")
    finding = next(finding for finding in report.findings if finding.kind == "deadlock")
    assert EXPECTED in finding.why
    assert "it would have taken 1" in finding.why
    assert [(side.actor, side.op, side.region) for side in finding.sides] == [("1", "poll", "word[0]@1")]
    assert finding.to_json()["why"] == finding.why
    assert EXPECTED in " ".join(report_text(report, width=1000).split())


def test_a_replay_tells_it_line_by_line(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from asyncsim import Signal, kernel\n"
        "@kernel(memory=[Signal('c', (1,))])\n"
        "async def ring(rank, c):\n"
        "    await rank.wait(c[0] >= 1)\n"
        "    await rank.notify(c.at(1 - rank.id)[0], 1)\n"
    )
    told = command("check", f"{file}:ring", "-P", "2", "--json")
    assert told.exit_code == 1
    finding = json.loads(told.output)["findings"][0]
    assert "a cycle of waits: rank 0 waits for rank 1" in finding["why"]
    assert [side["line"] for side in finding["sides"]] == [4, 4]
    shown = command("replay", finding["token"], "--kernel", f"{file}:ring").output
    assert "deadlock: rank 0 waits at" in shown
    assert "\n  a cycle of waits: rank 0 waits for rank 1, which waits for rank 0" in shown


# ---- runs that do not end


async def test_who_spins_is_told_with_the_line_and_what_it_looks_at():
    async def spins(rank, cell):
        if rank.id == 0:
            while not await rank.test(cell[0] >= 2):
                pass
        else:
            await rank.notify(cell.at(0)[0], 1)
            await rank.wait(cell[1] >= 7)

    finding = await hang(spins, CELL)
    first, second = map(shorter, finding.why.split(";\n"))
    assert (finding.kind, finding.pairs) == ("step-limit", 1)
    assert first.startswith("rank 0 spins at :")
    assert "'test cell[0]@0 >= 2', which holds 1, 1000 times in the last 1000 steps; rank 1's 'notify" in first
    assert first.endswith("wrote it last")
    assert second.startswith("rank 1 did nothing meanwhile: it stands at :")
    assert second.endswith("and waits for cell[1]@1 >= 7 (have 0)")
    assert [side.op for side in finding.sides] == ["test", "wait"]


async def test_a_loop_that_loads_and_one_that_does_more_than_look_are_told():
    async def loops(rank, word, cell):
        while True:
            await rank.load(word[0])
            if rank.id:
                await rank.store(word[1], 1)

    first, second = (await hang(loops, WORD, CELL)).why.split(";\n")
    assert "rank 0 spins at" in first
    assert "'load of word[0]@0'" in first
    assert "rank 1 spins at" in second


async def test_a_test_that_nobody_writes_and_many_who_spin():
    async def all_spin(rank, cell):
        while not await rank.test(cell[0] >= 1):
            pass

    finding = await hang(all_spin, CELL, ranks=10)
    assert "; nobody has written it" in finding.why
    assert finding.why.endswith("so do rank 8 and rank 9")


async def test_many_who_stand_meanwhile():
    async def one_spins(rank, cell):
        while not rank.id:
            await rank.test(cell[0] >= 1)
        await rank.wait(cell[0] >= 1)

    assert (await hang(one_spins, CELL, ranks=11)).why.endswith("neither did rank 9 and rank 10")


async def test_a_run_that_never_does_the_same_twice():
    wide = Window("wide", (2100,), np.int64, initialised=True)

    async def walks(rank, wide):
        for at in range(2100):
            await rank.load(wide[at])

    assert (await hang(walks, wide, ranks=1)).why.startswith("it goes on and on")


def test_a_run_that_is_told_in_several_lines_is_indented():
    @kernel(memory=[CELL])
    async def ring(rank, cell):
        await rank.wait(cell[0] >= 1)

    run = drive(Case(ring, 2, 1), Fifo(), record="fifo")
    text = run_text(run, analyse(run.trace).findings, [])
    assert text.splitlines()[1].startswith("  rank 1 waits")
