"""What a check costs where writes land late: ``ldst ÷ sc`` and ``nic ÷ sc``, by processor time, in one run.

Each round takes the three models of a kernel in turn; the medians count, and the verdict must be the same.
Run with ``python tests/bench_late.py [RANKS …]``.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time

from late_kernels import KERNELS

from asyncsim import Kernel, check

ROUNDS = 3
RANKS = (8, 16)
MODELS = ("sc", "ldst", "nic")
WANTED = 5


def seconds(kernel: Kernel, ranks: int) -> list[float]:
    """Return what a check takes under each model."""
    taken = []
    for memory in MODELS:
        started = time.process_time()
        report = check(kernel, ranks=ranks, memory=memory)
        taken.append(time.process_time() - started)
        if report.verdict != "PROVED":
            raise RuntimeError(f"{kernel.ref} is {report.verdict} under {memory}")
    return taken


def main() -> None:
    """Print the table."""
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Python {platform.python_version()}", end=", ")
    print(f"load {os.getloadavg()[0]:.1f}; two calls, medians of {ROUNDS} rounds, wanted ≤ {WANTED}")
    for ranks in map(int, sys.argv[1:] or RANKS):
        for name, kernel in KERNELS.items():
            rounds = [seconds(kernel, ranks) for _ in range(ROUNDS)]
            sc, *late = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratios = [statistics.median(one[at] / one[0] for one in rounds) for at in (1, 2)]
            told = "  ".join(f"{memory} ÷ sc {ratio:5.2f}" for memory, ratio in zip(MODELS[1:], ratios, strict=True))
            print(f"P = {ranks:3}  {name:27} {told}  ({late[0]:.2f} and {late[1]:.2f} ÷ {sc:.2f} s)", flush=True)


if __name__ == "__main__":
    main()
