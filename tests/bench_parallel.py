"""What a second process brings, as a share of what this machine gives to two processes at all.

Two bare processes that do nothing but count seldom get twice what one gets: cores are shared, with
other programs and with each other. So `explore` with two jobs, sampling and exhaustive, is compared with
them, in one run: its speed-up divided by theirs. Each round takes all times, one after the other; the
medians count.
Run with ``python tests/bench_parallel.py [SCHEDULES]``.
"""

from __future__ import annotations

import multiprocessing
import platform
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from asyncsim import explore
from kernels.reduce_scatter import hand, hand_no_epilogue

ROUNDS = 5
SCHEDULES = 6000
EXECUTIONS = 5000
"""Of a tree that has billions of them."""
COUNT = 20_000_000


def count(number: int) -> int:
    """Keep a processor busy."""
    total = 0
    for n in range(number):
        total += n & 3
    return total


def bare(pool: ProcessPoolExecutor, processes: int) -> float:
    """Return the seconds that a fixed amount of counting takes on so many processes, which have been started."""
    started = time.perf_counter()
    list(pool.map(count, [COUNT // processes] * processes))
    return time.perf_counter() - started


def exploring(jobs: int, runs: int) -> float:
    """Return the seconds of an exploration by sampling."""
    marks: list[tuple[float, int]] = []
    explore(hand, ranks=4, runs=runs, jobs=jobs, progress=lambda now: marks.append((time.perf_counter(), now.done)))
    return steady(marks, runs)


def exhausting(jobs: int, runs: int) -> float:
    """Return the seconds of an exhaustive exploration which its budget ends."""
    marks: list[tuple[float, int]] = []
    explore(
        hand_no_epilogue, ranks=4, exhaustive=True, budget=runs, jobs=jobs,
        progress=lambda now: marks.append((time.perf_counter(), now.done)),
    )  # fmt: skip
    return steady(marks, runs)


def steady(marks: list[tuple[float, int]], runs: int) -> float:
    """Return the seconds for so many runs, from the time when a sixth was done: starting processes is paid once."""
    # Both workers have begun by then, however long each took to start.
    first = next(mark for mark in marks if mark[1] >= runs // 6)
    return (marks[-1][0] - first[0]) / (marks[-1][1] - first[1]) * runs


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else SCHEDULES
    executions = runs * EXECUTIONS // SCHEDULES
    seconds: dict[str, list[tuple[float, float]]] = {"bare": [], "explore": [], "exhaustive": []}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(count, [1000] * 8))
        for _ in range(ROUNDS):
            seconds["bare"].append((bare(pool, 1), bare(pool, 2)))
            seconds["explore"].append((exploring(1, runs), exploring(2, runs)))
            seconds["exhaustive"].append((exhausting(1, executions), exhausting(2, executions)))
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Python {platform.python_version()}")
    print(f"two calls, P = 4, medians of {ROUNDS} rounds: reduce_scatter:hand, {runs} schedules;")
    print(f"exhaustive: reduce_scatter:hand_no_epilogue, {executions} executions")
    faster = {what: [one / two for one, two in values] for what, values in seconds.items()}
    for what, values in seconds.items():
        one, two = (statistics.median(column) for column in zip(*values, strict=True))
        print(f"{what:10} 1: {one:7.2f} s   2: {two:7.2f} s   1 ÷ 2: {statistics.median(faster[what]):5.2f}")
    for what in ("explore", "exhaustive"):
        share = statistics.median(b / a for a, b in zip(faster["bare"], faster[what], strict=True))
        print(f"{what}: its speed-up ÷ that of bare processes {share:.2f}")


if __name__ == "__main__":
    main()
