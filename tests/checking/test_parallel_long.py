"""A hundred thousand schedules in flat memory. It takes minutes: ``make slow``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUNS = 100_000
PATIENCE = 1800.0
"""Seconds. Two quiet cores need about two minutes."""
GROWTH = 20
"""Megabytes, from the first tenth on. That one fills what is bounded: the behaviours, and the caches."""
PROGRAM = """
import multiprocessing
import sys
import time
from pathlib import Path

from asyncsim import explore
from kernels.reduce_scatter import hand

started = time.monotonic()
shown = []


def resident(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024


def note(now):
    tenth = now.done * 10 // now.total
    if tenth and tenth not in shown:
        shown.append(tenth)
        workers = sorted(worker.pid for worker in multiprocessing.active_children())
        sizes = map(resident, ["self", *workers])
        print(now.done, round(time.monotonic() - started), *sizes, flush=True)


report = explore(hand, ranks=4, runs=int(sys.argv[1]), jobs=2, progress=note)
print(report.verdict, report.schedules, len(report.findings), report.notes[-1], sep="; ")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much memory is resident")
def test_a_hundred_thousand_schedules_keep_memory_flat(pytestconfig):
    if not pytestconfig.getoption("--thorough"):
        pytest.skip("takes minutes; --thorough")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM, str(RUNS)], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    *marks, outcome = done.stdout.splitlines()
    rows = [[int(number) for number in mark.split()] for mark in marks]
    table = "\n".join(f"{row[0]:9,} schedules {row[1]:5} s, megabytes: {row[2]} {row[3:]}" for row in rows)
    print(f"\n{table}\n{outcome}")  # noqa: T201 - for the log of who runs it
    assert outcome.startswith(f"REFUTED; {RUNS + 1}; 1; "), outcome
    assert len(rows) == 10, table
    first, *later = [row[2:] for row in rows]
    assert len(first) == 3, f"a parent and two workers\n{table}"
    grown = [max(sizes) - before for before, *sizes in zip(first, *later, strict=True)]
    assert max(grown) <= GROWTH, f"megabytes that the parent and the workers have grown by: {grown}\n{table}"
