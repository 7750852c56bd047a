"""Mistakes that would otherwise pass for a verdict: a forgotten await, dice in the inputs, an exit in the kernel."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from asyncsim import Case, Fifo, KernelError, MisuseError, Signal, Window, kernel, simulate
from asyncsim.checking.check import check
from asyncsim.checking.explore import explore
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
        MisuseError, match=rf"a {what} was made but never awaited, .*test_forgotten.py:\d+; write: await"
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
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
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
    with pytest.raises(MisuseError, match=r"a store was made but never awaited; write: await rank\.store"):
        check(keeps_what_it_forgets, ranks=2, calls=1)
