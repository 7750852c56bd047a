"""Several cells notified, or several conditions waited for, in one await: it means what the loop means."""

from __future__ import annotations

import numpy as np
import pytest
from everything import written
from schedules import Scripted
from several import CELL, CREDIT, WRITTEN, exchange, fair, tell

from asyncsim import Case, Fifo, Group, KernelError, MisuseError, Set, Signal, Window, check, explore, kernel, replay
from asyncsim.machine.direct import drive
from asyncsim.machine.effect import Immediate
from asyncsim.machine.gate import Gate
from asyncsim.machine.memory import Memory
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.eager import Eager
from asyncsim.schedulers.live import Live
from asyncsim.schedulers.table import make
from asyncsim.trace.event import COMPLETE, DEADLOCK, OVERFLOW, STEP_LIMIT
from asyncsim.trace.kinds import NOTIFY
from asyncsim.trace.op import Op
from asyncsim.trace.world import World

SINGLE = (
    "random:seed=4", "calls", "starve:rank=0", "pct:depth=3", "pos", "surw", "delay", "preempt", "latency",
    "script:rules=hold rank 0 before its 2nd notify until rank 1 has notified,base=random:seed=2",
)  # fmt: skip
"""Schedulers that are asked before each of several operations."""


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
@pytest.mark.parametrize("name", ["right, consuming", "relaxed", "one forgets a peer"])
def test_where_the_scheduler_is_asked_each_time_the_trace_is_that_of_the_loop(name, memory):
    for text in (*SINGLE, "eager"):
        one, loop = (
            drive(Case(exchange(several=several, **WRITTEN[name]), 3, 1, memory), make(text), record=text)
            for several in (True, False)
        )
        assert written(one.trace) == written(loop.trace), text


# The fair run: all of one await is one turn.


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_fair_run_is_a_run_of_the_loop_under_another_schedule(name, memory):
    run = fair(Case(exchange(several=True, **WRITTEN[name]), 3, 1, memory))
    again = replay(run.trace, exchange(several=False, **WRITTEN[name]))
    assert written(again.run.trace) == written(run.trace)
    assert (again.run.ending, again.run.choices) == (run.ending, run.choices)


class Asked:
    """Choose as another scheduler, and be asked each time."""

    def __init__(self, inner):
        """Ask `inner`."""
        self.inner = inner
        self.begin = inner.begin
        self.questions = 0

    def choose(self, ready):
        """Count the question."""
        self.questions += 1
        return self.inner.choose(ready)


@pytest.mark.parametrize("engine", ["trio", "direct"])
@pytest.mark.parametrize("memory", ["sc", "ldst"])
@pytest.mark.parametrize("scheduler", [Fifo, Eager])
def test_not_to_ask_changes_nothing(scheduler, memory, engine):
    assert scheduler.blocks
    for name in ("right, consuming", "one forgets a peer", "keeps the credits"):
        case = Case(exchange(several=True, **WRITTEN[name]), 3, 2, memory)
        asked, live = Asked(scheduler()), Live(scheduler(), lambda _: None)
        runs = [fair(case, each, engine) for each in (scheduler(), asked, live)]
        assert written(runs[0].trace) == written(runs[1].trace) == written(runs[2].trace)
        assert asked.questions == len(runs[0].choices)


def test_the_scheduler_is_not_asked_within_a_block_unless_things_land_late():
    counted = {}
    for memory in ("sc", "ldst"):
        asked = Asked(Fifo())
        asked.blocks = True
        run = fair(Case(exchange(several=True), 4, 1, memory), asked)
        counted[memory] = len(run.choices) - asked.questions
    # Three notifies, and of three waits those that need not wait, are one turn: twice, and what is given back.
    assert counted["sc"] >= 4 * 2 * (2 + 2)
    assert counted["ldst"] == 0


def turns(program, ranks=3, **case):
    """Return who goes, step by step, in a fair run of one call."""
    run = fair(Case(kernel(memory=[CREDIT])(program), ranks, 1, **case))
    return "".join(run.choices), run


def test_a_turn_goes_as_far_as_it_is_ready():
    async def all_tell_all(rank, cell):
        await rank.notify_all(cell.at(peer)[rank.id] for peer in range(3))
        await rank.wait_all([cell[peer] >= 1 for peer in (0, 2, 1)])

    assert turns(all_tell_all)[0] == "000111222000111222"

    async def one_hears(rank, cell):
        if rank.id == 0:
            await rank.wait_all([cell[peer] >= 1 for peer in (1, 2)])
        else:
            await rank.notify_all([cell.at(0)[rank.id]])

    assert turns(one_hears)[0] == "1200"

    async def in_the_other_order(rank, cell):
        if rank.id == 0:
            await rank.wait_all([cell[peer] >= 1 for peer in (1, 2)])
        elif rank.id == 1:
            await rank.notify_all([cell.at(0)[1]])
        else:
            await rank.wait(cell[2] >= 0)
            await rank.wait(cell[2] >= 0)
            await rank.notify_all([cell.at(0)[2]])

    assert turns(in_the_other_order)[0] == "120220"  # it has passed the first, and stands at the second


def test_two_that_come_one_after_the_other_are_two_turns():
    async def program(rank, cell):
        await rank.notify_all([cell[peer] for peer in rank.peers])
        await rank.notify_all([cell[peer] for peer in rank.peers])

    assert turns(program)[0] == "001122001122"


def test_none_is_no_step():
    async def program(rank, cell):
        await rank.notify_all([])
        await rank.wait_all(())
        await rank.notify_all(iter([cell[rank.id]]))

    assert turns(program)[0] == "012"


def test_they_set_and_consume_as_one_would():
    async def program(rank, cell):
        await rank.notify_all([cell[0], cell[1]], 7, Set)
        await rank.wait_all([cell[0] == 7, cell[1] >= 2, cell[1] >= 5], consume=True)

    choices, run = turns(program, 1 + 1)
    assert choices == "0011000111"
    assert [event.have for event in run.trace.events if event.op.kind == "wait"] == [7, 7, 5] * 2
    assert run.ending == COMPLETE


def test_others_can_come_between():
    """Rank 1 waits for exactly one credit of two: whether it sees that depends on who comes between."""

    def program(*, several):
        async def two_credits(rank, cell):
            if rank.id == 0:
                await tell(rank, [cell.at(1)[0], cell.at(1)[0]], several=several)
            else:
                await rank.wait(cell[0] == 1)

        return kernel(memory=[CREDIT])(two_credits)

    # The fair run of the loop goes well, and that of the block hangs; the verdict is the same.
    assert fair(Case(program(several=False), 2, 1)).ending == COMPLETE
    hangs = fair(Case(program(several=True), 2, 1))
    assert hangs.ending == DEADLOCK
    assert [str(event.op) for event in hangs.trace.footer.pending] == ["wait cell[0, 0]@1 == 1"]
    for memory in ("sc", "ldst"):
        assert check(program(several=True), ranks=2, calls=1, memory=memory).verdict == "REFUTED"
        assert check(program(several=False), ranks=2, calls=1, memory=memory).verdict == "REFUTED"
    assert simulate(Case(program(several=True), 2, 1), Scripted(0, 1, 0)).choices == ["0", "1", "0"]
    script = make("script:rules=hold rank 0 before its 2nd notify until rank 1 has waited")
    assert simulate(Case(program(several=True), 2, 1), script).choices == ["0", "1", "0"]


def test_the_name_of_a_race_follows_the_fair_run():
    """RAW and WAR are one race, named by who is first in the fair run: there a block is one turn."""

    def program(several):
        async def two_and_a_load(rank, x, row, cell):
            if rank.id == 0:
                await tell(rank, [cell[0, 0], cell[1, 0]], several=several)
                return await rank.load(row[0])
            await rank.wait(cell[0, 0] >= 0)
            return await rank.store(row.at(0)[0], 1)

        return kernel(memory=[Window("row", (1,), np.int32, initialised=True), CELL], inputs=no_inputs)(two_and_a_load)

    def no_inputs(P, call, rng):
        return [None] * P

    loop, one = (check(program(several), ranks=2, calls=1) for several in (False, True))
    assert (loop.verdict, one.verdict) == ("REFUTED", "REFUTED")
    ((first,), (second,)) = (loop.findings, one.findings)
    assert (first.hazard, second.hazard) == ("RAW", "WAR")
    assert first.pairs == second.pairs == 1
    assert {side.op for side in first.sides} == {side.op for side in second.sides} == {"load", "remote_store"}


# What is given.


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda rank, cell: rank.notify_all(cell[0]), r"notify_all takes cells, \[signal.* got cell\[0, 0\]@0"),
        (lambda rank, cell: rank.notify_all(cell), "got all of 'cell'; index it"),
        (lambda rank, cell: rank.notify_all([cell[0], 3]), r"notify_all \(cells\[1\]\) takes a cell, .*; got 3"),
        (
            lambda rank, cell: rank.notify_all([cell[0]], 1.5),
            r"\(cells\[0\]\) of cell\[0, 0\]@0: value 1.5 is no integer",
        ),
        (lambda rank, cell: rank.notify_all([cell[0]], 2**40), "is outside -2147483648 to 2147483647"),
        (
            lambda rank, cell: rank.notify_all([cell[0]], 1, "Add"),
            "op='Add'; use AtomicAdd, Set, And, Or",
        ),
        (lambda rank, cell: rank.notify_all([], order="late"), "order='late'; use 'release', 'stores' or 'relaxed'"),
        (lambda rank, cell: rank.wait_all(cell[0] >= 1), r"wait_all takes conditions, .* got the condition cell"),
        (
            lambda rank, cell: rank.wait_all([cell[0] >= 0, cell[1]]),
            r"wait_all \(conditions\[1\]\) takes a condition .*; compare it",
        ),
        (
            lambda rank, cell: rank.wait_all([cell[0] >= 0, World(1, [CREDIT]).signals[0].cell(0, (0, 0), 0) >= 0]),
            r"wait_all \(conditions\[1\]\) of cell\[0, 0\]@0, which belongs to another run",
        ),
    ],
)
def test_a_mistake_is_refused_before_anything_is_done(mistake, message):
    async def program(rank, cell):
        await mistake(rank, cell)

    scheduler = Scripted()
    with pytest.raises(KernelError, match=message):
        drive(Case(kernel(memory=[CREDIT])(program), 2, 1), scheduler)
    assert scheduler.offered == []


def test_numbers_of_numpy_are_numbers():
    async def program(rank, cell):
        await rank.notify_all([cell[0], cell[1]], np.int8(2))
        await rank.wait_all([cell[0] == 2, cell[1] == 2])

    assert turns(program, 2)[1].ending == COMPLETE


def test_a_forgotten_await_is_refused():
    async def program(rank, cell):
        rank.notify_all([cell[0]])
        await rank.test(cell[0] >= 0)

    with pytest.raises(MisuseError, match=r"a notify_all was made but never awaited"):
        turns(program)


# How a run ends in the middle, and what else a block meets.


@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_a_run_can_end_in_the_middle(engine):
    async def overflows(rank, cell):
        await rank.notify_all([cell[1], cell[0], cell[0], cell[1]], 2**30)

    run = simulate(Case(kernel(memory=[CREDIT])(overflows), 2, 1), Fifo(), record="fifo", engine=engine)
    assert (run.ending, run.choices) == (OVERFLOW, ["0"] * 3)
    assert len(run.trace.events) == 3
    run = simulate(Case(kernel(memory=[CREDIT])(overflows), 2, 1, max_steps=2), Fifo(), record="fifo", engine=engine)
    assert (run.ending, run.choices) == (STEP_LIMIT, ["0"] * 2)
    pending = [str(event.op) for event in run.trace.footer.pending]
    assert pending == ["notify cell[0, 0]@0 += 1073741824", "notify cell[1, 0]@1 += 1073741824"]


def test_a_group_and_a_stream_have_blocks_of_their_own():
    evens = Group("evens", lambda P: range(0, P, 2))
    own = Signal("own", (2, 1), group=evens)

    async def stream(rank, cell):
        await rank.wait_all([cell[0] >= 1, cell[1] >= 1])

    async def program(rank, cell, own):
        heard = await rank.start(stream, cell)
        if rank.id % 2 == 0:
            team = rank.within(evens)
            await team.notify_all([own.at(peer)[team.id] for peer in range(2)])
            await team.wait_all([own[peer] >= 1 for peer in range(2)])
        await rank.notify_all([cell[0], cell[1]])
        await rank.join(heard)

    case = Case(kernel(memory=[CREDIT, own])(program), 4, 1)
    for engine in ("trio", "direct"):
        run = fair(case, engine=engine)
        assert run.ending == COMPLETE
        assert " 0.1 0.1 " in " ".join(run.choices)
        assert len(run.choices) == 4 * (1 + 2 + 2 + 1) + 2 * (2 + 2)


def test_edits_reach_each_of_them():
    program = exchange(several=True)
    events = fair(Case(program, 3, 1)).trace.events
    notify = next(event.at[0] for event in events if event.op.kind == "notify")
    wait = next(event.at[0] for event in events if event.op.kind == "wait")
    for edit, kind in ((f"drop {notify}", "notify"), (f"skip {wait}", "wait")):
        run = fair(Case(program, 3, 1, edits=(edit, *([f"skip {wait}"] if kind == "notify" else []))))
        assert kind not in {event.op.kind for event in run.trace.events}
        assert run.ending == COMPLETE
    met = fair(Case(program, 2, 1, edits=(f"barrier before {wait}",)))
    assert met.ending == COMPLETE
    assert len(met.choices) == len(fair(Case(program, 2, 1)).choices) + 2 * 2


def test_exploration_sees_what_comes_between():
    report = explore(exchange(several=True, read=False), ranks=3, scheduler="random", runs=40, engine="direct")
    assert report.verdict == "REFUTED"


class Counting:
    """Chooses the first, lets an actor go on through what follows, and counts how often it was asked."""

    blocks = True

    def __init__(self):
        """Start with no question."""
        self.times = 0

    def begin(self, actors):
        pass

    def choose(self, ready):
        self.times += 1
        return ready[0]


def test_what_follows_a_step_of_another_actor_is_asked_for():
    """An edit may leave out the first of a block; then the second follows nothing, and is chosen as any other."""
    world = World(2, [CREDIT])
    awaited = ["1"]
    gate = Gate(memory := Memory(world, 0), Immediate(memory), asked := Counting(), awaited=awaited, max_steps=9)
    first, second = world.actors
    cell = world.views(0)[0][0]
    other, more = (Op(first, NOTIFY, (), cell, "AtomicAdd", 1) for _ in range(2))
    op, next_op = (Op(second, NOTIFY, (), cell, "AtomicAdd", 1, follows=True) for _ in range(2))
    assert gate.turn(other) is None
    awaited.clear()
    assert gate.turn(op) is other
    assert gate.turn(more) is more
    gate.leave(first)
    assert gate.turn(None) is op
    assert asked.times == 3
    assert gate.turn(next_op) is next_op
    assert asked.times == 3
