"""Behaviours: one number for all schedules that differ only in what may be exchanged, told by brute force."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from exhaust import exhaust

from asyncsim import Case, Fifo, Signal, Window, explore, kernel, simulate
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search.dependence import Dependence
from asyncsim.checking.search.equivalence import EquivalenceClasses, RecordedChoices, order_matters
from asyncsim.checking.search.tally import GoodTuring
from asyncsim.machine.direct import drive
from asyncsim.schedulers.replay import Replay
from asyncsim.schedulers.table import make
from asyncsim.trace.late import model_of
from kernels import reduce_scatter

cell = Signal("cell", (1,))
data = Window("data", (2,), np.int64, initialised=True)
floats = Window("floats", (1,), np.float32, initialised=True)


class Path:
    """Follows a path of numbers into the ready operations, then the first; keeps how wide each step was."""

    def __init__(self, path):
        self.path = path

    def begin(self, actors):
        self.widths = []
        self.step = 0

    def choose(self, ready):
        self.widths.append(len(ready))
        chosen = ready[self.path[self.step] if self.step < len(self.path) else 0]
        self.step += 1
        return chosen


def every_schedule(case):
    """Yield the operations of every schedule of a case."""
    path = []
    while path is not None:
        scheduler = Path(path)
        taken = RecordedChoices(scheduler)
        drive(case, taken)
        yield taken.ops
        full = path + [0] * (len(scheduler.widths) - len(path))
        while full and full[-1] + 1 == scheduler.widths[len(full) - 1]:
            full.pop()
        path = [*full[:-1], full[-1] + 1] if full else None


def order_of(dependence, ops):
    """Return, for every pair that conflicts, which operation came first: what a behaviour is by definition."""
    numbered, done = [], {}
    for op in ops:
        name = op.actor.name
        done[name] = done.get(name, -1) + 1
        numbered.append(((name, done[name]), op))
    pairs = {
        (a, b)
        for n, (b, later) in enumerate(numbered)
        for a, earlier in numbered[:n]
        if a[0] != b[0] and order_matters(dependence, earlier, later)
    }
    return frozenset(pairs), frozenset(who for who, op in numbered if op.accesses or op.cell is not None)


@kernel(memory=[data, cell])
async def store_buffering(rank, data, cell):
    """Store at the peer, load at home."""
    await rank.store(data.at(1 - rank.id)[0], 1)
    return int(await rank.load(data[0]))


@kernel(memory=[data, cell])
async def message(rank, data, cell):
    """Message passing, and a race after it."""
    if rank.id == 0:
        await rank.store(data.at(1)[0], 1)
        await rank.notify(cell.at(1)[0])
        await rank.store(data.at(1)[0], 2)
        return 0
    await rank.wait(cell[0] >= 1)
    return int(await rank.load(data[0]))


@kernel(memory=[data, cell])
async def credits_early(rank, data, cell):
    """A wait that needs one of two adds, then a race."""
    await rank.notify(cell.at(0)[0])
    if rank.id == 0:
        await rank.wait(cell[0] >= 1)
    await rank.store(data.at(0)[0], rank.id)


@kernel(memory=[data, cell])
async def parts(rank, data, cell):
    """Stores that overlap a load of the whole in one half each."""
    if rank.id == 2:
        return (await rank.load(data.at(0)[0:2])).tolist()
    await rank.store(data.at(0)[rank.id : rank.id + 1], np.array([7]))
    return None


@kernel(memory=[data, cell])
async def falling(rank, data, cell):
    """An add that makes a wait false for some time."""
    if rank.id == 0:
        await rank.notify(cell.at(1)[0], 1)
        await rank.notify(cell.at(1)[0], -1)
        await rank.notify(cell.at(1)[0], 1)
        return
    await rank.wait(cell[0] >= 1)


@kernel(memory=[data, cell])
async def consumed(rank, data, cell):
    """Two ranks add, one of them consumes, and looks whether more is there."""
    await rank.notify(cell.at(0)[0])
    if rank.id == 0:
        await rank.wait(cell[0] >= 1, consume=True)
        await rank.test(cell[0] >= 1)


@kernel(memory=[floats])
async def sums(rank, floats):
    """Adds of floating numbers: their order shows."""
    await rank.store(floats.at(0)[0], np.float32(rank.id + 1), atomic="add")


CASES = [
    (store_buffering, 2, "sc"), (store_buffering, 2, "ldst"), (message, 2, "sc"), (message, 2, "ldst"),
    (credits_early, 2, "sc"), (consumed, 2, "sc"), (sums, 3, "sc"), (parts, 3, "sc"), (falling, 2, "sc"),
]  # fmt: skip


def case_of(program, ranks, memory):
    return Case(program, ranks, 1, memory)


@pytest.mark.parametrize(("program", "ranks", "memory"), CASES)
def test_two_schedules_have_one_number_exactly_if_what_conflicts_comes_in_one_order(program, ranks, memory):
    case = case_of(program, ranks, memory)
    dependence = Dependence(model_of(memory))
    behaviours = EquivalenceClasses(model_of(memory))
    orders, schedules = {}, 0
    for ops in every_schedule(case):
        schedules += 1
        orders.setdefault(behaviours.number_of(ops), set()).add(order_of(dependence, ops))
    assert schedules >= len(orders) > 1
    assert all(len(same) == 1 for same in orders.values())
    assert len({order for same in orders.values() for order in same}) == len(orders)


@pytest.mark.parametrize(("program", "ranks", "memory"), CASES)
def test_an_exhaustive_exploration_meets_every_behaviour_that_there_is(program, ranks, memory):
    case = case_of(program, ranks, memory)
    behaviours = EquivalenceClasses(model_of(memory))
    there = {behaviours.number_of(ops) for ops in every_schedule(case)}
    judge = Judge(case)
    judge.set_reference(simulate(case, Fifo()))
    met = []

    def again(run):
        taken = RecordedChoices(Replay(run.choices))
        drive(case, taken)
        met.append(behaviours.number_of(taken.ops))

    explored = exhaust(case, budget=2000, judge=judge, on_run=again)
    assert explored.complete
    assert set(met) == there
    # With a consuming wait it also makes executions that are the same in the end.
    assert explored.executions == len(there) or (program is consumed and explored.executions > len(there))


def test_a_kernel_whose_conflicts_are_all_ordered_has_one_behaviour():
    report = explore(reduce_scatter.builtin, ranks=3, runs=40)
    assert report.notes[-1].startswith("40 schedules, 1 behaviour, ")
    assert report.notes[-1].endswith("shows a new one with probability less than about 0.025")


def test_pieces_of_torn_tiles_are_the_same_in_every_run():
    case = Case(reduce_scatter.builtin, 2, 2, "ldst:atom=64")
    behaviours = EquivalenceClasses(model_of(case.memory))
    numbers = set()
    for text in ("fifo", "random:seed=1", "random:seed=2", "starve:rank=0"):
        taken = RecordedChoices(make(text))
        drive(case, taken)
        numbers.add(behaviours.number_of(taken.ops))
    assert len(numbers) == 1


def test_the_number_of_a_behaviour_does_not_depend_on_the_process_or_on_what_came_before():
    program = (
        "from asyncsim import Case; from asyncsim.machine.direct import drive\n"
        "from asyncsim.checking.search.equivalence import EquivalenceClasses, RecordedChoices\n"
        "from asyncsim.schedulers.table import make\n"
        "from asyncsim.trace.late import model_of; from kernels.reduce_scatter import hand\n"
        "t = RecordedChoices(make('random:seed=3')); drive(Case(hand, 2), t)\n"
        "print(EquivalenceClasses(model_of('sc')).number_of(t.ops))"
    )
    there = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=240
    ).stdout
    behaviours = EquivalenceClasses(model_of("sc"))
    case = Case(reduce_scatter.hand, 2)
    for seed in (7, 5, 3):
        taken = RecordedChoices(make(f"random:seed={seed}"))
        drive(case, taken)
        number = behaviours.number_of(taken.ops)
    assert int(there) == number


# ---- what is unseen


def test_the_unseen_is_the_share_of_what_was_seen_once():
    seen = GoodTuring()
    assert (seen.behaviours, seen.unseen) == (0, 1.0)
    seen.add([5, 6, 5, 7])
    assert (seen.schedules, seen.behaviours, seen.unseen, seen.exact) == (4, 3, 0.5, True)
    assert seen.summary().startswith("4 schedules, 3 behaviours, that is, ")
    assert seen.summary().endswith("with probability about 0.5")
    seen.add([6, 7])
    assert seen.unseen == 0


def test_in_bounded_memory_the_numbers_are_estimates_and_do_not_depend_on_the_order():
    dice = np.random.default_rng(1)
    pool = dice.integers(0, 1 << 63, 20_000, dtype=np.uint64) * np.uint64(2)
    sample = [int(pool[n]) for n in dice.integers(0, len(pool), 30_000)]
    true = GoodTuring(1 << 20)
    true.add(sample)
    few, backwards = GoodTuring(1000), GoodTuring(1000)
    few.add(sample)
    for number in reversed(sample):
        backwards.add([number])
    assert not few.exact
    assert (few.behaviours, few.unseen) == (backwards.behaviours, backwards.unseen)
    assert few.behaviours == pytest.approx(true.behaviours, rel=0.1)
    assert few.unseen == pytest.approx(true.unseen, rel=0.1)
    assert "schedules, about " in few.summary()
    assert len(few._again) <= 1000


def test_good_and_turing_foretell_how_many_of_the_next_schedules_show_something_new():
    case = Case(reduce_scatter.hand, 3)
    behaviours = EquivalenceClasses(model_of("sc"))
    numbers = []
    for seed in range(600):
        taken = RecordedChoices(make(f"random:seed={seed}"))
        drive(case, taken)
        numbers.append(behaviours.number_of(taken.ops))
    seen = GoodTuring()
    seen.add(numbers[:300])
    new = sum(number not in numbers[:300] for number in numbers[300:]) / 300
    assert 0 < new < 1
    assert seen.unseen == pytest.approx(new, abs=0.1)


def test_behaviours_need_not_be_counted():
    report = explore(reduce_scatter.builtin, ranks=2, runs=5, behaviours=False)
    assert not any("behaviour" in note for note in report.notes)
