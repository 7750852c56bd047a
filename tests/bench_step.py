"""What a scheduled step costs, as a ratio to what trio itself needs to hand over between two tasks.

The median of interleaved runs, in one process, in processor time: absolute times mean nothing on shared
machines, and the time that others take is not ours.
Run with ``python tests/bench_step.py``.
"""

from __future__ import annotations

import io
import platform
import statistics
import time
from dataclasses import dataclass

import trio
import trio.testing

from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.random import Random
from asyncsim.trace.jsonl import write_trace
from kernels.reduce_scatter import builtin, hand

ROUNDS = 5
HANDOVERS = 20_000
RUNS = 12


def _abort(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED


async def handover() -> float:
    """Return the seconds of one bare hand-over: two tasks that reschedule each other."""
    tasks: dict[int, trio.lowlevel.Task] = {}
    spent: list[float] = []

    async def ping(own: int) -> None:
        tasks[own] = trio.lowlevel.current_task()
        if own == 0:
            await trio.lowlevel.wait_task_rescheduled(_abort)
        started = time.process_time()
        for _ in range(HANDOVERS):
            trio.lowlevel.reschedule(tasks[1 - own])
            await trio.lowlevel.wait_task_rescheduled(_abort)
        spent.append(time.process_time() - started)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ping, 0)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ping, 1)
    return spent[0] / (2 * HANDOVERS)


@dataclass
class Figures:
    """Seconds a step, in the three ways, and of writing its line."""

    bare: list[float]
    exploring: list[float]
    recording: list[float]
    writing: list[float]


async def step_cost(case: Case, *, record: bool) -> float:
    """Return the seconds of one step under the random scheduler."""
    scheduler = Random(seed=1)
    steps = 0
    started = time.process_time()
    for _ in range(RUNS):
        run = await simulate.aio(case, scheduler, record="random:seed=1" if record else None, notice=False)
        steps += len(run.choices)
    return (time.process_time() - started) / steps


async def writing_cost(case: Case) -> float:
    """Return the seconds of writing one step to a trace in memory."""
    trace = (await simulate.aio(case, Random(seed=1), record="random:seed=1")).trace
    assert trace is not None
    started = time.process_time()
    write_trace(trace, io.StringIO())
    return (time.process_time() - started) / len(trace.events)


async def schedules_a_second(case: Case) -> float:
    """Return how many whole schedules of the case are run in a second."""
    scheduler = Random(seed=1)
    started = time.process_time()
    for _ in range(100):
        await simulate.aio(case, scheduler, notice=False)
    return 100 / (time.process_time() - started)


async def main() -> None:
    """Print the table."""
    case = Case(builtin, ranks=8)
    figures = Figures([], [], [], [])
    rates = []
    for _ in range(ROUNDS):
        figures.bare.append(await handover())
        figures.exploring.append(await step_cost(case, record=False))
        figures.recording.append(await step_cost(case, record=True))
        figures.writing.append(await writing_cost(case))
        rates.append(await schedules_a_second(Case(hand, ranks=4)))
    bare = statistics.median(figures.bare)
    versions = f"Python {platform.python_version()}, trio {trio.__version__}"
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {versions}")
    print(f"bare trio hand-over                      {bare * 1e6:7.2f} µs    1.00")
    for name, values in (
        ("scheduled step, exploring", figures.exploring),
        ("scheduled step, events kept", figures.recording),
        ("writing the line of a step", figures.writing),
    ):
        ratio = statistics.median(value / base for value, base in zip(values, figures.bare, strict=True))
        print(f"{name:38}   {statistics.median(values) * 1e6:7.2f} µs    {ratio:.2f}")
    print(f"reduce_scatter:hand, P = 4, two calls     {statistics.median(rates):7.0f} schedules a second")


if __name__ == "__main__":
    trio.run(main)
