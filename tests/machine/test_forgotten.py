"""Mistakes that would otherwise pass for a verdict: a forgotten await, dice in the inputs, an exit in the kernel."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from asyncsim import Case, Fifo, KernelError, MisuseError, Signal, Window, barrier, kernel, simulate
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.explore import explore
from asyncsim.schedulers.table import make

WINDOW = Window("window", (2,), np.float32)
CELL = Signal("cell", (1,))


def ones(P, call, rng):
    """Give each rank the same."""
    return [np.ones(2, np.float32)] * P


@kernel(memory=[WINDOW], inputs=ones)
async def forgets_to_store(rank, x, window):
    """Make a store, and drop it."""
    rank.store(window[:], x)
    return x


@kernel(memory=[CELL])
async def forgets_to_notify(rank, cell):
    """Wait for what nobody sends."""
    rank.notify(cell.at((rank.id + 1) % rank.size)[0])
    await rank.wait(cell[0] >= 1)


@pytest.mark.parametrize(("made", "what"), [(forgets_to_store, "store"), (forgets_to_notify, "notify")])
async def test_a_forgotten_await_is_no_verdict(made, what):
    with pytest.raises(
        MisuseError, match=rf"a {what} was made but never awaited at test_forgotten.py:\d+; write: await"
    ):
        await check.aio(made, ranks=2)


async def test_exploring_notices_a_forgotten_await_too():
    with pytest.raises(MisuseError, match="a store was made but never awaited"):
        await explore.aio(forgets_to_store, ranks=2, runs=1)


async def test_a_run_that_fails_still_says_what_was_warned_of(capsys):
    async def program(rank, x, window):
        rank.store(window[:], x)
        raise ValueError("too early")

    with pytest.raises(KernelError, match="too early"):
        await check.aio(kernel(memory=[WINDOW], inputs=ones)(program), ranks=2)
    assert "was never awaited" in capsys.readouterr().err


async def test_inputs_that_differ_by_themselves_are_refused():
    dice = np.random.default_rng()
    made = kernel(memory=[WINDOW], inputs=lambda P, call, rng: [dice.random(2, np.float32) for _ in range(P)])

    async def program(rank, x, window):
        return x

    with pytest.raises(MisuseError, match="inputs gave other values the second time"):
        await check.aio(made(program), ranks=2)


async def test_an_exit_in_a_kernel_is_its_own_exception():
    async def program(rank, cell):
        raise SystemExit(0)

    with pytest.raises(KernelError, match=r"rank 0 failed in call 0 .*SystemExit"):
        await simulate.aio(Case(kernel(memory=[CELL])(program), 2, 1), Fifo())


NURSERY = """
import trio
from asyncsim import Signal, kernel

@kernel(memory=[Signal("cell", (1,))])
async def opens(rank, cell):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rank.notify, cell[0])
"""


def test_a_nursery_in_a_kernel_is_refused(tmp_path):
    # In a process of its own: trio leaves what it could not end to the garbage collector.
    (tmp_path / "nursery.py").write_text(NURSERY, encoding="utf-8")
    command = [sys.executable, "-m", "asyncsim", "check", "nursery.py:opens", "-P", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240)  # noqa: S603 - our own command
    assert done.returncode == 2
    assert "start further tasks with rank.start" in done.stderr


async def test_a_kernel_that_never_ends_is_noticed():
    async def program(rank, x, window):
        while True:
            await rank.store(window[:], x)

    report = await check.aio(kernel(memory=[WINDOW], inputs=ones)(program), ranks=2, calls=1)
    assert [finding.kind for finding in report.findings] == ["step-limit"]


def test_sizes_beyond_reason_are_refused():
    with pytest.raises(MisuseError, match="at most 65536 are simulated"):
        Case(forgets_to_store, ranks=1 << 30).world  # noqa: B018 - the world is made when it is first asked for
    with pytest.raises(MisuseError, match="pct: depth=99999999"):
        make("pct:depth=99999999")


BOX = Window("box", (1,), np.int32, initialised=True)
FLAG = Signal("flag", (1,))


@kernel(memory=[BOX, FLAG])
async def forgets_where_few_schedules_come(rank, box, flag):
    if rank.id == 0:
        await rank.notify(flag.at(1)[0])
    elif await rank.test(flag[0] >= 1):
        rank.store(box[0], 1)
    return 0


def test_an_exhaustive_exploration_looks_at_every_execution():
    with pytest.raises(MisuseError, match="a store was made but never awaited"):
        check(forgets_where_few_schedules_come, ranks=2, calls=1)


@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_a_run_that_is_not_recorded_notices_it_too(engine):
    with pytest.raises(MisuseError, match="a store was made but never awaited"):
        simulate(Case(forgets_where_few_schedules_come, 2, 1), Fifo(), engine=engine)


@kernel(memory=[BOX])
async def keeps_what_it_forgets(rank, box):
    kept = rank.store(box[0], 1)
    await rank.load(box[0])
    return int(kept is None)


def test_no_line_of_ours_is_blamed():
    with pytest.raises(
        MisuseError, match=r"a store was made but never awaited at test_forgotten\.py:\d+; write: await rank\.store"
    ):
        check(keeps_what_it_forgets, ranks=2, calls=1)


# ---- an operation that is kept instead of awaited, and what else is async


@kernel(memory=[WINDOW], inputs=ones)
async def returns_a_load(rank, x, window):
    """Return the operation in the place of its tile."""
    await rank.store(window[:], x)
    return [x, (x, rank.load(window[:]))]


@kernel(memory=[WINDOW], inputs=ones)
async def adds_a_load(rank, x, window):
    """Add the operation to an array."""
    got = rank.load(window[:])
    x += got
    return x


@kernel(memory=[WINDOW], inputs=ones)
async def stores_a_load(rank, x, window):
    """Store the operation."""
    got = rank.load(window[:])
    await rank.store(window[:], got)


@pytest.mark.parametrize("made", [returns_a_load, adds_a_load, stores_a_load])
async def test_a_forgotten_load_that_is_used_is_told_with_its_line(made, capsys):
    with pytest.raises(KernelError) as told:
        await check.aio(made, ranks=2)
    found = re.search(r"a load was made but never awaited at test_forgotten.py:(\d+); write: await", str(told.value))
    assert 0 < int(found[1]) - made.program.__code__.co_firstlineno <= 4
    assert "never awaited" not in capsys.readouterr().err


async def test_without_lines_a_returned_operation_is_named_all_the_same():
    with pytest.raises(KernelError, match=r"a load was made but never awaited; write: await rank.load\(...\)"):
        await simulate.aio(Case(returns_a_load, 2, 1), Fifo(), notice=False)


async def test_a_value_that_is_no_output_for_another_reason_is_refused_as_ever():
    async def program(rank, x, window):
        return [[[[object()]]]]

    with pytest.raises(KernelError, match="a kernel returns arrays, numbers, texts, None, or tuples of them"):
        await check.aio(kernel(memory=[WINDOW], inputs=ones)(program), ranks=2)


@kernel(memory=[CELL])
async def forgets_to_meet(rank, cell):
    """Call a composite, and drop it."""
    barrier(rank, cell)


@kernel(memory=[CELL])
async def forgets_to_join(rank, cell):
    """Make a join, and drop it."""

    async def program(rank):
        await rank.notify(cell[0], 1)

    stream = await rank.start(program)
    rank.join(stream)
    await rank.join(stream)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (forgets_to_meet, r"a barrier .*; write: await barrier\(...\)"),
        (forgets_to_join, "a join .*; write: await rank.join"),
    ],
)
async def test_composites_and_joins_are_looked_after_as_well(made, said):
    with pytest.raises(MisuseError, match=said):
        await check.aio(made, ranks=2)


@pytest.mark.filterwarnings("ignore:coroutine 'elsewhere' was never awaited")
async def test_what_others_forget_is_theirs():
    code = compile("async def elsewhere(): pass\ndef forget(): elsewhere()", "theirs.py", "exec")
    names = {}
    exec(code, names)  # noqa: S102 - a file that is not the kernel's

    async def program(rank, cell):
        names["forget"]()

    assert (await check.aio(kernel(memory=[CELL])(program), ranks=1)).verdict == "PROVED"


# ---- a program that cannot be called


SHORT = "the rank, one input (inputs=) and the memory window, cell"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("async def mine(rank, x, window): pass", f"cannot be called with {SHORT}: too many positional arguments"),
        ("async def mine(rank, x, window, cell, more): pass", "missing a required argument: 'more'"),
        ("async def mine(rank, x, window, cell, *, n): pass", "missing a required argument: 'n'"),
    ],
)
def test_a_program_with_other_parameters_is_named_with_what_would_be_right(program, said):
    names = {}
    exec(compile(program, "mine.py", "exec"), names)  # noqa: S102 - its line is known
    made = kernel(memory=[WINDOW, CELL], inputs=ones)(names["mine"])
    with pytest.raises(MisuseError) as told:
        check(made, ranks=2)
    assert "mine.py:1" in str(told.value)
    assert said in str(told.value)
    assert "write: async def mine(rank, x, window, cell)" in str(told.value)


def test_a_parameter_of_a_variant_is_named_as_well():
    async def mine(rank, cell):
        """Take no parameter."""

    made = kernel(memory=[CELL])(mine).variant(often=3)
    with pytest.raises(
        MisuseError,
        match=r"the rank and the memory cell, and often=: .*; write: async def mine\(rank, cell, \*, often=3\)",
    ):
        check(made, ranks=2)


def test_a_program_without_memory_takes_the_rank_alone():
    async def mine(rank, more):
        """Take one too many."""

    with pytest.raises(MisuseError, match=r"with the rank: missing .*; write: async def mine\(rank\)"):
        check(kernel(memory=[])(mine), ranks=2)
