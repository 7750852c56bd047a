"""The law of the two engines: for the same choices the direct one makes trio's run, byte for byte; and in any place."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import threading
from functools import partial

import late_programs
import late_runs
import numpy as np
import programs
import pytest
import trio
from click.testing import CliRunner
from everything import written
from everything_late import late
from schedules import Scripted

from asyncsim import Case, Fifo, KernelError, MisuseError, Signal, Window, check, explore, kernel, replay, simulate
from asyncsim.checking.record.locate import all_kernels
from asyncsim.cli.main import main
from asyncsim.machine.direct import drive
from asyncsim.schedulers.replay import Replay
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import DivergenceError
from kernels import reduce_scatter
from kernels.field import CASES

ROW = Window("row", (2,), np.int32, initialised=True)
CELL = Signal("cell", ("P", 1))

SCHEDULERS = ("fifo", "eager", "random:seed=1", "starve:rank=0", "pct:depth=3", "pos", "surw", "latency")
KERNELS = all_kernels()
SHAPES = {made.ref: (case.ranks, case.calls, case.memory) for case in CASES for made in (case.buggy, case.fixed)}


async def both(case, scheduler, *, record="any", watch=None):
    """Run a case on both engines, each with a scheduler of its own; return what is to be compared, twice."""
    seen = []
    for engine in ("trio", "direct"):
        try:
            run = await simulate.aio(case, scheduler(), record=record, engine=engine, watch=watch)
        except KernelError as error:
            text = "" if error.trace is None else written(error.trace)
            seen.append((str(error), error.rank, error.call, type(error.__cause__), text))
        except (MisuseError, DivergenceError, LookupError) as error:
            seen.append((type(error), str(error)))
        else:
            windows = [array.tobytes() for array in run.windows]
            text = "" if run.trace is None else written(run.trace)
            seen.append((run.choices, repr(run.outputs), run.ending, run.unwritten, windows, run.unapplied, text))
    return seen


async def assert_same(case, scheduler, **options):
    on_trio, directly = await both(case, scheduler, **options)
    assert directly == on_trio
    return on_trio


@pytest.mark.parametrize("name", KERNELS)
async def test_every_kernel_makes_the_same_run(name):
    number = list(KERNELS).index(name)
    ranks, calls, memory = SHAPES.get(KERNELS[name].ref, (2 + number % 2, 2, "sc"))
    models = (memory, ("ldst", "nic", "sc", "ldst:atom=32")[number % 4])
    texts = (SCHEDULERS[number % len(SCHEDULERS)], SCHEDULERS[(number // 4) % len(SCHEDULERS)])
    for model, text in zip(models, texts, strict=True):
        await assert_same(Case(KERNELS[name], ranks, calls, model), partial(make, text), record=text)


@pytest.mark.parametrize("text", SCHEDULERS)
@pytest.mark.parametrize("memory", ["sc", "ldst", "nic:atom=32"])
async def test_every_scheduler_is_asked_the_same(text, memory):
    await assert_same(Case(reduce_scatter.no_post_barrier, 4, 2, memory), partial(make, text))
    await assert_same(Case(late, 2, 1, memory), partial(make, text))


@pytest.mark.parametrize("family", programs.FAMILIES)
async def test_random_programs(family):
    for number in range(6):
        program = programs.program_number(family, number)
        case = Case(programs.kernel_of(program), ranks=len(program.actors), calls=program.calls)
        await assert_same(case, partial(make, f"random:seed={number}"))


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
@pytest.mark.parametrize("family", late_programs.FAMILIES)
async def test_random_programs_with_streams_and_landings(family, memory):
    for number in range(3):
        program = late_programs.program_number(family, number)
        case = Case(late_runs.kernel_of(program, {}), ranks=len(program.ranks), calls=1, memory=memory)
        await assert_same(case, partial(late_runs.Dice, number, 0.5))


async def test_a_run_that_is_not_recorded_is_the_same_too():
    case = Case(reduce_scatter.builtin, 4)
    seen = await assert_same(case, partial(make, "random:seed=3"), record=None)
    assert seen[-1] == ""
    assert seen[0] == (await both(case, partial(make, "random:seed=3")))[1][0]


async def test_a_schedule_of_one_engine_replays_on_the_other():
    case = Case(reduce_scatter.hand, 3)
    run = drive(case, make("pct:depth=3"), record="pct")
    again = await replay.aio(run.trace, case.kernel)
    direct = await replay.aio(again.run.trace, case.kernel, engine="direct")
    assert written(direct.run.trace) == written(again.run.trace) == written(run.trace)
    await assert_same(case, lambda: Replay([*run.choices[:-1], "0.7"]))  # it diverges, in both at the same step


# How a run ends.


async def raises(rank, row, cell):
    await rank.load(row[0])
    if rank.id == 1:
        raise ZeroDivisionError("here")
    await rank.load(row[1])


async def exits(rank, row, cell):
    await rank.store(row[0], rank.id)
    raise SystemExit(3)


async def hangs(rank, row, cell):
    await rank.store(row[0], 1)
    await rank.wait(cell[0] >= 1 + rank.id)


async def goes_on(rank, row, cell):
    while True:
        await rank.store(row[0], 1)


async def overflows(rank, row, cell):
    await rank.notify(cell.at(0)[0], 2**31 - 1)
    await rank.load(row[0])


async def returns_a_set(rank, row, cell):
    return {rank.id}


async def raises_while_it_is_stopped(rank, row, cell):
    try:
        await rank.wait(cell[0] >= 1)
    finally:
        rank.collective("late")
        raise LookupError("too late")


async def does_not_stop(rank, row, cell):
    try:
        await rank.load(row[rank.id + rank.size])
    finally:
        await rank.load(row[1])


async def sleeps(rank, row, cell):
    await rank.load(row[0])
    await trio.sleep(1)


async def sleeps_elsewhere(rank, row, cell):
    await rank.load(row[0])
    await asyncio.sleep(1)


async def swallows_it_and_returns(rank, row, cell):
    try:
        await trio.lowlevel.checkpoint()
    except MisuseError:
        return 1


async def leaves_a_stream(rank, row, cell):
    await rank.start(hangs, row, cell)


async def forgets(rank, row, cell):
    rank.store(row[0], 1)
    await rank.load(row[0])


async def awaits_an_error_of_its_own(rank, row, cell):
    await rank.load(row[0])
    raise RuntimeError("must be called from async context")


def returns_no_coroutine(rank, row, cell):
    return 1


ENDINGS = [
    raises, exits, hangs, goes_on, overflows, returns_a_set, raises_while_it_is_stopped, does_not_stop, sleeps,
    sleeps_elsewhere, swallows_it_and_returns, leaves_a_stream, awaits_an_error_of_its_own,
]  # fmt: skip


def of(program, **options):
    """Make a case of a program."""
    return Case(kernel(memory=[ROW, CELL])(program), **{"ranks": 3, "calls": 2, "max_steps": 40, **options})


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("memory", ["sc", "ldst"])
@pytest.mark.parametrize("program", ENDINGS)
async def test_it_ends_in_the_same_way(program, memory):
    await assert_same(of(program, memory=memory), partial(make, "random:seed=2"))
    await assert_same(of(program, memory=memory), Fifo, record=None)


async def test_a_program_that_is_no_coroutine_is_refused_in_the_same_words():
    made = kernel(memory=[ROW, CELL])(raises).variant()
    object.__setattr__(made, "program", returns_no_coroutine)
    seen = await assert_same(Case(made, 2, 1), Fifo)
    assert "give an async function" in seen[0]


def test_a_hang_leaves_what_is_pending():
    trace = drive(of(hangs, calls=1), Fifo(), record="fifo").trace
    assert trace.footer.ending == "deadlock"
    assert [str(event.op) for event in trace.footer.pending] == [
        f"wait cell[0, 0]@{rank} >= {rank + 1}" for rank in range(3)
    ]


@pytest.mark.parametrize("program", [sleeps, sleeps_elsewhere])
def test_a_foreign_await_is_refused_at_its_line_where_no_loop_runs(program):
    line = program.__code__.co_firstlineno + 2
    with pytest.raises(KernelError, match=rf"test_direct.py:{line} .*awaits methods of its Rank only") as caught:
        drive(of(program), Fifo())
    assert isinstance(caught.value.__cause__, MisuseError)


async def test_a_forgotten_await_is_refused_on_both():
    seen = await assert_same(of(forgets), Fifo)
    assert seen[0] is MisuseError
    assert "a store was made but never awaited" in seen[1]


async def test_a_scheduler_that_errs_reaches_the_caller_as_it_is():
    class Errs(Scripted):
        def choose(self, ready):
            if len(self.offered) == 4:
                raise LookupError("no idea")
            return super().choose(ready)

    class ChoosesNothing(Scripted):
        def choose(self, ready):
            return None

    assert await assert_same(of(goes_on), Errs) == (LookupError, "no idea")
    assert "is not among the ready operations" in (await assert_same(of(goes_on), ChoosesNothing))[1]


async def test_edits_and_watching_are_the_same():
    case = Case(reduce_scatter.builtin, 3)
    told = []
    await assert_same(case, Fifo, watch=lambda op, frames: told.append((str(op), frames[-1].text)))
    assert told[: len(told) // 2] == told[len(told) // 2 :] != []
    site = next(text for op, text in told if op.startswith("wait")).split(" ")[0]
    for edit in (f"skip {site}", f"barrier before {site}", "barrier before return"):
        await assert_same(Case(reduce_scatter.builtin, 3, edits=(edit,)), partial(make, "random:seed=5"))


@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_an_interrupt_leaves_at_once_and_stops_the_kernels(engine):
    stopped = []

    async def program(rank, row, cell):
        try:
            await goes_on(rank, row, cell)
        finally:
            stopped.append(rank.id)

    class Interrupts(Scripted):
        def choose(self, ready):
            if len(self.offered) == 7:
                raise KeyboardInterrupt
            return super().choose(ready)

    with pytest.raises(KeyboardInterrupt):
        simulate(of(program), Interrupts(), record="scripted", engine=engine)
    assert sorted(stopped) == [0, 1, 2]


# Where it runs.


def judged():
    """Judge a kernel by the plain doors; return what came of it."""
    case = Case(reduce_scatter.no_post_barrier, 3)
    report = check(case.kernel, ranks=3)
    sampled = explore(case.kernel, ranks=3, runs=5)
    run = simulate(case, Fifo(), record="fifo")
    again = replay(run.trace, case.kernel)
    return report.verdict, [finding.token for finding in report.findings], sampled.verdict, written(again.run.trace)


async def test_the_plain_doors_work_inside_a_trio_loop():
    expected = await trio.to_thread.run_sync(judged)  # no loop runs in that thread
    assert judged() == expected
    assert expected[0] == "REFUTED"


def test_the_plain_doors_work_inside_an_asyncio_loop():
    async def inside():
        return judged()

    assert asyncio.run(inside()) == judged()


def test_it_runs_in_threads_side_by_side():
    texts = {}

    def work(number):
        texts[number] = [drive(Case(reduce_scatter.hand, 3), make("random:seed=4")).choices for _ in range(3)]

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    expected = drive(Case(reduce_scatter.hand, 3), make("random:seed=4")).choices
    assert list(texts.values()) == [[expected] * 3] * 3


def test_a_simulation_runs_inside_a_simulation():
    def inner():
        return drive(of(hangs), Fifo()).ending

    async def program(rank, row, cell):
        ending = inner()
        await rank.load(row[0])
        return ending

    for engine in ("trio", "direct"):
        assert simulate(of(program, calls=1), Fifo(), engine=engine).outputs == [["deadlock"] * 3]


async def test_a_search_can_be_cancelled_between_its_runs():
    with trio.move_on_after(0) as scope:
        await explore.aio(reduce_scatter.builtin, ranks=2, runs=10**9, engine="direct")
    assert scope.cancelled_caught


async def test_other_tasks_get_their_turn_between_the_runs_of_a_search():
    turns = []

    async def other():
        while True:
            turns.append(len(turns))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await explore.aio(reduce_scatter.builtin, ranks=2, runs=20)
        nursery.cancel_scope.cancel()
    assert len(turns) > 20


async def test_an_engine_that_is_none_is_refused():
    with pytest.raises(MisuseError, match=r"engine='asyncio'; give one of trio, direct"):
        await simulate.aio(of(raises), Fifo(), engine="asyncio")


def test_commands_take_the_engine():
    reports = []
    for engine in ("trio", "direct"):
        done = CliRunner().invoke(main, ["check", "reduce_scatter:hand", "-P", "2", "--json", "--engine", engine])
        assert done.exit_code == 1
        token = json.loads(done.stdout)["findings"][0]["token"]
        again = CliRunner().invoke(main, ["replay", token, "--engine", engine, "--json"])
        sampled = CliRunner().invoke(
            main, ["explore", "reduce_scatter:hand", "-P", "2", "--runs", "3", "--engine", engine]
        )
        reports.append((token, again.exit_code, again.stdout, sampled.exit_code))
    assert reports[0] == reports[1]
    assert CliRunner().invoke(main, ["check", "reduce_scatter:hand", "--engine", "asyncio"]).exit_code == 2


@pytest.mark.parametrize("seed", range(5))
async def test_the_verdict_does_not_depend_on_the_engine(seed):
    made = random.Random(seed).choice(list(all_kernels().values()))  # noqa: S311 - dice, no secret
    reports = [await check.aio(made, ranks=2, seed=seed, engine=engine) for engine in ("trio", "direct")]
    assert reports[0].verdict == reports[1].verdict
    assert reports[0].findings == reports[1].findings


def test_the_field_corpus_takes_part():
    assert SHAPES.keys() <= {made.ref for made in KERNELS.values()}


def test_what_is_left_of_a_run_needs_no_garbage_collector():
    case = Case(reduce_scatter.builtin, 3)
    drive(case, Fifo(), record="fifo")
    gc.collect()
    gc.disable()
    try:
        drive(case, Fifo(), record="fifo")
        drive(case, Fifo())
        assert gc.collect() == 0
    finally:
        gc.enable()
