"""What the direct engine saves: whole schedules a second, as a ratio to the trio engine's.

The median of interleaved rounds, in one process, in processor time, as in ``tests/bench_step.py``.
Run with ``python tests/bench_engine.py``.
"""

from __future__ import annotations

import platform
import statistics
import time

import trio

from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.random import Random
from kernels.reduce_scatter import hand

ROUNDS = 25
RUNS = 10


async def on_trio(case: Case) -> float:
    """Return the seconds of one schedule on trio."""
    scheduler = Random(seed=1)
    started = time.process_time()
    for _ in range(RUNS):
        await simulate.aio(case, scheduler, notice=False)
    return (time.process_time() - started) / RUNS


def directly(case: Case) -> float:
    """Return the seconds of one schedule on the direct engine."""
    scheduler = Random(seed=1)
    started = time.process_time()
    for _ in range(RUNS):
        drive(case, scheduler)
    return (time.process_time() - started) / RUNS


async def main() -> None:
    """Print the table."""
    case = Case(hand, ranks=4)
    steps = len(drive(case, Random(seed=1)).choices)
    seconds: dict[str, list[float]] = {"trio": [], "direct": []}
    for _ in range(ROUNDS):
        seconds["trio"].append(await on_trio(case))
        seconds["direct"].append(directly(case))
    versions = f"Python {platform.python_version()}, trio {trio.__version__}"
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {versions}")
    print(f"reduce_scatter:hand, P = 4, two calls: {steps} steps")
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:8} {1 / median:7.0f} schedules a second   {median / steps * 1e6:6.2f} µs a step")
    ratio = statistics.median(a / b for a, b in zip(seconds["trio"], seconds["direct"], strict=True))
    print(f"direct ÷ trio {ratio:.2f}")


if __name__ == "__main__":
    trio.run(main)
