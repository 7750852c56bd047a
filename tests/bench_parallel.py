"""What a second process brings, as a share of what this machine gives to two processes at all.

Two bare processes that do nothing but count seldom get twice what one gets: cores are shared, with
other programs and with each other. So `explore` with two jobs is compared with them, in one run: its
speed-up divided by theirs. Each round takes all four times, one after the other; the medians count.
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
from kernels.reduce_scatter import hand

ROUNDS = 5
SCHEDULES = 6000
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
    """Return the seconds of an exploration, from its first finished batch: starting processes is paid once."""
    marks: list[tuple[float, int]] = []
    explore(hand, ranks=4, runs=runs, jobs=jobs, progress=lambda now: marks.append((time.perf_counter(), now.done)))
    # Both workers have begun by then, however long each took to start.
    first = next(mark for mark in marks if mark[1] >= runs // 6)
    return (marks[-1][0] - first[0]) / (marks[-1][1] - first[1]) * runs


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else SCHEDULES
    seconds: dict[str, list[float]] = {"bare 1": [], "bare 2": [], "explore 1": [], "explore 2": []}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(count, [1000] * 8))
        for _ in range(ROUNDS):
            for jobs in (1, 2):
                seconds[f"bare {jobs}"].append(bare(pool, jobs))
                seconds[f"explore {jobs}"].append(exploring(jobs, runs))
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Python {platform.python_version()}")
    print(f"reduce_scatter:hand, P = 4, two calls, {runs} schedules; medians of {ROUNDS} rounds")
    for name, values in seconds.items():
        print(f"{name:10} {statistics.median(values):7.2f} s")
    faster = {
        what: [one / two for one, two in zip(seconds[f"{what} 1"], seconds[f"{what} 2"], strict=True)]
        for what in ("bare", "explore")
    }
    for what, ratios in faster.items():
        print(f"{what:8} 1 ÷ 2 {statistics.median(ratios):5.2f}")
    share = statistics.median(b / a for a, b in zip(faster["bare"], faster["explore"], strict=True))
    print(f"explore's speed-up ÷ that of bare processes {share:.2f}")


if __name__ == "__main__":
    main()
