"""The gate: one place where everybody stands exactly once an operation, and one place where a choice is made."""

import inspect

import numpy as np
import pytest
from schedules import Scripted, run

from asyncsim import Case, MisuseError, Rank, Signal, Window, barrier, kernel, settle, simulate
from asyncsim.machine.effect import Immediate
from asyncsim.machine.forgotten import NoticedRank
from asyncsim.machine.gate import Gate
from asyncsim.machine.memory import Memory
from asyncsim.schedulers.random import Random
from asyncsim.trace.kinds import NOTIFY, TEST, WAIT
from asyncsim.trace.op import Op
from asyncsim.trace.world import World

ROW = Window("row", (2,), np.int32, initialised=True)
CELL = Signal("cell", ("P", 1))

CELL_OF_ANOTHER_RUN = World(2, [CELL]).signals[0].cell(0, 0, 0)

PRIMITIVES = {
    "load": lambda rank, row, cell: rank.load(row[0]),
    "store": lambda rank, row, cell: rank.store(row[0], 1),
    "get": lambda rank, row, cell: rank.get(row[0], row.at(1)[0]),
    "put": lambda rank, row, cell: rank.put(row.at(1)[0], row[0]),
    "notify": lambda rank, row, cell: rank.notify(cell[0], 1),
    "wait": lambda rank, row, cell: rank.wait(cell[0] >= 0),
    "test": lambda rank, row, cell: rank.test(cell[0] >= 0),
    "put_signal": lambda rank, row, cell: rank.put_signal(row.at(1)[0], row[0], cell.at(1)[0]),
    "poll": lambda rank, row, cell: rank.poll(row[0], lambda value: value == 0),
    "fence": lambda rank, row, cell: rank.fence(),
    "quiet": lambda rank, row, cell: rank.quiet(),
    "sync": lambda rank, row, cell: rank.sync(rank.stream_barrier(1)),
}
STREAMS = {"start", "join"}
"""These two come in pairs."""
VALUES = {
    "read": lambda rank, row, cell: rank.read(cell[0]),
    "fetch_add": lambda rank, row, cell: rank.fetch_add(cell.at(1)[0], 1),
    "exchange": lambda rank, row, cell: rank.exchange(cell.at(1)[0], 1),
    "fetch_and": lambda rank, row, cell: rank.fetch_and(cell[0], 1),
    "fetch_or": lambda rank, row, cell: rank.fetch_or(cell[0], 1),
    "fetch_xor": lambda rank, row, cell: rank.fetch_xor(cell[0], 1),
    "fetch_min": lambda rank, row, cell: rank.fetch_min(cell[0], 1),
    "fetch_max": lambda rank, row, cell: rank.fetch_max(cell[0], 1),
    "compare_exchange": lambda rank, row, cell: rank.compare_exchange(cell[0], 0, 1),
    "arrive": lambda rank, row, cell: rank.arrive(cell.at(1)[0], of=2),
    "wait_value": lambda rank, row, cell: rank.wait_value(cell[0] >= 0),
}
"""These give what a cell held; several are of one kind."""
SEVERAL = {"notify_all", "wait_all"}
"""These two stand there once for each of theirs: test_all_at_once.py."""


def test_every_operation_of_a_rank_is_listed_here():
    names = dict(inspect.getmembers(Rank, inspect.isgeneratorfunction)).keys()
    assert names == set(PRIMITIVES) | set(VALUES) | STREAMS | SEVERAL, "add a row to PRIMITIVES, or to VALUES"


def test_in_a_run_that_is_looked_at_every_operation_is_a_coroutine():
    names = dict(inspect.getmembers(NoticedRank, inspect.iscoroutinefunction)).keys()
    assert names == set(PRIMITIVES) | set(VALUES) | STREAMS | SEVERAL, "add a row to PRIMITIVES, or to VALUES"


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_stands_at_the_gate_exactly_once(name):
    async def program(rank, row, cell):
        if rank.id == 0:
            await PRIMITIVES[name](rank, row, cell)

    result = run(program, [ROW, CELL], record="scripted")
    assert result.choices == ["0"]
    assert [event.op.kind.removeprefix("remote_") for event in result.trace.events] == [name]


@pytest.mark.parametrize("name", VALUES)
def test_what_gives_a_value_stands_there_exactly_once(name):
    async def program(rank, row, cell):
        return await VALUES[name](rank, row, cell) if rank.id == 0 else None

    result = run(program, [ROW, CELL], record="scripted")
    assert result.choices == ["0"]
    assert result.outputs == [[0, None]]
    assert [event.have for event in result.trace.events] == [0]


def test_starting_and_joining_a_stream_stand_at_the_gate_once_each():
    async def stream(rank, row):
        await rank.load(row[0])
        return rank.id

    async def program(rank, row, cell):
        return await rank.join(await rank.start(stream, row)) if rank.id == 0 else None

    result = run(program, [ROW, CELL], record="scripted")
    assert result.choices == ["0", "0.1", "0"]
    assert [event.op.kind for event in result.trace.events] == ["start", "load", "join"]
    assert result.outputs == [[0, None]]


@pytest.mark.parametrize("variant", [{"atomic": "add"}, {}])
@pytest.mark.parametrize("peer", [0, 1])
def test_it_stays_one_operation_in_every_form(variant, peer):
    async def program(rank, row, cell):
        if rank.id == 0:
            await rank.store(row.at(peer)[:], np.ones(2, np.int32), **variant)
            await rank.put(row.at(peer)[:], np.ones(2, np.int32), **variant)
            await rank.put(row.at(peer)[0], row[1], **variant)
            await rank.wait(cell[0] >= 0, consume=True)

    assert run(program, [ROW, CELL]).choices == ["0"] * 4


def test_nothing_else_of_the_library_stands_at_the_gate():
    async def program(rank, row, cell):
        with rank.phase("quiet"):
            _ = row.at(1)[0:1], row.shape, cell.at(1)[0] >= 1, rank.peers, rank.size, rank.call

    assert run(program, [ROW, CELL]).choices == []


def test_composites_are_made_of_primitives():
    async def program(rank, row, cell):
        await barrier(rank, cell)
        await settle(rank, cell, credits=1)

    result = run(program, [ROW, CELL], ranks=3, record="scripted")
    one = [event.op.kind for event in result.trace.events if event.op.actor.rank == 2]
    assert one == [NOTIFY, NOTIFY, WAIT, WAIT, NOTIFY, NOTIFY]
    assert result.ending == "complete"


def test_nobody_is_asked_before_everybody_has_arrived():
    async def program(rank, row, cell):
        await rank.store(row[0], 1)
        await rank.store(row[0], 2)

    scheduler = Scripted(2, 2, 0, 1, 1, 0)
    result = simulate(Case(kernel(memory=[ROW, CELL])(program), ranks=3, calls=1), scheduler)
    assert result.choices == ["2", "2", "0", "1", "1", "0"]
    assert [[line.split()[0] for line in lines] for lines in scheduler.offered] == [
        ["0", "1", "2"], ["0", "1", "2"], ["0", "1"], ["0", "1"], ["0", "1"], ["0"],
    ]  # fmt: skip


def test_what_is_offered_is_about_to_happen():
    async def program(rank, row, cell):
        if rank.id == 0:
            await rank.notify(cell.at(1)[0], 3)
        else:
            await rank.wait(cell[0] >= 2, consume=True)
            await rank.load(row.at(0)[0:2])

    scheduler = Scripted()
    simulate(Case(kernel(memory=[ROW, CELL])(program), ranks=2, calls=1), scheduler)
    assert scheduler.offered == [
        ["0 notify cell[0, 0]@1 += 3"],
        ["1 wait cell[0, 0]@1 >= 2 and subtract"],
        ["1 remote_load of row[0:2]@0"],
    ]


def test_calls_follow_each_other_without_a_barrier():
    async def program(rank, row, cell):
        await rank.store(row[0], 1)

    result = run(program, [ROW, CELL], 0, 0, 0, calls=3, record="scripted")
    assert [(e.op.actor.rank, e.call) for e in result.trace.events] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_an_eq_wait_can_become_unready_again():
    async def program(rank, row, cell):
        if rank.id == 0:
            await rank.wait(cell[0] == 1)
        else:
            await rank.notify(cell.at(0)[0])
            await rank.notify(cell.at(0)[0])

    assert run(program, [ROW, CELL], 1, 0, 1).choices == ["1", "0", "1"]
    late = run(program, [ROW, CELL], 1, 1, 0)
    assert (late.choices, late.ending) == (["1", "1"], "deadlock")


def test_a_consuming_wait_takes_the_credit_from_the_others():
    world = World(2, [CELL])
    memory = Memory(world, 0)
    awaited = ["1"]
    gate = Gate(memory, Immediate(memory), Scripted(1), awaited=awaited, max_steps=10)
    cell = world.signals[0].cell(0, 0, 0)
    memory.cells[cell.slot] = 1
    first, second = (Op(actor, WAIT, (), cell, "Ge", 1, consume=True) for actor in world.actors)
    assert gate.turn(first) is None
    awaited.clear()
    assert gate.turn(second) is second
    assert gate.outcome == 1
    assert gate.pending() == [first]
    gate.leave(world.actors[1])
    assert gate.turn(None) is None
    assert gate.ending == "deadlock"


class Disobedient:
    """Chooses an operation of its own."""

    def __init__(self, choice):
        """Take the function that chooses."""
        self.choice = choice

    def begin(self, actors):
        self.actors = actors

    def choose(self, ready):
        return self.choice(self, ready)


@pytest.mark.parametrize(
    "choice",
    [
        lambda self, ready: Op(self.actors[1], TEST, (), CELL_OF_ANOTHER_RUN, "Eq"),
        lambda self, ready: Op(self.actors[0], ready[0].kind, ready[0].accesses),
        lambda self, ready: None,
    ],
    ids=["of an actor that is not ready", "a copy", "nothing"],
)
def test_a_scheduler_may_only_choose_what_is_ready(choice):
    async def program(rank, row, cell):
        if rank.id == 0:
            await rank.load(row[0])

    with pytest.raises(MisuseError, match=r"Disobedient chose .*, which is not among the ready operations"):
        simulate(Case(kernel(memory=[ROW, CELL])(program), ranks=2, calls=1), Disobedient(choice))


def test_an_error_of_the_scheduler_reaches_the_caller_as_it_is():
    async def program(rank, row, cell):
        await rank.load(row[0])

    def choice(self, ready):
        raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea"):
        simulate(Case(kernel(memory=[ROW, CELL])(program), ranks=2, calls=1), Disobedient(choice))


async def test_inside_a_running_trio_loop_there_is_the_other_door():
    async def program(rank, row, cell):
        await rank.load(row[0])

    result = await simulate.aio(Case(kernel(memory=[ROW, CELL])(program), ranks=2, calls=1), Scripted(1, 0))
    assert result.choices == ["1", "0"]


def test_two_simulations_in_one_process_do_not_know_of_each_other():
    async def inner(rank, row, cell):
        await rank.store(row[0], 1)
        return await rank.load(row[0])

    class Nested(Scripted):
        def choose(self, ready):
            made = kernel(memory=[ROW, CELL])(inner)
            memory = Memory(World(1, made.memory), 0)
            gate = Gate(memory, Immediate(memory), Scripted(), awaited=(), max_steps=1)
            assert gate.turn(None) is None
            return super().choose(ready)

    result = simulate(Case(kernel(memory=[ROW, CELL])(inner), ranks=2, calls=1), Nested(0, 1, 1, 0))
    assert result.choices == ["0", "1", "1", "0"]
    assert result.outputs[0] == [1, 1]


class Picks:
    """Picks a place, whatever is there."""

    def __init__(self, place):
        """Pick this one."""
        self.place = place

    def begin(self, actors):
        pass

    def choose(self, ready):
        raise NotImplementedError

    def pick(self, ready):
        return self.place


def both_store():
    async def program(rank, row, cell):
        await rank.store(row[0], 1)

    return Case(kernel(memory=[ROW, CELL])(program), ranks=2, calls=1)


def test_a_scheduler_may_say_where_its_choice_stands():
    assert simulate(both_store(), Picks(0)).choices == ["0", "1"]


@pytest.mark.parametrize("place", [-1, 2, 0.0, True, None])
def test_a_place_that_is_none_is_refused(place):
    with pytest.raises(MisuseError, match=rf"Picks picked place {place!r} of 2 ready operations; places count from 0"):
        simulate(both_store(), Picks(place))


class Overrides(Random):
    """Has the `pick` of its base, which knows nothing of what it chooses."""

    def choose(self, ready):
        return ready[-1]


def test_a_scheduler_that_chooses_otherwise_than_its_base_is_asked_to_choose():
    assert simulate(both_store(), Overrides()).choices == ["1", "0"]
